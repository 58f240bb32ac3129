//! What sessions are told of earlier ones, and what they leave to later ones.

mod calls;
mod recalled;
mod told;

use mainstay_agent::policy::Decision;
use mainstay_memory::facts::{self, Fact, FactId, List, NewFact};
use mainstay_memory::notes::{self, Change, Scope};
use mainstay_testkit::model::{Replies, Reply};

use crate::fixture::{self, Engine, TestAgent};

/// Holds a property of an agent that remembers without asking, on both engines.
fn on_both(replies: impl Fn() -> Vec<Reply>, property: impl AsyncFnMut(&TestAgent)) {
    fixture::on_both(|engine| remembering(engine, replies()), property);
}

/// The same on SQLite alone.
fn on_one(replies: Vec<Reply>, property: impl AsyncFnMut(&TestAgent)) {
    fixture::hold(&remembering(Engine::Sqlite, replies), property);
}

fn remembering(engine: Engine, replies: Vec<Reply>) -> TestAgent {
    TestAgent::on(engine, Replies::new(replies)).with(|settings| {
        settings.policy.persist = Decision::Allow;
        settings.asking.attempts = 1;
    })
}

/// Answers that say nothing.
fn hello() -> Vec<Reply> {
    (0..6).map(|_| Reply::text("hello")).collect()
}

fn add_fact(test: &TestAgent, content: &str) -> FactId {
    let (content, source) = (content.to_owned(), "user".to_owned());
    let fact = NewFact { content, source, ..NewFact::default() };
    test.store.write(|tx| facts::add(tx, test.owner, &fact)).unwrap().id()
}

fn facts_of(test: &TestAgent) -> Vec<Fact> {
    test.store.read(|tx| facts::list(tx, test.owner, &List::default())).unwrap()
}

fn add_note(test: &TestAgent, scope: Scope<'_>, text: &str) {
    let changes = [Change::Add(text.to_owned())];
    let changed =
        test.store.write(|tx| notes::change(tx, test.owner, scope, &changes, "user", 1_000));
    changed.unwrap().unwrap();
}

fn notes_of(test: &TestAgent, scope: Scope<'_>) -> Vec<String> {
    let notes = test.store.read(|tx| notes::read(tx, test.owner, scope)).unwrap();
    notes.into_iter().map(|note| note.text).collect()
}
