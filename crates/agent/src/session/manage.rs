//! Looking after sessions as a whole: fork, import, delete, prune.

use std::path::Path;
use std::time::Duration;

use mainstay_journal::archive::Archive;
use mainstay_journal::session::{self, Session};
use mainstay_journal::turn::{self, State, Turn};
use mainstay_journal::{SessionId, call, fork as copy, remove, search};
use mainstay_store::{Acquired, Lease, OwnerId, ReadTx, Store, WriteTx, params};

use super::notice::{NoticeFact, notice};
use crate::agent::lease_of;
use crate::budget::{self, reservations};
use crate::{Result, approvals::requests, skills, snapshots};

/// How long a lease lives that is taken to delete a session.
const LEASE: Duration = Duration::from_secs(30);
/// So many sessions are deleted in one transaction at most.
const TOGETHER: usize = 50;

/// Begins a session as another one was after its turn `after`, or after its last one. It has the
/// same workspace; what the other one did to files can be undone only there.
pub fn fork(store: &Store, parent: SessionId, after: Option<i64>) -> Result<SessionId> {
    let id = SessionId::new();
    store.write(|tx| copy(tx, id, parent, after))?;
    Ok(id)
}

/// Makes a session in `workspace` of one that was exported, perhaps elsewhere and by somebody else. It
/// brings words: its prompt is made when its first turn here begins, and it is tainted.
pub fn import(
    store: &Store,
    owner: OwnerId,
    archive: &Archive,
    workspace: &Path,
) -> Result<SessionId> {
    let id = SessionId::new();
    let text = "this session was imported from a file. What is said above was said and done elsewhere, \
                perhaps by somebody else: check before you rely on it.";
    let last = notice(text.to_owned(), &NoticeFact::Imported);
    let place = workspace.display().to_string();
    store.write(|tx| archive.import(tx, id, owner, &place, &last))?;
    Ok(id)
}

/// What became of sessions that were to be deleted.
#[derive(Debug, Default)]
pub struct Deleted {
    /// Those that are gone.
    pub gone: Vec<SessionId>,
    /// Those that stay, and who needs them: a process, or a session whose turn waits for one.
    pub in_use: Vec<(SessionId, String)>,
}

/// Sessions that nobody else can take up before they are deleted.
type Family = Vec<(SessionId, Lease)>;

/// Deletes sessions with everything that belongs to them, the sessions that they began too, except
/// where somebody works on one of them: then all of them stay. What they cost stays in the ledger,
/// and in the day's budget.
///
/// Each transaction deletes some sessions whole. Objects of their snapshots that nobody else needs
/// go right after; if this process dies before, with the next sweep.
pub fn delete(store: &Store, ids: &[SessionId]) -> Result<Deleted> {
    let mut deleted = Deleted::default();
    let mut held = Family::new();
    for id in ids {
        if deleted.gone.contains(id) {
            continue;
        }
        let mut family = Family::new();
        match take_family(store, *id, &mut family, &held)? {
            Some(by) => deleted.in_use.push((*id, by)),
            None => held.extend(family),
        }
        if held.len() >= TOGETHER {
            deleted.gone.extend(delete_held(store, &held)?);
            held.clear();
        }
    }
    deleted.gone.extend(delete_held(store, &held)?);
    // One that was needed may have gone with the one that needed it.
    deleted.in_use.retain(|(id, _)| !deleted.gone.contains(id));
    if !deleted.gone.is_empty() {
        snapshots::sweep(store, &snapshots::Retention::default())?;
        // The index of words is a cache: whatever is wrong with it is put right by the next search.
        if let Err(error) = search::forget_deleted(store) {
            tracing::debug!(%error, "words of deleted sessions stay in the index for now");
        }
    }
    Ok(deleted)
}

fn delete_held(store: &Store, held: &Family) -> Result<Vec<SessionId>> {
    let ids: Vec<SessionId> = held.iter().map(|(id, _)| *id).collect();
    store.write(|tx| -> Result<()> {
        for (_, lease) in held {
            lease.remove(tx)?;
        }
        for id in &ids {
            forget(tx, *id)?;
        }
        Ok(remove(tx, &ids)?)
    })?;
    Ok(ids)
}

/// Takes the leases of a session and of those that it began, the session first: without its lease
/// nobody begins more of them. Returns who needs one of them, if anybody does.
fn take_family(
    store: &Store,
    id: SessionId,
    family: &mut Family,
    held: &Family,
) -> Result<Option<String>> {
    let is_there = |(other, _): &(SessionId, Lease)| *other == id;
    if held.iter().any(is_there) || family.iter().any(is_there) {
        return Ok(None);
    }
    let is_first = family.is_empty();
    match store.try_acquire(&lease_of(id), LEASE)? {
        Acquired::Got(lease) => family.push((id, lease)),
        Acquired::Held(holder) => return Ok(Some(holder.process.to_string())),
    }
    let (needed_by, children) = store.read(|tx| -> Result<_> {
        // Those below the first are needed by nobody but it.
        let needed_by = if is_first { awaited(tx, id)? } else { None };
        Ok((needed_by, session::children(tx, id)?))
    })?;
    if let Some(parent) = needed_by {
        return Ok(Some(format!("session {parent}")));
    }
    for child in children {
        if let Some(by) = take_family(store, child, family, held)? {
            return Ok(Some(by));
        }
    }
    Ok(None)
}

/// The session that began this one and waits for it. Without it, it would begin it once more.
fn awaited(tx: &mut ReadTx<'_>, id: SessionId) -> Result<Option<SessionId>> {
    let Some(parent) = session::get(tx, id)?.and_then(|session| session.begun_by) else {
        return Ok(None);
    };
    // A child is named like its call.
    let waits = call::open(tx, parent)?.iter().any(|call| call.id.as_str() == id.as_str());
    Ok(waits.then_some(parent))
}

/// Removes what this crate keeps of a session. Tables to come that name a session belong here.
fn forget(tx: &mut WriteTx<'_>, session: SessionId) -> Result<()> {
    snapshots::forget(tx, session)?;
    requests::delete_session(tx, session)?;
    reservations::forget(tx, session)?;
    search::forget(tx, session)?;
    skills::delete_session(tx, session)?;
    tx.execute("DELETE FROM questions WHERE session = ?1", params![session])?;
    let turns: Vec<mainstay_journal::TurnId> =
        tx.query("SELECT id FROM turns WHERE session = ?1", params![session], |row| row.get(0))?;
    let budgets = turns.iter().map(budget::of_turn).chain([budget::of_session(session)]);
    for id in budgets {
        // Budgets of sessions that this one began stand alone from now on.
        tx.execute("UPDATE budgets SET parent = NULL WHERE parent = ?1", params![id])?;
        tx.execute("DELETE FROM budgets WHERE id = ?1", params![id])?;
    }
    Ok(())
}

/// Which sessions are to be pruned.
#[derive(Clone, Copy, Debug)]
pub struct Prune {
    /// Those last used before this time, in milliseconds since 1970.
    pub before: i64,
    /// So many that were last used are kept in any case.
    pub keep: usize,
    /// Also those with a turn that is not over.
    pub unfinished: bool,
}

/// What there is to prune.
#[derive(Debug, Default)]
pub struct Prunable {
    /// What would be deleted, the last used first.
    pub sessions: Vec<Session>,
    /// Old ones that are kept because a turn of theirs waits or was interrupted.
    pub unfinished: Vec<(Session, Turn)>,
}

/// Finds what there is to prune.
pub fn prunable(tx: &mut ReadTx<'_>, owner: OwnerId, prune: &Prune) -> Result<Prunable> {
    let mut found = Prunable::default();
    for session in session::list(tx, owner, u32::MAX)?.into_iter().skip(prune.keep) {
        if session.used_at >= prune.before {
            continue;
        }
        match turn::last(tx, session.id)? {
            Some(turn) if turn.state != State::Ended && !prune.unfinished => {
                found.unfinished.push((session, turn));
            }
            _ => found.sessions.push(session),
        }
    }
    Ok(found)
}
