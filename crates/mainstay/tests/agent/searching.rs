//! Search over sessions: from the command line, by the model, and while it is killed.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use mainstay_journal::entry::{self, Body};
use mainstay_journal::{SessionId, TurnId, session, turn};
use mainstay_message::Content;
use mainstay_store::{Location, Options, Store, params};
use mainstay_testkit::model::{ModelRequest, Reply};
use mainstay_testkit::shim::Mode;
use mainstay_testkit::sweep::{Outcome, Sweep};
use serde_json::{Value, json};

use crate::world::{Told, World, program};

fn hits(world: &World, words: &[&str]) -> Vec<Value> {
    let mut command = vec!["sessions", "search", "--json"];
    command.extend(words);
    let told = world.run(&command).ended_with(0);
    let data: Value = serde_json::from_str(&told.stdout).unwrap();
    data["hits"].as_array().unwrap().clone()
}

#[test]
fn what_was_said_is_found_by_its_words() {
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("shell", json!({ "command": "echo the parrot_count is 42" })),
        _ => Reply::text("There are forty-two parrots."),
    });
    let nothing = world.run(&["sessions", "search", "parrots"]);
    assert_ne!(nothing.code, Some(0), "there is no store yet: {nothing:#?}");
    let session =
        world.run(&["run", "--yes", "--json", "How many parrots?"]).ended_with(0).session();
    let found = hits(&world, &["parrots"]);
    let said: Vec<&str> = found.iter().map(|hit| hit["who"].as_str().unwrap()).collect();
    assert_eq!(said, ["user", "assistant"]);
    assert_eq!(found[0]["session"], json!(session));
    assert_eq!(found[0]["marks"], json!([[9, 16]]), "{found:#?}");
    assert!(found[1]["before"]["text"].as_str().unwrap().contains("parrot_count"));
    assert_eq!(hits(&world, &["arrot_coun", "--who", "tool"]).len(), 1);
    assert_eq!(hits(&world, &["parrots", "--until", "2026-01-01"]).len(), 0);
    assert_eq!(hits(&world, &["parrots", "--since", "1h", "--workspace", "."]).len(), 2);
    assert_eq!(hits(&world, &["--limit", "1", "--", "parrots", "-forty"]).len(), 1);
    let text = world.run(&["sessions", "search", "parrots", "--sort", "oldest"]).ended_with(0);
    assert!(text.stdout.starts_with(&session), "{text:#?}");
    assert!(text.stdout.contains("How many «parrots»?"), "{text:#?}");
    assert!(text.stdout.contains("  after (assistant): shell echo the"), "{text:#?}");
    let partly = world.run(&["sessions", "search", "parrots cockatoos"]).ended_with(0);
    assert!(partly.stderr.contains("No entry has all of the words"), "{partly:#?}");
    let rebuilt = world.run(&["sessions", "search", "--rebuild"]).ended_with(0);
    assert!(rebuilt.stdout.contains("Rebuilt the index of 5 entries"), "{rebuilt:#?}");
    let wrong = world.run(&["sessions", "search", "x", "--since", "soon"]).ended_with(2);
    assert!(wrong.stderr.contains("write how long ago"), "{wrong:#?}");
    for words in [["parrots", "-forty"], ["--sort=oldest", "--no-verify"]] {
        let told = world.run(&["sessions", "search", words[0], words[1]]).ended_with(2);
        let hint = format!("after `--`: `mainstay sessions search -- {}`", words[1]);
        assert!(
            told.stderr.contains("is not an option") && told.stderr.contains(&hint),
            "{told:#?}"
        );
    }
    let none = world.run(&["sessions", "search", "walrus"]).ended_with(0);
    assert_eq!(none.stdout, "Nothing found.\n");

    world.run(&["sessions", "delete", "--yes", &session]).ended_with(0);
    assert_eq!(hits(&world, &["parrots"]).len(), 0);
    world.model.assert_no_violations();
}

/// Every call of the tool that a turn makes, and what came of it.
fn looked_up(
    arguments: &Value,
    first: &[&str],
    prepare: impl Fn(&World),
) -> (World, String, String) {
    let asked_for = arguments.clone();
    let world = World::new(move |asked: &ModelRequest| {
        let question = asked.last_user_text();
        match (question.contains("remember"), asked.results().len()) {
            (true, 0) => {
                let mut arguments = asked_for.clone();
                if let Some(id) =
                    question.split_whitespace().last().filter(|_| arguments["session"].is_string())
                {
                    arguments["session"] = json!(id);
                }
                Reply::call_of("session_search", arguments)
            }
            (false, 0) if question.contains("outside") => {
                Reply::call_of("shell", json!({ "command": "getent hosts localhost || true" }))
            }
            _ => Reply::text("The harvest begins in June."),
        }
    });
    prepare(&world);
    let earlier = world.run(&[&["run", "--yes", "--json"], first].concat()).ended_with(0).session();
    let asking = format!("What do you remember? {earlier}");
    let session = world.run(&["run", "--yes", "--json", &asking]).ended_with(0).session();
    let asked = world.model.asked();
    let result = asked.last().unwrap().results()[0].1.clone();
    world.model.assert_no_violations();
    let _ = &earlier;
    (world, session, result)
}

#[test]
fn a_model_searches_earlier_sessions_and_reads_them_as_data() {
    let (world, session, result) =
        looked_up(&json!({ "query": "harvest june" }), &["When is the harvest?"], |_| {});
    assert!(result.starts_with("1 entry was found."), "{result}");
    assert!(result.contains("<data ") && result.contains("The **harvest** begins in **June**."));
    assert!(result.contains("before, user: When is the harvest?"), "{result}");
    // Its own question is not among what it finds, and nothing came from outside.
    assert!(!result.contains("remember"), "{result}");
    let audit = world.run(&["audit", &session, "--json"]).ended_with(0);
    let audit: Value = serde_json::from_str(&audit.stdout).unwrap();
    assert_eq!(audit["tainted_since"], Value::Null);

    let (_, _, read) = looked_up(&json!({ "session": "", "around": 1 }), &["When is it?"], |_| {});
    // A title is data like the rest.
    assert!(read.contains(" has 3 entries; around: N shows others.\n<data "), "{read}");
    assert!(read.contains("When is it? (in "), "{read}");
    assert!(read.contains("entry 1 (user, ") && read.contains("): When is it?"), "{read}");
    let (_, _, list) = looked_up(&json!({}), &["When is it?"], |_| {});
    assert!(list.contains("The most recent sessions") && list.contains(": When is it?"), "{list}");
    let (_, _, wrong) = looked_up(&json!({ "query": "x", "since": "soon" }), &["When?"], |_| {});
    assert!(wrong.contains("\"soon\" is not a valid time"), "{wrong}");
}

#[test]
fn words_of_a_tainted_session_taint_the_session_that_finds_them() {
    let (world, session, result) =
        looked_up(&json!({ "query": "harvest" }), &["Look outside for the harvest"], |_| {});
    assert!(result.contains("**harvest**"), "{result}");
    let audit = world.run(&["audit", &session, "--json"]).ended_with(0);
    let audit: Value = serde_json::from_str(&audit.stdout).unwrap();
    assert_eq!(audit["tainted_by"], "`getent hosts localhost`", "{audit:#}");
}

/// Puts sessions into a world's store.
fn furnish(home: &Path, sessions: usize, entries: usize) -> Store {
    let place = Location::file(home.join("store.db"));
    let options = Options::new(mainstay_agent::schema());
    let store = Store::open(&place, options).unwrap();
    store
        .write(|tx| -> mainstay_journal::Result<()> {
            let owner = tx.owner("local")?;
            for number in 0..sessions {
                let (id, turn) = (SessionId::new(), TurnId::new());
                let new = session::New {
                    owner,
                    workspace: "/w",
                    prompt: "p",
                    title: "t",
                    begun_by: None,
                };
                session::create(tx, id, &new)?;
                turn::begin(tx, turn, id, "key")?;
                for seq in 1..=entries {
                    let text = format!("pebble{number} and stone_{seq} on the beach");
                    let body = Body::User { content: vec![Content::Text(text)] };
                    entry::insert(tx, id, turn, i64::try_from(seq).unwrap(), &body)?;
                }
                turn::end(tx, turn, turn::Outcome::Answered, None)?;
            }
            Ok(())
        })
        .unwrap();
    store
}

#[test]
fn slow_killed_while_it_catches_up_and_with_others_beside_it_nothing_is_lost_or_doubled() {
    let world = World::new(|_: &ModelRequest| Reply::text("unused"));
    let (sessions, entries) = (60, 50);
    let store = furnish(&world.home(), sessions, entries);
    let words = ["sessions", "search", "--limit", "100", "beach", "--json"];
    // Processes at the same time, killed at any moment of their work.
    for round in 0..12 {
        let mut running: Vec<_> = (0..2).map(|_| world.start(&words)).collect();
        std::thread::sleep(Duration::from_millis(5 + round * 17 % 90));
        for process in &mut running {
            process.kill_and_wait();
        }
        if round == 6 {
            store.write(|tx| tx.execute("DELETE FROM cache_search_state", params![])).unwrap();
        }
    }
    let both = [world.start(&words), world.start(&words)];
    for running in both {
        world.ended(running, Duration::from_secs(60)).ended_with(0);
    }
    let count: i64 = store
        .read(|tx| {
            let sql = "SELECT count(*) FROM cache_search_documents";
            tx.query_one(sql, params![], |row| row.get(0))
        })
        .unwrap();
    assert_eq!(usize::try_from(count).unwrap(), sessions * entries);
    for number in [0, 17, 59] {
        let word = format!("pebble{number}");
        assert_eq!(hits(&world, &["--limit", "100", &word]).len(), entries, "{word}");
    }
    assert_eq!(hits(&world, &["--limit", "100", "stone_50"]).len(), sessions);
    world.run(&["store", "check"]).ended_with(0);
}

#[test]
fn slow_on_a_full_disk_what_is_indexed_is_found_and_the_rest_is_said() {
    let answers = Mutex::new(Vec::new());
    let search = ["sessions", "search", "--json", "--limit", "100", "beach"];
    let prepare = |home: &Path| -> Command {
        let store = furnish(home, 1, 5);
        drop(store);
        let done = program(home, home, &search).output().unwrap();
        Told::from(done).ended_with(0);
        drop(furnish(home, 1, 7));
        program(home, home, &search)
    };
    let verify = |outcome: &Outcome<'_>| {
        let said = String::from_utf8_lossy(&outcome.stderr);
        if outcome.status.success() {
            let data: Value = serde_json::from_slice(&outcome.stdout).unwrap();
            let (found, behind) = (data["hits"].as_array().unwrap().len(), &data["behind"]);
            assert!([(5, &json!(7)), (12, &json!(0))].contains(&(found, behind)), "{data:#}");
            let why = data["shortcoming"].as_str().unwrap_or_default();
            assert_eq!(why.contains("cannot be indexed now: no space"), found == 5, "{data:#}");
            answers.lock().unwrap().push(found);
        } else {
            assert!(said.starts_with("error: ") && said.contains("hint: "), "{said}");
        }
        let again = program(outcome.directory, outcome.directory, &search).output().unwrap();
        let data: Value = serde_json::from_str(&Told::from(again).ended_with(0).stdout).unwrap();
        assert_eq!(data["hits"].as_array().unwrap().len(), 12, "{data:#}");
    };
    let swept = Sweep::of(Mode::Enospc).forever().every(5).run(prepare, verify);
    println!("{swept:?} {answers:?}");
    assert!(answers.lock().unwrap().contains(&5), "nothing was found without the index: {swept:?}");
}
