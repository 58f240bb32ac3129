//! What a person is asked, decides and answers, on both engines.

mod at_hand;
mod questions;
mod requests;
mod rules;

use mainstay_agent::policy::Decision;
use mainstay_testkit::model::{Replies, Reply};
use serde_json::json;

use crate::fixture::{self, TestAgent};

/// Holds a property of an agent that asks before it changes a file of the workspace.
fn on_both(replies: impl Fn() -> Vec<Reply>, property: impl AsyncFnMut(&TestAgent)) {
    let make = |engine| {
        let test = TestAgent::on(engine, Replies::new(replies()));
        test.with(|settings| settings.policy.write = Decision::Ask)
    };
    fixture::on_both(make, property);
}

/// A call that writes a file of the workspace.
fn writing(path: &str, content: &str) -> Reply {
    Reply::call_of("write_file", json!({ "path": path, "content": content }))
}

/// One such call, and an answer.
fn one_write() -> Vec<Reply> {
    vec![writing("a", "x"), Reply::text("done")]
}
