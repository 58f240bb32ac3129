//! Sessions as a whole, on both engines: forked, taken along, removed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test's error is a panic"
)]

use mainstay_journal::archive::{Archive, export};
use mainstay_journal::entry::{self, Body};
use mainstay_journal::turn::{self, Outcome, State};
use mainstay_journal::{
    CallId, JOURNAL, Result, SessionId, TurnId, call, fork, last_input, process, remove, session,
    transcript,
};
use mainstay_message::{AssistantPart, Call, CallResult, Content, Image, Message};
use mainstay_store::{Location, Options, OwnerId, Schema, Store, WriteTx, params};

fn on_both(property: impl Fn(&Store)) {
    let directory = tempfile::tempdir().unwrap();
    let options = || Options::new(Schema::new(&[JOURNAL]));
    let file = Location::file(directory.path().join("store.db"));
    property(&Store::open(&file, options()).unwrap());
    let server: Location = mainstay_testkit::postgres::fresh().parse().unwrap();
    property(&Store::open(&server, options()).unwrap());
}

fn write<T: Send>(store: &Store, closure: impl FnMut(&mut WriteTx<'_>) -> Result<T> + Send) -> T {
    store.write(closure).unwrap()
}

fn said(text: &str) -> Vec<Content> {
    vec![Content::Text(text.to_owned())]
}

/// A session with three turns; the last one waits, and has a call without an outcome.
fn furnished(store: &Store, prompt: &str) -> (OwnerId, SessionId) {
    let session = SessionId::new();
    let picture = Image { media_type: "image/png".to_owned(), base64: "aGk=".to_owned() };
    let owner = write(store, |tx| {
        let owner = tx.owner("local")?;
        let new = session::New { owner, workspace: "/w", prompt, title: "t", begun_by: None };
        session::create(tx, session, &new)?;
        for number in 1..=3 {
            let turn = TurnId::new();
            turn::begin(tx, turn, session, &format!("key{number}"))?;
            let mut content = said(&format!("question {number}"));
            content.push(Content::Image(picture.clone()));
            entry::append(tx, session, turn, &Body::User { content })?;
            let asked = Call {
                id: format!("c{number}"),
                name: "shell".to_owned(),
                arguments: "{}".to_owned(),
                extra: None,
            };
            let parts = vec![AssistantPart::Call(asked)];
            entry::append(tx, session, turn, &Body::Assistant { parts, model: "m".to_owned() })?;
            if number == 3 {
                let parked = turn::Parked {
                    reason: turn::ParkReason::Approval,
                    text: "a person is asked".to_owned(),
                };
                turn::park(tx, turn, &parked)?;
                continue;
            }
            let whole = tx.put_blob(format!("{prompt} output").as_bytes())?.to_string();
            let result = CallResult {
                call: format!("c{number}"),
                name: "shell".to_owned(),
                content: said("output"),
                failed: false,
            };
            let body = Body::Result {
                result,
                facts: Vec::new(),
                fingerprint: String::new(),
                whole: Some(whole),
            };
            entry::append(tx, session, turn, &body)?;
            let end = Body::End { outcome: Outcome::Answered, reason: None };
            entry::append(tx, session, turn, &end)?;
            turn::end(tx, turn, Outcome::Answered, None)?;
        }
        Ok(owner)
    });
    (owner, session)
}

fn messages(store: &Store, session: SessionId) -> Vec<Message> {
    transcript(&store.read(|tx| entry::all(tx, session)).unwrap())
}

fn count(store: &Store, table: &str) -> i64 {
    let sql = format!("SELECT COUNT(*) FROM {table}");
    store.read(|tx| tx.query_one(&sql, params![], |row| row.get(0))).unwrap()
}

#[test]
fn a_fork_begins_as_its_parent_was_and_goes_its_own_way() {
    on_both(|store| {
        let (_, parent) = furnished(store, "p");
        let id = SessionId::new();
        assert_eq!(write(store, |tx| fork(tx, id, parent, Some(2))), 2);
        let row = store.read(|tx| session::get(tx, id)).unwrap().unwrap();
        assert_eq!((row.turns, row.parent), (2, Some((parent, 8))));
        let whole = messages(store, parent);
        let forked = messages(store, id);
        assert_eq!(forked[..], whole[..forked.len()]);
        assert_eq!(forked.len(), 6);
        // The next turn has the next number, and its parent does not hear of it.
        let turn = TurnId::new();
        let begun = write(store, |tx| {
            let begun = turn::begin(tx, turn, id, "key1")?;
            entry::append(tx, id, turn, &Body::User { content: said("another") })?;
            Ok(begun)
        });
        assert_eq!(begun.number, 3);
        assert_eq!(messages(store, parent), whole);
    });
}

#[test]
fn a_fork_of_a_turn_that_waits_is_well_formed_and_over() {
    on_both(|store| {
        let (_, parent) = furnished(store, "p");
        let id = SessionId::new();
        write(store, |tx| fork(tx, id, parent, None));
        let last = store.read(|tx| turn::last(tx, id)).unwrap().unwrap();
        assert_eq!((last.state, last.outcome), (State::Ended, Some(Outcome::Interrupted)));
        let messages = messages(store, id);
        let [.., Message::Assistant(_), Message::Results(_), Message::User(told)] = &messages[..]
        else {
            panic!("{messages:#?}");
        };
        assert!(format!("{told:?}").contains("interrupted"));
        let waits = store.read(|tx| turn::last(tx, parent)).unwrap().unwrap();
        assert_eq!(waits.state, State::Parked);
        let (number, input) = store.read(|tx| last_input(tx, parent)).unwrap().unwrap();
        assert_eq!((number, input[0].text()), (3, Some("question 3")));
    });
}

#[test]
fn a_session_that_was_taken_along_says_the_same() {
    on_both(|store| {
        let (owner, session) = furnished(store, "p");
        let text = store.read(|tx| export(tx, session)).unwrap();
        let archive = Archive::read(&text).unwrap();
        let id = SessionId::new();
        write(store, |tx| archive.import(tx, id, owner, "/elsewhere", &Body::notice("new here")));
        let mut said = messages(store, id);
        assert_eq!(
            said.pop(),
            Some(Message::User(vec![Content::Text("[Mainstay: new here]".to_owned())]))
        );
        assert_eq!(said, messages(store, session));
        let row = store.read(|tx| session::get(tx, id)).unwrap().unwrap();
        assert_eq!((row.workspace.as_str(), row.turns, row.title.as_str()), ("/elsewhere", 3, "t"));
        // Anybody may have written the file: what a model is told first does not come from it.
        assert_eq!(store.read(|tx| session::prompt(tx, &row)).unwrap(), "");
    });
}

#[test]
fn a_file_that_was_changed_or_cut_anywhere_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = Location::file(directory.path().join("store.db"));
    let store = Store::open(&file, Options::new(Schema::new(&[JOURNAL]))).unwrap();
    let (_, session) = furnished(&store, "p");
    let text = store.read(|tx| export(tx, session)).unwrap();
    Archive::read(&text).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for missing in 0..lines.len() {
        let mut rest = lines.clone();
        rest.remove(missing);
        Archive::read(&rest.concat()).expect_err("a line is missing");
    }
    for end in (0..text.len()).step_by(37).filter(|end| text.is_char_boundary(*end)) {
        Archive::read(&text[..end]).expect_err("it was cut");
    }
    Archive::read(&text.replacen("question 1", "question 9", 1)).expect_err("it was changed");
    Archive::read(&format!("{text}{}", lines[1])).expect_err("something was added");
}

#[test]
fn what_is_removed_leaves_nothing_but_what_it_cost_and_what_others_use() {
    on_both(|store| {
        let (_, kept) = furnished(store, "shared");
        let tables = ["sessions", "turns", "entries", "calls", "processes", "blobs"];
        let before: Vec<i64> = tables.iter().map(|table| count(store, table)).collect();
        let whole = messages(store, kept);
        // Shares its picture with the other, and has a prompt and an output of its own.
        let (_, gone) = furnished(store, "own");
        let child = SessionId::new();
        write(store, |tx| {
            let turn = turn::last(tx, gone)?.unwrap();
            let call = call::Intended { id: CallId::new(), tool: "shell".to_owned(), start: None };
            call::intend(
                tx,
                mainstay_journal::TurnRef { session: gone, turn: turn.id },
                2,
                0,
                &call,
            )?;
            process::started(tx, gone, "p1", "keeper", "sleep")?;
            fork(tx, child, gone, Some(1))
        });
        write(store, |tx| remove(tx, &[gone]));
        assert_eq!(store.read(|tx| session::get(tx, gone)).unwrap().map(|row| row.id), None);
        let forked = store.read(|tx| session::get(tx, child)).unwrap().unwrap();
        assert_eq!(forked.parent, None);
        assert_eq!(messages(store, child).len(), 3, "a fork needs its parent");
        write(store, |tx| remove(tx, &[child]));
        let after: Vec<i64> = tables.iter().map(|table| count(store, table)).collect();
        assert_eq!(after, before);
        assert_eq!(messages(store, kept), whole);
    });
}
