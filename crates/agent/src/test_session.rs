//! A session for unit tests of decisions: its model is never asked, and its keeper never started.

use std::time::Duration;

use mainstay_message::Call;
use mainstay_tools::Keeper;
use mainstay_tools::keeper::Launch;
use serde_json::Value;
use tempfile::TempDir;

use crate::calls::call::ToolCall;
use crate::session::open::OpenSession;
use crate::test_store::TestStore;
use crate::{Agent, Settings};

/// A new session on SQLite. Its store and its workspace are one directory, which goes with it.
pub(crate) struct TestSession {
    pub(crate) session: OpenSession,
    pub(crate) directory: TempDir,
}

impl TestSession {
    pub(crate) fn new(settings: Settings) -> Self {
        let TestStore { directory, store, owner } = TestStore::on_sqlite();
        let keeper = Keeper::new(Launch {
            program: "/nonexistent".into(),
            arguments: Vec::new(),
            spool: directory.path().join("keepers"),
            grace: Duration::ZERO,
        });
        let agent = Agent::new(store, owner, keeper, settings);
        let session = agent.begin(directory.path(), "2026-01-02").unwrap();
        Self { session, directory }
    }

    /// A call of a tool, as a model just asked for it.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> ToolCall {
        self.call_as_written(tool, &arguments.to_string())
    }

    /// A call whose arguments are this text, JSON or not.
    pub(crate) fn call_as_written(&self, tool: &str, arguments: &str) -> ToolCall {
        let (name, arguments) = (tool.to_owned(), arguments.to_owned());
        let call = Call { id: "call_1".to_owned(), name, arguments, extra: None };
        ToolCall::new(&self.session.agent, call)
    }
}
