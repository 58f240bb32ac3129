//! Where a conversation can be cut: the tail that stays begins after whole groups of calls and
//! results.

use std::collections::BTreeSet;

use mainstay_message::AssistantPart;

use crate::compaction::Standing;
use crate::entry::{Body, Entry};
use crate::view::Shortener;

/// A place to cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// The last entry before the tail; never one that is replaced already.
    pub through: i64,
    /// The entries before the tail that hold the user's current instruction and what the user said
    /// since.
    pub keeps: Vec<i64>,
}

/// Finds where a tail begins that is no larger than `budget`, by the `size` of bodies as they are
/// shown now. It has the last message of the model with all its results, however large, and splits no
/// group. `None` where all that is shown fits, or nothing can be cut.
pub fn cut(entries: &[Entry], budget: usize, size: impl Fn(&Body) -> usize) -> Option<Cut> {
    let standing = Standing::of(entries);
    let shortener = Shortener::new(entries, &standing);
    let says = |entry: &&Entry| !matches!(entry.body, Body::Compaction(_) | Body::Restored { .. });
    let shown: Vec<&Entry> =
        entries.iter().filter(|entry| entry.seq > standing.through).filter(says).collect();
    let last_answer =
        shown.iter().rposition(|entry| matches!(entry.body, Body::Assistant { .. }))?;
    let mut open = BTreeSet::new();
    // Whether a tail may begin with the entry at each place.
    let begins: Vec<bool> = shown
        .iter()
        .map(|entry| {
            let at_rest = open.is_empty();
            match &entry.body {
                // These end the wait for results.
                Body::User { .. } | Body::End { .. } => open.clear(),
                Body::Assistant { parts, .. } => {
                    open = parts.iter().filter_map(call).collect();
                    return true;
                }
                Body::Result { result, .. } => drop(open.remove(result.call.as_str())),
                Body::Notice { .. } | Body::Compaction(_) | Body::Restored { .. } => {}
            }
            at_rest || matches!(entry.body, Body::User { .. })
        })
        .collect();
    let (mut tail, mut bytes) = (shown.len(), 0_usize);
    for (place, entry) in shown.iter().enumerate().rev() {
        bytes = bytes.saturating_add(size(&shortener.shown(entry)));
        if bytes > budget && tail <= last_answer {
            break;
        }
        if begins.get(place) == Some(&true) {
            tail = place;
        }
    }
    let through = shown.get(tail.checked_sub(1)?)?.seq;
    Some(Cut { through, keeps: keeps(entries, through) })
}

/// The entries up to `through` that hold the user's current instruction and what the user said since.
pub fn keeps(entries: &[Entry], through: i64) -> Vec<i64> {
    let said = |entry: &&Entry| matches!(entry.body, Body::User { .. });
    let Some(turn) = entries.iter().rfind(said).map(|entry| entry.turn) else { return Vec::new() };
    let current = entries.iter().filter(said).filter(|entry| entry.turn == turn);
    current.map(|entry| entry.seq).filter(|seq| *seq <= through).collect()
}

fn call(part: &AssistantPart) -> Option<&str> {
    match part {
        AssistantPart::Call(call) => Some(&call.id),
        AssistantPart::Text(_) | AssistantPart::Reasoning(_) => None,
    }
}
