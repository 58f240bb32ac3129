//! Undoing turns: an intent with all that it takes, then the files, then the outcome.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use mainstay_journal::entry::{self, Body};
use mainstay_journal::turn;
use mainstay_journal::{SessionId, TurnId};
use mainstay_store::{Id, ReadTx, WriteTx, params};
use mainstay_tools::snapshot::{Omission, PathChange, Restored, State, escaped, restore};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::changes::{self, RecordedChange, Segment};
use super::mark::damaged;
use super::objects;
use super::plan::{Conflicts, Plan, Planner, UndoTarget};
use crate::agent::blocking;
use crate::session::open::OpenSession;
use crate::{Error, Observer, Result, background::processes, redaction};

/// How many paths a model is told of by name.
const NAMED: usize = 20;

/// What an undo did.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Undone {
    /// The numbers of the turns that were undone, or whose undo was taken back.
    pub turns: Vec<i64>,
    /// Paths that were put back, escaped.
    pub put_back: Vec<String>,
    /// Paths that were removed, because they were not there before.
    pub removed: Vec<String>,
    /// Paths that were left as they are, and why.
    pub left: Vec<(String, String)>,
}

/// A turn that changed files.
#[derive(Clone, Debug, Serialize)]
pub struct ChangedTurn {
    /// Its number.
    pub turn: i64,
    /// When it began, in milliseconds since 1970.
    pub started_at: i64,
    /// The paths that it changed, escaped.
    pub paths: Vec<String>,
    /// What is not kept of the workspace, and why.
    pub not_kept: Vec<(String, Omission)>,
    /// Whether it is undone.
    pub undone: bool,
}

/// An undo as it was written down.
struct UndoRow {
    id: String,
    kind: UndoKind,
    turns: Vec<TurnId>,
    steps: Vec<PathChange>,
    taken_back: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum UndoKind {
    Undo,
    Redo,
}

impl UndoKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Undo => "undo",
            Self::Redo => "redo",
        }
    }
}

impl OpenSession {
    /// The turns of the session that changed files, the last first.
    pub fn changed_turns(&self) -> Result<Vec<ChangedTurn>> {
        changed_turns(&self.agent.parts.store, self.id)
    }

    /// What an undo would do. A turn that is not over is ended first: what it had begun is settled.
    pub async fn plan_undo(
        &mut self,
        which: UndoTarget,
        conflicts: Conflicts,
        observer: Observer<'_>,
        cancel: &CancellationToken,
    ) -> Result<Plan> {
        self.finish_undo()?;
        processes::reconcile(self).await?;
        self.abandon_unfinished(observer, cancel).await?;
        self.last_turn.row = self.agent.read(|tx| turn::last(tx, self.id))?;
        self.preview_undo(which, conflicts)
    }

    /// What an undo would do, as things are: a turn that is not over is left alone.
    pub fn preview_undo(&self, which: UndoTarget, conflicts: Conflicts) -> Result<Plan> {
        blocking(|| self.plan(which, conflicts))
    }

    fn plan(&self, which: UndoTarget, conflicts: Conflicts) -> Result<Plan> {
        let store = &self.agent.parts.store;
        let limits = &self.agent.settings().snapshots;
        let mut planner = Planner::new(&self.workplace, limits, conflicts);
        if which == UndoTarget::Undo {
            let Some(row) = store.read(|tx| last_undo(tx, self.id))? else {
                return Ok(Plan::default());
            };
            for PathChange { path, from, to } in row.steps {
                planner.take_back(RecordedChange { path, before: from, after: Some(to) });
            }
            let mut plan = planner.done();
            plan.turns = store.read(|tx| numbers(tx, &row.turns))?;
            plan.turn_ids = row.turns;
            plan.taken_back = Some(row.id);
            return Ok(plan);
        }
        let (chosen, numbers) = store.read(|tx| chosen(tx, self.id, which))?;
        let mut unseen = false;
        for segment in chosen.iter().rev() {
            unseen |= !segment.is_closed();
            for change in store.read(|tx| segment.changes(tx))? {
                planner.take_back(change);
            }
        }
        let mut plan = planner.done();
        plan.turn_ids = chosen.iter().map(|segment| segment.turn).collect();
        plan.turn_ids.dedup();
        plan.turns = numbers;
        plan.unseen = unseen;
        Ok(plan)
    }

    /// Does what was planned, unless somebody else changed files and nobody said what becomes of
    /// them. It can be killed at any moment; whoever takes the session up next finishes it.
    pub fn undo(&mut self, plan: &Plan) -> Result<Undone> {
        let Plan { turn_ids, steps, objects, taken_back, .. } = plan;
        if plan.refuses && !plan.conflicts.is_empty() {
            return Err(Error::Conflicts(plan.conflicts.len()));
        }
        let agent = self.agent.clone();
        let session = self.id;
        let kind = if taken_back.is_some() { UndoKind::Redo } else { UndoKind::Undo };
        let id = Id::new().to_string();
        let mut objects = objects.clone();
        blocking(|| objects::flush(&agent.parts.store, &mut objects))?;
        let row = UndoRow {
            id,
            kind,
            turns: turn_ids.clone(),
            steps: steps.clone(),
            taken_back: taken_back.clone(),
        };
        let kept = &plan.objects;
        self.write(|tx| {
            // Objects may have been swept away between.
            let hashes: Vec<String> = kept.iter().map(|(hash, _)| hash.clone()).collect();
            let there = objects::kept(tx, &hashes)?;
            let gone: Vec<_> =
                kept.iter().filter(|(hash, _)| !there.contains(hash)).cloned().collect();
            objects::put(tx, &gone)?;
            begin(tx, session, &row)
        })?;
        self.carry_out(&row)
    }

    /// Finishes an undo that was interrupted, if there is one. A turn does so by itself before
    /// anything else.
    pub fn finish_undo(&mut self) -> Result<Option<Undone>> {
        if !self.snapshots.interrupted_undo {
            return Ok(None);
        }
        let row = self.agent.read(|tx| open_undo(tx, self.id))?;
        let undone = row.map(|row| self.carry_out(&row)).transpose()?;
        self.snapshots.interrupted_undo = false;
        Ok(undone)
    }

    /// Puts the files back and writes down what came of it.
    fn carry_out(&mut self, row: &UndoRow) -> Result<Undone> {
        let store = self.agent.parts.store.clone();
        let mut fetch = |hash: &str| {
            store.read(|tx| objects::get(tx, hash)).map_err(|error: Error| error.to_string())
        };
        let restored = blocking(|| restore(&self.workplace, &row.steps, &mut fetch));
        let turns = self.agent.read(|tx| numbers(tx, &row.turns))?;
        let undone = undone(row, turns, &restored);
        let mut body = Body::notice(self.notice(row.kind, &undone));
        redaction::body(self.agent.redactor(), &mut body);
        let session = self.id;
        self.write(|tx| {
            let now = tx.now();
            tx.execute(
                "UPDATE undos SET state = 'done', ended_at = ?2 WHERE id = ?1",
                params![row.id, now],
            )?;
            if let Some(last) = turn::last(tx, session)? {
                entry::append(tx, session, last.id, &body)?;
            }
            Ok(())
        })?;
        if self.last_turn.row.is_some() {
            self.apply_entry(&body);
        }
        Ok(undone)
    }

    /// What the model is told.
    fn notice(&self, kind: UndoKind, undone: &Undone) -> String {
        let turns: Vec<String> = undone.turns.iter().map(i64::to_string).collect();
        let which = match turns.as_slice() {
            [turn] => format!("turn {turn}"),
            turns => format!("turns {}", turns.join(", ")),
        };
        let mut text = match kind {
            UndoKind::Undo => format!("the user undid what {which} did to files"),
            UndoKind::Redo => {
                format!("the user took the undo of {which} back: its changes are there again")
            }
        };
        let workspace = self.workplace.workspace.canonicalize();
        let workspace = workspace.as_ref().unwrap_or(&self.workplace.workspace);
        let inside = format!("{}/", escaped(workspace));
        for (what, paths) in [("put back", &undone.put_back), ("removed", &undone.removed)] {
            if paths.is_empty() {
                continue;
            }
            let shown = |path: &String| path.strip_prefix(&inside).unwrap_or(path).to_owned();
            let named: Vec<String> = paths.iter().take(NAMED).map(shown).collect();
            // Writing to a string does not fail.
            let _ = write!(text, "; {what}: {}", named.join(", "));
            if paths.len() > NAMED {
                let _ = write!(text, " and {} more", paths.len() - NAMED);
            }
        }
        text.push_str(". Read files again before you change them");
        text
    }
}

/// The turns of a session that changed files, the last first.
pub fn changed_turns(
    store: &mainstay_store::Store,
    session: SessionId,
) -> Result<Vec<ChangedTurn>> {
    let (segments, undone) = store.read(|tx| -> Result<_> {
        Ok((changes::segments(tx, session)?, undone_turns(tx, session)?))
    })?;
    let mut turns: Vec<ChangedTurn> = Vec::new();
    for segment in segments {
        let changes = store.read(|tx| segment.changes(tx))?;
        let Some(turn) = store.read(|tx| turn::get(tx, segment.turn))? else { continue };
        // A turn without a snapshot at its end is left out: what it changed is not known.
        let known = changes.into_iter().filter(|change| change.after.is_some());
        let paths = known.map(|change| change.path);
        let left = segment.left().iter().filter(|(_, why)| *why != Omission::Git).cloned();
        match turns.last_mut().filter(|last| last.turn == turn.number) {
            Some(last) => last.paths.extend(paths),
            None => turns.push(ChangedTurn {
                turn: turn.number,
                started_at: turn.started_at,
                paths: paths.collect(),
                not_kept: left.collect(),
                undone: undone.contains(&segment.turn),
            }),
        }
    }
    turns.retain(|turn| !turn.paths.is_empty());
    turns.reverse();
    Ok(turns)
}

/// Whether an undo of the session was interrupted.
pub(crate) fn interrupted(tx: &mut ReadTx<'_>, session: SessionId) -> Result<bool> {
    let sql = "SELECT id FROM undos WHERE session = ?1 AND state = 'begun'";
    Ok(tx.query_opt(sql, params![session], |row| row.get::<String>(0))?.is_some())
}

/// The segments that are to be undone, and the numbers of their turns.
fn chosen(
    tx: &mut ReadTx<'_>,
    session: SessionId,
    which: UndoTarget,
) -> Result<(Vec<Segment>, Vec<i64>)> {
    let undone = undone_turns(tx, session)?;
    let mut segments = Vec::new();
    for segment in changes::segments(tx, session)? {
        let Some(turn) = turn::get(tx, segment.turn)? else { continue };
        if !undone.contains(&segment.turn) {
            segments.push((turn.number, segment));
        }
    }
    let from = match which {
        UndoTarget::From(number) => number,
        UndoTarget::Last | UndoTarget::Undo => {
            let mut last = None;
            for (number, segment) in segments.iter().rev() {
                if !segment.is_closed() || !segment.changes(tx)?.is_empty() {
                    last = Some(*number);
                    break;
                }
            }
            last.unwrap_or(i64::MAX)
        }
    };
    segments.retain(|(number, _)| *number >= from);
    let mut numbers: Vec<i64> = segments.iter().map(|(number, _)| *number).collect();
    numbers.dedup();
    Ok((segments.into_iter().map(|(_, segment)| segment).collect(), numbers))
}

/// The turns that are undone and stay so.
fn undone_turns(tx: &mut ReadTx<'_>, session: SessionId) -> Result<BTreeSet<TurnId>> {
    let texts: Vec<String> = tx.query(
        "SELECT turns FROM undos WHERE session = ?1 AND kind = 'undo' AND taken_back IS NULL",
        params![session],
        |row| row.get(0),
    )?;
    let mut turns = BTreeSet::new();
    for text in texts {
        turns.extend(turn_ids(&text)?);
    }
    Ok(turns)
}

fn begin(tx: &mut WriteTx<'_>, session: SessionId, row: &UndoRow) -> Result<()> {
    let now = tx.now();
    let last = tx.query_opt(
        "SELECT number FROM undos WHERE session = ?1 ORDER BY number DESC LIMIT 1",
        params![session],
        |row| row.get(0),
    )?;
    let number: i64 = last.unwrap_or(0) + 1;
    let turns = serde_json::to_string(&row.turns).map_err(|error| damaged("an undo", &error))?;
    let steps = serde_json::to_string(&row.steps).map_err(|error| damaged("an undo", &error))?;
    tx.execute(
        "INSERT INTO undos (id, session, number, kind, state, turns, steps, begun_at)
         VALUES (?1, ?2, ?3, ?4, 'begun', ?5, ?6, ?7)",
        params![row.id, session, number, row.kind.as_str(), turns, steps, now],
    )?;
    if let Some(undo) = &row.taken_back {
        // From here on it counts as taken back, also when this is interrupted.
        tx.execute("UPDATE undos SET taken_back = ?2 WHERE id = ?1", params![undo, row.id])?;
    }
    Ok(())
}

/// The last undo that is not taken back.
fn last_undo(tx: &mut ReadTx<'_>, session: SessionId) -> Result<Option<UndoRow>> {
    row(
        tx,
        session,
        "kind = 'undo' AND state = 'done' AND taken_back IS NULL ORDER BY number DESC LIMIT 1",
    )
}

/// An undo that was begun and did not come to its end.
fn open_undo(tx: &mut ReadTx<'_>, session: SessionId) -> Result<Option<UndoRow>> {
    row(tx, session, "state = 'begun' ORDER BY number DESC LIMIT 1")
}

fn row(tx: &mut ReadTx<'_>, session: SessionId, which: &str) -> Result<Option<UndoRow>> {
    let sql = format!("SELECT id, kind, turns, steps FROM undos WHERE session = ?1 AND {which}");
    let found = tx.query_opt(&sql, params![session], |row| {
        let id: String = row.get(0)?;
        let kind: String = row.get(1)?;
        Ok((id, kind, row.get::<String>(2)?, row.get::<String>(3)?))
    })?;
    let Some((id, kind, turns, steps)) = found else { return Ok(None) };
    let kind = if kind == "redo" { UndoKind::Redo } else { UndoKind::Undo };
    let steps = serde_json::from_str(&steps).map_err(|error| damaged("an undo", &error))?;
    Ok(Some(UndoRow { id, kind, turns: turn_ids(&turns)?, steps, taken_back: None }))
}

fn turn_ids(text: &str) -> Result<Vec<TurnId>> {
    let ids: Vec<String> =
        serde_json::from_str(text).map_err(|error| damaged("an undo", &error))?;
    let parse =
        |id: String| id.parse::<Id>().map(TurnId::from).map_err(|error| damaged("an undo", &error));
    ids.into_iter().map(parse).collect()
}

fn numbers(tx: &mut ReadTx<'_>, turns: &[TurnId]) -> Result<Vec<i64>> {
    let mut numbers = Vec::new();
    for id in turns {
        numbers.extend(turn::get(tx, *id)?.map(|turn| turn.number));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn undone(row: &UndoRow, turns: Vec<i64>, restored: &Restored) -> Undone {
    let left: Vec<(String, String)> =
        restored.left.iter().map(|(path, words)| (escaped(path), words.clone())).collect();
    let is_left = |path: &str| left.iter().any(|(other, _)| other == path);
    // A directory that is only opened for a moment is not worth a word.
    let steps = || row.steps.iter().filter(|step| step.from != step.to && !is_left(&step.path));
    let (removed, put_back): (Vec<_>, Vec<_>) = steps().partition(|step| step.to == State::Absent);
    let paths = |steps: Vec<&PathChange>| steps.into_iter().map(|step| step.path.clone()).collect();
    Undone { turns, put_back: paths(put_back), removed: paths(removed), left }
}
