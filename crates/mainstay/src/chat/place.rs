//! Where the chat happens: the store, the agent, the workspace, the session.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mainstay_agent::{Agent, OpenSession};
use mainstay_journal::SessionId;
use mainstay_journal::entry::{self, Body, Entry};
use mainstay_journal::model_call::{self, On};
use mainstay_journal::process::{self, Process};
use mainstay_journal::session::{self, Session};
use mainstay_journal::turn::{self, Mode, Turn};
use mainstay_message::Content;
use mainstay_store::{OwnerId, Store};

use crate::chat::asker::ChatAsker;
use crate::choices::{self, Changes, Choices, TurnAgent};
use crate::commands::run::workspace_of;
use crate::config::Overrides;
use crate::context::Context;
use crate::engine;
use crate::error::Error;
use crate::paths::Paths;
use crate::wording;

/// Where the chat happens.
pub(crate) struct Place<'a> {
    pub(crate) context: &'a Context,
    pub(crate) choices: &'a Choices,
    pub(crate) paths: Paths,
    pub(crate) store: Store,
    pub(crate) owner: OwnerId,
    pub(crate) workspace: PathBuf,
    pub(crate) agent: Agent,
    /// The session that is talked in; `None` before its first turn.
    pub(crate) session: Option<SessionId>,
    /// The model that was chosen in the chat.
    model: Option<String>,
    /// The mode that was chosen in the chat.
    mode: Option<Mode>,
}

impl<'a> Place<'a> {
    /// A place for a session that exists, or for a new one in this workspace.
    pub(crate) fn new(
        context: &'a Context,
        choices: &'a Choices,
        typed: Option<&str>,
        workspace: Option<PathBuf>,
    ) -> Result<Self, Error> {
        let paths = context.paths()?;
        let (store, owner) = engine::open_store(&paths)?;
        let known = typed.map(|typed| store.read(|tx| session::find(tx, owner, typed)));
        let known = known.transpose()?;
        let workspace = match (&known, workspace) {
            (Some(session), wanted) => workspace_of(session, wanted)?,
            (None, Some(workspace)) => workspace,
            (None, None) => crate::commands::run::current_directory()?,
        };
        let over = choices.overrides();
        let agent = engine::agent(context, store.clone(), owner, &workspace, over)?;
        let session = known.map(|session| session.id);
        let (model, mode) = (None, None);
        Ok(Self { context, choices, paths, store, owner, workspace, agent, session, model, mode })
    }

    /// Takes the session up, or begins one.
    pub(crate) fn open_session(&self, face: Option<ChatAsker>) -> Result<OpenSession, Error> {
        let mut session = match self.session {
            Some(id) => *engine::open(&self.agent, id)?,
            None => self.agent.begin(&self.workspace, &wording::today())?,
        };
        if let Some(face) = face {
            session.ask_here(Arc::new(face));
        }
        Ok(session)
    }

    /// Asks another model from now on.
    pub(crate) fn ask(&mut self, model: &str) -> Result<(), Error> {
        let over = Overrides { model: Some(model.to_owned()), ..self.overrides() };
        let chain = engine::chain(self.context, &self.workspace, &over)?;
        self.agent = self.agent.asking(chain);
        self.model = Some(model.to_owned());
        Ok(())
    }

    /// What is done without asking from now on. Returns what holds: where the kernel cannot hold the box,
    /// `auto` is `ask`.
    pub(crate) fn change_mode(&mut self, mode: Mode) -> Result<Mode, Error> {
        let over = Overrides { mode: Some(mode), ..self.overrides() };
        let settings = engine::turn_settings(self.context, &self.workspace, over)?;
        let now = settings.choices.mode;
        self.agent = self.agent.with_settings(settings);
        self.mode = Some(now);
        Ok(now)
    }

    /// What was chosen on the command line, and in the chat since.
    fn overrides(&self) -> Overrides {
        let mut over = self.choices.overrides();
        over.model = self.model.clone().or(over.model);
        over.mode = self.mode.or(over.mode);
        over
    }

    /// The session with what was chosen for its last turn, which is about to go on: the turns after it
    /// have the choices of the chat again. Returns it as it was if nothing was recorded.
    pub(crate) fn for_last_turn(&self, work: OpenSession) -> Result<(OpenSession, Changes), Error> {
        let Some(turn) = work.last_turn() else { return Ok((work, Changes::default())) };
        let typed = self.overrides();
        let made = choices::agent_beside(self.context, &self.agent, &self.workspace, &typed, turn)?;
        let Some(TurnAgent { agent, changes }) = made else {
            return Ok((work, Changes::default()));
        };
        Ok((work.with_agent(agent)?, changes))
    }

    /// The session with the choices of the chat, after a turn that had its own.
    pub(crate) fn for_next_turn(&self, work: OpenSession) -> Result<OpenSession, Error> {
        if work.last_turn().is_none() {
            return Ok(work);
        }
        Ok(work.with_agent(self.agent.clone())?)
    }

    /// Turns to another session of this owner.
    pub(crate) async fn turn_to(&mut self, session: &Session) -> Result<(), Error> {
        let workspace = workspace_of(session, None)?;
        if workspace != self.workspace {
            // Another workspace may have wishes of its own.
            let over = self.overrides();
            let (store, owner) = (self.store.clone(), self.owner);
            let agent = engine::agent(self.context, store, owner, &workspace, over)?;
            std::mem::replace(&mut self.agent, agent).leave().await;
            self.workspace = workspace;
        }
        self.session = Some(session.id);
        Ok(())
    }

    /// The first model that is asked.
    pub(crate) fn model(&self) -> (String, Option<u64>) {
        let first = self.agent.chain().first();
        first.map_or((String::new(), None), |first| (first.to_string(), first.window))
    }

    /// The session of this owner that starts with what was typed.
    pub(crate) fn find(&self, typed: &str) -> Result<Session, Error> {
        Ok(self.store.read(|tx| session::find(tx, self.owner, typed))?)
    }

    /// The sessions that were used last, with their last turns.
    pub(crate) fn sessions(&self, most: u32) -> Result<Vec<(Session, Option<Turn>)>, Error> {
        let found = self.store.read(|tx| -> mainstay_journal::Result<_> {
            let mut sessions = Vec::new();
            for session in session::list(tx, self.owner, most)? {
                let turn = turn::last(tx, session.id)?;
                sessions.push((session, turn));
            }
            Ok(sessions)
        });
        Ok(found?)
    }

    /// What the session cost so far, and what was called.
    pub(crate) fn spent(&self) -> Result<Option<model_call::Spent>, Error> {
        let Some(id) = self.session else { return Ok(None) };
        Ok(Some(self.store.read(|tx| model_call::spent_on(tx, On::Session(id)))?))
    }

    /// What runs in the background, and what ended there and nobody took note of.
    pub(crate) fn processes(&self) -> Result<Vec<Process>, Error> {
        let Some(id) = self.session else { return Ok(Vec::new()) };
        Ok(self.store.read(|tx| process::owed(tx, id))?)
    }

    /// The last turn and what was said in it.
    pub(crate) fn last_turn(&self) -> Result<Option<(Turn, Vec<Entry>)>, Error> {
        let Some(id) = self.session else { return Ok(None) };
        let found = self.store.read(|tx| -> mainstay_journal::Result<_> {
            let Some(turn) = turn::last(tx, id)? else { return Ok(None) };
            Ok(Some((turn, entry::all(tx, id)?)))
        })?;
        Ok(found.map(|(turn, entries)| {
            let entries = entries.into_iter().filter(|entry| entry.turn == turn.id).collect();
            (turn, entries)
        }))
    }

    /// What the user said in the last turn.
    pub(crate) fn last_input(&self) -> Result<Option<Vec<Content>>, Error> {
        let said = self.last_turn()?.map(|(_, entries)| {
            let said = entries.into_iter().filter_map(|entry| match entry.body {
                Body::User { content } => Some(content),
                _ => None,
            });
            said.flatten().collect::<Vec<_>>()
        });
        Ok(said.filter(|content| !content.is_empty()))
    }

    /// A word on the session for whoever leaves: how to go on.
    pub(crate) fn way_back(&self) -> Option<String> {
        let id = self.session?;
        Some(self.paths.command(&format!("chat --session {id}")))
    }
}

/// A path as people write it, below their home.
pub(crate) fn homely(path: &Path) -> String {
    let home = crate::env::HOME.get().map(PathBuf::from);
    match home.and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned)) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}
