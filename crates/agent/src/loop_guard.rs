//! The loop guard: the same call with the same result, over the whole turn.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

/// How many repeats mean what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// From here on the model is told.
    pub nudge: u32,
    /// From here on the call is not run.
    pub withhold: u32,
    /// Here the turn ends.
    pub end: u32,
}

/// Repeats of calls that only look: the same look at the same thing brings nothing new.
pub const LOOKING: Thresholds = Thresholds { nudge: 4, withhold: 10, end: 15 };
/// Repeats of calls that may change something: their effect may be progress that no result shows.
pub const ACTING: Thresholds = Thresholds { nudge: 8, withhold: 30, end: 40 };

/// What a repeat means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopVerdict {
    /// Nothing.
    Go,
    /// Tell the model that it repeats itself for the n-th time.
    Nudge(u32),
    /// Do not run the call.
    Withhold(u32),
    /// End the turn.
    End(u32),
}

/// Counts the calls of a turn.
#[derive(Debug, Default)]
pub struct LoopGuard {
    /// By call: the last result, and how often in a row it was the same.
    seen: HashMap<[u8; 32], (Option<[u8; 32]>, u32)>,
}

impl LoopGuard {
    /// What to do about a call before it runs.
    pub fn before(&self, tool: &str, arguments: &str, thresholds: Thresholds) -> LoopVerdict {
        let repeats = self.seen.get(&hash([tool, arguments])).map_or(0, |(_, repeats)| *repeats);
        match repeats {
            repeats if repeats >= thresholds.end => LoopVerdict::End(repeats),
            repeats if repeats >= thresholds.withhold => LoopVerdict::Withhold(repeats),
            _ => LoopVerdict::Go,
        }
    }

    /// Notes a result. A call that was withheld counts as one that brought the same again.
    pub fn after(
        &mut self,
        tool: &str,
        arguments: &str,
        result: Option<&str>,
        thresholds: Thresholds,
    ) -> LoopVerdict {
        let result = result.map(|result| hash([result, ""]));
        let (last, repeats) = self.seen.entry(hash([tool, arguments])).or_insert((None, 0));
        if result.is_none() || *last == result || *repeats == 0 {
            *repeats += 1;
        } else {
            *repeats = 1;
        }
        if result.is_some() {
            *last = result;
        }
        match *repeats {
            repeats if repeats >= thresholds.end => LoopVerdict::End(repeats),
            repeats if repeats >= thresholds.nudge => LoopVerdict::Nudge(repeats),
            _ => LoopVerdict::Go,
        }
    }
}

fn hash(parts: [&str; 2]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.len().to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEW: Thresholds = Thresholds { nudge: 2, withhold: 3, end: 5 };

    #[test]
    fn the_same_call_with_the_same_result_is_nudged_withheld_and_ended() {
        let mut guard = LoopGuard::default();
        let mut verdicts = Vec::new();
        for _ in 0..5 {
            let before = guard.before("grep", "{}", FEW);
            let result = if before == LoopVerdict::Go { Some("same") } else { None };
            verdicts.push((before, guard.after("grep", "{}", result, FEW)));
        }
        assert_eq!(
            verdicts,
            [
                (LoopVerdict::Go, LoopVerdict::Go),
                (LoopVerdict::Go, LoopVerdict::Nudge(2)),
                (LoopVerdict::Go, LoopVerdict::Nudge(3)),
                (LoopVerdict::Withhold(3), LoopVerdict::Nudge(4)),
                (LoopVerdict::Withhold(4), LoopVerdict::End(5)),
            ]
        );
    }

    #[test]
    fn another_result_is_progress() {
        let mut guard = LoopGuard::default();
        for round in 0..20 {
            assert_eq!(guard.before("poll", "{}", FEW), LoopVerdict::Go);
            let result = round.to_string();
            assert_eq!(guard.after("poll", "{}", Some(&result), FEW), LoopVerdict::Go);
        }
    }

    #[test]
    fn other_calls_in_between_do_not_hide_a_loop() {
        let mut guard = LoopGuard::default();
        for round in 0..3 {
            guard.after("grep", "{}", Some("same"), FEW);
            guard.after("read", &round.to_string(), Some("other"), FEW);
        }
        assert_eq!(guard.before("grep", "{}", FEW), LoopVerdict::Withhold(3));
    }
}
