//! An agent: the parts that all sessions of a process share.

use std::path::Path;
use std::sync::{Arc, Weak};

use mainstay_journal::SessionId;
use mainstay_journal::turn::TurnChoices;
use mainstay_llm::{Candidate, Client};
use mainstay_message::Redactor;
use mainstay_store::{Acquired, Holder, OwnerId, ReadTx, Store, WriteTx};
use mainstay_tools::sandbox::Wishes;
use mainstay_tools::{Keeper, Tool};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::background::endings::Endings;
use crate::children::delegate_tool::Delegate;
use crate::children::runner::Children;
use crate::memory::{self, MemoryTool, Providers};
use crate::session::offered_tools::Offer;
use crate::session::open::OpenSession;
use crate::session::search_tool::SessionSearch;
use crate::skills::{self, LoadSkill, ProposeSkill};
use crate::{Result, Settings, session::prompt};

/// An agent. Clones share it.
#[derive(Clone)]
pub struct Agent {
    pub(crate) parts: Arc<Parts>,
}

pub(crate) struct Parts {
    pub(crate) store: Store,
    pub(crate) owner: OwnerId,
    pub(crate) client: Arc<Client>,
    pub(crate) keeper: Keeper,
    pub(crate) endings: Arc<Endings>,
    pub(crate) offer: Offer,
    pub(crate) settings: Settings,
    pub(crate) children: Arc<Children>,
    pub(crate) memory: Arc<Providers>,
}

/// The answer to a request for a session.
pub enum Opened {
    /// It is ours until the session is dropped.
    Got(Box<OpenSession>),
    /// Another process has it.
    Held(Holder),
}

impl Agent {
    /// An agent that keeps its record in `store` and its processes with `keeper`.
    pub fn new(store: Store, owner: OwnerId, keeper: Keeper, mut settings: Settings) -> Self {
        keeper.redact(&settings.redactor);
        let redactor = settings.redactor.clone();
        settings.snapshots.secret = Some(Arc::new(move |bytes: &[u8]| redactor.finds(bytes)));
        let endings = Arc::new(Endings::of(&keeper));
        let memory = Arc::new(memory::providers(&settings.memory, &store, owner));
        let parts = Arc::new_cyclic(|parts| Parts {
            offer: offer(&settings, parts.clone()),
            client: Arc::new(Client::new()),
            children: Arc::default(),
            memory,
            store,
            owner,
            keeper,
            endings,
            settings,
        });
        Self { parts }
    }

    /// The same agent, asking other models.
    #[must_use]
    pub fn asking(&self, chain: Vec<Arc<Candidate>>) -> Self {
        let settings = self.settings().clone();
        let models = chain.iter().map(ToString::to_string).collect();
        let choices = TurnChoices { models, ..settings.choices.clone() };
        self.sharing(Settings { chain, choices, ..settings })
    }

    /// The same agent with other settings, for a turn that was begun with them. It has the same
    /// keeper, so that what runs in the background goes on, and the same memories.
    #[must_use]
    pub fn with_settings(&self, settings: Settings) -> Self {
        let own = self.settings();
        let (memory, snapshots) = (own.memory.clone(), own.snapshots.clone());
        self.sharing(Settings { memory, snapshots, sealer: own.sealer.clone(), ..settings })
    }

    /// An agent with these settings that shares everything else.
    fn sharing(&self, settings: Settings) -> Self {
        let Parts { store, owner, client, keeper, endings, children, memory, .. } = &*self.parts;
        let parts = Arc::new_cyclic(|parts| Parts {
            // Another window may have room for more tools, or fewer.
            offer: offer(&settings, parts.clone()),
            store: store.clone(),
            owner: *owner,
            client: client.clone(),
            keeper: keeper.clone(),
            endings: endings.clone(),
            children: children.clone(),
            memory: memory.clone(),
            settings,
        });
        Self { parts }
    }

    /// The models it asks, the first one first.
    pub fn chain(&self) -> &[Arc<Candidate>] {
        &self.settings().chain
    }

    /// What the configuration says about the sandbox.
    pub fn sandbox(&self) -> &Wishes {
        &self.parts.settings.sandbox
    }

    /// What is written with every turn that it begins or takes up.
    pub fn choices(&self) -> &TurnChoices {
        &self.parts.settings.choices
    }

    /// Begins a session in a workspace. Nothing is written but its lease until its first turn: a
    /// session without a word in it is none.
    pub fn begin(&self, workspace: &Path, date: &str) -> Result<OpenSession> {
        let id = SessionId::new();
        let (prompt, unusable_skills) = self.new_prompt(workspace, date);
        match self.lease(id)? {
            Acquired::Got(lease) => {
                let mut session = OpenSession::fresh(self.clone(), id, workspace, prompt, lease);
                session.unusable_skills = unusable_skills;
                Ok(session)
            }
            // The name was made just now.
            Acquired::Held(holder) => Err(in_use(&holder).into()),
        }
    }

    /// The system prompt of a session that begins in a workspace, and what is wrong with skills there.
    pub(crate) fn new_prompt(
        &self,
        workspace: &Path,
        date: &str,
    ) -> (String, Vec<skills::Warning>) {
        let window = self.window();
        let mut prompt = prompt::system(workspace, date, window);
        let found = skills::find(&self.settings().skills, workspace);
        prompt.push_str(&skills::skills_prompt(&found, window));
        self.redactor().string(&mut prompt);
        (prompt, found.warnings)
    }

    /// Takes a session up, unless another process has it.
    pub fn open(&self, id: SessionId) -> Result<Opened> {
        match self.lease(id)? {
            Acquired::Got(lease) => {
                Ok(Opened::Got(Box::new(OpenSession::load(self.clone(), id, lease)?)))
            }
            Acquired::Held(holder) => Ok(Opened::Held(holder)),
        }
    }

    /// Ends what still runs for this process. Whatever had to be recorded was.
    pub async fn leave(&self) {
        self.parts.keeper.leave().await;
    }

    pub(crate) fn lease(&self, id: SessionId) -> Result<Acquired> {
        let Parts { store, settings, .. } = &*self.parts;
        Ok(blocking(|| store.try_acquire(&lease_of(id), settings.lease))?)
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.parts.offer.tool(name)
    }

    /// Reads from the store in one transaction.
    pub(crate) fn read<T, E: From<mainstay_store::Error>>(
        &self,
        closure: impl FnMut(&mut ReadTx<'_>) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        blocking(|| self.parts.store.read(closure))
    }

    /// Writes to the store in one transaction. What belongs to a session is written under its lease:
    /// see [`OpenSession::write`].
    pub(crate) fn write<T: Send>(
        &self,
        closure: impl FnMut(&mut WriteTx<'_>) -> Result<T> + Send,
    ) -> Result<T> {
        blocking(|| self.parts.store.write(closure))
    }

    /// Writes what must outlast this process, and need not outlast a loss of power.
    pub(crate) fn note<T: Send>(
        &self,
        closure: impl FnMut(&mut WriteTx<'_>) -> Result<T> + Send,
    ) -> Result<T> {
        blocking(|| self.parts.store.note(closure))
    }

    /// What the face decided.
    pub(crate) fn settings(&self) -> &Settings {
        &self.parts.settings
    }

    /// Takes secrets out of everything that is recorded, sent or shown.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.parts.settings.redactor
    }

    pub(crate) fn owner(&self) -> OwnerId {
        self.parts.owner
    }

    /// How many tokens the first model takes. Returns `None` if nobody knows.
    pub(crate) fn window(&self) -> Option<u64> {
        self.settings().chain.first().and_then(|candidate| candidate.window)
    }
}

/// The tools that are offered to the first model.
fn offer(settings: &Settings, agent: Weak<Parts>) -> Offer {
    let window = settings.chain.first().and_then(|candidate| candidate.window);
    let mut tools = mainstay_tools::all();
    tools.extend(settings.tools.iter().cloned());
    tools.push(Arc::new(MemoryTool::new(agent.clone())));
    tools.push(Arc::new(SessionSearch::new(agent.clone())));
    tools.push(Arc::new(Delegate::new(agent.clone())));
    tools.push(Arc::new(LoadSkill::new(settings.skills.clone())));
    tools.push(Arc::new(ProposeSkill::new(agent)));
    Offer::new(tools, window)
}

/// What whoever works on a session has a lease on.
pub(crate) fn lease_of(session: SessionId) -> String {
    format!("session/{session}")
}

fn in_use(holder: &Holder) -> mainstay_store::Error {
    mainstay_store::Error::InUse {
        what: format!("the lease on {}", holder.resource),
        holder: holder.process.to_string(),
    }
}

/// Runs something that blocks. On a runtime with several threads the others go on meanwhile; with a
/// single one there is nobody else who would wait, and handing over would cost more.
pub(crate) fn blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
