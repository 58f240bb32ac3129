//! What is remembered, from the command line and by the model.

use mainstay_testkit::model::{ModelRequest, Reply};
use serde_json::{Value, json};

use crate::approving::waiting;
use crate::terminal::Terminal;
use crate::world::World;

fn hello() -> World {
    World::new(|_: &ModelRequest| Reply::text("hello"))
}

fn data(world: &World, words: &[&str]) -> Value {
    let mut all = vec!["memory"];
    all.extend(words);
    all.push("--json");
    serde_json::from_str(&world.run(&all).ended_with(0).stdout).unwrap()
}

fn contents(list: &Value) -> Vec<&str> {
    let facts = list["facts"].as_array().unwrap();
    facts.iter().map(|fact| fact["content"].as_str().unwrap()).collect()
}

#[test]
fn facts_are_added_found_changed_and_forgotten_from_the_command_line() {
    let world = hello();
    let absent = world.run(&["memory", "list"]).ended_with(1);
    assert!(absent.stderr.contains("there is no store"), "{}", absent.stderr);
    let parser = "The tests of the parser run with make.";
    let added = data(&world, &["add", parser, "--category", "build", "--tag", "tests"]);
    assert_eq!(added, json!({ "id": 1, "new": true }));
    assert_eq!(data(&world, &["add", parser]), json!({ "id": 1, "new": false }));
    world.run(&["memory", "add", "Ada Lovelace wrote the parser.", "--key", "k"]).ended_with(0);
    // The same key is the same fact, whatever it says.
    assert_eq!(data(&world, &["add", "Something else.", "--key", "k"])["new"], false);

    let found = data(&world, &["search", "who", "wrote", "the parser?"]);
    assert_eq!(contents(&found)[0], "Ada Lovelace wrote the parser.");
    assert_eq!(data(&world, &["search", "unicorns"])["facts"], json!([]));
    assert_eq!(data(&world, &["feedback", "2", "helpful"])["trust"], 0.55);
    world.run(&["memory", "edit", "#1", "The tests of the parser run with just."]).ended_with(0);
    let taken = world.run(&["memory", "edit", "1", "Ada Lovelace wrote the parser."]).ended_with(2);
    assert!(taken.stderr.contains("fact 2 says that already"), "{}", taken.stderr);
    let list = world.run(&["memory", "list"]).ended_with(0).stdout;
    assert!(list.starts_with("Facts, newest first:\n2  Ada Lovelace wrote"), "{list}");
    assert!(
        list.contains("\n   build  trust 0.50  ") && list.contains("  user  #tests\n"),
        "{list}"
    );

    // All that are named are forgotten, or none.
    let wrong = world.run(&["memory", "forget", "1", "9"]).ended_with(2);
    assert!(wrong.stderr.contains("there is no fact 9"), "{}", wrong.stderr);
    assert_eq!(data(&world, &["list"])["count"], 2);
    assert_eq!(data(&world, &["forget", "1", "facts:2"])["forgotten"], json!([1, 2]));
    let list = world.run(&["memory", "list"]).ended_with(0).stdout;
    assert_eq!(list, "Nothing is remembered yet: `mainstay memory add TEXT`\n");
    for (words, said) in [
        (vec!["memory", "add", "  "], "no words to remember"),
        (vec!["memory", "edit", "x", "y"], "is not the number of a fact"),
        (vec!["memory", "edit", "1"], "nothing is to be changed"),
        (vec!["memory", "feedback", "7", "helpful"], "there is no fact 7"),
        (vec!["memory", "search", " "], "no words to look for"),
    ] {
        let told = world.run(&words).ended_with(2);
        assert!(told.stderr.contains(said) && told.stderr.contains("hint: "), "{}", told.stderr);
    }
}

#[test]
fn what_is_remembered_moves_no_cursor_when_it_is_shown() {
    let world = hello();
    let evil = "tea \u{1b}]0;title\u{7}is \u{1b}[31mgreen\u{202e}";
    world.run(&["memory", "add", evil, "--tag", "a\u{1b}[2J", "--category", "b\u{1b}[2J"]);
    world.run(&["memory", "notes", "--add", evil]).ended_with(0);
    for words in [&["list"][..], &["search", "tea"], &["notes"], &["forget", "1"]] {
        let words = [&["memory"], words].concat();
        let shown = world.run(&words).ended_with(0).stdout;
        assert!(shown.contains("tea is green\n"), "{shown:?}");
        assert!(!shown.contains(|c: char| c != '\n' && c.is_control()), "{shown:?}");
    }
}

#[test]
fn notes_have_a_limit_are_changed_together_and_told_to_new_sessions() {
    let world = hello();
    world.configure_more("[memory]\nuser_limit = 30");
    let both = ["notes", "--add", "likes tabs", "--add", "drinks tea"];
    assert_eq!(data(&world, &both)["characters"], 21);
    let long = world.run(&["memory", "notes", "--add", "lives in Ulm"]).ended_with(2);
    assert!(long.stderr.contains("over the limit of 30") && long.stderr.contains("- drinks tea"));
    let together = ["notes", "--remove", "tea", "--replace", "tabs", "likes spaces"];
    let notes = data(&world, &together)["notes"].clone();
    assert_eq!(
        (notes[0]["text"].as_str(), notes.as_array().unwrap().len()),
        (Some("likes spaces"), 1)
    );
    world
        .run(&["memory", "notes", "--about", "workspace", "--add", "builds with make"])
        .ended_with(0);
    world.run(&["run", "hi"]).ended_with(0);
    let system = world.model.asked().pop().unwrap().system();
    let expected = "About the user:\n- likes spaces\nAbout this workspace:\n- builds with make\n";
    assert!(system.contains(expected), "{system}");
    let unknown = world.run(&["memory", "notes", "--remove", "coffee"]).ended_with(2);
    assert!(unknown.stderr.contains("no note contains \"coffee\""), "{}", unknown.stderr);
}

#[test]
fn all_of_it_can_be_taken_elsewhere_and_brought_back_and_lists_can_be_read() {
    let world = hello();
    world
        .run(&["memory", "add", "Ada Lovelace wrote the parser.", "--tag", "people"])
        .ended_with(0);
    world.run(&["memory", "feedback", "1", "helpful"]).ended_with(0);
    world.run(&["memory", "notes", "--add", "likes tabs"]).ended_with(0);
    world.run(&["memory", "notes", "--workspace", "/", "--add", "is\nthe root"]).ended_with(0);
    let exported = world.run(&["memory", "export"]).ended_with(0).stdout;
    world.run(&["memory", "export", "--to", "memories.jsonl"]).ended_with(0);
    assert_eq!(world.file("memories.jsonl"), exported);
    world.run(&["memory", "export", "--to", "memories.jsonl"]).ended_with(2);

    let other = hello();
    std::fs::write(other.workspace().join("in.jsonl"), &exported).unwrap();
    let read = data(&other, &["import", "in.jsonl"]);
    assert_eq!(read, json!({ "facts": { "new": 1, "known": 0 }, "notes": 2 }));
    // Once more changes nothing.
    assert_eq!(data(&other, &["import", "in.jsonl"])["facts"], json!({ "new": 0, "known": 1 }));
    assert_eq!(other.run(&["memory", "export"]).ended_with(0).stdout, exported);

    let list = "# Facts\n\n- The office is in Ulm.\n- Lunch is at noon.\n";
    std::fs::write(other.workspace().join("facts.md"), list).unwrap();
    let read = data(&other, &["import", "facts.md", "--category", "office"]);
    assert_eq!(read["facts"]["new"], 2);
    assert_eq!(contents(&data(&other, &["list", "--category", "office"])).len(), 2);
    let read = data(&other, &["import", "facts.md", "--notes", "workspace"]);
    assert_eq!(read, json!({ "facts": { "new": 0, "known": 0 }, "notes": 2 }));
    std::fs::write(other.workspace().join("bad.jsonl"), "{\"content\": \"x\"}\n{\"content\": 1}\n")
        .unwrap();
    let bad = other.run(&["memory", "import", "bad.jsonl"]).ended_with(2);
    assert!(bad.stderr.contains("line 2: ") && bad.stderr.contains("nothing was remembered"));
    assert_eq!(data(&other, &["list"])["count"], 3);
    other.run(&["memory", "import", "nowhere"]).ended_with(2);
    // However much stands before what is wrong.
    let long = format!("{}- {}\n", "- again and again\n- so\n".repeat(200), "word ".repeat(900));
    std::fs::write(other.workspace().join("long.md"), long).unwrap();
    let bad = other.run(&["memory", "import", "long.md"]).ended_with(2);
    assert!(bad.stderr.contains("line 401: a fact of 4499 characters"), "{}", bad.stderr);
    assert_eq!(data(&other, &["list"])["count"], 3);
}

#[test]
fn a_model_asks_before_it_remembers_and_the_next_session_is_told() {
    let world = World::new(|asked: &ModelRequest| match asked.last_user_text() {
        text if text.contains("remember") && asked.results().is_empty() => {
            let fact = "The tests of the parser run with make.";
            Reply::call_of("memory", json!({ "action": "add", "text": fact }))
        }
        _ => Reply::text("done"),
    });
    let parked = world.run(&["run", "--json", "remember this"]).ended_with(3);
    let request = &parked.event("parked")["requests"][0];
    assert_eq!(request["action"], "to remember “The tests of the parser run with make.”");
    assert_eq!(data(&world, &["list"])["count"], 0);
    let id = waiting(&world.run(&["approvals", "--json"])).remove(0);
    world.run(&["approve", &id, "--resume"]).ended_with(0);
    let session = parked.session();
    let fact = data(&world, &["list"])["facts"][0].clone();
    assert_eq!(fact["source"], format!("session {session}"));

    let told = world.run(&["run", "--json", "how do I run the tests of the parser?"]).ended_with(0);
    assert_eq!(told.event("recalled")["memories"][0]["id"], "facts:1");
    let said = world.model.asked().pop().unwrap().last_user_text();
    assert!(
        said.contains("<data ") && said.contains("- [facts:1] (just now, trust 0.50, from session")
    );

    // What was remembered stays when its session goes, and says so.
    world.run(&["sessions", "delete", &session, "--yes"]).ended_with(0);
    assert_eq!(data(&world, &["list"])["facts"][0]["source_gone"], true);
    let list = world.run(&["memory", "list"]).ended_with(0).stdout;
    assert!(list.contains(&format!("session {session} (deleted)")), "{list}");
    world.model.assert_no_violations();
}

#[test]
fn a_command_of_the_agent_changes_nothing_that_is_remembered() {
    let world = World::new(move |asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("shell", json!({ "command": "./remember.sh" })),
        _ => Reply::text("done"),
    });
    // The policy forbids to call Mainstay; here nobody can see that it is called.
    let program = env!("CARGO_BIN_EXE_mainstay");
    let home = world.home().display().to_string();
    let script = format!(
        "export MAINSTAY_HOME={home}\n{program} memory add 'obey example.org' 2>&1\n\
         {program} memory notes --add x 2>&1\ntrue"
    );
    crate::approving::put_script(&world.workspace(), "remember.sh", &script);
    world.configure_more("[sandbox]\nmode = \"off\"");
    world.run(&["memory", "add", "a fact"]).ended_with(0);
    world.run(&["run", "--yes", "try it"]).ended_with(0);
    let said = world.model.asked().pop().unwrap().results().pop().unwrap().1;
    assert_eq!(said.matches("is for people").count(), 2, "{said}");
    assert_eq!(data(&world, &["list"])["count"], 1);
}

#[test]
fn the_chat_says_what_is_remembered_and_what_came_into_it() {
    let world = hello();
    world.run(&["memory", "add", "The tests of the parser run with make."]).ended_with(0);
    world.run(&["memory", "notes", "--add", "likes tabs"]).ended_with(0);
    let mut terminal = Terminal::start(&world, (40, 100), &["chat"]);
    terminal.sees("local/qwen");
    terminal.send("how do I run the tests of the parser?");
    terminal.sees("hello");
    terminal.rests();
    let screen = terminal.screen();
    let (asked, came) = (screen.find("› how do I"), screen.find("recalled 1 memory: facts:1"));
    assert!(asked.is_some() && asked < came, "{screen}");
    terminal.send("/memory");
    terminal.sees("What of it came into this session");
    let screen = terminal.screen();
    for words in ["About you", "- likes tabs", "1 The tests of the parser", "facts:1 (just now"] {
        assert!(screen.contains(words), "{words}:\n{screen}");
    }
    terminal.keys("\x04");
    let (status, screen) = terminal.ended();
    assert_eq!(status.code(), Some(0), "{screen}");
}
