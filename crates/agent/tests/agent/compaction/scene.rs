//! A model with a small window that reads file after file, and what a session of it looks like.

use std::time::Duration;

use mainstay_journal::SessionId;
use mainstay_journal::compaction::Compaction;
use mainstay_journal::entry::{Body, Entry};
use mainstay_journal::model_call::{self, Tried};
use mainstay_llm::Candidate;
use mainstay_testkit::model::{ModelRequest, Reply, Script};
use serde_json::json;

use crate::fixture::{Engine, TestAgent};

/// How the ledger begins in a request.
pub(super) const LEDGER: &str = "# Ledger, kept by Mainstay";

/// An agent whose model takes so many tokens, where that is known.
pub(super) fn agent(window: Option<u64>, script: impl Script) -> TestAgent {
    agent_on(Engine::Sqlite, window, script)
}

pub(super) fn agent_on(engine: Engine, window: Option<u64>, script: impl Script) -> TestAgent {
    let mut test = TestAgent::on(engine, script);
    test.settings.chain = vec![candidate(&test, "qwen", window).into()];
    test.settings.asking.first_byte = Duration::from_millis(500);
    test.settings.asking.idle = Duration::from_millis(500);
    test.settings.compaction.timeout = Duration::from_secs(5);
    test
}

pub(super) fn candidate(test: &TestAgent, name: &str, window: Option<u64>) -> Candidate {
    Candidate { window, max_output: Some(1_000), ..test.candidate(name) }
}

/// Puts so many files of so many bytes into the workspace: `f0`, `f1` and so on.
pub(super) fn fill(test: &TestAgent, files: usize, bytes: usize) {
    for number in 0..files {
        let line = format!("line of file {number} ");
        let text = line.repeat(bytes / line.len() + 1);
        std::fs::write(test.workspace().join(format!("f{number}")), &text[..bytes]).unwrap();
    }
}

pub(super) fn compactions(test: &TestAgent, id: SessionId) -> Vec<Compaction> {
    let made = |entry: Entry| match entry.body {
        Body::Compaction(made) => Some(*made),
        _ => None,
    };
    test.entries(id).into_iter().filter_map(made).collect()
}

/// The rows of summaries in the ledger of model calls.
pub(super) fn summary_rows(test: &TestAgent, id: SessionId) -> Vec<Tried> {
    test.store.read(|tx| model_call::of_purpose(tx, id, "summary")).unwrap()
}

/// Requests that were no summaries.
pub(super) fn rounds(test: &TestAgent) -> Vec<ModelRequest> {
    test.model.asked().into_iter().filter(|asked| !is_summary(asked)).collect()
}

/// Requests for a summary.
pub(super) fn summary_requests(test: &TestAgent) -> Vec<ModelRequest> {
    test.model.asked().into_iter().filter(is_summary).collect()
}

/// Whether a request asks for a summary.
pub(super) fn is_summary(asked: &ModelRequest) -> bool {
    asked.system().starts_with("You write the record")
}

/// The tokens that the scripted server counts for a request, as it tells them.
pub(super) fn tokens(asked: &ModelRequest) -> usize {
    asked.bytes / 4
}

/// A call that reads a file of the workspace, with many words that no cheap step shortens.
pub(super) fn reading(number: usize) -> Reply {
    let words = format!("Now comes file {number}, as the plan says. ").repeat(40);
    Reply::text(words).call("read_file", json!({ "path": format!("f{number}") }))
}

/// The same without a word.
pub(super) fn reading_silently(number: usize) -> Reply {
    Reply::call_of("read_file", json!({ "path": format!("f{number}") }))
}

/// The words of a summary that the n-th request for one is answered with.
pub(super) fn summary(number: usize) -> Reply {
    Reply::text(format!("SUMMARY {number}: files were read, one after the other."))
}

/// Reads a file a round, so many in all, then answers; a summary is what `summarise` says.
pub(super) fn reader(
    rounds: usize,
    mut summarise: impl FnMut(&ModelRequest) -> Reply + Send + 'static,
) -> impl Script {
    let mut next = 0;
    move |asked: &ModelRequest| {
        if is_summary(asked) {
            return summarise(asked);
        }
        next += 1;
        if next > rounds { Reply::text("All read.") } else { reading(next - 1) }
    }
}

/// What a provider says whose window is too small.
pub(super) fn too_long() -> Reply {
    Reply::status(400, "maximum context length exceeded").code("context_length_exceeded")
}

/// All words of a request.
pub(super) fn body(asked: &ModelRequest) -> String {
    asked.body.to_string()
}
