//! Somebody at hand, who is asked while the turn goes on.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use mainstay_agent::approvals::requests::{self, Decider, Effort, RequestFilter, RequestStanding};
use mainstay_agent::{Asker, Question, Request, Verdict};
use mainstay_store::{OwnerId, Store};
use mainstay_testkit::model::Reply;
use serde_json::json;
use std::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::place::{input, on_both, resume, turn, writing};

/// Answers as told, and notes how the store looked when it was asked.
struct Person {
    store: (Store, OwnerId),
    says: Says,
    seen: Mutex<Vec<String>>,
}

enum Says {
    Verdict(Option<Verdict>),
    Answer(&'static str),
    /// Another process decides while this one thinks.
    Never(Verdict),
    /// Another process decides, then this one.
    TooLate(Verdict),
}

impl Person {
    fn new(store: (Store, OwnerId), says: Says) -> Arc<Self> {
        Arc::new(Self { store, says, seen: Mutex::default() })
    }

    fn note(&self, words: impl Into<String>) {
        self.seen.lock().unwrap().push(words.into());
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    fn elsewhere(&self, request: &Request, verdict: &Verdict) {
        let (store, owner) = &self.store;
        let given = Decider { by: "another process", effort: Effort::Key };
        store.write(|tx| requests::decide(tx, *owner, request.id, verdict, given)).unwrap();
    }
}

impl Asker for Person {
    fn decide<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Option<Verdict>> {
        Box::pin(async move {
            let (store, owner) = &self.store;
            let row = store.read(|tx| requests::get(tx, *owner, request.id)).unwrap();
            assert_eq!(&row.request, request, "what is asked is not what is written down");
            self.note(row.standing.as_str());
            match &self.says {
                Says::Verdict(verdict) => verdict.clone(),
                Says::Answer(_) => None,
                Says::Never(elsewhere) => {
                    self.elsewhere(request, elsewhere);
                    std::future::pending().await
                }
                Says::TooLate(elsewhere) => {
                    self.elsewhere(request, elsewhere);
                    Some(Verdict::Once)
                }
            }
        })
    }

    fn answer<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            self.note(question.text.clone());
            match self.says {
                Says::Answer(answer) => Some(answer.to_owned()),
                _ => None,
            }
        })
    }

    fn overtaken(&self, words: &str) {
        self.note(words);
    }
}

fn one_write() -> Vec<Reply> {
    vec![writing("a", "x"), Reply::text("done")]
}

#[test]
fn a_yes_at_hand_is_a_row_before_it_is_asked_and_a_decision_before_it_is_done() {
    on_both(one_write, async |place| {
        let mut work = place.begin();
        let person = Person::new(place.store(), Says::Verdict(Some(Verdict::Once)));
        work.ask_here(person.clone());
        assert_eq!(turn(&mut work, "write").await.ended.answer, "done");
        assert_eq!(person.seen(), ["waiting"]);
        let all = place.requests(RequestFilter::All);
        assert!(matches!(all[0].standing, RequestStanding::Allowed(_)) && all[0].used_at.is_some());
        assert_eq!(place.file("a").as_deref(), Some("x"));
    });
}

#[test]
fn a_no_at_hand_tells_the_model() {
    on_both(one_write, async |place| {
        let mut work = place.begin();
        let verdict = Verdict::Deny { reason: Some("not today".to_owned()) };
        work.ask_here(Person::new(place.store(), Says::Verdict(Some(verdict))));
        assert_eq!(turn(&mut work, "write").await.ended.answer, "done");
        assert!(place.last_result().contains("not today"));
        assert_eq!(place.file("a"), None);
    });
}

#[test]
fn somebody_who_does_not_answer_leaves_the_turn_parked() {
    on_both(one_write, async |place| {
        let mut work = place.begin();
        work.ask_here(Person::new(place.store(), Says::Verdict(None)));
        assert!(turn(&mut work, "write").await.is_parked());
        place.approve(&place.waiting());
        assert_eq!(resume(&mut work).await.ended.answer, "done");
    });
}

#[test]
fn what_another_process_decides_ends_the_prompt() {
    on_both(one_write, async |place| {
        let mut work = place.begin();
        work.ask_here(Person::new(place.store(), Says::Never(Verdict::Once)));
        let over = tokio::time::timeout(Duration::from_secs(20), turn(&mut work, "write")).await;
        assert_eq!(over.unwrap().ended.answer, "done");
        assert_eq!(place.file("a").as_deref(), Some("x"));
    });
}

#[test]
fn who_answers_after_another_process_is_told_so_and_not_heard() {
    on_both(one_write, async |place| {
        let mut work = place.begin();
        let person = Person::new(place.store(), Says::TooLate(Verdict::Deny { reason: None }));
        work.ask_here(person.clone());
        assert_eq!(turn(&mut work, "write").await.ended.answer, "done");
        assert_eq!(place.file("a"), None, "the later yes was heard");
        assert_eq!(person.seen(), ["waiting", "it was already denied by another process"]);
    });
}

#[test]
fn to_cancel_takes_the_prompt_away_and_the_request_with_it() {
    on_both(
        || vec![writing("a", "x")],
        async |place| {
            let mut work = place.begin();
            struct Undecided;
            impl Asker for Undecided {
                fn decide<'a>(&'a self, _: &'a Request) -> BoxFuture<'a, Option<Verdict>> {
                    Box::pin(std::future::pending())
                }
                fn answer<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Option<String>> {
                    Box::pin(std::future::pending())
                }
            }
            work.ask_here(Arc::new(Undecided));
            let cancel = CancellationToken::new();
            let (input, mut observer) = (input("write"), |_| {});
            let working = work.turn(&input, &mut observer, &cancel);
            let stopping = async {
                while place.requests(RequestFilter::Waiting).is_empty() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                cancel.cancel();
            };
            let (ended, ()) = futures_util::future::join(working, stopping).await;
            assert_eq!(format!("{:?}", ended.unwrap().ending), "Over(Cancelled, None)");
            assert!(place.requests(RequestFilter::Waiting).is_empty());
            assert_eq!(place.file("a"), None);
        },
    );
}

#[test]
fn a_question_is_answered_at_hand() {
    let replies = || {
        let question = json!({ "question": "Which colour?", "choices": ["red", "blue"] });
        vec![Reply::call_of("ask_user", question), Reply::text("done")]
    };
    on_both(replies, async |place| {
        let mut work = place.begin();
        let person = Person::new(place.store(), Says::Answer("2"));
        work.ask_here(person.clone());
        assert_eq!(turn(&mut work, "paint").await.ended.answer, "done");
        assert_eq!(person.seen(), ["Which colour?"]);
        assert_eq!(place.last_result(), "blue");
    });
}
