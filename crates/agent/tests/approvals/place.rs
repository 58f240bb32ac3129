//! A store, a workspace and a model of their own for one test, and a clock that can be set.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use mainstay_agent::approvals::requests::{
    self, Approval, DecideOutcome, Decider, Effort, RequestFilter,
};
use mainstay_agent::policy::{Decision, Policy};
use mainstay_agent::{
    AGENT, Agent, Event, Input, OpenSession, Opened, Settings, TurnEnding, TurnReport, Verdict,
};
use mainstay_journal::{JOURNAL, SessionId};
use mainstay_llm::{Api, Candidate, Provider};
use mainstay_memory::MEMORY;
use mainstay_message::Content;
use mainstay_store::{Clock, Location, Options, OwnerId, Schema, Store, SystemClock};
use mainstay_testkit::model::{ModelServer, Reply, Shape};
use mainstay_tools::Keeper;
use mainstay_tools::keeper::Launch;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

pub(crate) const MINUTE: i64 = 60_000;
pub(crate) const DAY: i64 = 24 * 60 * MINUTE;

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

/// Where a test happens. Changes of files in the workspace are asked about.
pub(crate) struct Place {
    pub(crate) directory: TempDir,
    pub(crate) model: ModelServer,
    pub(crate) clock: Arc<Ahead>,
    pub(crate) policy: Policy,
    location: Location,
}

/// Runs a property on both engines, with a model that answers like this.
pub(crate) fn on_both(replies: impl Fn() -> Vec<Reply>, mut property: impl AsyncFnMut(&Place)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for engine in ["sqlite", "postgres"] {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("work")).unwrap();
        let location = match engine {
            "sqlite" => Location::file(directory.path().join("store.db")),
            _ => mainstay_testkit::postgres::fresh().parse().unwrap(),
        };
        let place = Place {
            directory,
            model: ModelServer::replies(replies()),
            clock: Arc::default(),
            policy: Policy { write: Decision::Ask, ..Policy::default() },
            location,
        };
        println!("on {engine}");
        runtime.block_on(property(&place));
        place.model.assert_no_violations();
    }
}

/// A call that writes a file of the workspace.
pub(crate) fn writing(path: &str, content: &str) -> Reply {
    Reply::call_of("write_file", json!({ "path": path, "content": content }))
}

pub(crate) fn input(text: &str) -> Input {
    Input { content: vec![Content::Text(text.to_owned())], key: None }
}

impl Place {
    pub(crate) fn workspace(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    /// What a file in the workspace says, if it is there.
    pub(crate) fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.workspace().join(name)).ok()
    }

    /// A handle of its own on the store, as another process has.
    pub(crate) fn store(&self) -> (Store, OwnerId) {
        let schema = Schema::new(&[JOURNAL, mainstay_journal::SEARCH, AGENT, MEMORY]);
        let options = Options::new(schema).clock(self.clock.clone());
        let store = Store::open(&self.location, options).unwrap();
        let owner = store.write(|tx| tx.owner("me")).unwrap();
        (store, owner)
    }

    pub(crate) fn agent(&self) -> Agent {
        let (store, owner) = self.store();
        // Nothing here starts it.
        let keeper = Keeper::new(Launch {
            program: "/nonexistent".into(),
            arguments: Vec::new(),
            spool: self.directory.path().join("keepers"),
            grace: Duration::ZERO,
        });
        let provider = Provider::without_key(
            "local",
            Api::OpenAiChat,
            self.model.base_url(Shape::Chat).parse().unwrap(),
        );
        let candidate = Candidate::new(provider, "qwen");
        let settings = Settings {
            chain: vec![Arc::new(candidate)],
            policy: self.policy,
            ..Settings::default()
        };
        Agent::new(store, owner, keeper, settings)
    }

    /// A new session.
    pub(crate) fn begin(&self) -> OpenSession {
        self.agent().begin(&self.workspace(), "2026-01-02").unwrap()
    }

    /// Takes a session up, as another process does.
    pub(crate) fn open(&self, id: SessionId) -> OpenSession {
        match self.agent().open(id).unwrap() {
            Opened::Got(work) => *work,
            Opened::Held(holder) => panic!("held by {holder:?}"),
        }
    }

    /// The requests of the owner.
    pub(crate) fn requests(&self, which: RequestFilter) -> Vec<Approval> {
        let (store, owner) = self.store();
        store.read(|tx| requests::list(tx, owner, which)).unwrap()
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
        let (store, owner) = self.store();
        let given = Decider { by: "another process", effort };
        store.write(|tx| requests::decide(tx, owner, approval.request.id, verdict, given)).unwrap()
    }

    /// Says yes as another process does.
    pub(crate) fn approve(&self, approval: &Approval) {
        let came = self.decide(approval, &Verdict::Once, Effort::Key);
        assert!(matches!(came, DecideOutcome::Done(_)), "{came:#?}");
    }

    /// What the model was told last of its calls.
    pub(crate) fn last_result(&self) -> String {
        self.model.asked().pop().unwrap().results().pop().unwrap().1
    }
}

/// What a turn told while it went on.
pub(crate) struct Told {
    pub(crate) ended: TurnReport,
    pub(crate) events: Vec<Value>,
}

impl Told {
    pub(crate) fn is_parked(&self) -> bool {
        matches!(self.ended.ending, TurnEnding::Parked { .. })
    }

    /// The requests that the turn waits for.
    pub(crate) fn parked_on(&self) -> Vec<String> {
        let parked = self.events.iter().find(|event| event["type"] == "parked").unwrap();
        let requests = parked["requests"].as_array().unwrap();
        requests.iter().map(|request| request["id"].as_str().unwrap().to_owned()).collect()
    }
}

pub(crate) async fn turn(work: &mut OpenSession, text: &str) -> Told {
    let mut events = Vec::new();
    let mut observer = |event: Event| events.push(serde_json::to_value(event).unwrap());
    let ended = work.turn(&input(text), &mut observer, &CancellationToken::new()).await.unwrap();
    Told { ended, events }
}

pub(crate) async fn resume(work: &mut OpenSession) -> Told {
    let mut events = Vec::new();
    let mut observer = |event: Event| events.push(serde_json::to_value(event).unwrap());
    let ended = work.resume(&mut observer, &CancellationToken::new()).await.unwrap().unwrap();
    Told { ended, events }
}
