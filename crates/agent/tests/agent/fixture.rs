//! What every test of the engine begins with: an agent with a store, a workspace and a scripted model
//! of its own, and a keeper that nothing starts.

mod person;
mod test_tool;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use mainstay_agent::approvals::requests::{
    self, Approval, DecideOutcome, Decider, Effort, RequestFilter,
};
use mainstay_agent::{
    Agent, Error, Event, Input, OpenSession, Opened, Settings, TurnEnding, TurnReport, Verdict,
};
use mainstay_journal::entry::{self, Body, Entry};
use mainstay_journal::{SessionId, turn};
use mainstay_llm::{Api, Candidate, Provider};
use mainstay_message::Content;
use mainstay_store::{Clock, Options, OwnerId, Store, SystemClock, params};
use mainstay_testkit::model::{ModelRequest, ModelServer, Replies, Reply, Script, Shape};
use mainstay_tools::Keeper;
use mainstay_tools::keeper::Launch;
pub(crate) use person::{Person, Says};
use serde_json::Value;
use tempfile::TempDir;
pub(crate) use test_tool::TestTool;
use tokio_util::sync::CancellationToken;

/// The day on which all sessions begin.
pub(crate) const DATE: &str = "2026-01-02";

/// Where a store is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

impl Engine {
    pub(crate) const BOTH: [Self; 2] = [Self::Sqlite, Self::Postgres];
}

/// An agent of one test. Change its settings before you ask it for sessions: each session gets an
/// [`Agent`] and a handle on the store of its own, as in a process of its own.
pub(crate) struct TestAgent {
    pub(crate) directory: TempDir,
    pub(crate) model: ModelServer,
    pub(crate) clock: Arc<Ahead>,
    pub(crate) settings: Settings,
    /// The store as another process sees it.
    pub(crate) store: Store,
    pub(crate) owner: OwnerId,
    /// Where the store is, as a program is told.
    pub(crate) url: String,
}

impl TestAgent {
    /// One on this engine, with a model that follows a script.
    pub(crate) fn on(engine: Engine, script: impl Script) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = match engine {
            Engine::Sqlite => directory.path().join("store.db").display().to_string(),
            Engine::Postgres => mainstay_testkit::postgres::fresh(),
        };
        Self::at(url, directory, "me", script)
    }

    /// One on SQLite, with a model that gives these replies.
    pub(crate) fn replying(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::on(Engine::Sqlite, Replies::new(replies))
    }

    /// An agent of somebody else on the same store, with a model and a workspace of its own.
    pub(crate) fn of_another_owner(&self, owner: &str, script: impl Script) -> Self {
        Self::at(self.url.clone(), tempfile::tempdir().unwrap(), owner, script)
    }

    fn at(url: String, directory: TempDir, owner: &str, script: impl Script) -> Self {
        std::fs::create_dir(directory.path().join("work")).unwrap();
        let clock = Arc::<Ahead>::default();
        let store = open_store(&url, &clock);
        let owner = store.write(|tx| tx.owner(owner)).unwrap();
        let (model, settings) = (ModelServer::start(script), Settings::default());
        let mut test = Self { directory, model, clock, settings, store, owner, url };
        test.settings.chain = vec![Arc::new(test.candidate("qwen"))];
        // Waits between attempts prove nothing.
        test.settings.asking.backoff_base = Duration::from_millis(10);
        test
    }

    /// The same with other settings.
    #[must_use]
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// A model of this name, which the script plays too.
    pub(crate) fn candidate(&self, name: &str) -> Candidate {
        let url = self.model.base_url(Shape::Chat).parse().unwrap();
        Candidate::new(Provider::without_key("local", Api::OpenAiChat, url), name)
    }

    /// Models of these names, the first one first.
    pub(crate) fn chain(&self, names: &[&str]) -> Vec<Arc<Candidate>> {
        names.iter().map(|name| Arc::new(self.candidate(name))).collect()
    }

    /// Gives the agent one more tool, and answers a handle on it.
    pub(crate) fn tool(&mut self, tool: TestTool) -> Arc<TestTool> {
        let tool = Arc::new(tool);
        self.settings.tools.push(tool.clone());
        tool
    }

    pub(crate) fn agent(&self) -> Agent {
        self.agent_with(|_| ())
    }

    /// An agent whose settings differ from those of the others.
    pub(crate) fn agent_with(&self, change: impl FnOnce(&mut Settings)) -> Agent {
        let mut settings = self.settings.clone();
        change(&mut settings);
        let store = open_store(&self.url, &self.clock);
        let keeper = Keeper::new(Launch {
            program: "/nonexistent".into(),
            arguments: Vec::new(),
            spool: self.directory.path().join("keepers"),
            grace: Duration::ZERO,
        });
        Agent::new(store, self.owner, keeper, settings)
    }

    /// A new session.
    pub(crate) fn begin(&self) -> OpenSession {
        self.begin_with(|_| ())
    }

    /// A new session of an agent with other settings.
    pub(crate) fn begin_with(&self, change: impl FnOnce(&mut Settings)) -> OpenSession {
        self.agent_with(change).begin(&self.workspace(), DATE).unwrap()
    }

    /// Takes a session up, as another process does.
    pub(crate) fn open(&self, id: SessionId) -> OpenSession {
        match self.agent().open(id).unwrap() {
            Opened::Got(work) => *work,
            Opened::Held(holder) => panic!("held by {holder:?}"),
        }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    /// What a file of the workspace says. Returns `None` if it is not there.
    pub(crate) fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.workspace().join(name)).ok()
    }

    pub(crate) fn entries(&self, id: SessionId) -> Vec<Entry> {
        self.store.read(|tx| entry::all(tx, id)).unwrap()
    }

    /// The kinds of the entries of a session, in order.
    pub(crate) fn kinds(&self, id: SessionId) -> Vec<&'static str> {
        self.entries(id).iter().map(|entry| entry.body.kind()).collect()
    }

    /// What models read of the calls of a session, in the order of the record.
    pub(crate) fn results(&self, id: SessionId) -> Vec<String> {
        let text = |entry: Entry| match entry.body {
            Body::Result { result, .. } => {
                Some(result.content.iter().filter_map(Content::text).collect())
            }
            _ => None,
        };
        self.entries(id).into_iter().filter_map(text).collect()
    }

    /// The last turn of a session, as it is recorded.
    pub(crate) fn last_turn(&self, id: SessionId) -> turn::Turn {
        self.store.read(|tx| turn::last(tx, id)).unwrap().unwrap()
    }

    /// The requests of the owner.
    pub(crate) fn requests(&self, which: RequestFilter) -> Vec<Approval> {
        self.store.read(|tx| requests::list(tx, self.owner, which)).unwrap()
    }

    /// The one request that waits.
    pub(crate) fn waiting(&self) -> Approval {
        let mut waiting = self.requests(RequestFilter::Waiting);
        assert_eq!(waiting.len(), 1, "{waiting:#?}");
        waiting.remove(0)
    }

    /// Decides as another process does.
    pub(crate) fn decide(
        &self,
        approval: &Approval,
        verdict: &Verdict,
        effort: Effort,
    ) -> DecideOutcome {
        let (id, given) =
            (approval.request.id, Decider { by: "another process", effort, sealer: None });
        self.store.write(|tx| requests::decide(tx, self.owner, id, verdict, given)).unwrap()
    }

    /// Says yes as another process does.
    pub(crate) fn approve(&self, approval: &Approval) {
        let came = self.decide(approval, &Verdict::Once, Effort::Key);
        assert!(matches!(came, DecideOutcome::Done(_)), "{came:#?}");
    }

    /// What a model was asked last.
    pub(crate) fn last_asked(&self) -> ModelRequest {
        self.model.asked().pop().unwrap()
    }

    /// What a model was told last of its calls.
    pub(crate) fn last_result(&self) -> String {
        self.last_asked().results().pop().unwrap().1
    }

    /// The models that were asked, in order.
    pub(crate) fn asked_models(&self) -> Vec<String> {
        self.model.asked().iter().map(|asked| asked.model().to_owned()).collect()
    }
}

fn open_store(url: &str, clock: &Arc<Ahead>) -> Store {
    let options = Options::new(mainstay_agent::schema()).clock(clock.clone());
    Store::open(&url.parse().unwrap(), options).unwrap()
}

/// The first column of all rows, for what no function of the record tells.
pub(crate) fn column(store: &Store, sql: &str) -> Vec<String> {
    store.read(|tx| tx.query(sql, params![], |row| row.get(0))).unwrap()
}

/// The states of all calls in a store, in the order they were asked for.
pub(crate) fn call_states(store: &Store) -> Vec<String> {
    column(store, "SELECT state FROM calls ORDER BY seq, position")
}

/// A clock that runs ahead.
#[derive(Default)]
pub(crate) struct Ahead(AtomicI64);

impl Ahead {
    pub(crate) fn pass(&self, millis: i64) {
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for Ahead {
    fn wall_millis(&self) -> i64 {
        SystemClock.wall_millis() + self.0.load(Ordering::SeqCst)
    }

    fn uptime_millis(&self) -> i64 {
        SystemClock.uptime_millis()
    }
}

/// Holds a property of an agent on both engines.
pub(crate) fn on_both(
    make: impl Fn(Engine) -> TestAgent,
    mut property: impl AsyncFnMut(&TestAgent),
) {
    for engine in Engine::BOTH {
        println!("on {engine:?}");
        hold(&make(engine), &mut property);
    }
}

/// Holds a property of an agent, whose model must hear nothing that a provider would refuse.
pub(crate) fn hold(test: &TestAgent, mut property: impl AsyncFnMut(&TestAgent)) {
    runtime().block_on(property(test));
    test.model.assert_no_violations();
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// A turn as far as it came, with the events that were told on the way.
#[derive(Debug)]
pub(crate) struct TestTurn {
    pub(crate) report: TurnReport,
    pub(crate) events: Vec<Event>,
}

impl TestTurn {
    pub(crate) fn is_parked(&self) -> bool {
        self.parked_because().is_some()
    }

    /// Why it is parked. Returns `None` if it is not.
    pub(crate) fn parked_because(&self) -> Option<&str> {
        match &self.report.ending {
            TurnEnding::Parked(parked) => Some(&parked.text),
            TurnEnding::Over(..) => None,
        }
    }

    /// When it can go on. Returns `None` if it is over or nobody knows.
    pub(crate) fn resume_at(&self) -> Option<i64> {
        match &self.report.ending {
            TurnEnding::Parked(parked) => parked.reason.resume_at(),
            TurnEnding::Over(..) => None,
        }
    }

    /// Why it failed. Returns `None` if it did not.
    pub(crate) fn failed_because(&self) -> Option<&str> {
        match &self.report.ending {
            TurnEnding::Over(turn::Outcome::Failed, reason) => reason.as_deref(),
            _ => None,
        }
    }

    /// The first event of this type, as JSON.
    pub(crate) fn event(&self, kind: &str) -> Option<Value> {
        self.told().into_iter().find(|event| event["type"] == kind)
    }

    /// All events, as JSON.
    pub(crate) fn told(&self) -> Vec<Value> {
        self.events.iter().map(|event| serde_json::to_value(event).unwrap()).collect()
    }

    /// The requests that it waits for.
    pub(crate) fn parked_on(&self) -> Vec<String> {
        let parked = self.event("parked").unwrap();
        let requests = parked["requests"].as_array().unwrap();
        requests.iter().map(|request| request["id"].as_str().unwrap().to_owned()).collect()
    }

    /// The notices on something.
    pub(crate) fn notices(&self, on: &str) -> Vec<String> {
        let of = |event: &Event| match event {
            Event::Notice { about, message, .. } if *about == on => Some(message.clone()),
            _ => None,
        };
        self.events.iter().filter_map(of).collect()
    }
}

pub(crate) fn input(text: &str) -> Input {
    Input { content: vec![Content::Text(text.to_owned())], key: None }
}

/// An input whose key names it: sent twice it is one turn.
pub(crate) fn input_named(text: &str, key: &str) -> Input {
    Input { key: Some(key.to_owned()), ..input(text) }
}

pub(crate) async fn turn(work: &mut OpenSession, text: &str) -> TestTurn {
    attempt(work, &input(text)).await.unwrap()
}

pub(crate) async fn attempt(work: &mut OpenSession, input: &Input) -> Result<TestTurn, Error> {
    let mut events = Vec::new();
    let cancel = CancellationToken::new();
    let report = work.turn(input, &mut |event| events.push(event), &cancel).await?;
    Ok(TestTurn { report, events })
}

pub(crate) async fn resume(work: &mut OpenSession) -> TestTurn {
    let mut events = Vec::new();
    let cancel = CancellationToken::new();
    let report = work.resume(&mut |event| events.push(event), &cancel).await.unwrap().unwrap();
    TestTurn { report, events }
}

/// Waits until something is true, with a deadline.
pub(crate) async fn until(is_true: impl Fn() -> bool) {
    let waiting = async {
        while !is_true() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap();
}

/// Works on an input until something happens, and then no more: as far as the record goes, the process
/// died there.
pub(crate) async fn die_when(
    happened: impl Future<Output = ()>,
    mut work: OpenSession,
    input: &Input,
) -> SessionId {
    let (id, cancel) = (work.id(), CancellationToken::new());
    let mut observer = |_| {};
    tokio::select! {
        biased;
        () = happened => {}
        over = work.turn(input, &mut observer, &cancel) => panic!("it ended before: {over:?}"),
    }
    id
}
