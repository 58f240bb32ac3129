//! Questions of a model that nobody at hand can answer.

use mainstay_agent::TurnEnding;
use mainstay_agent::approvals::questions::{
    self, AnswerOutcome, QuestionStanding, RecordedQuestion,
};
use mainstay_agent::approvals::requests::RequestFilter;
use mainstay_journal::turn::Parked;
use mainstay_testkit::model::Reply;
use serde_json::json;

use crate::place::{Place, on_both, resume, turn};

fn asking() -> Vec<Reply> {
    let question = json!({ "question": "Which colour?", "choices": ["red", "blue"] });
    vec![Reply::call_of("ask_user", question), Reply::text("done")]
}

fn waiting(place: &Place) -> Vec<RecordedQuestion> {
    let (store, owner) = place.store();
    store.read(|tx| questions::list(tx, owner, RequestFilter::Waiting)).unwrap()
}

fn answer(place: &Place, asked: &RecordedQuestion, text: &str) -> AnswerOutcome {
    let (store, owner) = place.store();
    store.write(|tx| questions::answer(tx, owner, asked.question.id, text, "me")).unwrap()
}

#[test]
fn a_question_waits_and_its_answer_is_the_result_of_the_call_once() {
    on_both(asking, async |place| {
        let mut work = place.begin();
        let (id, parked) = (work.id(), turn(&mut work, "paint").await);
        let TurnEnding::Parked(Parked { text: reason, .. }) = &parked.ended.ending else {
            panic!("{parked:?}", parked = parked.ended)
        };
        assert!(reason.contains("Which colour?"), "{reason}");
        drop(work);
        let asked = waiting(place);
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0].question.choices, ["red", "blue"]);
        // Going on without an answer changes nothing.
        assert!(resume(&mut place.open(id)).await.is_parked());
        assert_eq!(waiting(place), asked);

        assert!(matches!(answer(place, &asked[0], "1"), AnswerOutcome::Done(_)));
        let AnswerOutcome::TooLate(late) = answer(place, &asked[0], "2") else {
            panic!("answered twice")
        };
        assert!(
            matches!(&late.standing, QuestionStanding::Answered { answer, .. } if answer == "red")
        );
        // A process that takes it up and dies takes nothing with it.
        drop(place.open(id));
        assert_eq!(resume(&mut place.open(id)).await.ended.answer, "done");
        let last = place.model.asked().pop().unwrap();
        assert_eq!(last.results().len(), 1);
        assert_eq!(last.results()[0].1, "red");
        assert_eq!(place.model.requests(), 2);
    });
}

#[test]
fn new_input_stands_for_an_answer() {
    on_both(asking, async |place| {
        let mut work = place.begin();
        turn(&mut work, "paint").await;
        let asked = waiting(place);
        assert_eq!(turn(&mut work, "green, of course").await.ended.answer, "done");
        assert!(waiting(place).is_empty());
        let AnswerOutcome::TooLate(late) = answer(place, &asked[0], "red") else {
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
    on_both(replies, async |place| {
        let mut work = place.begin();
        assert_eq!(turn(&mut work, "ask").await.ended.answer, "done");
        assert!(waiting(place).is_empty());
        assert!(place.last_result().contains("do not fit"), "{}", place.last_result());
    });
}
