//! Recall: what bears on the user's words comes with them.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use mainstay_agent::Compacted;
use mainstay_agent::memory::{self, Memory, Provider, Query, Reply as Answer, Trouble};
use mainstay_memory::facts;
use mainstay_store::params;
use mainstay_testkit::model::Reply;
use tokio_util::sync::CancellationToken;

use super::{add_fact, facts_of, hello, on_both, on_one};
use crate::fixture::{TestAgent, resume, turn};

const QUESTION: &str = "How do I run the tests of the parser?";

#[test]
fn what_bears_on_the_input_comes_with_it_framed_as_data_and_once() {
    on_both(hello, async |test| {
        let id = add_fact(test, "The tests of the parser run with `make parser`.");
        add_fact(test, "The office is closed on Mondays.");
        let mut work = test.begin();
        let told = turn(&mut work, QUESTION).await;
        let said = test.last_asked().last_user_text();
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
        let whole = |test: &TestAgent| test.last_asked().body.to_string();
        assert_eq!(whole(test).matches(&name).count(), 1);
        let session = work.id();
        drop(work);
        turn(&mut test.open(session), QUESTION).await;
        assert_eq!(whole(test).matches(&name).count(), 1);
        assert_eq!(whole(test).matches("memories that may bear").count(), 1);
    });
}

#[test]
fn a_memory_that_a_compaction_replaced_may_come_again() {
    let long = || Reply::text("The parser reads one word after another. ".repeat(500));
    let summary = Reply::text("They spoke of the parser.");
    let replies = vec![long(), long(), Reply::text("yes"), summary, Reply::text("hello")];
    on_one(replies, async |test| {
        let id = add_fact(test, "The tests of the parser run with `make parser`.");
        let mut work = test.begin();
        turn(&mut work, QUESTION).await;
        turn(&mut work, "Go on.").await;
        turn(&mut work, "Is that all?").await;
        let compacted = work.compact(None, &mut |_| {}, &CancellationToken::new()).await.unwrap();
        assert!(matches!(compacted, Compacted::Made { .. }), "{compacted:?}");
        turn(&mut work, QUESTION).await;
        let said = test.last_asked().last_user_text();
        assert!(said.contains(&format!("[facts:{id}]")), "{said}");
    });
}

#[test]
fn a_turn_that_is_taken_up_again_sees_what_it_saw() {
    let replies = || vec![Reply::status(400, "not today"), Reply::text("make parser")];
    on_both(replies, async |test| {
        let id = add_fact(test, "The tests of the parser run with make.");
        let mut work = test.begin();
        turn(&mut work, QUESTION).await;
        let before = test.last_asked().last_user_text();
        assert!(before.contains("run with make"), "{before}");
        let session = work.id();
        drop(work);
        // Meanwhile it is forgotten, and others come.
        test.store.write(|tx| facts::forget(tx, test.owner, id)).unwrap();
        add_fact(test, "The tests of the parser are gone.");
        let mut work = test.open(session);
        resume(&mut work).await;
        let after = test.last_asked().body.to_string();
        assert!(after.contains("run with make") && !after.contains("are gone"), "{after}");
    });
}

#[test]
fn nothing_is_brought_where_nothing_fits_or_nobody_wants_it() {
    on_one(hello(), async |test| {
        turn(&mut test.begin(), QUESTION).await;
        assert!(!test.last_asked().body.to_string().contains("memories that may bear"));
        add_fact(test, "The office is closed on Mondays.");
        turn(&mut test.begin(), QUESTION).await;
        assert!(!test.last_asked().body.to_string().contains("memories that may bear"));
        add_fact(test, "The tests of the parser run with make.");
        turn(&mut test.begin_with(|settings| settings.memory.recall = false), QUESTION).await;
        assert!(!test.last_asked().body.to_string().contains("memories that may bear"));
        for name in ["lexer", "printer", "checker"] {
            add_fact(test, &format!("The tests of the parser and the {name} run with make."));
        }
        turn(&mut test.begin_with(|settings| settings.memory.limit = 2), QUESTION).await;
        assert_eq!(test.last_asked().body.to_string().matches("- [facts:").count(), 2);
    });
}

#[test]
fn one_word_in_common_brings_nothing_and_a_name_does() {
    on_one(hello(), async |test| {
        add_fact(test, "The build server of the team restarts every night at two.");
        let brought =
            |test: &TestAgent| test.last_asked().body.to_string().matches("- [facts:").count();
        turn(&mut test.begin(), "Please write a poem for my team about spring").await;
        assert_eq!(brought(test), 0);
        add_fact(test, "Ada Lovelace drinks green tea without sugar.");
        turn(&mut test.begin(), "What should we give to Ada for her birthday?").await;
        assert_eq!(brought(test), 1);
    });
}

#[test]
fn recall_that_fails_is_a_notice_and_the_turn_goes_on() {
    on_both(hello, async |test| {
        add_fact(test, "The tests of the parser run with make.");
        let sql = "ALTER TABLE fact_terms RENAME TO away";
        test.store.write(|tx| tx.execute(sql, params![])).unwrap();
        let told = turn(&mut test.begin(), QUESTION).await;
        assert_eq!(told.report.answer, "hello");
        let notice = told.event("notice").unwrap();
        assert!(notice["message"].as_str().unwrap().contains("the memory `facts`"), "{notice}");
        let sql = "ALTER TABLE away RENAME TO fact_terms";
        test.store.write(|tx| tx.execute(sql, params![])).unwrap();
        assert_eq!(facts_of(test).len(), 1);
        // It is asked again at once: a store that failed costs no waiting.
        turn(&mut test.begin(), QUESTION).await;
        assert!(test.last_asked().last_user_text().contains("run with make"));
    });
}

/// Has one memory, or none to give.
struct Elsewhere(Result<&'static str, &'static str>);

impl Provider for Elsewhere {
    fn name(&self) -> &str {
        if self.0.is_ok() { "elsewhere" } else { "broken" }
    }

    fn prompt<'a>(&'a self, _: memory::Place<'a>) -> BoxFuture<'a, Answer<Option<String>>> {
        Box::pin(async { Ok(self.0.ok().map(|_| "ask elsewhere for the past".to_owned())) })
    }

    fn recall<'a>(&'a self, _: Query<'a>) -> BoxFuture<'a, Answer<Vec<Memory>>> {
        Box::pin(async {
            let text = self.0.map_err(|words| Trouble(words.to_owned()))?.to_owned();
            Ok(vec![Memory { id: "a1".to_owned(), text, score: 0.9, ..Memory::default() }])
        })
    }
}

#[test]
fn all_who_have_memories_are_asked_and_one_that_fails_stops_nobody() {
    on_one(hello(), async |test| {
        add_fact(test, "The tests of the parser run with make.");
        let providers: Vec<Arc<dyn Provider>> = vec![
            Arc::new(Elsewhere(Ok("The parser was written by Ada."))),
            Arc::new(Elsewhere(Err("it is out"))),
        ];
        let mut work = test.begin_with(|settings| settings.memory.providers = providers);
        let told = turn(&mut work, QUESTION).await;
        let asked = test.last_asked();
        let said = asked.last_user_text();
        let (first, second) =
            (said.find("[elsewhere:a1] The parser").unwrap(), said.find("[facts:1]").unwrap());
        assert!(first < second, "the best first: {said}");
        assert!(asked.system().contains("\nask elsewhere for the past\n"), "{}", asked.system());
        let notices = told.notices("memory");
        assert!(notices[0].contains("`broken` cannot be asked: it is out"), "{notices:?}");
        let again = turn(&mut work, QUESTION).await;
        assert!(again.event("notice").is_none(), "it is left alone");
    });
}
