//! Skills: told by name, loaded on demand, run under the policy and in the sandbox.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use mainstay_testkit::model::{ModelRequest, Reply, rounds};
use serde_json::{Value, json};

use crate::approving::waiting;
use crate::terminal::Terminal;
use crate::world::{Told, World};

/// Puts a skill with a script and a reference into a directory of skills.
pub(crate) fn put(skills: &Path, name: &str, body: &str) {
    let folder = skills.join(name);
    std::fs::create_dir_all(folder.join("scripts")).unwrap();
    let text = format!("---\nname: {name}\ndescription: Knows {name}.\n---\n{body}\n");
    std::fs::write(folder.join("SKILL.md"), text).unwrap();
    std::fs::write(folder.join("scripts/hello.sh"), "echo hello from a script\n").unwrap();
    std::fs::write(folder.join("notes.md"), "a reference\n").unwrap();
}

fn listed(world: &World) -> Value {
    serde_json::from_str(&world.run(&["skills", "list", "--json"]).ended_with(0).stdout).unwrap()
}

fn names(list: &Value) -> Vec<&str> {
    list["skills"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect()
}

#[test]
fn names_are_told_first_the_body_on_demand_and_scripts_run_under_the_policy() {
    let place = "../home/skills/greet";
    let steps = move |number| match number {
        0 => ("skill", json!({ "name": "greet" })),
        1 => ("read_file", json!({ "path": format!("{place}/notes.md") })),
        2 => ("read_file", json!({ "path": "../home/config.toml" })),
        3 => ("write_file", json!({ "path": format!("{place}/SKILL.md"), "content": "mine" })),
        4 => ("shell", json!({ "command": format!("sh {place}/scripts/hello.sh") })),
        _ => (
            "shell",
            json!({ "command": format!("cat ../home/config.toml; echo mine > {place}/new; ls {place}") }),
        ),
    };
    let world = World::new(rounds(6, steps).finally("Greeted."));
    put(&world.home().join("skills"), "greet", "Say the secret word: abracadabra.");
    put(&world.workspace().join(".agents/skills"), "local", "Only here.");
    // What it writes is asked about before the script is.
    world.configure_more("[policy]\nwrite_outside = \"allow\"");
    let parked = world.run(&["run", "--json", "greet me"]).ended_with(3);
    let first = world.model.asked()[0].clone();
    let told = first.system();
    for words in ["The user's own:\n- greet: Knows greet.", "project:\n- local: Knows local."] {
        assert!(told.contains(words), "{told}");
    }
    assert!(!told.contains("abracadabra"), "the body is told before it is wanted: {told}");
    assert!(first.tool_names().contains(&"skill".to_owned()));
    let request = parked.event("parked")["requests"][0].clone();
    assert_eq!(request["action"], format!("to run `sh {place}/scripts/hello.sh`"));

    world.run(&["resume", "--yes"]).ended_with(0);
    let results = world.model.asked().pop().unwrap().results();
    let texts: Vec<&str> = results.iter().map(|(_, text)| text.as_str()).collect();
    assert!(
        texts[0].contains("one of the user's own") && texts[0].contains("abracadabra"),
        "{texts:?}"
    );
    assert!(texts[0].contains("scripts/hello.sh") && texts[0].contains("<skill "), "{texts:?}");
    assert!(texts[1].contains("a reference"), "{texts:?}");
    assert!(texts[2].contains("which tools cannot open"), "{texts:?}");
    assert!(texts[3].contains("propose_skill"), "{texts:?}");
    assert!(texts[4].contains("hello from a script"), "{texts:?}");
    assert!(
        !texts[5].contains("base_url") && !world.home().join("skills/greet/new").exists(),
        "{texts:?}"
    );
    assert!(texts[5].contains("notes.md"), "{texts:?}");
    world.model.assert_no_violations();
    world.nothing_runs();
}

#[test]
fn what_cannot_be_used_is_said_once_with_its_file_and_the_session_goes_on() {
    let world = World::new(|_: &ModelRequest| Reply::text("done"));
    let skills = world.home().join("skills");
    put(&skills, "good", "Fine.");
    put(&skills, "bad", "Fine.");
    let file = skills.join("bad/SKILL.md");
    std::fs::write(&file, "---\nname: bad\ndescription: Use when: asked\n---\n").unwrap();
    let told = world.run(&["run", "hello"]).ended_with(0);
    let shown = file.display().to_string();
    assert_eq!(told.stderr.matches(&shown).count(), 1, "{told:#?}");
    assert!(told.stderr.contains("belongs in quotes"), "{told:#?}");
    let events = world.run(&["run", "--json", "hello"]).ended_with(0);
    let notice = events.event("notice");
    assert_eq!(notice["about"], "skill", "{notice}");
    assert!(notice["message"].as_str().unwrap().contains(&shown), "{notice}");
    let list = listed(&world);
    assert_eq!(names(&list), ["good"]);
    assert_eq!(list["warnings"][0]["file"], shown.as_str(), "{list}");
    let text = world.run(&["skills", "list"]).ended_with(0).stdout;
    assert!(text.contains(&format!("cannot be used: {shown}")), "{text}");
    let system = world.model.asked()[0].system();
    assert!(system.contains("- good:") && !system.contains("- bad"), "{system}");
}

#[test]
fn a_small_window_is_told_names_and_the_nearer_skill_holds() {
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("skill", json!({ "name": "greet" })),
        _ => Reply::text("done"),
    });
    put(&world.home().join("skills"), "greet", "From the home.");
    put(&world.workspace().join(".claude/skills"), "greet", "From the workspace.");
    world.configure_more("[models.\"local/qwen\"]\nwindow = 8192");
    world.run(&["run", "hello"]).ended_with(0);
    let asked = world.model.asked();
    let system = asked[0].system();
    assert!(system.contains("load one with `skill`\ngreet\n"), "{system}");
    let body = &asked[1].results()[0].1;
    assert!(body.contains("From the workspace.") && body.contains("whoever wrote"), "{body}");
    let text = world.run(&["skills", "list"]).ended_with(0).stdout;
    let hidden = world.home().join("skills/greet").canonicalize().unwrap();
    assert!(text.contains(&format!("holds, before {}", hidden.display())), "{text}");
}

#[test]
fn a_name_after_a_slash_sends_the_skill_with_the_words() {
    let world = World::new(|_: &ModelRequest| Reply::text("done"));
    put(&world.home().join("skills"), "greet", "Say abracadabra.");
    world.run(&["run", "/greet Bob"]).ended_with(0);
    let mut chat = world.command(&["chat"]);
    let chat = chat.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut chat = chat.spawn().unwrap();
    chat.stdin.take().unwrap().write_all(b"/greet Eve\n/nobody there\n/etc/x is what?\n").unwrap();
    let told = Told::from(chat.wait_with_output().unwrap()).ended_with(0);
    assert!(told.stderr.contains("Commands need a terminal"), "{told:#?}");
    let asked = world.model.asked();
    for (request, words) in [(0, "/greet Bob"), (1, "/greet Eve")] {
        let said = asked[request].last_user_text();
        assert!(said.contains(words) && said.contains("Say abracadabra."), "{said}");
    }
    let third = asked[2].last_user_text();
    assert!(third.contains("/etc/x is what?") && !third.contains("abracadabra"), "{third}");
    let list = world.run(&["sessions", "list", "--json"]).ended_with(0);
    let list: Value = serde_json::from_str(&list.stdout).unwrap();
    assert_eq!(list[1]["title"], "/greet Bob");
    world.model.assert_no_violations();
}

#[test]
fn a_chat_completes_and_calls_skills_and_a_command_comes_before_one() {
    let world = World::new(|_: &ModelRequest| Reply::text("All done."));
    put(&world.home().join("skills"), "greet", "Say abracadabra.");
    put(&world.home().join("skills"), "help", "Never.");
    let mut terminal = Terminal::start(&world, (30, 90), &["chat"]);
    terminal.sees("local/qwen");
    terminal.keys("/gr");
    terminal.sees("Knows greet.");
    terminal.keys("\t");
    terminal.send("Bob");
    terminal.sees("› /greet Bob");
    terminal.sees("All done.");
    let said = world.model.asked()[0].last_user_text();
    assert!(said.contains("abracadabra"), "{said}");
    terminal.send("/help");
    terminal.sees("/help is a command");
    terminal.send("/skills");
    terminal.sees("/greet  Knows greet.");
    terminal.keys("\x04");
    let (status, screen) = terminal.ended();
    assert_eq!(status.code(), Some(0), "{screen}");
    assert!(!screen.contains("abracadabra"), "what was typed is shown, not the skill:\n{screen}");
    assert_eq!(world.model.requests(), 1);
}

#[test]
fn folders_are_added_replaced_removed_and_brought_back() {
    let world = World::new(|_: &ModelRequest| Reply::text("done"));
    let from = world.workspace().join("from");
    put(&from, "greet", "First.");
    put(&from, "wrong", "x");
    std::fs::rename(from.join("wrong"), from.join("other")).unwrap();
    let refused = world.run(&["skills", "add", "from/other"]).ended_with(1);
    assert!(
        refused.stderr.contains("\"wrong\"") && refused.stderr.contains("hint:"),
        "{refused:#?}"
    );
    world.run(&["skills", "add", "from/nothing"]).ended_with(2);
    world.run(&["skills", "add", "from/greet"]).ended_with(0);
    put(&from, "greet", "Second.");
    let taken = world.run(&["skills", "add", "from/greet"]).ended_with(2);
    assert!(taken.stderr.contains("--replace"), "{taken:#?}");
    let shows = |words: &str| {
        let shown = world.run(&["skills", "show", "greet"]).ended_with(0).stdout;
        assert!(shown.contains(words), "{shown}");
    };
    shows("First.");
    world.run(&["skills", "add", "from/greet", "--replace"]).ended_with(0);
    shows("Second.");
    world.run(&["skills", "remove", "greet"]).ended_with(0);
    world.run(&["skills", "remove", "greet"]).ended_with(2);
    assert_eq!(names(&listed(&world)), [""; 0]);
    world.run(&["skills", "restore", "greet"]).ended_with(0);
    shows("Second.");
    let trash = world.run(&["skills", "trash", "--json"]).ended_with(0).stdout;
    let trash: Value = serde_json::from_str(&trash).unwrap();
    assert_eq!(trash.as_array().unwrap().len(), 1, "{trash}");
    world.run(&["skills", "trash", "--empty"]).ended_with(2);
    world.run(&["skills", "trash", "--empty", "--yes"]).ended_with(0);
    world.run(&["skills", "restore", "greet"]).ended_with(2);
    shows("Second.");
    assert_eq!(names(&listed(&world)), ["greet"]);
    // Nobody had to have a store for that.
    assert!(!world.home().join("store.db").exists());
}

#[test]
fn an_agent_changes_no_skills_by_a_command() {
    let world = World::new(rounds(1, |_| ("shell", json!({ "command": "mainstay skills add ." }))));
    let told = world.run(&["run", "--yes", "--json", "add it"]).ended_with(0);
    assert_eq!(told.event("tool_result")["failed"], true, "{told:#?}");
    assert!(waiting(&world.run(&["approvals", "--json"])).is_empty());
    let mut kept = world.command(&["skills", "add", "."]);
    let refused = Told::from(kept.env("MAINSTAY_JOB", "x").output().unwrap()).ended_with(1);
    assert!(refused.stderr.contains("is for people"), "{refused:#?}");
}
