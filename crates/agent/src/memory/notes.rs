//! The notes of the store, as a provider: what every new session is told.

use std::time::Duration;

use futures_util::future::BoxFuture;
use mainstay_memory::notes::{self, Note, Scope};
use mainstay_store::{OwnerId, Store};

use super::{MemoryPlace, Provider, ProviderError, Reply};
use crate::agent::blocking;

/// The notes of an owner.
pub(crate) struct Notes {
    pub(crate) store: Store,
    pub(crate) owner: OwnerId,
}

impl Notes {
    fn read(&self, workspace: &str) -> mainstay_store::Result<(Vec<Note>, Vec<Note>)> {
        blocking(|| {
            self.store.read(|tx| {
                let user = notes::read(tx, self.owner, Scope::User)?;
                Ok((user, notes::read(tx, self.owner, Scope::Workspace(workspace))?))
            })
        })
    }
}

impl Provider for Notes {
    fn name(&self) -> &str {
        "notes"
    }

    fn limit(&self) -> Duration {
        // The store has limits of its own, and a session without its notes does not begin.
        Duration::from_secs(60)
    }

    fn rest(&self) -> Duration {
        Duration::ZERO
    }

    fn is_essential(&self) -> bool {
        true
    }

    fn prompt<'a>(&'a self, place: MemoryPlace<'a>) -> BoxFuture<'a, Reply<Option<String>>> {
        Box::pin(async move {
            let read = self.read(&place.workspace.display().to_string());
            let (user, workspace) = read.map_err(|error| ProviderError(error.to_string()))?;
            Ok(notes_text(&user, &workspace))
        })
    }
}

/// Notes, a line each, further lines of one indented.
fn notes_text(user: &[Note], workspace: &[Note]) -> Option<String> {
    let parts = [("About the user:", user), ("About this workspace:", workspace)];
    let mut text = String::new();
    for (heading, notes) in parts.into_iter().filter(|(_, notes)| !notes.is_empty()) {
        text.push_str(heading);
        for note in notes {
            text.push_str("\n- ");
            text.push_str(&note.text.lines().collect::<Vec<_>>().join("\n  "));
        }
        text.push('\n');
    }
    (!text.is_empty()).then_some(text)
}
