//! What a face decides for the engine.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mainstay_journal::turn::TurnChoices;
use mainstay_llm::{Candidate, Effort};
use mainstay_message::Redactor;
use mainstay_tools::sandbox::Wishes;
use mainstay_tools::{EditSlots, Reader, Tool};

use crate::approvals::seal::Sealer;
use crate::budget::Limits;
use crate::compaction::Compacting;
use crate::hooks::Hooks;
use crate::loop_guard::{ACTING, LOOKING, Thresholds};
use crate::memory;
use crate::policy::Policy;
use crate::skills::Places;

/// What a face decides for the engine.
#[derive(Clone)]
pub struct Settings {
    /// What was chosen for the turns that are begun with these settings. It is written with each of
    /// them, for whoever takes it up.
    pub choices: TurnChoices,
    /// The models, the first one first.
    pub chain: Vec<Arc<Candidate>>,
    /// How long and how often models are asked.
    pub asking: mainstay_llm::Limits,
    /// The most tokens an answer may have.
    pub max_output: Option<u32>,
    /// How freely models speak.
    pub temperature: Option<f32>,
    /// How much they think.
    pub effort: Option<Effort>,
    /// What may be done without asking.
    pub policy: Policy,
    /// How long a request for a decision waits for one, and a yes for its call.
    pub approval: Duration,
    /// What may be spent.
    pub budgets: Budgets,
    /// When repeats are a loop.
    pub guards: Guards,
    /// How conversations are compacted.
    pub compaction: Compacting,
    /// How long a session's lease lives without a renewal.
    pub lease: Duration,
    /// The environment that commands are given a part of.
    pub environment: Vec<(OsString, OsString)>,
    /// Names of variables that commands get besides the usual ones.
    pub pass_environment: Vec<String>,
    /// How many child sessions work side by side.
    pub children: usize,
    /// Files and directories that no tool opens.
    pub forbidden: Vec<PathBuf>,
    /// By which processes change a file one after the other.
    pub edit_slots: EditSlots,
    /// How much snapshots may hold and take.
    pub snapshots: mainstay_tools::snapshot::Limits,
    /// What commands and file tools are confined to.
    pub sandbox: Wishes,
    /// Where skills are looked for besides the workspace.
    pub skills: Places,
    /// Tools besides those that every agent has.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Reads documents for the tools.
    pub reader: Option<Reader>,
    /// Commands of the user that are run at fixed points of a turn.
    pub hooks: Arc<Hooks>,
    /// What is remembered, and brought into sessions.
    pub memory: memory::Settings,
    /// Whether a question that a hook raises is answered with yes.
    pub yes: bool,
    /// Proves what people decide. Without it whoever can write to the store decides.
    pub sealer: Option<Sealer>,
    /// Knows the secrets that enter neither the record nor a request nor an event.
    pub redactor: Redactor,
}

/// What may be spent, at most.
#[derive(Clone, Copy, Debug)]
pub struct Budgets {
    /// By an owner in a day.
    pub day: Limits,
    /// By a session in all.
    pub session: Limits,
    /// By a turn.
    pub turn: Limits,
    /// How long a turn may be worked on without a pause.
    pub wall: Duration,
    /// How many budgets may stand above one: a turn stands below its session, a child session below
    /// the turn that began it.
    pub depth: i64,
}

impl Default for Budgets {
    fn default() -> Self {
        Self {
            day: Limits { money: Some(50_000_000), tokens: None, calls: Some(20_000) },
            session: Limits { money: Some(50_000_000), tokens: None, calls: None },
            turn: Limits { money: Some(10_000_000), tokens: Some(200_000_000), calls: Some(2_000) },
            wall: Duration::from_secs(12 * 60 * 60),
            depth: 5,
        }
    }
}

/// When repeats are a loop.
#[derive(Clone, Copy, Debug)]
pub struct Guards {
    /// For calls that only look.
    pub looking: Thresholds,
    /// For calls that may change something.
    pub acting: Thresholds,
}

impl Default for Guards {
    fn default() -> Self {
        Self { looking: LOOKING, acting: ACTING }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            choices: TurnChoices::default(),
            chain: Vec::new(),
            asking: mainstay_llm::Limits::default(),
            max_output: None,
            temperature: None,
            effort: None,
            policy: Policy::default(),
            approval: crate::approvals::requests::LIMIT,
            budgets: Budgets::default(),
            guards: Guards::default(),
            compaction: Compacting::default(),
            lease: Duration::from_secs(30),
            environment: Vec::new(),
            pass_environment: Vec::new(),
            children: 4,
            forbidden: Vec::new(),
            edit_slots: EditSlots::default(),
            snapshots: mainstay_tools::snapshot::Limits::default(),
            sandbox: Wishes::default(),
            skills: Places::default(),
            tools: Vec::new(),
            reader: None,
            hooks: Arc::default(),
            memory: memory::Settings::default(),
            yes: false,
            sealer: None,
            redactor: Redactor::default(),
        }
    }
}
