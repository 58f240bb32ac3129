//! Recall: what bears on the user's words comes with them.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use mainstay_agent::Compacted;
use mainstay_agent::memory::{self, Memory, Provider, ProviderError, Query, Reply as Answer};
use mainstay_agent::policy::Policy;
use mainstay_memory::facts;
use mainstay_store::params;
use mainstay_testkit::model::Reply;
use tokio_util::sync::CancellationToken;

use crate::place::{on_both, on_one, resume, turn};

fn hello() -> Vec<Reply> {
    (0..6).map(|_| Reply::text("hello")).collect()
}

const QUESTION: &str = "How do I run the tests of the parser?";

#[test]
fn what_bears_on_the_input_comes_with_it_framed_as_data_and_once() {
    on_both(hello, async |place| {
        let id = place.fact("The tests of the parser run with `make parser`.");
        place.fact("The office is closed on Mondays.");
        let mut work = place.begin();
        let told = turn(&mut work, QUESTION).await;
        let said = place.last_asked().last_user_text();
        let (question, recalled) = said.split_once("[Mainstay: memories").unwrap();
        assert!(question.contains(QUESTION), "{said}");
        let (_, framed) = recalled.split_once("<data ").unwrap();
        assert!(
            framed
                .contains(&format!("\n- [facts:{id}] (just now, trust 0.50, from user) The tests"))
        );
        assert!(!said.contains("Mondays"), "{said}");
        let event = told.event("recalled").unwrap();
        assert_eq!(event["memories"][0]["id"], format!("facts:{id}"), "{event}");

        // What the session was told it is not told again, in this process or another.
        turn(&mut work, QUESTION).await;
        let name = format!("[facts:{id}]");
        let whole = |place: &crate::place::Place| place.last_asked().body.to_string();
        assert_eq!(whole(place).matches(&name).count(), 1);
        let session = work.id();
        drop(work);
        turn(&mut place.open(session), QUESTION).await;
        assert_eq!(whole(place).matches(&name).count(), 1);
        assert_eq!(whole(place).matches("memories that may bear").count(), 1);
    });
}

#[test]
fn a_memory_that_a_compaction_replaced_may_come_again() {
    let long = || Reply::text("The parser reads one word after another. ".repeat(500));
    let summary = Reply::text("They spoke of the parser.");
    let replies = vec![long(), long(), Reply::text("yes"), summary, Reply::text("hello")];
    on_one(replies, async |place| {
        let id = place.fact("The tests of the parser run with `make parser`.");
        let mut work = place.begin();
        turn(&mut work, QUESTION).await;
        turn(&mut work, "Go on.").await;
        turn(&mut work, "Is that all?").await;
        let compacted = work.compact(None, &mut |_| {}, &CancellationToken::new()).await.unwrap();
        assert!(matches!(compacted, Compacted::Made { .. }), "{compacted:?}");
        turn(&mut work, QUESTION).await;
        let said = place.last_asked().last_user_text();
        assert!(said.contains(&format!("[facts:{id}]")), "{said}");
    });
}

#[test]
fn a_turn_that_is_taken_up_again_sees_what_it_saw() {
    let replies = || vec![Reply::status(400, "not today"), Reply::text("make parser")];
    on_both(replies, async |place| {
        let id = place.fact("The tests of the parser run with make.");
        let mut work = place.begin();
        turn(&mut work, QUESTION).await;
        let before = place.last_asked().last_user_text();
        assert!(before.contains("run with make"), "{before}");
        let session = work.id();
        drop(work);
        // Meanwhile it is forgotten, and others come.
        place.store.write(|tx| facts::forget(tx, place.owner, id)).unwrap();
        place.fact("The tests of the parser are gone.");
        let mut work = place.open(session);
        resume(&mut work).await;
        let after = place.last_asked().body.to_string();
        assert!(after.contains("run with make") && !after.contains("are gone"), "{after}");
    });
}

#[test]
fn nothing_is_brought_where_nothing_fits_or_nobody_wants_it() {
    on_one(hello(), async |place| {
        turn(&mut place.begin(), QUESTION).await;
        assert!(!place.last_asked().body.to_string().contains("memories that may bear"));
        place.fact("The office is closed on Mondays.");
        turn(&mut place.begin(), QUESTION).await;
        assert!(!place.last_asked().body.to_string().contains("memories that may bear"));
        place.fact("The tests of the parser run with make.");
        let quiet = memory::Settings { recall: false, ..memory::Settings::default() };
        let agent = place.agent_with(Policy::default(), quiet);
        turn(&mut agent.begin(&place.workspace(), "2026-01-02").unwrap(), QUESTION).await;
        assert!(!place.last_asked().body.to_string().contains("memories that may bear"));
        let few = memory::Settings { limit: 2, ..memory::Settings::default() };
        for name in ["lexer", "printer", "checker"] {
            place.fact(&format!("The tests of the parser and the {name} run with make."));
        }
        let agent = place.agent_with(Policy::default(), few);
        turn(&mut agent.begin(&place.workspace(), "2026-01-02").unwrap(), QUESTION).await;
        assert_eq!(place.last_asked().body.to_string().matches("- [facts:").count(), 2);
    });
}

#[test]
fn one_word_in_common_brings_nothing_and_a_name_does() {
    on_one(hello(), async |place| {
        place.fact("The build server of the team restarts every night at two.");
        let brought = |place: &crate::place::Place| {
            place.last_asked().body.to_string().matches("- [facts:").count()
        };
        turn(&mut place.begin(), "Please write a poem for my team about spring").await;
        assert_eq!(brought(place), 0);
        place.fact("Ada Lovelace drinks green tea without sugar.");
        turn(&mut place.begin(), "What should we give to Ada for her birthday?").await;
        assert_eq!(brought(place), 1);
    });
}

#[test]
fn recall_that_fails_is_a_notice_and_the_turn_goes_on() {
    on_both(hello, async |place| {
        place.fact("The tests of the parser run with make.");
        let sql = "ALTER TABLE fact_terms RENAME TO away";
        place.store.write(|tx| tx.execute(sql, params![])).unwrap();
        let told = turn(&mut place.begin(), QUESTION).await;
        assert_eq!(told.ended.answer, "hello");
        let notice = told.event("notice").unwrap();
        assert!(notice["message"].as_str().unwrap().contains("the memory `facts`"), "{notice}");
        let sql = "ALTER TABLE away RENAME TO fact_terms";
        place.store.write(|tx| tx.execute(sql, params![])).unwrap();
        assert_eq!(place.facts().len(), 1);
        // It is asked again at once: a store that failed costs no waiting.
        turn(&mut place.begin(), QUESTION).await;
        assert!(place.last_asked().last_user_text().contains("run with make"));
    });
}

/// Has one memory, or none to give.
struct Elsewhere(Result<&'static str, &'static str>);

impl Provider for Elsewhere {
    fn name(&self) -> &str {
        if self.0.is_ok() { "elsewhere" } else { "broken" }
    }

    fn prompt<'a>(&'a self, _: memory::MemoryPlace<'a>) -> BoxFuture<'a, Answer<Option<String>>> {
        Box::pin(async { Ok(self.0.ok().map(|_| "ask elsewhere for the past".to_owned())) })
    }

    fn recall<'a>(&'a self, _: Query<'a>) -> BoxFuture<'a, Answer<Vec<Memory>>> {
        Box::pin(async {
            let text = self.0.map_err(|words| ProviderError(words.to_owned()))?.to_owned();
            Ok(vec![Memory { id: "a1".to_owned(), text, score: 0.9, ..Memory::default() }])
        })
    }
}

#[test]
fn all_who_have_memories_are_asked_and_one_that_fails_stops_nobody() {
    on_one(hello(), async |place| {
        place.fact("The tests of the parser run with make.");
        let providers: Vec<Arc<dyn Provider>> = vec![
            Arc::new(Elsewhere(Ok("The parser was written by Ada."))),
            Arc::new(Elsewhere(Err("it is out"))),
        ];
        let memory = memory::Settings { providers, ..memory::Settings::default() };
        let agent = place.agent_with(Policy::default(), memory);
        let mut work = agent.begin(&place.workspace(), "2026-01-02").unwrap();
        let told = turn(&mut work, QUESTION).await;
        let asked = place.last_asked();
        let said = asked.last_user_text();
        let (first, second) =
            (said.find("[elsewhere:a1] The parser").unwrap(), said.find("[facts:1]").unwrap());
        assert!(first < second, "the best first: {said}");
        assert!(asked.system().contains("\nask elsewhere for the past\n"), "{}", asked.system());
        let notice = told.event("notice").unwrap()["message"].as_str().unwrap();
        assert!(notice.contains("`broken` failed: it is out"), "{notice}");
        let again = turn(&mut work, QUESTION).await;
        assert!(again.event("notice").is_none(), "it is left alone");
    });
}
