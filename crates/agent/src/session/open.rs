//! A session that this process works on: its lease and its parts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mainstay_journal::compaction::Standing;
use mainstay_journal::entry::{Body, Entry};
use mainstay_journal::session::{self, Session};
use mainstay_journal::turn::{self, Mode, Turn};
use mainstay_journal::{SessionId, Transcript, entry, model_call};
use mainstay_llm::Memo;
use mainstay_message::ToolSpec;
use mainstay_store::{Lease, WriteTx};
use mainstay_tools::sandbox::{Confinement, Network};
use mainstay_tools::{TodoStep, Workplace};

use super::context;
use super::kept_outputs::KeptOutputs;
use super::search_upkeep;
use super::steering::Steering;
use crate::Result;
use crate::agent::{Agent, blocking};
use crate::approvals::asker::Asker;
use crate::background::processes;
use crate::budget::Limits;
use crate::compaction::CompactionState;
use crate::memory::recall::RecalledSoFar;
use crate::policy::Decision;
use crate::skills::Warning;
use crate::snapshots::{self, Snapshots};
use crate::taint::Origins;
use crate::turn::request_size::RequestSize;

/// A session that this process works on. When it is dropped, others may.
pub struct OpenSession {
    pub(crate) agent: Agent,
    pub(crate) id: SessionId,
    /// Nobody else writes to the session while it is held.
    pub(crate) lease: Lease,
    pub(crate) lineage: Lineage,
    pub(crate) conversation: Conversation,
    pub(crate) tools: SessionTools,
    /// Where tools work.
    pub(crate) workplace: Arc<Workplace>,
    pub(crate) trust: Trust,
    /// The memories that the model was shown.
    pub(crate) recalled: RecalledSoFar,
    pub(crate) compaction: CompactionState,
    pub(crate) snapshots: Snapshots,
    /// The outputs of tools that are kept whole.
    pub(crate) outputs: KeptOutputs,
    pub(crate) last_turn: LastTurn,
    /// What the user wants a running turn to hear.
    pub(crate) steering: Steering,
    /// What hooks and memories have for the model, to be written with the next entries.
    pub(crate) pending_notices: Vec<Body>,
    /// What was meant to be a skill and cannot be used, to be told with the first turn.
    pub(crate) unusable_skills: Vec<Warning>,
    /// Whether the session has processes in the background whose end is not taken note of.
    pub(crate) has_processes: bool,
    /// Whether hooks were told that the session is taken up.
    pub(crate) start_hooks_ran: bool,
    /// Whether a turn ended in the middle of a step, so that the store has to be asked what is true.
    pub(crate) is_stale: bool,
}

/// Where a session comes from.
#[derive(Default)]
pub(crate) struct Lineage {
    /// Whether it is not in the store yet.
    pub(crate) is_new: bool,
    /// Whether it was imported, and has had no turn here: its prompt is not in the store yet.
    pub(crate) lacks_prompt: bool,
    /// Whether a turn of another session began it.
    pub(crate) is_child: bool,
    /// What a child is begun with. It is `None` once the child is in the store.
    pub(crate) parent: Option<Parent>,
}

/// What a child session is begun with.
pub(crate) struct Parent {
    pub(crate) session: SessionId,
    /// The budget it is charged to.
    pub(crate) budget: String,
    /// What it may spend of that.
    pub(crate) limits: Limits,
}

/// What a model is shown of a session.
pub(crate) struct Conversation {
    pub(crate) prompt: String,
    pub(crate) transcript: Transcript,
    /// What was sent of the transcript before.
    pub(crate) memo: Memo,
    /// The size of all of it, and of the tools.
    pub(crate) size: RequestSize,
}

/// The tools that a model is told of.
pub(crate) struct SessionTools {
    pub(crate) specs: Vec<ToolSpec>,
    /// The names of those that the model asked for.
    pub(crate) loaded: Vec<String>,
}

/// What decides whether a call may run: who can be asked, and what came from outside.
#[derive(Default)]
pub(crate) struct Trust {
    /// Who is asked while a turn goes on.
    pub(crate) asker: Option<Arc<dyn Asker>>,
    /// Where text in the session came from that taints it.
    pub(crate) origins: Origins,
}

/// The last turn of a session.
#[derive(Default)]
pub(crate) struct LastTurn {
    pub(crate) row: Option<Turn>,
    /// The entries of it that were there when the session was taken up.
    pub(crate) entries: Vec<Entry>,
}

/// What the store has of a session.
struct Record {
    row: Session,
    /// It is empty for a session that was imported and has had no turn here.
    prompt: String,
    last: Option<Turn>,
    entries: Vec<Entry>,
    /// What a provider counted last.
    counted: Option<u64>,
    interrupted_undo: bool,
}

impl Record {
    fn read(agent: &Agent, id: SessionId) -> Result<Self> {
        agent.read(|tx| -> Result<_> {
            let row = session::get(tx, id)?.ok_or_else(|| mainstay_store::Error::UnknownId {
                what: "session".to_owned(),
                typed: id.to_string(),
            })?;
            let last = turn::last(tx, id)?;
            let counted = match &last {
                Some(last) => model_call::counted_in(tx, id, last.id)?,
                None => None,
            };
            Ok(Self {
                prompt: session::prompt(tx, &row)?,
                entries: entry::all(tx, id)?,
                interrupted_undo: snapshots::interrupted(tx, id)?,
                row,
                last,
                counted,
            })
        })
    }

    /// What the model is told first; for a session without a prompt what a new one would get.
    fn prompt_or_new(&self, agent: &Agent) -> String {
        if self.prompt.is_empty() {
            agent.new_prompt(Path::new(&self.row.workspace), &today()).0
        } else {
            self.prompt.clone()
        }
    }
}

impl Conversation {
    /// A conversation in which nothing was said.
    fn new(prompt: String, specs: &[ToolSpec]) -> Self {
        let mut size = RequestSize::new(&prompt);
        size.add_tools(specs);
        Self { prompt, transcript: Transcript::default(), memo: Memo::default(), size }
    }
}

impl OpenSession {
    /// A session that is not in the store yet.
    pub(crate) fn fresh(
        agent: Agent,
        id: SessionId,
        workspace: &Path,
        prompt: String,
        lease: Lease,
    ) -> Self {
        let workplace = Arc::new(workplace(&agent, workspace.to_owned()));
        let specs = agent.parts.offer.specs(&[]);
        Self {
            id,
            lease,
            lineage: Lineage { is_new: true, ..Lineage::default() },
            conversation: Conversation::new(prompt, &specs),
            tools: SessionTools { specs, loaded: Vec::new() },
            workplace,
            trust: Trust::default(),
            recalled: RecalledSoFar::default(),
            compaction: CompactionState::default(),
            snapshots: Snapshots::fresh(),
            outputs: KeptOutputs::default(),
            last_turn: LastTurn::default(),
            steering: Steering::default(),
            pending_notices: Vec::new(),
            unusable_skills: Vec::new(),
            has_processes: false,
            start_hooks_ran: false,
            is_stale: false,
            agent,
        }
    }

    /// A session that is in the store.
    pub(crate) fn load(agent: Agent, id: SessionId, lease: Lease) -> Result<Self> {
        let record = Record::read(&agent, id)?;
        let workspace = Path::new(&record.row.workspace).to_owned();
        let prompt = record.prompt_or_new(&agent);
        let mut session = Self::fresh(agent, id, &workspace, prompt, lease);
        session.apply_record(record);
        Ok(session)
    }

    /// Reads the session anew, if a turn of this process ended in the middle of a step: then the parts
    /// may hold what the store does not.
    pub(crate) fn reload_if_stale(&mut self) -> Result<()> {
        if !self.is_stale || self.lineage.is_new {
            return Ok(());
        }
        self.pending_notices.clear();
        self.reload()?;
        self.is_stale = false;
        Ok(())
    }

    /// Makes anew what follows from the store and the settings. What a face or this process brought
    /// stays: who is asked, steering, which processes run.
    fn reload(&mut self) -> Result<()> {
        let record = Record::read(&self.agent, self.id)?;
        let specs = self.agent.parts.offer.specs(&[]);
        self.conversation = Conversation::new(record.prompt_or_new(&self.agent), &specs);
        self.tools = SessionTools { specs, loaded: Vec::new() };
        self.workplace = Arc::new(workplace(&self.agent, PathBuf::from(&record.row.workspace)));
        self.trust.origins = Origins::default();
        self.recalled = RecalledSoFar::default();
        self.compaction = CompactionState::default();
        self.apply_record(record);
        Ok(())
    }

    /// Takes in what the store has of a session whose parts are empty.
    fn apply_record(&mut self, record: Record) {
        let Record { row, prompt, last, entries, counted, interrupted_undo } = record;
        self.lineage = Lineage {
            lacks_prompt: prompt.is_empty(),
            is_child: row.begun_by.is_some(),
            ..Lineage::default()
        };
        self.snapshots.forget(interrupted_undo);
        self.outputs = KeptOutputs::of(&entries);
        let changes_the_view =
            |entry: &Entry| matches!(entry.body, Body::Compaction(_) | Body::Restored { .. });
        if entries.iter().any(changes_the_view) {
            // Most of a long session may be replaced: its messages are not made to be thrown away.
            entries.iter().for_each(|entry| self.apply_facts(&entry.body));
            self.rebuild_transcript(&entries);
        } else {
            entries.iter().for_each(|entry| self.apply_entry_at(&entry.body, entry.at));
        }
        let Conversation { transcript, size, .. } = &mut self.conversation;
        size.learn_from_record(&entries, transcript.settled(), counted);
        self.last_turn = match last {
            Some(last) => {
                let of_last = entries.into_iter().filter(|entry| entry.turn == last.id).collect();
                LastTurn { row: Some(last), entries: of_last }
            }
            None => LastTurn::default(),
        };
    }

    /// The session's name.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Where text in it came from that nobody at hand wrote.
    pub fn origins(&self) -> &Origins {
        &self.trust.origins
    }

    /// Reaches a turn while it goes on.
    pub fn steering(&self) -> Steering {
        self.steering.clone()
    }

    /// How many tokens the next request has, as far as can be told.
    pub fn size(&self) -> i64 {
        self.conversation.size.tokens()
    }

    /// The last turn, as it stands.
    pub fn last_turn(&self) -> Option<&Turn> {
        self.last_turn.row.as_ref()
    }

    /// The steps that the model means to take, as its last list says.
    pub fn steps(&self) -> Vec<TodoStep> {
        self.workplace.steps.all()
    }

    /// Asks other models from now on.
    pub fn ask_from_now_on(&mut self, agent: Agent) {
        self.tools.specs = agent.parts.offer.specs(&self.tools.loaded);
        self.agent = agent;
        self.compaction.other_models();
    }

    /// Takes the session up again with another agent, for a turn that was begun with other settings.
    /// The lease is kept, so that no other process comes in between.
    pub fn with_agent(mut self, agent: Agent) -> Result<Self> {
        self.agent = agent;
        if self.lineage.is_new {
            // The store does not know it yet: only where it works depends on the settings.
            let workspace = self.workplace.workspace.clone();
            self.workplace = Arc::new(workplace(&self.agent, workspace));
            self.tools.specs = self.agent.parts.offer.specs(&self.tools.loaded);
        } else {
            self.reload()?;
        }
        Ok(self)
    }

    /// Names who is asked while a turn goes on. Without anybody, a turn that has something to ask is
    /// parked.
    pub fn ask_here(&mut self, asker: Arc<dyn Asker>) {
        self.agent.parts.children.asked_here(self.id, asker.clone());
        self.trust.asker = Some(asker);
    }

    /// Writes down which background processes ended, also while no turn goes on.
    pub fn look_after_processes(&mut self) -> Result<()> {
        processes::note_endings(self)
    }

    /// Ends what runs for this session and writes down how it ended.
    pub async fn leave(mut self) -> Result<()> {
        self.agent.parts.children.gone(self.id);
        processes::end_all(&mut self).await?;
        if self.snapshots.were_taken() {
            blocking(|| snapshots::sweep_if_due(&self.agent.parts.store))?;
        }
        // What a helper said is added when the session it helped is left.
        if !self.is_child() {
            let agent = self.agent.clone();
            // Others may have it meanwhile.
            drop(self);
            search_upkeep::catch_up(&agent).await;
        }
        Ok(())
    }

    /// Whether a turn of another session began it, or is about to.
    pub(crate) fn is_child(&self) -> bool {
        self.lineage.is_child || self.lineage.parent.is_some()
    }

    /// Writes to the store under the session's lease: whoever lost the lease writes nothing.
    pub(crate) fn write<T: Send>(
        &self,
        mut closure: impl FnMut(&mut WriteTx<'_>) -> Result<T> + Send,
    ) -> Result<T> {
        self.agent.write(|tx| {
            self.lease.guard(tx)?;
            closure(tx)
        })
    }

    /// Makes the transcript and its size anew from all entries of the session, after one that changed
    /// what was before it.
    pub(crate) fn rebuild_transcript(&mut self, entries: &[Entry]) {
        let Conversation { prompt, transcript, memo, size } = &mut self.conversation;
        *transcript = Transcript::of(entries);
        *memo = Memo::default();
        size.measure(prompt, &self.tools.specs, context::bytes(transcript.settled()));
        let through = Standing::of(entries).through;
        self.recalled.restart(entries.iter().filter(|entry| entry.seq > through));
    }
}

fn workplace(agent: &Agent, workspace: PathBuf) -> Workplace {
    let settings = agent.settings();
    let mut wishes = settings.sandbox.clone();
    let mode = settings.choices.mode;
    if settings.policy.network == Decision::Deny || mode.is_boxed() {
        wishes.network = Network::Closed;
    }
    let caches = wishes.make_caches(&workspace, &settings.environment);
    let mut sandbox = wishes.sandbox(&workspace, &settings.environment, &settings.forbidden);
    // Of all that is the home's own, skills are read: a model is sent there.
    let lent: Vec<PathBuf> =
        settings.skills.home.iter().filter_map(|skills| skills.canonicalize().ok()).collect();
    if let Some(sandbox) = &mut sandbox {
        sandbox.show.extend(lent.iter().cloned());
        // What runs unasked runs in the box, or not at all. Where nothing runs, files are still read.
        sandbox.required |= mode.is_boxed() && settings.policy.execute != Decision::Deny;
        if mode == Mode::Plan {
            *sandbox = sandbox.read_only(&workspace);
        }
    }
    settings.edit_slots.recover_in_background();
    Workplace {
        edit_slots: settings.edit_slots.clone(),
        confinement: sandbox.map(Confinement::to).unwrap_or_default(),
        caches: caches.map(Arc::new),
        environment: settings.environment.clone(),
        pass: settings.pass_environment.clone(),
        forbidden: settings.forbidden.clone(),
        lent,
        reader: settings.reader.clone(),
        ..Workplace::new(workspace, agent.parts.keeper.clone())
    }
}

/// The day, where the user is.
fn today() -> String {
    jiff::Zoned::now().strftime("%Y-%m-%d").to_string()
}
