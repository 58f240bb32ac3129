//! Taking sessions out of the record.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use mainstay_store::{BlobHash, ReadTx, ToValue, WriteTx, params};

use crate::entry::Body;
use crate::{Result, SessionId, pictures};

/// Removes everything of these sessions: turns, entries, calls, processes, and the blobs that nobody
/// else uses. What they cost stays in the ledger, without words. Forks of them live on.
pub fn remove(tx: &mut WriteTx<'_>, sessions: &[SessionId]) -> Result<()> {
    if sessions.is_empty() {
        return Ok(());
    }
    let blobs = blobs(tx, sessions, Whose::Theirs)?;
    let kept = if blobs.is_empty() { BTreeSet::new() } else { blobs_of_others(tx, sessions)? };
    for session in sessions {
        for sql in [
            "UPDATE sessions SET parent = NULL, parent_seq = NULL WHERE parent = ?1",
            "UPDATE model_calls SET said = NULL, request_id = NULL WHERE session = ?1",
            "DELETE FROM processes WHERE session = ?1",
            "DELETE FROM calls WHERE session = ?1",
            "DELETE FROM compactions WHERE session = ?1",
            "DELETE FROM entries WHERE session = ?1",
            "DELETE FROM turns WHERE session = ?1",
            "DELETE FROM sessions WHERE id = ?1",
        ] {
            tx.execute(sql, params![session])?;
        }
    }
    for hash in blobs.difference(&kept) {
        tx.execute("DELETE FROM blobs WHERE hash = ?1", params![hash])?;
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Theirs,
    Others,
}

fn blobs_of_others(tx: &mut ReadTx<'_>, sessions: &[SessionId]) -> Result<BTreeSet<BlobHash>> {
    blobs(tx, sessions, Whose::Others)
}

/// The blobs that these sessions, or all others, refer to.
fn blobs(tx: &mut ReadTx<'_>, sessions: &[SessionId], whose: Whose) -> Result<BTreeSet<BlobHash>> {
    let places: Vec<String> = (1..=sessions.len()).map(|place| format!("?{place}")).collect();
    let among = match whose {
        Whose::Theirs => format!("IN ({})", places.join(", ")),
        Whose::Others => format!("NOT IN ({})", places.join(", ")),
    };
    let values: Vec<&dyn ToValue> = sessions.iter().map(|id| id as _).collect();
    let prompts = format!("SELECT prompt FROM sessions WHERE id {among}");
    let mut found: BTreeSet<BlobHash> =
        tx.query(&prompts, &values, |row| row.get(0))?.into_iter().collect();
    // Few entries have any; what looks like one is looked at.
    let entries = format!(
        "SELECT body FROM entries WHERE session {among}
         AND (body LIKE '%\"blob:%' OR body LIKE '%\"whole\":%')"
    );
    tx.for_each(&entries, &values, |row| {
        if let Ok(body) = serde_json::from_str::<Body>(&row.get::<String>(0)?) {
            found.extend(pictures::blobs(&body));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}
