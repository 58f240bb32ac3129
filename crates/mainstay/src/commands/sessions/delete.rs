//! `mainstay sessions delete`

use std::io::{self, IsTerminal as _};

use clap::Args;
use mainstay_agent::session::manage;
use mainstay_journal::SessionId;
use mainstay_journal::session::Session;
use mainstay_store::Store;
use serde_json::{Value, json};

use crate::context::Context;
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;
use crate::printing;
use crate::{humans_only, wording};

/// Delete sessions and everything that belongs to them
///
/// This includes the snapshots needed to undo their changes. Costs stay in the ledger, without any
/// text. Forks are kept. Sessions in use are not deleted.
#[derive(Args, Debug)]
pub(crate) struct DeleteArgs {
    /// Sessions to delete (a prefix of each ID is enough)
    #[arg(required = true)]
    ids: Vec<String>,

    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn run(args: &DeleteArgs, context: &Context) -> Result<Exit, Error> {
    let store = super::open(context)?;
    let mut found: Vec<Session> = Vec::new();
    for typed in &args.ids {
        let session = engine::named(&store, typed)?;
        if found.iter().all(|other| other.id != session.id) {
            found.push(session);
        }
    }
    if !args.yes && !confirmed(&found)? {
        context.output.answer(&json!({ "deleted": [], "in_use": [] }), "Nothing was deleted.\n")?;
        return Ok(Exit::Done);
    }
    let ids: Vec<SessionId> = found.iter().map(|session| session.id).collect();
    let deleted = delete(&store, &ids)?;
    let text = deleted.text();
    context.output.answer(&deleted.data(), &text)?;
    Ok(if deleted.in_use.is_empty() { Exit::Done } else { Exit::InUse })
}

/// What was deleted, and what was not because somebody needs it.
pub(super) struct Deleted {
    gone: Vec<SessionId>,
    in_use: Vec<(SessionId, String)>,
}

pub(super) fn delete(store: &Store, ids: &[SessionId]) -> Result<Deleted, Error> {
    let manage::Deleted { gone, in_use } = manage::delete(store, ids)?;
    Ok(Deleted { gone, in_use })
}

impl Deleted {
    pub(super) fn data(&self) -> Value {
        let in_use: Vec<Value> =
            self.in_use.iter().map(|(id, by)| json!({ "id": id, "by": by })).collect();
        json!({ "deleted": self.gone, "in_use": in_use })
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!("Deleted {}.\n", wording::count(self.gone.len() as u64, "session"));
        for (id, by) in &self.in_use {
            text.push_str(&format!("Kept session {id}: in use by {by}.\n"));
        }
        text
    }
}

/// Shows what is to go, where somebody sees it, and asks.
pub(super) fn confirmed(sessions: &[Session]) -> Result<bool, Error> {
    if io::stdin().is_terminal() {
        for session in sessions.iter().take(20) {
            printing::say(&format!("{}  {}", session.id, wording::line(&session.title)));
        }
    }
    humans_only::confirm(&format!("delete {}", wording::count(sessions.len() as u64, "session")))
}
