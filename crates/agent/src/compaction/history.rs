//! What bounds further compactions, found again in the record.

use mainstay_journal::TurnId;
use mainstay_journal::compaction::{Compaction, Standing};
use mainstay_journal::entry::{Body, Entry};
use mainstay_journal::model_call::Tried;

use super::limits::{CompactionKind, CompactionState, WindowMarks};

/// Tries that begin within this time of the end of the one before belong to the same summary: there
/// are longer rests between two.
const TOGETHER: i64 = 30_000;

impl CompactionState {
    /// Takes in what earlier processes left: the entries of the session, and the rows of its
    /// summaries in the ledger of model calls, the oldest first.
    pub(super) fn remember(
        &mut self,
        entries: &[Entry],
        rows: &[Tried],
        turn: TurnId,
        marks: Option<&WindowMarks>,
    ) {
        self.remembers = true;
        let changes =
            |entry: &&Entry| matches!(entry.body, Body::Compaction(_) | Body::Restored { .. });
        let last_change = entries.iter().rfind(changes);
        // Who took one back began anew: what came of earlier ones says nothing any more.
        self.restored =
            last_change.is_some_and(|entry| matches!(entry.body, Body::Restored { .. }));
        let since = last_change.map_or(0, |entry| entry.at);
        self.recall(&rounds_ago(entries, turn));
        let standing = Standing::of(entries);
        let helped = |made: &Compaction| {
            let after = i64::try_from(made.after).unwrap_or(i64::MAX);
            marks.is_none_or(|marks| after < CompactionKind::of(made).helps_below(marks))
        };
        let unhelpful = standing.made.iter().rev().take_while(|(_, made)| !helped(made));
        let unhelpful = if self.restored { 0 } else { unhelpful.count() };
        self.fruitless = u32::try_from(unhelpful).unwrap_or(u32::MAX);
        let mut last: Option<&Tried> = None;
        for row in rows.iter().filter(|row| row.started_at > since) {
            let same = last.is_some_and(|last| row.started_at - ended(last) < TOGETHER);
            last = Some(row);
            if row.answered {
                // It was answered, and nothing came of it.
                self.fruitless += 1;
                continue;
            }
            // A process that ended says nothing about the model, unless it happens again.
            if row.fault.is_none() && !std::mem::replace(&mut self.interrupted, true) {
                continue;
            }
            if !same || row.fault.is_none() {
                self.failures += 1;
            }
            self.failed_at = ended(row);
            self.failed_in = row.turn;
            self.failure = row.fault.clone().unwrap_or_else(|| "it was interrupted".to_owned());
        }
    }
}

fn ended(row: &Tried) -> i64 {
    row.started_at + row.latency.unwrap_or(0)
}

/// How many rounds ago compactions were made in this turn and how, the oldest first.
fn rounds_ago(entries: &[Entry], turn: TurnId) -> Vec<(u32, CompactionKind)> {
    let mut rounds = 0;
    let mut found = Vec::new();
    for entry in entries.iter().rev().take_while(|entry| entry.turn == turn) {
        match &entry.body {
            Body::Assistant { .. } => rounds += 1,
            Body::Compaction(made) => found.push((rounds, CompactionKind::of(made))),
            Body::Restored { .. } => break,
            _ => {}
        }
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::super::limits::CompactionPause;
    use super::*;

    const MARKS: WindowMarks = WindowMarks { due: 100, full: 120, room: 130 };

    fn entry(seq: i64, turn: TurnId, body: Body) -> Entry {
        Entry { seq, turn, at: seq * 1_000, body }
    }

    fn made(number: i64, after: u64) -> Body {
        let summary = Some("words".to_owned());
        Body::Compaction(Box::new(Compaction { number, after, summary, ..Compaction::default() }))
    }

    fn said() -> Body {
        Body::Assistant { parts: Vec::new(), model: "m".to_owned() }
    }

    fn row(turn: TurnId, started_at: i64, answered: bool) -> Tried {
        let fault = (!answered).then(|| "overloaded".to_owned());
        Tried { turn: Some(turn), started_at, latency: Some(1_000), answered, fault }
    }

    #[test]
    fn compactions_of_the_turn_are_counted_again_after_a_crash() {
        let turn = TurnId::new();
        let bodies = [said(), made(1, 50), said(), made(2, 50), said()];
        let entries: Vec<Entry> =
            (1..).zip(bodies).map(|(seq, body)| entry(seq, turn, body)).collect();
        let mut state = CompactionState::default();
        state.round(turn);
        state.remember(&entries, &[], turn, Some(&MARKS));
        assert_eq!(state.resting(turn, 0), Some(CompactionPause::Enough));
        for _ in 0..10 {
            state.round(turn);
        }
        assert_eq!(state.resting(turn, 0), None);
        let other = TurnId::new();
        let mut state = CompactionState::default();
        state.round(other);
        state.remember(&entries, &[], other, Some(&MARKS));
        assert_eq!(state.resting(other, 0), None);
    }

    #[test]
    fn those_that_did_not_help_and_those_that_failed_are_found_again() {
        let turn = TurnId::new();
        let entries = [entry(1, turn, made(1, 50)), entry(2, turn, made(2, 110))];
        let other = TurnId::new();
        let rows = [row(turn, 500, true), row(turn, 10_000, true)];
        let mut state = CompactionState::default();
        state.round(other);
        state.remember(&entries, &rows, other, Some(&MARKS));
        assert_eq!((state.fruitless, state.failures), (2, 0));

        // Two tries of one summary are one failure; the next summary is another one.
        let rows = [row(turn, 10_000, false), row(turn, 11_500, false), row(turn, 80_000, false)];
        let mut state = CompactionState::default();
        state.round(other);
        state.remember(&entries[..1], &rows, other, Some(&MARKS));
        assert_eq!((state.fruitless, state.failures, state.failed_at), (0, 2, 81_000));
        assert_eq!(state.resting(other, 81_000), Some(CompactionPause::Until(381_000)));
    }

    #[test]
    fn one_that_was_interrupted_is_tried_again_and_two_have_to_rest() {
        let (turn, mut state) = (TurnId::new(), CompactionState::default());
        let row = |at| Tried { fault: None, latency: None, ..row(turn, at, false) };
        state.remember(&[], &[row(1_000)], turn, Some(&MARKS));
        assert_eq!(state.resting(turn, 1_001), None);
        assert!(state.interrupted, "the next one is waited for");
        let mut state = CompactionState::default();
        state.remember(&[], &[row(1_000), row(2_000)], turn, Some(&MARKS));
        assert_eq!(state.resting(turn, 2_001), Some(CompactionPause::Until(62_000)));
    }

    #[test]
    fn what_was_taken_back_is_known_again() {
        let turn = TurnId::new();
        let entries = [entry(1, turn, made(1, 50)), entry(2, turn, Body::Restored { number: 1 })];
        let mut state = CompactionState::default();
        // What its summary took is no failure.
        let rows = [row(turn, 500, true), row(turn, 700, true)];
        state.remember(&entries, &rows, turn, Some(&MARKS));
        assert_eq!(state.due(&MARKS), MARKS.full);
        assert_eq!((state.fruitless, state.lately()), (0, 0));
    }
}
