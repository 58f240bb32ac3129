//! Which model is asked, and what happens when it does not answer.

use std::time::Duration;

use mainstay_agent::{Error, TurnEnding};
use mainstay_journal::turn::Outcome;
use mainstay_testkit::model::{ModelRequest, Reply};
use serde_json::json;

use crate::fixture::{DATE, Engine, TestAgent, TestTool, TestTurn, attempt, column, input, turn};

/// An agent that asks `one`, then `two`, then `three`, each once while another is left.
fn three_models(mut reply: impl FnMut(&str) -> Reply + Send + 'static) -> TestAgent {
    let mut test = TestAgent::on(Engine::Sqlite, move |asked: &ModelRequest| reply(asked.model()));
    test.settings.chain = test.chain(&["one", "two", "three"]);
    test.settings.asking.attempts_with_fallback = 1;
    test.settings.asking.attempts = 2;
    test
}

/// The models that answered, as a face is told.
fn answered_by(turn: &TestTurn) -> Vec<String> {
    let answers = turn.told().into_iter().filter(|event| event["type"] == "answer");
    answers.map(|event| event["model"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_first_model_is_asked_and_while_it_answers_no_other_is() {
    let test = three_models(|model| Reply::text(format!("{model} says hello")));
    let mut work = test.begin();
    for _ in 0..2 {
        let over = turn(&mut work, "hello").await;
        assert_eq!(over.report.answer, "one says hello");
        assert_eq!(answered_by(&over), ["local/one"]);
    }
    assert_eq!(test.asked_models(), ["one", "one"]);
}

/// The first two models fail like this, and the third is asked.
async fn passed_on(fault: Reply) {
    let test = three_models(move |model| match model {
        "three" => Reply::text("done"),
        _ => fault.clone(),
    });
    let over = turn(&mut test.begin(), "hello").await;
    assert_eq!(over.report.answer, "done");
    assert_eq!(test.asked_models(), ["one", "two", "three"]);
    assert_eq!(answered_by(&over), ["local/three"]);
    assert_eq!(over.notices("retry").len(), 2, "{over:?}");
    // Each attempt is a row of the ledger, under the model that was asked.
    let sql = "SELECT model FROM model_calls ORDER BY started_at, id";
    assert_eq!(column(&test.store, sql), ["local/one", "local/two", "local/three"]);
}

#[tokio::test]
async fn the_next_model_is_asked_where_one_is_broken() {
    passed_on(Reply::status(500, "it broke")).await;
}

#[tokio::test]
async fn the_next_model_is_asked_where_one_wants_a_pause() {
    passed_on(Reply::status(429, "slow down").header("retry-after", "30")).await;
}

#[tokio::test]
async fn the_next_model_is_asked_where_one_does_not_know_the_key() {
    passed_on(Reply::status(401, "who are you")).await;
}

#[tokio::test]
async fn the_next_model_is_asked_where_one_does_not_exist() {
    passed_on(Reply::status(404, "no such model")).await;
}

#[tokio::test]
async fn the_next_model_is_asked_where_one_does_not_accept_the_request() {
    passed_on(Reply::status(400, "this makes no sense")).await;
}

#[tokio::test]
async fn the_next_model_is_asked_where_one_stops_in_the_middle() {
    passed_on(Reply::text("words of it").cut_after_events(1)).await;
}

#[tokio::test]
async fn a_model_that_is_unwell_is_passed_over_in_the_next_round_too() {
    let mut rounds = 0;
    let mut test = three_models(move |model| {
        if model == "one" {
            return Reply::status(500, "it broke");
        }
        rounds += 1;
        if rounds == 1 { Reply::call_of("look", json!({})) } else { Reply::text("done") }
    });
    test.tool(TestTool::new("look"));
    let mut work = test.begin();
    let over = turn(&mut work, "look").await;
    assert_eq!(answered_by(&over), ["local/two", "local/two"]);
    assert_eq!(test.asked_models(), ["one", "two", "two"]);
    // Another process knows nothing of that.
    let id = work.id();
    drop(work);
    turn(&mut test.open(id), "again").await;
    assert_eq!(test.asked_models(), ["one", "two", "two", "one", "two"]);
}

#[tokio::test]
async fn where_no_model_answers_the_turn_fails_with_the_words_of_all() {
    let test = three_models(|model| Reply::status(401, format!("{model} does not know you")));
    let mut work = test.begin();
    let over = turn(&mut work, "hello").await;
    let reason = over.failed_because().unwrap();
    for name in ["one", "two", "three"] {
        assert!(reason.contains(&format!("{name} does not know you")), "{reason}");
    }
    assert_eq!(test.asked_models(), ["one", "two", "three"]);
    assert_eq!(test.kinds(work.id()), ["user", "end"]);
}

#[tokio::test]
async fn a_provider_that_names_a_time_parks_the_turn_until_then() {
    let later = |_: &str| Reply::status(429, "come back later").header("retry-after", "7200");
    let test = three_models(later);
    let over = turn(&mut test.begin(), "hello").await;
    assert!(over.parked_because().unwrap().contains("come back later"), "{over:?}");
    let left = over.resume_at().unwrap() - mainstay_store::wall_millis();
    assert!((7_100_000..=7_200_000).contains(&left), "{left} ms");
}

#[tokio::test]
async fn without_a_model_nothing_is_asked_and_the_error_says_so() {
    let test = TestAgent::replying([]).with(|settings| settings.chain.clear());
    let error = attempt(&mut test.begin(), &input("hello")).await.unwrap_err();
    assert!(matches!(error, Error::NoModel), "{error}");
    assert_eq!(test.model.requests(), 0);
}

#[tokio::test]
async fn a_session_asks_the_models_it_was_given_last() {
    let test = three_models(|model| Reply::text(format!("{model} says hello")));
    let agent = test.agent();
    let mut work = agent.begin(&test.workspace(), DATE).unwrap();
    turn(&mut work, "hello").await;
    work.ask_from_now_on(agent.asking(test.chain(&["four"])));
    assert_eq!(turn(&mut work, "hello").await.report.answer, "four says hello");
    assert_eq!(test.asked_models(), ["one", "four"]);
    assert_eq!(agent.chain().len(), 3, "the agent that it came from is what it was");
}

#[tokio::test]
async fn a_model_that_says_nothing_is_asked_once_more_and_then_the_turn_fails() {
    let test = TestAgent::replying([Reply::empty(), Reply::text("here I am")]);
    assert_eq!(turn(&mut test.begin(), "hello").await.report.answer, "here I am");
    assert!(test.last_asked().body.to_string().contains("your last message was empty"));

    let test = TestAgent::replying([Reply::empty(), Reply::empty(), Reply::text("too late")]);
    let over = turn(&mut test.begin(), "hello").await;
    assert!(over.failed_because().unwrap().contains("returned an empty answer twice"), "{over:?}");
    assert_eq!(test.model.requests(), 2);
}

#[tokio::test]
async fn an_answer_that_was_cut_at_the_limit_counts_and_is_told_to_be_cut() {
    let test = TestAgent::replying([Reply::text("and then").stopped_by_length()]);
    let over = turn(&mut test.begin(), "tell a tale").await;
    assert_eq!(over.report.ending, TurnEnding::Over(Outcome::Answered, None));
    assert_eq!((over.report.answer.as_str(), over.notices("cut").len()), ("and then", 1));
}

#[tokio::test]
async fn a_model_that_hangs_is_left_for_the_next_one_in_time() {
    let mut test = three_models(|model| match model {
        "one" => Reply::text("x").stall_before_first_byte(),
        _ => Reply::text("done"),
    });
    test.settings.asking.first_byte = Duration::from_millis(30);
    assert_eq!(turn(&mut test.begin(), "hello").await.report.answer, "done");
    assert_eq!(test.asked_models(), ["one", "two"]);
}
