//! Compactions on both engines: numbers that exist once, and sessions that take theirs along.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test's error is a panic"
)]

use std::sync::Barrier;

use mainstay_journal::archive::{Archive, export};
use mainstay_journal::compaction::{self, Committed, Compaction};
use mainstay_journal::entry::{self, Body};
use mainstay_journal::turn::{self, Outcome};
use mainstay_journal::{
    JOURNAL, Result, SessionId, TurnId, check, fork, remove, session, transcript,
};
use mainstay_message::{AssistantPart, Content, Message};
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

fn messages(store: &Store, session: SessionId) -> Vec<Message> {
    transcript(&store.read(|tx| entry::all(tx, session)).unwrap())
}

fn numbers(store: &Store, session: SessionId) -> Vec<(i64, i64)> {
    store.read(|tx| compaction::numbers(tx, session)).unwrap()
}

/// A session with so many turns of three entries each.
fn session_of(store: &Store, turns: i64) -> (OwnerId, SessionId, TurnId) {
    let (session, mut last) = (SessionId::new(), TurnId::new());
    let owner = write(store, |tx| {
        let owner = tx.owner("local")?;
        let new = session::New { owner, workspace: "/w", prompt: "p", title: "t", begun_by: None };
        session::create(tx, session, &new)?;
        for number in 1..=turns {
            last = TurnId::new();
            turn::begin(tx, last, session, &format!("key{number}"))?;
            let content = vec![Content::Text(format!("question {number}"))];
            entry::append(tx, session, last, &Body::User { content })?;
            let parts = vec![AssistantPart::Text(format!("answer {number}"))];
            entry::append(tx, session, last, &Body::Assistant { parts, model: "m".to_owned() })?;
            entry::append(
                tx,
                session,
                last,
                &Body::End { outcome: Outcome::Answered, reason: None },
            )?;
            turn::end(tx, last, Outcome::Answered, None)?;
        }
        Ok(owner)
    });
    (owner, session, last)
}

fn made(number: i64, through: i64, summary: &str) -> Compaction {
    Compaction { number, through, summary: Some(summary.to_owned()), ..Compaction::default() }
}

#[test]
fn of_two_who_commit_one_number_one_does_and_the_other_changes_nothing() {
    on_both(|store| {
        let (_, session, turn) = session_of(store, 3);
        for number in 1..=8 {
            let before = store.read(|tx| entry::count(tx, session)).unwrap();
            let barrier = Barrier::new(2);
            let came: Vec<Committed> = std::thread::scope(|scope| {
                let committers: Vec<_> = ["first", "second"]
                    .map(|who| {
                        let (barrier, store) = (&barrier, store);
                        scope.spawn(move || {
                            let made = made(number, 3, who);
                            barrier.wait();
                            write(store, |tx| compaction::commit(tx, session, turn, &made))
                        })
                    })
                    .into_iter()
                    .collect();
                committers.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let seq = before + 1;
            assert!(came.contains(&Committed::Made(seq)), "{came:?}");
            assert!(came.contains(&Committed::Taken { number }), "{came:?}");
            assert_eq!(store.read(|tx| entry::count(tx, session)).unwrap(), seq);
            assert_eq!(store.read(|tx| compaction::last(tx, session)).unwrap(), number);
        }
        let expected: Vec<(i64, i64)> = (1..=8).map(|number| (number, 9 + number)).collect();
        assert_eq!(numbers(store, session), expected);
    });
}

#[test]
fn a_fork_before_at_and_after_a_compaction_has_what_there_was() {
    on_both(|store| {
        let (_, parent, _) = session_of(store, 3);
        let turns: Vec<TurnId> = store
            .read(|tx| entry::all(tx, parent))
            .unwrap()
            .iter()
            .step_by(3)
            .map(|entry| entry.turn)
            .collect();
        let (_, other, _) = session_of(store, 1);
        // In the middle of the session, as if the second turn had been compacted when it was over.
        let session = SessionId::new();
        write(store, |tx| fork(tx, session, parent, Some(2)));
        let turn = store.read(|tx| turn::last(tx, session)).unwrap().unwrap().id;
        let whole = messages(store, session);
        write(store, |tx| compaction::commit(tx, session, turn, &made(1, 3, "what was")));
        let compacted = messages(store, session);
        assert_ne!(compacted, whole);
        let forked = |after| {
            let id = SessionId::new();
            write(store, |tx| fork(tx, id, session, after));
            (messages(store, id), numbers(store, id), id)
        };
        let (before, none, _) = forked(Some(1));
        assert_eq!((&before[..], none), (&whole[..2], vec![]));
        let (at, one, id) = forked(Some(2));
        assert_eq!((at, one), (compacted.clone(), vec![(1, 7)]));
        // The next number is free there, and the first is not.
        let turn = store.read(|tx| turn::last(tx, id)).unwrap().unwrap().id;
        let again = write(store, |tx| compaction::commit(tx, id, turn, &made(1, 6, "x")));
        assert_eq!(again, Committed::Taken { number: 1 });
        let next = write(store, |tx| compaction::commit(tx, id, turn, &made(2, 6, "x")));
        assert_eq!(next, Committed::Made(8));
        assert_eq!(messages(store, session), compacted, "the parent heard of it");
        write(store, |tx| compaction::restore(tx, id, turn, 1));
        assert_eq!(forked(None).0, compacted);
        assert_eq!(messages(store, id), whole);
        assert_eq!((turns.len(), numbers(store, other).len()), (3, 0));
    });
}

#[test]
fn a_session_takes_its_compactions_along_and_away() {
    on_both(|store| {
        let (owner, session, turn) = session_of(store, 2);
        let plain = store.read(|tx| export(tx, session)).unwrap();
        assert!(plain.starts_with("{\"mainstay_session\":{\"version\":1"), "{plain}");
        write(store, |tx| compaction::commit(tx, session, turn, &made(1, 3, "what was")));
        write(store, |tx| compaction::restore(tx, session, turn, 1));
        write(store, |tx| compaction::commit(tx, session, turn, &made(2, 3, "what was, again")));
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
        assert_eq!(numbers(store, id), [(1, 7), (2, 9)]);
        write(store, |tx| remove(tx, &[session]));
        assert_eq!(numbers(store, session), []);
        assert_eq!(numbers(store, id).len(), 2);
    });
}

#[test]
fn a_row_that_is_missing_is_found() {
    on_both(|store| {
        let (_, session, turn) = session_of(store, 2);
        for number in 1..=3 {
            write(store, |tx| compaction::commit(tx, session, turn, &made(number, 3, "what was")));
        }
        let (_, other, _) = session_of(store, 2);
        let problems = || store.read(check).unwrap();
        assert_eq!(problems(), Vec::<String>::new());
        // A number is not skipped, and none is made up.
        for number in [0, 5] {
            let made = made(number, 3, "x");
            let refused: Result<Committed> =
                store.write(|tx| compaction::commit(tx, session, turn, &made));
            assert!(refused.is_err(), "{refused:?}");
        }
        let cases = [
            ("DELETE FROM compactions WHERE session = ?1 AND number = 2", 2),
            ("DELETE FROM compactions WHERE session = ?1 AND number = 3", 1),
            ("UPDATE entries SET kind = 'notice' WHERE session = ?1 AND seq = 9", 1),
            ("DELETE FROM entries WHERE session = ?1 AND seq = 2", 1),
            ("DELETE FROM entries WHERE session = ?1 AND seq = 9", 1),
        ];
        for (sql, expected) in cases {
            let undone: Result<Vec<String>> = store.write(|tx| {
                tx.execute(sql, params![session])?;
                let found = check(tx)?;
                // Put back as it was: the transaction fails.
                Err(mainstay_journal::Error::Damaged {
                    what: found.len().to_string(),
                    detail: found.join("; "),
                })
            });
            let Err(mainstay_journal::Error::Damaged { what, detail }) = undone else {
                panic!("{undone:?}");
            };
            assert_eq!(what, expected.to_string(), "{sql}: {detail}");
            assert!(detail.contains(&session.to_string()), "{detail}");
            assert!(!detail.contains(&other.to_string()), "{detail}");
        }
        assert_eq!(problems(), Vec::<String>::new());
    });
}
