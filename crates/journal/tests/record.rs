//! The record on both engines: numbering, keys, calls, pictures, spending, processes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test's error is a panic"
)]

use mainstay_journal::entry::Body;
use mainstay_journal::{
    CallId, JOURNAL, SessionId, TurnId, TurnRef, call, entry, model_call, process, session, turn,
};
use mainstay_message::{AssistantPart, Call, Content, Image, Usage};
use mainstay_store::{Id, Location, Options, OwnerId, Schema, Store};

/// Runs a property on both engines.
fn on_both(property: impl Fn(&Store)) {
    let directory = tempfile::tempdir().unwrap();
    let options = || Options::new(Schema::new(&[JOURNAL]));
    let file = Location::file(directory.path().join("store.db"));
    property(&Store::open(&file, options()).unwrap());
    let server: Location = mainstay_testkit::postgres::fresh().parse().unwrap();
    property(&Store::open(&server, options()).unwrap());
}

struct Begun {
    owner: OwnerId,
    session: SessionId,
    turn: TurnId,
}

fn begun(store: &Store) -> Begun {
    let (session, turn) = (SessionId::new(), TurnId::new());
    let owner = store
        .write(|tx| -> mainstay_journal::Result<OwnerId> {
            let owner = tx.owner("local")?;
            let new =
                session::New { owner, workspace: "/w", prompt: "p", title: "t", begun_by: None };
            session::create(tx, session, &new)?;
            turn::begin(tx, turn, session, "key")?;
            Ok(owner)
        })
        .unwrap();
    Begun { owner, session, turn }
}

fn write<T: Send>(
    store: &Store,
    closure: impl FnMut(&mut mainstay_store::WriteTx<'_>) -> mainstay_journal::Result<T> + Send,
) -> T {
    store.write(closure).unwrap()
}

#[test]
fn entries_are_numbered_without_gaps_and_read_back_as_written() {
    on_both(|store| {
        let begun = begun(store);
        let picture = Image { media_type: "image/png".to_owned(), base64: "aGk=".to_owned() };
        let bodies = [
            Body::User { content: vec![Content::Text("a\0b".to_owned()), Content::Image(picture)] },
            Body::notice("n"),
        ];
        for (number, body) in (1..).zip(&bodies) {
            let seq = write(store, |tx| entry::append(tx, begun.session, begun.turn, body));
            assert_eq!(seq, number);
        }
        let read: Vec<Body> = store
            .read(|tx| entry::all(tx, begun.session))
            .unwrap()
            .into_iter()
            .map(|entry| entry.body)
            .collect();
        assert_eq!(read, bodies);
    });
}

#[test]
fn the_same_input_twice_is_the_same_turn() {
    on_both(|store| {
        let begun = begun(store);
        let found = store.read(|tx| turn::with_key(tx, begun.session, "key")).unwrap().unwrap();
        assert_eq!((found.id, found.number), (begun.turn, 1));
        let again: mainstay_journal::Result<turn::Turn> =
            store.write(|tx| turn::begin(tx, TurnId::new(), begun.session, "key"));
        assert!(again.is_err(), "two turns have one key");
        // The refused one did not use up a number.
        let next = write(store, |tx| turn::begin(tx, TurnId::new(), begun.session, "other"));
        assert_eq!(next.number, 2);
    });
}

#[test]
fn a_turn_keeps_why_it_is_parked_and_what_was_chosen_for_it() {
    use turn::{BudgetLimit, BudgetScope, ParkReason, Parked, State, TurnChoices};
    on_both(|store| {
        let begun = begun(store);
        let last = || store.read(|tx| turn::last(tx, begun.session)).unwrap().unwrap();
        assert_eq!((last().parked(), last().choices), (None, None));
        let choices: TurnChoices = serde_json::from_value(serde_json::json!({
            "models": ["a/one", "b/two"],
            "profile": "careful",
            "budget": 2_000_000,
            "mode": "yes",
        }))
        .unwrap();
        write(store, |tx| turn::choose(tx, begun.turn, &choices));
        let child = SessionId::new();
        let provider = ParkReason::Provider { until: 1_700_000_000_000 };
        let reasons = [
            ParkReason::Approval,
            ParkReason::Answer,
            ParkReason::Budget { scope: BudgetScope::Day, limit: BudgetLimit::Calls },
            provider.clone(),
            ParkReason::TurnTime,
            ParkReason::Child { session: child, because: Some(Box::new(provider)) },
            ParkReason::Child { session: child, because: None },
        ];
        for reason in reasons {
            // Words that would mean something else if anybody read them back.
            let parked = Parked { reason, text: "the budget is spent; approval".to_owned() };
            write(store, |tx| turn::park(tx, begun.turn, &parked));
            assert_eq!(last().parked(), Some(parked));
            assert_eq!(last().choices.as_ref(), Some(&choices));
        }
        write(store, |tx| turn::reopen(tx, begun.turn));
        assert_eq!((last().parked(), last().state), (None, State::Open));
        // Rows of versions that recorded a sentence and a time only.
        let row = |resume_at: Option<i64>| {
            write(store, |tx| {
                let sql = "UPDATE turns SET state = 'parked', reason = 'x', resume_at = ?1";
                Ok(tx.execute(sql, mainstay_store::params![resume_at])?)
            });
            last().parked().unwrap().reason
        };
        assert_eq!(row(None), ParkReason::Unrecorded);
        // A reason of a later version does not keep anybody from reading the others.
        let later = serde_json::from_str(r#"{"kind":"moon","phase":3}"#);
        assert_eq!(later.ok(), Some(ParkReason::Unrecorded));
        assert_eq!(row(Some(5)), ParkReason::Provider { until: 5 });
    });
}

#[test]
fn a_call_is_open_until_its_first_outcome() {
    on_both(|store| {
        let begun = begun(store);
        let [first, second, third] = [(); 3].map(|()| CallId::new());
        let asked = |id: &str| Call {
            id: id.to_owned(),
            name: "shell".to_owned(),
            arguments: "{\"command\":\"\0\"}".to_owned(),
            extra: None,
        };
        let parts = ["a", "b", "c"].map(|id| AssistantPart::Call(asked(id))).to_vec();
        let body = Body::Assistant { parts, model: "m".to_owned() };
        let place = TurnRef { session: begun.session, turn: begun.turn };
        write(store, |tx| {
            let seq = entry::append(tx, begun.session, begun.turn, &body)?;
            let plan = Some("{\"keeper\":\"k\"}".to_owned());
            let start = call::Start { plan, input: Some("{\"path\":\"b\"}".to_owned()) };
            let third_start = Some(start.clone());
            let calls = [(first, None), (second, None), (third, third_start)];
            for (position, (id, start)) in calls.into_iter().enumerate() {
                let intended = call::Intended { id, tool: "shell".to_owned(), start };
                call::intend(tx, place, seq, position, &intended)?;
            }
            call::start(tx, begun.session, first, &start)
        });
        let open = store.read(|tx| call::open(tx, begun.session)).unwrap();
        let states: Vec<_> = open.iter().map(|open| (open.id, open.state)).collect();
        let (started, intended) = (call::State::Started, call::State::Intended);
        assert_eq!(states, [(first, started), (second, intended), (third, started)]);
        for open in [&open[0], &open[2]] {
            assert_eq!(open.plan.as_deref(), Some("{\"keeper\":\"k\"}"));
            assert_eq!(open.input.as_deref(), Some("{\"path\":\"b\"}"));
            assert!(open.started_at.is_some());
        }
        assert_eq!((&open[0].call, &open[1].call), (&asked("a"), &asked("b")));
        assert!(write(store, |tx| call::finish(tx, begun.session, first, 2)));
        assert!(
            !write(store, |tx| call::finish(tx, begun.session, first, 3)),
            "a second outcome was taken"
        );
        assert_eq!(store.read(|tx| call::open(tx, begun.session)).unwrap().len(), 2);
    });
}

#[test]
fn another_owner_sees_no_session() {
    on_both(|store| {
        let begun = begun(store);
        let stranger = store.write(|tx| tx.owner("stranger")).unwrap();
        let typed = begun.session.to_string();
        assert!(store.read(|tx| session::find(tx, begun.owner, &typed)).is_ok());
        let refused = store.read(|tx| session::find(tx, stranger, &typed)).unwrap_err();
        assert!(refused.to_string().contains("session"), "{refused}");
        assert!(store.read(|tx| session::list(tx, stranger, 10)).unwrap().is_empty());
    });
}

#[test]
fn every_attempt_is_in_the_ledger_and_in_the_sums() {
    on_both(|store| {
        let begun = begun(store);
        let purpose = model_call::Purpose {
            owner: begun.owner,
            session: Some(begun.session),
            turn: Some(begun.turn),
            purpose: "turn",
        };
        let failed = model_call::Attempt {
            model: "a/x".to_owned(),
            fault: Some("overloaded".to_owned()),
            ..Default::default()
        };
        let answered = model_call::Attempt {
            model: "b/y".to_owned(),
            usage: Usage { input: 10, cached: 5, output: 3, ..Usage::default() },
            cost: 42,
            ..Default::default()
        };
        let id = Id::new();
        write(store, |tx| {
            model_call::begin(tx, id, &purpose, "a/x")?;
            model_call::finish(tx, id, &purpose, &[failed.clone(), answered.clone()])
        });
        write(store, |tx| model_call::begin(tx, Id::new(), &purpose, "a/x"));
        assert_eq!(write(store, |tx| model_call::abandon(tx, begun.session)), 1);
        let all = store
            .read(|tx| {
                model_call::spent_on(
                    tx,
                    model_call::On::Turn(TurnRef { session: begun.session, turn: begun.turn }),
                )
            })
            .unwrap();
        assert_eq!((all.calls, all.failed, all.usage, all.cost), (3, 1, answered.usage, 42));
        for by in [model_call::By::Day, model_call::By::Session, model_call::By::Model] {
            let parts = store.read(|tx| model_call::spent(tx, begun.owner, by, 0)).unwrap();
            assert_eq!(parts.iter().map(|part| part.cost).sum::<i64>(), 42, "{by:?}");
        }
    });
}

#[test]
fn the_end_of_a_process_is_announced_once_a_turn_until_somebody_takes_note() {
    on_both(|store| {
        let begun = begun(store);
        let later = TurnId::new();
        write(store, |tx| {
            turn::begin(tx, later, begun.session, "later")?;
            process::started(tx, begun.session, "p1", "k", "make")
        });
        let announce = |turn| write(store, |tx| process::announce(tx, begun.session, turn)).len();
        assert_eq!(announce(begun.turn), 0, "it runs");
        assert!(write(store, |tx| process::ended(tx, "p1", "exit code 3")));
        assert!(!write(store, |tx| process::ended(tx, "p1", "exit code 4")), "it ended twice");
        assert_eq!((announce(begun.turn), announce(begun.turn), announce(later)), (1, 0, 1));
        assert!(write(store, |tx| process::acknowledge(tx, begun.session, "p1")));
        assert_eq!(announce(begun.turn), 0, "it was taken note of");
        assert!(store.read(|tx| process::owed(tx, begun.session)).unwrap().is_empty());
    });
}
