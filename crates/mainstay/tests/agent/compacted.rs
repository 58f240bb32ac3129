//! A session with a compaction in it, as every command meets it. What makes compactions is tried
//! elsewhere; here they are written into the store.

use mainstay_agent::{approvals::requests, ledger};
use mainstay_journal::compaction::{self, Committed, Compaction};
use mainstay_journal::entry::Body;
use mainstay_journal::{Result, SessionId, TurnId, entry, session, turn};
use mainstay_message::{AssistantPart, Content};
use mainstay_store::{Location, Options, Store};
use mainstay_testkit::model::{ModelRequest, Reply};
use serde_json::{Value, json};

use crate::approving::{counting, put_counter, waiting};
use crate::terminal::Terminal;
use crate::world::{Told, World};

/// A world whose model runs a command when it is asked to, and else says how many messages it got.
fn world() -> World {
    World::new(|asked: &ModelRequest| {
        if asked.last_user_text().contains("count") && asked.results().is_empty() {
            return Reply::call_of("shell", json!({ "command": "seq 1 900; echo made > made" }));
        }
        Reply::text("Done.")
    })
}

fn data(told: &Told) -> Value {
    serde_json::from_str(&told.stdout).unwrap_or_else(|error| panic!("{error}: {told:#?}"))
}

fn open(world: &World) -> Store {
    let place = Location::file(world.home().join("store.db"));
    Store::open(&place, Options::new(mainstay_agent::schema())).unwrap()
}

/// Writes into the record of a session.
fn write<T: Send>(
    world: &World,
    id: &str,
    mut what: impl FnMut(
        &mut mainstay_store::WriteTx<'_>,
        SessionId,
        mainstay_journal::TurnId,
    ) -> Result<T>
    + Send,
) -> T {
    open(world)
        .write(|tx| -> Result<T> {
            let owner = tx.owner("local")?;
            let session = session::find(tx, owner, id)?.id;
            let turn = turn::last(tx, session)?.unwrap().id;
            what(tx, session, turn)
        })
        .unwrap()
}

/// Two turns, of which the first is replaced by a summary and the ledger.
fn compacted(world: &World) -> String {
    let id = world.run(&["run", "--yes", "--json", "count to 900"]).ended_with(0).session();
    world.run(&["run", "--session", &id, "and then?"]).ended_with(0);
    let made = write(world, &id, |tx, session, turn| {
        let entries = entry::all(tx, session)?;
        let made = Compaction {
            number: 1,
            through: 5,
            summary: Some("It was counted.".to_owned()),
            ledger: ledger::of(&entries, &[]),
            before: 2000,
            after: 300,
            ..Compaction::default()
        };
        compaction::commit(tx, session, turn, &made)
    });
    assert_eq!(made, Committed::Made(9));
    id
}

/// The words of the first message after the system prompt that the model was last asked with.
fn first_words(world: &World) -> String {
    let asked = world.model.asked().pop().unwrap();
    asked.body["messages"][1]["content"].to_string()
}

#[test]
fn a_compacted_session_goes_on_and_shows_what_was_there() {
    let world = world();
    let id = compacted(&world);
    let line = "compaction 1: entries 1 to 5 replaced; 2000 tokens before, 300 after";
    let shown = world.run(&["sessions", "show", &id]).ended_with(0).stdout;
    assert!(shown.contains(line) && shown.contains("count to 900"), "{shown}");
    let whole = data(&world.run(&["sessions", "show", &id, "--json"]).ended_with(0));
    assert_eq!(whole["log"][8]["body"]["compaction"]["summary"], "It was counted.", "{whole}");

    let at = |number: &str| {
        let words = ["sessions", "show", &id, "--at", number];
        (world.run(&words).ended_with(0).stdout, world.run(&[&words[..], &["--json"]].concat()))
    };
    let (before, _) = at("8");
    assert!(before.contains("> shell") && !before.contains("It was counted."), "{before}");
    let (after, json) = at("9");
    assert!(!after.contains("> shell") && after.contains("It was counted."), "{after}");
    let json = data(&json.ended_with(0));
    assert_eq!((&json["compactions"], &json["at"]), (&json!([1]), &json!(9)));
    assert_eq!(json["messages"].as_array().unwrap().len(), 2, "{json}");
    let wrong = world.run(&["sessions", "show", &id, "--at", "10"]).ended_with(2);
    assert!(wrong.stderr.contains("has no entry 10"), "{wrong:#?}");

    world.run(&["run", "--session", &id, "go on"]).ended_with(0);
    let words = first_words(&world);
    for expected in ["a record of this session", "no task", "It was counted.", "and then?"] {
        assert!(words.contains(expected), "{expected}: {words}");
    }
    // The ledger is what the harness saw.
    assert!(words.contains("exit code 0: seq 1 900; echo made > made"), "{words}");
    assert!(world.model.asked().pop().unwrap().results().is_empty(), "old results are sent");
    let context = world.run(&["context", &id]).ended_with(0).stdout;
    assert!(context.contains("record of what was compacted"), "{context}");

    write(&world, &id, |tx, session, turn| compaction::restore(tx, session, turn, 1));
    world.run(&["run", "--session", &id, "go on"]).ended_with(0);
    assert!(first_words(&world).contains("count to 900"), "{}", first_words(&world));
    assert_eq!(world.model.asked().pop().unwrap().results().len(), 1);
    let shown = world.run(&["sessions", "show", &id]).ended_with(0).stdout;
    assert!(shown.contains("compaction 1 was taken back"), "{shown}");
    world.model.assert_no_violations();
}

#[test]
fn a_compacted_session_is_forked_taken_along_and_deleted() {
    let world = world();
    let id = compacted(&world);
    let fork = |words: &[&str]| {
        let told = world.run(&[&["sessions", "fork", &id, "--json"], words].concat());
        data(&told.ended_with(0))["id"].as_str().unwrap().to_owned()
    };
    let (before, after) = (fork(&["--at", "1"]), fork(&[]));
    world.run(&["run", "--session", &before, "go on"]).ended_with(0);
    assert!(first_words(&world).contains("count to 900"), "{}", first_words(&world));
    world.run(&["run", "--session", &after, "go on"]).ended_with(0);
    assert!(first_words(&world).contains("It was counted."), "{}", first_words(&world));

    world.run(&["sessions", "export", &id, "--to", "file.jsonl"]).ended_with(0);
    let told = world.run(&["sessions", "import", "file.jsonl", "--json"]).ended_with(0);
    let new = data(&told)["id"].as_str().unwrap().to_owned();
    world.run(&["run", "--session", &new, "go on"]).ended_with(0);
    assert!(first_words(&world).contains("It was counted."), "{}", first_words(&world));

    world.run(&["store", "check"]).ended_with(0);
    let all = [&id[..], &before, &after, &new];
    world.run(&[&["sessions", "delete", "--yes"], &all[..]].concat()).ended_with(0);
    let info = data(&world.run(&["store", "info", "--json"]).ended_with(0));
    assert_eq!(info["tables"]["compactions"], 0, "{info}");
    world.run(&["store", "check"]).ended_with(0);
    world.model.assert_no_violations();
}

#[test]
fn a_chat_that_takes_up_a_compacted_session_says_so() {
    let world = world();
    let id = compacted(&world);
    let mut terminal = Terminal::start(&world, (30, 100), &["chat", "--session", &id]);
    terminal.sees("› and then?");
    terminal.sees("compaction 1: entries 1 to 5 replaced; 2000 tokens before, 300 after");
    terminal.keys("\x04");
    assert_eq!(terminal.ended().0.code(), Some(0));
}

#[test]
fn an_answer_that_was_recorded_before_a_compaction_is_told_and_not_asked_for_again() {
    let world = world();
    let id = compacted(&world);
    write(&world, &id, |tx, session, _| {
        let turn = TurnId::new();
        turn::begin(tx, turn, session, "interrupted")?;
        let content = vec![Content::Text("what is it?".to_owned())];
        entry::append(tx, session, turn, &Body::User { content })?;
        let parts = vec![AssistantPart::Text("It is blue.".to_owned())];
        entry::append(tx, session, turn, &Body::Assistant { parts, model: "m".to_owned() })?;
        let made = Compaction { number: 2, through: 10, ..Compaction::default() };
        compaction::commit(tx, session, turn, &made)
    });
    let before = world.model.requests();
    let told = world.run(&["resume", &id]).ended_with(0);
    assert_eq!((told.stdout.as_str(), world.model.requests()), ("It is blue.\n", before));
}

#[test]
fn what_a_person_allowed_and_denied_is_in_the_ledger() {
    let world = World::new(counting(2));
    put_counter(&world.workspace());
    let parked = world.run(&["run", "--json", "count"]).ended_with(3);
    let (session, request) = (parked.session(), waiting(&world.run(&["approvals", "--json"])));
    world.run(&["approve", &request[0], "--sure"]).ended_with(0);
    world.run(&["resume", &session]).ended_with(3);
    let request = waiting(&world.run(&["approvals", "--json"]));
    world.run(&["deny", &request[0], "--reason", "once is enough"]).ended_with(0);
    world.run(&["resume", &session]).ended_with(0);
    let id = SessionId::from(session.parse::<mainstay_store::Id>().unwrap());
    let ledger = open(&world)
        .read(|tx| -> mainstay_agent::Result<_> {
            Ok(ledger::of(&entry::all(tx, id)?, &requests::of_session(tx, id)?))
        })
        .unwrap();
    let decided = [
        "denied (once is enough): shell to run `./count.sh 1`",
        "allowed once: shell to run `./count.sh 0`",
    ];
    assert_eq!(ledger.decisions.items, decided);
    let commands: Vec<&str> =
        ledger.commands.items.iter().map(|ran| ran.command.as_str()).collect();
    assert_eq!(commands, ["./count.sh 0"]);
}

#[test]
fn a_check_finds_an_entry_that_is_gone() {
    let world = world();
    let id = compacted(&world);
    write(&world, &id, |tx, session, _| {
        let gone = "DELETE FROM entries WHERE session = ?1 AND seq = 3";
        Ok(tx.execute(gone, mainstay_store::params![session])?)
    });
    let told = world.run(&["store", "check"]).ended_with(1);
    assert!(told.stdout.contains(&format!("the entries of session {id}")), "{told:#?}");
}
