//! Skills that a model proposes: nothing uses them before a person says so, and a kill in the middle
//! of that leaves the old one or the new one, whole.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use mainstay_testkit::model::{ModelRequest, ModelServer, Reply, Script, Shape, rounds};
use mainstay_testkit::postgres;
use mainstay_testkit::shim::{Kind, Mode};
use mainstay_testkit::sweep::{Outcome, Sweep};
use serde_json::{Value, json};

use crate::approving::waiting;
use crate::skills::put;
use crate::world::{Told, World, configuration, program};

fn text(body: &str) -> String {
    format!("---\nname: greet\ndescription: Knows how to greet.\n---\n{body}\n")
}

fn proposal(body: &str) -> Value {
    json!({
        "name": "greet",
        "reason": "It was needed twice.",
        "files": [
            { "path": "SKILL.md", "content": text(body) },
            { "path": "scripts/hello.sh", "content": format!("#!/bin/sh\necho {body}\n") },
        ],
    })
}

fn proposing(body: &'static str) -> impl Script {
    rounds(1, move |_| ("propose_skill", proposal(body))).finally("Proposed.")
}

fn ids(told: &Told) -> Vec<String> {
    let list: Value = serde_json::from_str(&told.stdout).unwrap();
    list.as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_proposal_waits_for_a_person_and_is_told_of_only_then() {
    for store in [None, Some(postgres::fresh())] {
        let world = World::new(proposing("abracadabra"));
        let run = |words: &[&str]| -> Told {
            let place = store.iter().flat_map(|store| ["--store", store.as_str()]);
            world.run(&place.chain(words.iter().copied()).collect::<Vec<_>>())
        };
        // What waits for a person anyway is not asked about before.
        let told = run(&["run", "learn"]).ended_with(0);
        assert!(told.stderr.contains("a skill was proposed and waits for you"), "{told:#?}");
        let result = world.model.asked().pop().unwrap().results().pop().unwrap().1;
        assert!(result.contains("waits for a person"), "{result}");

        let list = run(&["skills", "list"]).ended_with(0).stdout;
        assert!(
            list.contains("There are no skills") && list.contains("1 proposal waits"),
            "{list}"
        );
        assert!(!world.home().join("skills").exists());
        let proposals = run(&["skills", "proposals", "--json"]).ended_with(0);
        let id = ids(&proposals).remove(0);
        let shown = run(&["skills", "proposals", &id[..14]]).ended_with(0).stdout;
        assert!(
            shown.contains("+abracadabra") && shown.contains("It was needed twice."),
            "{shown}"
        );
        // Nobody is there to be asked.
        let refused = run(&["skills", "approve", &id]).ended_with(2);
        assert!(refused.stderr.contains("+++ b/SKILL.md"), "{refused:#?}");
        run(&["skills", "approve", &id, "--yes"]).ended_with(0);
        run(&["skills", "approve", &id, "--yes"]).ended_with(0);
        assert!(run(&["skills", "reject", &id]).ended_with(1).stderr.contains("approved already"));
        assert!(ids(&run(&["skills", "proposals", "--json"]).ended_with(0)).is_empty());
        let kept = std::fs::read_to_string(world.home().join("skills/greet/SKILL.md")).unwrap();
        assert_eq!(kept, text("abracadabra"));
        assert!(!world.model.asked()[0].system().contains("greet"));
        run(&["run", "again"]);
        let last = world.model.asked().pop().unwrap();
        assert!(last.system().contains("- greet: Knows how to greet."), "{}", last.system());
        world.model.assert_no_violations();
    }
}

#[test]
fn what_changed_meanwhile_is_left_alone_and_a_deleted_session_proposes_nothing() {
    let world = World::new(proposing("new"));
    let skills = world.home().join("skills");
    put(&skills, "greet", "old");
    let session = world.run(&["run", "--yes", "--json", "learn"]).ended_with(0).session();
    let id = ids(&world.run(&["skills", "proposals", "--json"]).ended_with(0)).remove(0);
    std::fs::write(skills.join("greet/notes.md"), "somebody else's\n").unwrap();
    let refused = world.run(&["skills", "approve", &id, "--yes"]).ended_with(1);
    assert!(refused.stderr.contains("was changed since"), "{refused:#?}");
    assert!(std::fs::read_to_string(skills.join("greet/SKILL.md")).unwrap().contains("old"));
    world.run(&["sessions", "delete", &session, "--yes"]).ended_with(0);
    assert!(ids(&world.run(&["skills", "proposals", "--all", "--json"]).ended_with(0)).is_empty());
    world.run(&["skills", "approve", &id, "--yes"]).ended_with(2);
}

#[test]
fn a_tainted_session_is_named_in_the_skill_that_it_proposed() {
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("shell", json!({ "command": "getent hosts localhost || true" })),
        1 => Reply::call_of("propose_skill", proposal("new")),
        _ => Reply::text("done"),
    });
    // The command is asked about, and with words from outside the proposal still is not.
    world.run(&["run", "learn"]).ended_with(3);
    let request = waiting(&world.run(&["approvals", "--json"])).remove(0);
    let session = world.run(&["approve", &request, "--resume", "--json"]).ended_with(0).session();
    let audit = world.run(&["audit", &session]).ended_with(0).stdout;
    assert!(audit.contains("proposed the skill greet, for you to decide"), "{audit}");
    let list = world.run(&["skills", "proposals", "--json"]).ended_with(0);
    let id = ids(&list).remove(0);
    let text = world.run(&["skills", "proposals"]).ended_with(0).stdout;
    assert!(text.contains("had read words from `getent hosts localhost`"), "{text}");
    world.run(&["skills", "approve", &id, "--yes"]).ended_with(0);
    let shown = world.run(&["skills", "show", "greet"]).ended_with(0).stdout;
    assert!(shown.contains("mainstay-origin: session ") && shown.contains("getent"), "{shown}");
}

/// What is in a skill's folder, by path.
fn files(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut left = vec![folder.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                left.push(path);
            } else {
                let inner = path.strip_prefix(folder).unwrap().display().to_string();
                found.push((inner, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// Kills an approval at every change it makes to the home, and every sync.
fn sweep(old: Option<&str>) {
    let servers: Mutex<HashMap<PathBuf, (ModelServer, String)>> = Mutex::new(HashMap::new());
    let prepare = |home: &Path| -> Command {
        let server = ModelServer::start(proposing("new"));
        let workspace = home.with_file_name("work");
        std::fs::create_dir_all(&workspace).unwrap();
        std::fs::write(home.join("config.toml"), configuration(Shape::Chat, &server)).unwrap();
        if let Some(old) = old {
            put(&home.join("skills"), "greet", old);
        }
        let run = |words: &[&str]| Told::from(program(home, &workspace, words).output().unwrap());
        run(&["run", "--yes", "learn"]).ended_with(0);
        let id = ids(&run(&["skills", "proposals", "--json"]).ended_with(0)).remove(0);
        servers.lock().unwrap().insert(home.to_owned(), (server, id.clone()));
        program(home, &workspace, &["skills", "approve", &id, "--yes"])
    };
    let verify = |outcome: &Outcome<'_>| {
        let home = outcome.directory;
        let (_server, id) = servers.lock().unwrap().remove(home).unwrap();
        let (workspace, folder) = (home.with_file_name("work"), home.join("skills/greet"));
        let run = |words: &[&str]| Told::from(program(home, &workspace, words).output().unwrap());
        let mut new = vec![
            ("SKILL.md".to_owned(), text("new")),
            ("scripts/hello.sh".to_owned(), "#!/bin/sh\necho new\n".to_owned()),
        ];
        let mut before = Vec::new();
        if let Some(old) = old {
            let reference = ("notes.md".to_owned(), "a reference\n".to_owned());
            let said = format!("---\nname: greet\ndescription: Knows greet.\n---\n{old}\n");
            let script = ("scripts/hello.sh".to_owned(), "echo hello from a script\n".to_owned());
            before = vec![("SKILL.md".to_owned(), said), reference.clone(), script];
            new.insert(1, reference);
        }
        let now = files(&folder);
        assert!(now == before || now == new, "neither the old skill nor the new one: {now:#?}");
        assert!(!outcome.status.success() || now == new, "it was told and is not there");
        let listed = run(&["skills", "list", "--json"]).ended_with(0);
        let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
        assert_eq!(listed["warnings"], json!([]), "{listed:#}");
        run(&["skills", "approve", &id, "--yes"]).ended_with(0);
        assert_eq!(files(&folder), new);
        let all = run(&["skills", "proposals", "--all", "--json"]).ended_with(0).stdout;
        assert!(all.contains("\"approved\""), "{all}");
        let left = std::fs::read_dir(home.join("skills")).unwrap().flatten();
        let mut left: Vec<String> =
            left.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        left.retain(|name| name != ".trash");
        assert_eq!(left, ["greet"], "something was left behind");
    };
    let kinds = [Kind::Sync, Kind::Rename, Kind::Create, Kind::Unlink];
    let swept = Sweep::of(Mode::Kill).only(&kinds).run(prepare, verify);
    println!("{swept:?}");
    assert!(swept.points >= 10 && swept.struck >= 10, "{swept:?}");
}

#[test]
fn slow_heavy_killed_while_it_is_approved_a_skill_is_the_old_or_the_new_one() {
    sweep(Some("old"));
}

#[test]
fn slow_killed_while_it_is_approved_a_new_skill_is_there_or_not() {
    sweep(None);
}
