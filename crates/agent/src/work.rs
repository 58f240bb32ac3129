//! A session that this process works on: its lease and its messages.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mainstay_journal::compaction::Standing;
use mainstay_journal::entry::{Body, Entry};
use mainstay_journal::turn::{self, Outcome, State, Turn};
use mainstay_journal::{SessionId, Transcript, TurnId, entry, model_call, session};
use mainstay_llm::Memo;
use mainstay_message::{AssistantPart, Content, ToolSpec};
use mainstay_store::{Id, Lease, wall_millis};
use mainstay_tools::sandbox::{Confinement, Network};
use mainstay_tools::{Fact, TodoStep, Workplace};
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, blocking};
use crate::asker::Asker;
use crate::asking::Sizes;
use crate::compaction::Watch;
use crate::ended::Ended;
use crate::policy::Decision;
use crate::redaction::Curtain;
use crate::remembered::Rules;
use crate::skills::{self, Warning};
use crate::snapshots::{self, Snapshots};
use crate::taint::Origins;
use crate::turn::Drive;
use crate::{
    Error, Event, Observer, Result, Steering, budget, context, hooks, memory, processes, redaction,
};

/// A session that this process works on. When it is dropped, others may.
pub struct Work {
    pub(crate) agent: Agent,
    pub(crate) id: SessionId,
    pub(crate) prompt: String,
    pub(crate) workplace: Arc<Workplace>,
    pub(crate) lease: Lease,
    pub(crate) transcript: Transcript,
    /// What was sent of it before.
    pub(crate) memo: Memo,
    /// The entries of the last turn that were there when the session was taken up.
    pub(crate) recent: Vec<Entry>,
    pub(crate) last: Option<Turn>,
    pub(crate) sizes: Sizes,
    /// What bounds compactions.
    pub(crate) watch: Watch,
    /// What the model is told of the tools, and the names of those that it asked for.
    pub(crate) specs: Vec<ToolSpec>,
    loaded: Vec<String>,
    /// Whether the session has processes in the background whose end is not taken note of.
    pub(crate) has_processes: bool,
    /// Whether hooks were told that the session is taken up.
    pub(crate) greeted: bool,
    /// What hooks want the model to know, to be written down with the next entries.
    pub(crate) context: Vec<String>,
    /// What the user wants a running turn to hear.
    pub(crate) steering: Steering,
    /// Who is asked while a turn goes on.
    pub(crate) asker: Option<Arc<dyn Asker>>,
    /// What was said "always" to.
    pub(crate) rules: Rules,
    /// The memories that it was told of.
    pub(crate) told: memory::Told,
    /// Where words in it came from that taint it.
    pub(crate) origins: Origins,
    /// What was meant to be a skill and cannot be used, to be told with the first turn.
    pub(crate) unusable_skills: Vec<Warning>,
    pub(crate) snapshots: Snapshots,
    /// Whether an undo was begun that did not come to its end.
    pub(crate) interrupted_undo: bool,
    /// What a child session was begun with; nothing where it is taken up again.
    pub(crate) parent: Option<Parent>,
    /// Whether a turn of another session began this one.
    pub(crate) is_child: bool,
    pub(crate) is_new: bool,
}

/// Where a child session comes from.
pub(crate) struct Parent {
    pub(crate) session: SessionId,
    /// The budget it is charged to.
    pub(crate) budget: String,
    /// What it may spend of that.
    pub(crate) limits: budget::Limits,
}

/// What a user sends.
#[derive(Clone, Debug)]
pub struct Input {
    /// Words and pictures.
    pub content: Vec<Content>,
    /// Names the input: sent twice with one key it is one turn.
    pub key: Option<String>,
}

impl Work {
    pub(crate) fn fresh(
        agent: Agent,
        id: SessionId,
        workspace: &Path,
        prompt: String,
        lease: Lease,
    ) -> Self {
        let workplace = Arc::new(workplace(&agent, workspace.to_owned()));
        let specs = agent.parts.offer.specs(&[]);
        let mut sizes = Sizes::new(&prompt);
        sizes.add_tools(&specs);
        Self {
            sizes,
            specs,
            loaded: Vec::new(),
            agent,
            id,
            prompt,
            workplace,
            lease,
            transcript: Transcript::default(),
            memo: Memo::default(),
            recent: Vec::new(),
            last: None,
            watch: Watch::default(),
            has_processes: false,
            greeted: false,
            context: Vec::new(),
            steering: Steering::default(),
            asker: None,
            rules: Rules::default(),
            snapshots: Snapshots::fresh(),
            interrupted_undo: false,
            parent: None,
            is_child: false,
            origins: Origins::default(),
            told: memory::Told::default(),
            unusable_skills: Vec::new(),
            is_new: true,
        }
    }

    pub(crate) fn load(agent: Agent, id: SessionId, lease: Lease) -> Result<Self> {
        let (row, last, entries, counted, interrupted_undo) = blocking(|| {
            agent.parts.store.read(|tx| -> Result<_> {
                let row = session::get(tx, id)?;
                let prompt = match &row {
                    Some(row) => session::prompt(tx, row)?,
                    None => String::new(),
                };
                let interrupted = snapshots::interrupted(tx, id)?;
                let row = row.map(|row| (row, prompt));
                let last = turn::last(tx, id)?;
                let counted = match &last {
                    Some(last) => model_call::counted_in(tx, id, last.id)?,
                    None => None,
                };
                Ok((row, last, entry::all(tx, id)?, counted, interrupted))
            })
        })?;
        let (row, prompt) = row.ok_or_else(|| mainstay_store::Error::UnknownId {
            what: "session".to_owned(),
            typed: id.to_string(),
        })?;
        let mut work = Self::fresh(agent, id, Path::new(&row.workspace), prompt, lease);
        (work.is_new, work.interrupted_undo) = (false, interrupted_undo);
        work.is_child = row.begun_by.is_some();
        work.snapshots = Snapshots::default();
        let changes =
            |entry: &Entry| matches!(entry.body, Body::Compaction(_) | Body::Restored { .. });
        if entries.iter().any(changes) {
            // Most of a long session may be replaced: its messages are not made to be thrown away.
            entries.iter().for_each(|entry| work.take_note(&entry.body));
            work.look_anew(&entries);
        } else {
            entries.iter().for_each(|entry| work.take_in_at(&entry.body, entry.at));
        }
        work.sizes.resume(&entries, work.transcript.settled(), counted);
        if let Some(last) = &last {
            work.recent = entries.into_iter().filter(|entry| entry.turn == last.id).collect();
        }
        work.last = last;
        Ok(work)
    }

    /// The session's name.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Where words in it came from that nobody at hand wrote.
    pub fn origins(&self) -> &Origins {
        &self.origins
    }

    /// Reaches a turn while it goes on.
    pub fn steering(&self) -> Steering {
        self.steering.clone()
    }

    /// How many tokens the next request has, as far as can be told.
    pub fn size(&self) -> i64 {
        self.sizes.tokens()
    }

    /// The last turn, as it stands.
    pub fn last_turn(&self) -> Option<&Turn> {
        self.last.as_ref()
    }

    /// Asks other models from now on.
    pub fn ask_from_now_on(&mut self, agent: Agent) {
        self.specs = agent.parts.offer.specs(&self.loaded);
        self.agent = agent;
        self.watch.other_models();
    }

    /// Writes down which background processes ended, also while no turn goes on.
    pub fn look_after_processes(&mut self) -> Result<()> {
        processes::note_endings(self)
    }

    /// Names who is asked while a turn goes on. Without anybody, a turn that has something to ask is
    /// parked.
    pub fn ask_here(&mut self, asker: Arc<dyn Asker>) {
        self.agent.parts.children.asked_here(self.id, asker.clone());
        self.asker = Some(asker);
    }

    /// Does what an input asks for. The same key sent twice is the same turn: one that is over is
    /// told again, one that is not goes on.
    pub async fn turn(
        &mut self,
        input: &Input,
        observer: Observer<'_>,
        cancel: &CancellationToken,
    ) -> Result<Ended> {
        let redactor = self.agent.parts.settings.redactor.clone();
        let input = redaction::input(&redactor, input);
        let mut curtain = Curtain::new(&redactor);
        let ended = self.do_turn(&input, &mut |event| curtain.tell(event, observer), cancel).await;
        curtain.tell_rest(observer);
        ended
    }

    async fn do_turn(
        &mut self,
        input: &Input,
        observer: Observer<'_>,
        cancel: &CancellationToken,
    ) -> Result<Ended> {
        let key = input.key.clone().unwrap_or_else(|| Id::new().to_string());
        if self.is_new {
            let notices = self.consult(Some(input), cancel).await?;
            let recollected = self.recollect(input, cancel).await?;
            let turn = self.begin_turn(&key, input)?;
            // Told when it is recorded: a name that somebody saw can be resumed.
            self.tell_session(observer);
            hooks::tell(observer, notices);
            recollected.tell(observer);
            for message in skills::warned(&std::mem::take(&mut self.unusable_skills)) {
                observer(Event::Notice { about: "skill", message, void: false });
            }
            return Drive::begin(self, turn, observer, cancel).await;
        }
        self.tell_session(observer);
        self.tell_finished_undo(observer)?;
        processes::reconcile(self).await?;
        let same =
            blocking(|| self.agent.parts.store.read(|tx| turn::with_key(tx, self.id, &key)))?;
        let recollected = match same {
            Some(turn) if turn.state == State::Ended => return self.told_again(&turn, observer),
            Some(turn) => {
                hooks::tell(observer, self.consult(None, cancel).await?);
                return Drive::resume(self, turn, observer, cancel).await;
            }
            None => {
                hooks::tell(observer, self.consult(Some(input), cancel).await?);
                let recollected = self.recollect(input, cancel).await?;
                self.set_aside(observer, cancel).await?;
                recollected
            }
        };
        let turn = self.begin_turn(&key, input)?;
        recollected.tell(observer);
        Drive::begin(self, turn, observer, cancel).await
    }

    /// Goes on with the last turn, if it is not over. One that failed is tried again; one that was
    /// answered is told again.
    pub async fn resume(
        &mut self,
        observer: Observer<'_>,
        cancel: &CancellationToken,
    ) -> Result<Option<Ended>> {
        let mut curtain = Curtain::new(&self.agent.parts.settings.redactor);
        let ended = self.do_resume(&mut |event| curtain.tell(event, observer), cancel).await;
        curtain.tell_rest(observer);
        ended
    }

    async fn do_resume(
        &mut self,
        observer: Observer<'_>,
        cancel: &CancellationToken,
    ) -> Result<Option<Ended>> {
        self.tell_session(observer);
        self.tell_finished_undo(observer)?;
        processes::reconcile(self).await?;
        let Some(turn) = self.last.clone() else { return Ok(None) };
        match turn.outcome {
            None | Some(Outcome::Failed) => {
                hooks::tell(observer, self.consult(None, cancel).await?);
                Drive::resume(self, turn, observer, cancel).await.map(Some)
            }
            Some(_) => self.told_again(&turn, observer).map(Some),
        }
    }

    /// The steps that the model means to take, as its last list says.
    pub fn steps(&self) -> Vec<TodoStep> {
        self.workplace.steps.all()
    }

    /// Ends what runs for this session and writes down how it ended.
    pub async fn leave(mut self) -> Result<()> {
        self.agent.parts.children.gone(self.id);
        processes::end_all(&mut self).await?;
        if self.snapshots.were_taken() {
            blocking(|| snapshots::sweep_if_due(&self.agent.parts.store))?;
        }
        Ok(())
    }

    /// Whether a turn of another session began it, or is about to.
    pub(crate) fn is_child(&self) -> bool {
        self.is_child || self.parent.is_some()
    }

    fn tell_session(&self, observer: Observer<'_>) {
        observer(Event::Session {
            id: self.id.to_string(),
            workspace: self.workplace.workspace.display().to_string(),
        });
    }

    /// Finishes an undo that was interrupted, and says so.
    fn tell_finished_undo(&mut self, observer: Observer<'_>) -> Result<()> {
        if self.finish_undo()?.is_some() {
            let message = "an undo that was interrupted is finished now".to_owned();
            observer(Event::Notice { about: "undo", message, void: false });
        }
        Ok(())
    }

    /// Ends a turn that is not over, because something new was asked: what had begun is settled.
    pub(crate) async fn set_aside(
        &mut self,
        observer: Observer<'_>,
        cancel: &CancellationToken,
    ) -> Result<()> {
        match self.last.clone() {
            Some(turn) if turn.state != State::Ended => {
                Drive::set_aside(self, turn, observer, cancel).await
            }
            _ => Ok(()),
        }
    }

    /// Writes down the turn and its input, and the session where this is its first.
    fn begin_turn(&mut self, key: &str, input: &Input) -> Result<Turn> {
        let (agent, id, turn) = (self.agent.clone(), self.id, TurnId::new());
        let settings = &agent.parts.settings;
        let workspace = self.workplace.workspace.display().to_string();
        let title = title(&input.content);
        let context = std::mem::take(&mut self.context);
        let mut bodies = vec![Body::User { content: input.content.clone() }];
        bodies.extend(context.into_iter().map(|text| Body::Notice { text }));
        let (is_new, prompt, lease) = (self.is_new, &self.prompt, &self.lease);
        let (parent, is_child) = (self.parent.as_ref(), self.is_child);
        let row = agent.write(|tx| {
            lease.guard(tx)?;
            if is_new {
                let new = session::New {
                    owner: agent.parts.owner,
                    workspace: &workspace,
                    prompt,
                    title: &title,
                    begun_by: parent.map(|parent| parent.session),
                };
                session::create(tx, id, &new)?;
            }
            let row = turn::begin(tx, turn, id, key)?;
            let session = budget::of_session(id);
            match parent {
                Some(above) => {
                    budget::open(tx, &session, Some(&above.budget), &above.limits)?;
                }
                // A child's share stays what it was.
                None if is_child => {}
                None => {
                    budget::open(tx, &session, None, &settings.budgets.session)?;
                }
            }
            let limits = &settings.budgets.turn;
            let depth = budget::open(tx, &budget::of_turn(turn), Some(&session), limits)?;
            if depth > settings.budgets.depth {
                return Err(Error::TooDeep(depth));
            }
            for body in &bodies {
                entry::append(tx, id, turn, body)?;
            }
            Ok(row)
        })?;
        self.is_new = false;
        self.is_child |= self.parent.take().is_some();
        self.recent.clear();
        bodies.iter().for_each(|body| self.take_in(body));
        self.last = Some(row.clone());
        Ok(row)
    }

    /// Tells how a turn ended that is over.
    fn told_again(&self, turn: &Turn, observer: Observer<'_>) -> Result<Ended> {
        let entries = blocking(|| self.agent.parts.store.read(|tx| entry::all(tx, self.id)))?;
        let answer = entries
            .iter()
            .filter(|entry| entry.turn == turn.id)
            .rev()
            .find_map(|entry| match &entry.body {
                Body::Assistant { parts, .. } => Some(words(parts)),
                _ => None,
            })
            .unwrap_or_default();
        let ended = Ended::of(self, turn, answer)?;
        ended.tell(observer);
        Ok(ended)
    }

    /// Takes what was said or done into the view and the counts.
    pub(crate) fn take_in(&mut self, body: &Body) {
        self.take_in_at(body, wall_millis());
    }

    fn take_in_at(&mut self, body: &Body, at: i64) {
        self.sizes.add(body);
        self.take_note(body);
        self.transcript.push(body, at);
    }

    /// Takes into account what is known beside the words.
    fn take_note(&mut self, body: &Body) {
        self.told.note(body);
        if let Body::Notice { text } = body {
            for provider in memory::from_outside(text) {
                self.note_outside(&memory::external::origin(provider));
            }
        }
        if let Body::Result { facts, .. } = body {
            for fact in facts {
                if let Ok(fact) = serde_json::from_value::<Fact>(fact.clone()) {
                    self.workplace.seen.note(&fact);
                    self.workplace.steps.note(&fact);
                    self.workplace.outside.note(&fact);
                    self.origins.note(&fact);
                    if let Fact::Loaded { tool } = fact {
                        self.tell_of(tool);
                    }
                }
            }
        }
    }

    /// Takes note that words came from outside.
    fn note_outside(&mut self, origin: &str) {
        let fact = Fact::Outside { origin: origin.to_owned() };
        self.workplace.outside.note(&fact);
        self.origins.note(&fact);
    }

    /// Makes the view and its size anew from all entries of the session, after one that changed what
    /// was before it.
    pub(crate) fn look_anew(&mut self, entries: &[Entry]) {
        self.transcript = Transcript::of(entries);
        self.memo = Memo::default();
        let through = Standing::of(entries).through;
        self.told.again(entries.iter().filter(|entry| entry.seq > through));
        let conversation = context::bytes(self.transcript.settled());
        self.sizes.measure(&self.prompt, &self.specs, conversation);
    }

    /// Tells the model of a tool from the next request on.
    fn tell_of(&mut self, tool: String) {
        if self.loaded.contains(&tool) {
            return;
        }
        self.loaded.push(tool);
        let before = self.specs.len();
        self.specs = self.agent.parts.offer.specs(&self.loaded);
        self.sizes.add_tools(&self.specs[before..]);
    }
}

fn workplace(agent: &Agent, workspace: PathBuf) -> Workplace {
    let settings = &agent.parts.settings;
    let mut wishes = settings.sandbox.clone();
    if settings.policy.network == Decision::Deny {
        wishes.network = Network::Closed;
    }
    wishes.make_caches(&workspace, &settings.environment);
    let mut sandbox = wishes.sandbox(&workspace, &settings.environment, &settings.forbidden);
    // Of all that is the home's own, skills are read: a model is sent there.
    let lent: Vec<PathBuf> =
        settings.skills.home.iter().filter_map(|skills| skills.canonicalize().ok()).collect();
    if let Some(sandbox) = &mut sandbox {
        sandbox.show.extend(lent.iter().cloned());
    }
    Workplace {
        confinement: sandbox.map(Confinement::to).unwrap_or_default(),
        environment: settings.environment.clone(),
        pass: settings.pass_environment.clone(),
        forbidden: settings.forbidden.clone(),
        lent,
        reader: settings.reader.clone(),
        ..Workplace::new(workspace, agent.parts.keeper.clone())
    }
}

/// What a model said, without its thoughts and calls.
pub(crate) fn words(parts: &[AssistantPart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        AssistantPart::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n").trim().to_owned()
}

/// The first words of an input.
fn title(content: &[Content]) -> String {
    let text = content.iter().find_map(Content::text).unwrap_or_default();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().filter(|character| *character != '\0').take(80).collect()
}
