//! Questions of a model that nobody at hand can answer.

use mainstay_agent::approvals::questions::{
    self, AnswerOutcome, QuestionStanding, RecordedQuestion,
};
use mainstay_agent::approvals::requests::RequestFilter;
use mainstay_testkit::model::Reply;
use serde_json::json;

use super::on_both;
use crate::fixture::{TestAgent, resume, turn};

fn asking() -> Vec<Reply> {
    let question = json!({ "question": "RequestFilter colour?", "choices": ["red", "blue"] });
    vec![Reply::call_of("ask_user", question), Reply::text("done")]
}

fn waiting(test: &TestAgent) -> Vec<RecordedQuestion> {
    let (store, owner) = (&test.store, test.owner);
    store.read(|tx| questions::list(tx, owner, RequestFilter::Waiting)).unwrap()
}

fn answer(test: &TestAgent, asked: &RecordedQuestion, text: &str) -> AnswerOutcome {
    let (store, owner) = (&test.store, test.owner);
    store
        .write(|tx| {
            questions::answer(
                tx,
                owner,
                asked.question.id,
                text,
                questions::Answerer { by: "me", sealer: None },
            )
        })
        .unwrap()
}

#[test]
fn a_question_waits_and_its_answer_is_the_result_of_the_call_once() {
    on_both(asking, async |test| {
        let mut work = test.begin();
        let (id, parked) = (work.id(), turn(&mut work, "paint").await);
        let reason = parked.parked_because().unwrap();
        assert!(reason.contains("RequestFilter colour?"), "{reason}");
        drop(work);
        let asked = waiting(test);
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0].question.choices, ["red", "blue"]);
        // Going on without an answer changes nothing.
        assert!(resume(&mut test.open(id)).await.is_parked());
        assert_eq!(waiting(test), asked);

        assert!(matches!(answer(test, &asked[0], "1"), AnswerOutcome::Done(_)));
        let AnswerOutcome::TooLate(late) = answer(test, &asked[0], "2") else {
            panic!("answered twice")
        };
        assert!(
            matches!(&late.standing, QuestionStanding::Answered { answer, .. } if answer == "red")
        );
        // A process that takes it up and dies takes nothing with it.
        drop(test.open(id));
        assert_eq!(resume(&mut test.open(id)).await.report.answer, "done");
        let last = test.model.asked().pop().unwrap();
        assert_eq!(last.results().len(), 1);
        assert_eq!(last.results()[0].1, "red");
        assert_eq!(test.model.requests(), 2);
    });
}

#[test]
fn new_input_stands_for_an_answer() {
    on_both(asking, async |test| {
        let mut work = test.begin();
        turn(&mut work, "paint").await;
        let asked = waiting(test);
        assert_eq!(turn(&mut work, "green, of course").await.report.answer, "done");
        assert!(waiting(test).is_empty());
        let AnswerOutcome::TooLate(late) = answer(test, &asked[0], "red") else {
            panic!("answered")
        };
        assert_eq!(late.standing, QuestionStanding::Lapsed);
    });
}

#[test]
fn a_question_without_words_asks_nobody() {
    let replies = || {
        vec![
            Reply::call_of("ask_user", json!({ "question": " " })),
            Reply::call_of("ask_user", json!({ "text": "?" })),
            Reply::text("done"),
        ]
    };
    on_both(replies, async |test| {
        let mut work = test.begin();
        assert_eq!(turn(&mut work, "ask").await.report.answer, "done");
        assert!(waiting(test).is_empty());
        assert!(test.last_result().contains("Invalid arguments"), "{}", test.last_result());
    });
}
