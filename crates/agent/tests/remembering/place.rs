//! A store, a workspace and a model of their own for one test.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use mainstay_agent::approvals::requests::{self, DecideOutcome, Decider, Effort, RequestFilter};
use mainstay_agent::memory;
use mainstay_agent::policy::{Decision, Policy};
use mainstay_agent::{
    AGENT, Agent, Error, Event, Input, OpenSession, Opened, Settings, TurnEnding, TurnReport,
    Verdict,
};
use mainstay_journal::{JOURNAL, SessionId};
use mainstay_llm::{Api, Candidate, Provider};
use mainstay_memory::MEMORY;
use mainstay_memory::facts::{self, Fact, FactId, List, NewFact};
use mainstay_memory::notes::{self, Change, Scope};
use mainstay_message::{Content, ToolSpec};
use mainstay_store::{Location, Options, OwnerId, Schema, Store};
use mainstay_testkit::model::{Asked, ModelServer, Reply, Shape};
use mainstay_tools::keeper::Launch;
use mainstay_tools::{Action, Beside, Fact as Left, Invocation, Keeper, Replay, Tool, Traits};
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Where a test happens. What is to be kept is kept without asking, unless the test says so.
pub(crate) struct Place {
    pub(crate) directory: TempDir,
    pub(crate) model: ModelServer,
    pub(crate) store: Store,
    pub(crate) owner: OwnerId,
}

/// Runs a property on both engines, with a model that answers like this.
pub(crate) fn on_both(replies: impl Fn() -> Vec<Reply>, mut property: impl AsyncFnMut(&Place)) {
    for engine in ["sqlite", "postgres"] {
        println!("on {engine}");
        on(engine, replies(), &mut property);
    }
}

/// The same on SQLite alone.
pub(crate) fn on_one(replies: Vec<Reply>, mut property: impl AsyncFnMut(&Place)) {
    on("sqlite", replies, &mut property);
}

fn on(engine: &str, replies: Vec<Reply>, property: &mut impl AsyncFnMut(&Place)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("work")).unwrap();
    let location = match engine {
        "sqlite" => Location::file(directory.path().join("store.db")),
        _ => mainstay_testkit::postgres::fresh().parse().unwrap(),
    };
    let options = Options::new(Schema::new(&[JOURNAL, mainstay_journal::SEARCH, AGENT, MEMORY]));
    let store = Store::open(&location, options).unwrap();
    let owner = store.write(|tx| tx.owner("me")).unwrap();
    let place = Place { directory, model: ModelServer::replies(replies), store, owner };
    runtime.block_on(property(&place));
    place.model.assert_no_violations();
}

impl Place {
    pub(crate) fn workspace(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    /// An agent of this owner with these settings of memory.
    pub(crate) fn agent_with(&self, policy: Policy, memory: memory::Settings) -> Agent {
        self.agent_of(policy, memory, Vec::new())
    }

    /// An agent that can bring words from outside.
    pub(crate) fn agent_fetching(&self, policy: Policy) -> Agent {
        self.agent_of(policy, memory::Settings::default(), vec![Arc::new(FetchWords)])
    }

    fn agent_of(
        &self,
        policy: Policy,
        memory: memory::Settings,
        tools: Vec<Arc<dyn Tool>>,
    ) -> Agent {
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
        let mut settings = Settings {
            chain: vec![Arc::new(candidate)],
            policy,
            memory,
            tools,
            ..Settings::default()
        };
        settings.asking.attempts = 1;
        Agent::new(self.store.clone(), self.owner, keeper, settings)
    }

    pub(crate) fn agent(&self) -> Agent {
        let policy = Policy { persist: Decision::Allow, ..Policy::default() };
        self.agent_with(policy, memory::Settings::default())
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

    pub(crate) fn fact(&self, content: &str) -> FactId {
        let source = "user".to_owned();
        let fact = NewFact { content: content.to_owned(), source, ..NewFact::default() };
        self.store.write(|tx| facts::add(tx, self.owner, &fact)).unwrap().id()
    }

    pub(crate) fn facts(&self) -> Vec<Fact> {
        self.store.read(|tx| facts::list(tx, self.owner, &List::default())).unwrap()
    }

    pub(crate) fn note(&self, text: &str) {
        let changes = [Change::Add(text.to_owned())];
        let changed = self
            .store
            .write(|tx| notes::change(tx, self.owner, Scope::User, &changes, "user", 1_000));
        changed.unwrap().unwrap();
    }

    pub(crate) fn notes(&self, scope: Scope<'_>) -> Vec<String> {
        let notes = self.store.read(|tx| notes::read(tx, self.owner, scope)).unwrap();
        notes.into_iter().map(|note| note.text).collect()
    }

    /// Says yes to all that waits, as another process does.
    pub(crate) fn approve_all(&self) {
        let (store, owner) = (&self.store, self.owner);
        let given = Decider { by: "another process", effort: Effort::Word };
        for waiting in store.read(|tx| requests::list(tx, owner, RequestFilter::Waiting)).unwrap() {
            let id = waiting.request.id;
            let came = store.write(|tx| requests::decide(tx, owner, id, &Verdict::Once, given));
            assert!(matches!(came.unwrap(), DecideOutcome::Done(_)));
        }
    }

    /// What the model was asked last.
    pub(crate) fn last_asked(&self) -> Asked {
        self.model.asked().pop().unwrap()
    }

    /// What the model was told last of its calls.
    pub(crate) fn last_result(&self) -> String {
        self.last_asked().results().pop().unwrap().1
    }
}

/// Brings words from outside.
struct FetchWords;

impl Tool for FetchWords {
    fn spec(&self) -> ToolSpec {
        let parameters = serde_json::json!({ "type": "object" }).into();
        let description = "Brings words.".to_owned();
        ToolSpec { name: "fetch_words".to_owned(), description, parameters }
    }

    fn traits(&self) -> Traits {
        Traits { replay: Replay::Pure, beside: Beside::Others, wall: Duration::from_secs(5) }
    }

    fn action(&self, _: &Invocation<'_>) -> Action {
        Action::Read
    }

    fn run<'a>(
        &'a self,
        _: Invocation<'a>,
        _: Option<&'a Value>,
    ) -> BoxFuture<'a, mainstay_tools::Outcome> {
        Box::pin(async {
            let outcome = mainstay_tools::Outcome::said("words");
            outcome.fact(Left::Outside { origin: "example.org".to_owned() })
        })
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

    pub(crate) fn event(&self, kind: &str) -> Option<&Value> {
        self.events.iter().find(|event| event["type"] == kind)
    }
}

pub(crate) async fn attempt(work: &mut OpenSession, text: &str) -> Result<Told, Error> {
    let mut events = Vec::new();
    let mut observer = |event: Event| events.push(serde_json::to_value(event).unwrap());
    let input = Input { content: vec![Content::Text(text.to_owned())], key: None };
    let ended = work.turn(&input, &mut observer, &CancellationToken::new()).await?;
    Ok(Told { ended, events })
}

pub(crate) async fn turn(work: &mut OpenSession, text: &str) -> Told {
    attempt(work, text).await.unwrap()
}

pub(crate) async fn resume(work: &mut OpenSession) -> Told {
    let mut events = Vec::new();
    let mut observer = |event: Event| events.push(serde_json::to_value(event).unwrap());
    let ended = work.resume(&mut observer, &CancellationToken::new()).await.unwrap().unwrap();
    Told { ended, events }
}
