//! When a conversation is compacted, and what keeps that from being tried for ever.

use std::collections::VecDeque;
use std::time::Duration;

use mainstay_journal::TurnId;
use mainstay_journal::compaction::Compaction;

use super::summary_request::SummaryInProgress;
use crate::Settings;

/// So many compactions with a summary may come within [`ROUNDS`] rounds of a turn. Those by the cheap
/// steps alone cost nothing; of all kinds so many may come between two answers.
const MOST: usize = 2;
/// A turn that went on for so many rounds after a compaction has made something of it.
pub(super) const ROUNDS: u32 = 10;
/// So many in a row that do not help stop it.
const FRUITLESS: u32 = 2;
/// So many failures in a row stop it for the turn.
const FAILURES: u32 = 3;
/// How long it rests after the first, the second and each further failure in a row.
const RESTS: [Duration; 3] =
    [Duration::from_secs(60), Duration::from_secs(300), Duration::from_secs(900)];
/// From this share on a turn waits for the summary that is being made.
const FULL: f64 = 0.92;
/// The tokens left for an answer whose length is not limited.
const USUAL_ANSWER: u64 = 8_192;
/// The share of what a provider found too long that is taken to fit.
const FITS: f64 = 0.95;

/// The sizes, in tokens, at which something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowMarks {
    /// From here on a compaction is due.
    pub(crate) due: i64,
    /// From here on the turn waits for it.
    pub(crate) full: i64,
    /// The most tokens that a request may have.
    pub(crate) room: i64,
}

impl WindowMarks {
    /// Those of the first model. Returns `None` if its window is not known.
    pub(crate) fn of(settings: &Settings) -> Option<Self> {
        let first = settings.chain.first()?;
        let window = first.window.filter(|window| *window > 0)?;
        let answer = settings
            .max_output
            .or(first.max_output)
            .map_or_else(|| USUAL_ANSWER.min(window / 8), u64::from);
        // A model whose answers may fill the window still gets half of it for the request.
        let room = window.saturating_sub(answer).max(window / 2);
        Some(Self::within(i64::try_from(room).unwrap_or(i64::MAX), settings.compaction.at))
    }

    /// Those for requests of at most `room` tokens.
    pub(super) fn within(room: i64, share: f64) -> Self {
        let full = share_of(room, FULL);
        Self { due: share_of(room, share).min(full), full, room }
    }
}

/// A share of so many tokens.
pub(super) fn share_of(tokens: i64, share: f64) -> i64 {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "sizes are estimates"
    )]
    let tokens = (tokens as f64 * share) as i64;
    tokens
}

/// What is known of the compactions of a session that bounds further ones.
#[derive(Default)]
pub(crate) struct CompactionState {
    /// A summary that is being made.
    pub(super) in_progress: Option<SummaryInProgress>,
    /// Whether what earlier processes did was read from the store.
    pub(super) remembers: bool,
    /// The turn that `rounds` and `made` are about.
    turn: Option<TurnId>,
    /// How many rounds of it there were in this process.
    rounds: u32,
    /// The rounds after which compactions with a summary were made in it.
    made: VecDeque<u32>,
    /// How many of any kind were made since a model answered.
    unanswered: usize,
    /// How many in a row did not help.
    pub(super) fruitless: u32,
    /// A little less than what a provider found too long.
    pub(super) outgrown: Option<i64>,
    /// The size at which there was nothing to leave out.
    nothing_at: Option<i64>,
    /// What the last one is yet to be judged by: from so many tokens on it did not help.
    unjudged: Option<i64>,
    /// How many in a row failed.
    pub(super) failures: u32,
    /// When the last of them did, in milliseconds since 1970.
    pub(super) failed_at: i64,
    /// The turn in which it did.
    pub(super) failed_in: Option<TurnId>,
    /// What the last failure was, in words.
    pub(super) failure: String,
    /// Whether it was a hook that did not want it.
    pub(super) unwanted: bool,
    /// When a provider said that it serves again, in milliseconds since 1970.
    pub(super) retry_at: Option<i64>,
    /// Whether a process ended before the summary came that it had asked for: the next one is waited
    /// for, or nothing would ever come of them where processes are short.
    pub(super) interrupted: bool,
    /// Whether a person took the last compaction back.
    pub(super) restored: bool,
    /// Whether the user was told that compaction has stopped.
    pub(super) told: bool,
    /// What the user was last told of an attempt that changed nothing.
    pub(super) said: String,
}

/// How room was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompactionKind {
    /// A summary stands for entries.
    Summarised,
    /// Entries are shown shortened.
    Shortened,
}

impl CompactionKind {
    /// How a compaction was made.
    pub(super) fn of(compaction: &Compaction) -> Self {
        if compaction.summary.is_some() {
            CompactionKind::Summarised
        } else {
            CompactionKind::Shortened
        }
    }

    /// The size below which it helped: what costs nothing is of use wherever the next request fits.
    pub(super) fn helps_below(self, marks: &WindowMarks) -> i64 {
        match self {
            CompactionKind::Summarised => marks.due,
            CompactionKind::Shortened => marks.full,
        }
    }
}

/// Why no compaction is tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CompactionPause {
    /// There were enough summaries in the last rounds.
    Enough,
    /// Two did not get an answer.
    Unanswered,
    /// The last ones did not help.
    Fruitless,
    /// Too many failed in this turn.
    Failing,
    /// The last one failed a short time ago; it rests until then, in milliseconds since 1970.
    Until(i64),
}

impl CompactionState {
    /// Takes in that a round of a turn begins.
    pub(crate) fn round(&mut self, turn: TurnId) {
        if self.turn != Some(turn) {
            self.turn = Some(turn);
            self.rounds = 0;
            self.made.clear();
            self.unanswered = 0;
        }
        self.rounds = self.rounds.saturating_add(1);
    }

    /// Takes in that a model answered.
    pub(crate) fn answered(&mut self) {
        self.unanswered = 0;
    }

    /// Whether nothing waits to be applied.
    pub(crate) fn is_quiet(&self) -> bool {
        self.in_progress.is_none()
    }

    /// The size from which a compaction is due. A person who took one back wants the old messages shown
    /// as long as they fit.
    pub(crate) fn due(&self, marks: &WindowMarks) -> i64 {
        if self.restored { marks.full } else { marks.due }
    }

    /// Why no summary is asked for without a person asking. Returns `None` if one may be.
    pub(super) fn resting(&self, turn: TurnId, now: i64) -> Option<CompactionPause> {
        if let Some(resting) = self.done_enough() {
            return Some(resting);
        }
        if self.lately() >= MOST {
            return Some(CompactionPause::Enough);
        }
        if self.failures >= FAILURES && self.failed_in == Some(turn) {
            return Some(CompactionPause::Failing);
        }
        let until = self.rests_until()?;
        // A clock that was set back would have it rest for as long as it was set back by.
        (self.failed_at..until).contains(&now).then_some(CompactionPause::Until(until))
    }

    /// Why not even the cheap steps are taken.
    pub(super) fn done_enough(&self) -> Option<CompactionPause> {
        if self.fruitless >= FRUITLESS {
            return Some(CompactionPause::Fruitless);
        }
        (self.unanswered >= MOST).then_some(CompactionPause::Unanswered)
    }

    /// How many with a summary were made in the last rounds.
    pub(super) fn lately(&self) -> usize {
        self.made.iter().filter(|made| self.rounds.saturating_sub(**made) < ROUNDS).count()
    }

    /// Gives up the summary that is being made.
    pub(crate) fn stop(&mut self) {
        self.in_progress = None;
    }

    fn rests_until(&self) -> Option<i64> {
        let place = usize::try_from(self.failures).ok()?.checked_sub(1)?;
        let rest = RESTS.get(place).or(RESTS.last())?;
        let rest = i64::try_from(rest.as_millis()).unwrap_or(i64::MAX);
        Some(self.failed_at.saturating_add(rest).max(self.retry_at.unwrap_or(0)))
    }

    /// Takes in that a compaction was made and, as far as can be told, what the size is now.
    pub(super) fn applied(&mut self, how: CompactionKind, after: i64, marks: Option<&WindowMarks>) {
        self.unanswered += 1;
        if how == CompactionKind::Summarised {
            self.made.push_back(self.rounds);
            if self.made.len() > MOST {
                self.made.pop_front();
            }
        }
        let most = marks.map(|marks| how.helps_below(marks));
        let helped = most.is_none_or(|most| after < most);
        self.fruitless = if helped { 0 } else { self.fruitless + 1 };
        self.unjudged = most.filter(|_| helped);
        self.restored = false;
        self.told = false;
        self.said.clear();
        self.nothing_at = None;
    }

    /// Takes in that a model gave a summary.
    pub(super) fn healthy(&mut self) {
        self.forget_failures();
    }

    /// Takes in that there is nothing to leave out at this size.
    pub(super) fn found_nothing(&mut self, tokens: i64) {
        self.nothing_at = Some(tokens);
    }

    /// Whether to look once more what could be left out: there is more than the last time.
    pub(super) fn may_look(&self, tokens: i64, marks: &WindowMarks) -> bool {
        self.nothing_at.is_none_or(|before| tokens >= before + marks.due / 20)
    }

    /// Takes in that one would not have helped.
    pub(super) fn refused(&mut self) {
        self.fruitless += 1;
    }

    /// Takes in that one failed.
    pub(super) fn failed(&mut self, turn: TurnId, now: i64, words: &str, retry_at: Option<i64>) {
        self.failures += 1;
        self.failed_at = now;
        self.failed_in = Some(turn);
        self.interrupted = false;
        self.failure = words.to_owned();
        self.retry_at = retry_at;
        self.unwanted = false;
    }

    /// Takes in what a provider counted.
    pub(crate) fn counted(&mut self, tokens: i64, marks: Option<&WindowMarks>) {
        let Some(marks) = marks else { return };
        if tokens < marks.due {
            self.fruitless = 0;
            self.told = false;
            self.nothing_at = None;
        } else if self.unjudged.is_some_and(|most| tokens >= most) {
            self.fruitless += 1;
        }
        self.unjudged = None;
    }

    /// Takes in that a provider found so many tokens too long.
    pub(super) fn outgrew(&mut self, tokens: i64) {
        let most = share_of(tokens, FITS);
        self.outgrown = Some(self.outgrown.map_or(most, |before| before.min(most)));
    }

    /// Takes in that other models are asked from now on.
    pub(crate) fn other_models(&mut self) {
        self.outgrown = None;
        self.begin_anew();
    }

    /// Begins anew: a person or another model changed what held.
    pub(crate) fn begin_anew(&mut self) {
        self.fruitless = 0;
        self.told = false;
        self.unjudged = None;
        self.nothing_at = None;
        self.unanswered = 0;
        self.said.clear();
        self.made.clear();
        self.forget_failures();
    }

    /// Takes in what earlier processes did in this turn: how many rounds ago compactions were made.
    pub(super) fn recall(&mut self, rounds_ago: &[(u32, CompactionKind)]) {
        let most = rounds_ago.iter().map(|(ago, _)| *ago).max().unwrap_or(0);
        self.rounds = self.rounds.saturating_add(most);
        for (ago, how) in rounds_ago {
            self.unanswered += usize::from(*ago == 0);
            if *how == CompactionKind::Summarised {
                self.made.push_back(self.rounds.saturating_sub(*ago));
            }
        }
    }

    fn forget_failures(&mut self) {
        self.failures = 0;
        self.failed_at = 0;
        self.retry_at = None;
        self.interrupted = false;
        self.failure.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mainstay_llm::{Api, Candidate, Provider};

    use super::*;

    fn settings(window: Option<u64>, max_output: Option<u32>) -> Settings {
        let provider = Provider::without_key(
            "local",
            Api::OpenAiChat,
            "http://127.0.0.1:1/v1".parse().unwrap(),
        );
        let candidate = Candidate { window, max_output, ..Candidate::new(provider, "m") };
        Settings { chain: vec![Arc::new(candidate)], ..Settings::default() }
    }

    #[test]
    fn room_for_the_answer_is_left_out_of_the_share() {
        let marks = |window, output| WindowMarks::of(&settings(window, output));
        let of = |due, full, room| Some(WindowMarks { due, full, room });
        assert_eq!(marks(Some(10_000), Some(2_000)), of(6_000, 7_360, 8_000));
        assert_eq!(marks(Some(8_000), None), of(5_250, 6_440, 7_000));
        assert_eq!(marks(Some(8_000), Some(8_000)), of(3_000, 3_680, 4_000));
        assert_eq!(marks(None, Some(2_000)), None);
    }

    const MARKS: WindowMarks = WindowMarks { due: 100, full: 120, room: 130 };

    #[test]
    fn there_are_two_at_most_until_the_turn_went_on_for_a_while() {
        let (mut state, turn) = (CompactionState::default(), TurnId::new());
        state.round(turn);
        for _ in 0..2 {
            assert_eq!(state.resting(turn, 0), None);
            state.applied(CompactionKind::Summarised, 50, Some(&MARKS));
            state.answered();
        }
        for _ in 0..ROUNDS {
            assert_eq!(state.resting(turn, 0), Some(CompactionPause::Enough));
            state.round(turn);
        }
        assert_eq!(state.resting(turn, 0), None);
        state.applied(CompactionKind::Summarised, 50, Some(&MARKS));
        state.applied(CompactionKind::Summarised, 50, Some(&MARKS));
        assert_eq!(state.resting(turn, 0), Some(CompactionPause::Unanswered));
        state.answered();
        assert_eq!(state.resting(turn, 0), Some(CompactionPause::Enough));
        let next = TurnId::new();
        state.round(next);
        assert_eq!(state.resting(next, 0), None);
    }

    #[test]
    fn cheap_steps_are_as_many_as_there_are_answers_and_help_wherever_the_next_request_fits() {
        let (mut state, turn) = (CompactionState::default(), TurnId::new());
        state.round(turn);
        for _ in 0..20 {
            state.applied(CompactionKind::Shortened, 110, Some(&MARKS));
            state.counted(110, Some(&MARKS));
            state.answered();
            assert_eq!(state.resting(turn, 0), None);
        }
        state.applied(CompactionKind::Shortened, 110, Some(&MARKS));
        state.applied(CompactionKind::Shortened, 110, Some(&MARKS));
        assert_eq!(state.done_enough(), Some(CompactionPause::Unanswered));
        state.answered();
        state.applied(CompactionKind::Shortened, 120, Some(&MARKS));
        state.applied(CompactionKind::Shortened, 110, Some(&MARKS));
        state.counted(125, Some(&MARKS));
        state.answered();
        assert_eq!(state.resting(turn, 0), None);
        state.applied(CompactionKind::Shortened, 125, Some(&MARKS));
        assert_eq!(state.resting(turn, 0), Some(CompactionPause::Fruitless));
    }

    #[test]
    fn two_that_do_not_help_stop_it_until_something_fits() {
        let (mut state, turn) = (CompactionState::default(), TurnId::new());
        state.round(turn);
        state.refused();
        assert_eq!(state.resting(turn, 0), None);
        // It looked well, and the provider counted otherwise.
        state.applied(CompactionKind::Summarised, 90, Some(&MARKS));
        state.counted(110, Some(&MARKS));
        state.refused();
        assert_eq!(state.resting(turn, 0), Some(CompactionPause::Fruitless));
        state.counted(105, Some(&MARKS));
        assert_eq!(state.resting(turn, 0), Some(CompactionPause::Fruitless));
        state.counted(99, Some(&MARKS));
        assert_eq!(state.resting(turn, 0), None);
    }

    #[test]
    fn it_rests_after_failures_longer_each_time_and_gives_the_turn_up_after_three() {
        let (mut state, turn) = (CompactionState::default(), TurnId::new());
        state.round(turn);
        let mut now = 1_000;
        for rest in [60_000, 300_000] {
            state.failed(turn, now, "no", None);
            assert_eq!(
                state.resting(turn, now + rest - 1),
                Some(CompactionPause::Until(now + rest))
            );
            assert_eq!(state.resting(turn, now - 10_000_000), None, "the clock was set back");
            now += rest;
            assert_eq!(state.resting(turn, now), None);
        }
        state.failed(turn, now, "no", None);
        assert_eq!(state.resting(turn, now + 10_000_000), Some(CompactionPause::Failing));
        let next = TurnId::new();
        assert_eq!(state.resting(next, now + 1), Some(CompactionPause::Until(now + 900_000)));
        assert_eq!(state.resting(next, now + 900_000), None);
        state.begin_anew();
        assert_eq!(state.resting(turn, now), None);
    }

    #[test]
    fn what_a_person_took_back_stays_until_the_window_is_full() {
        let mut state = CompactionState { restored: true, ..CompactionState::default() };
        assert_eq!(state.due(&MARKS), MARKS.full);
        state.applied(CompactionKind::Shortened, 50, Some(&MARKS));
        assert_eq!(state.due(&MARKS), MARKS.due);
    }
}
