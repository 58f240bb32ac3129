//! How long the next piece of an answer is waited for.
//!
//! Bytes alone keep no answer alive: a server that drips comments or single bytes would use up the time
//! of every candidate after it. A sign of life is a whole line, which pings and comments are; progress
//! is a word of the model, be it of an answer, a thought or a call.

use std::time::Duration;

use tokio::time::Instant;

use super::exchange::Broken;
use crate::wire::Progress;
use crate::{Fault, Limits};

/// How long what may follow a whole answer is waited for.
const GRACE: Duration = Duration::from_secs(2);

/// The times of one answer.
pub(super) struct Pace<'a> {
    limits: &'a Limits,
    /// Whether a healthy candidate waits for its turn.
    fallback: bool,
    /// When the server last gave a sign of life.
    alive: Instant,
    /// When the model last got on.
    progressed: Instant,
    spoken: bool,
    /// When the answer became whole.
    whole: Option<Instant>,
}

/// What the next piece must come by, and what is wrong if it does not.
pub(super) struct Due {
    pub(super) at: Instant,
    limit: Duration,
    lacking: Lacking,
}

/// What did not come.
enum Lacking {
    Life,
    Words,
}

/// What a piece of an answer brought.
pub(super) struct Piece {
    pub(super) sign: bool,
    pub(super) grown: bool,
    pub(super) spoken: bool,
    pub(super) progress: Progress,
}

impl<'a> Pace<'a> {
    pub(super) fn begin(limits: &'a Limits, fallback: bool) -> Pace<'a> {
        let now = Instant::now();
        Pace { limits, fallback, alive: now, progressed: now, spoken: false, whole: None }
    }

    /// Takes note of a piece that came now.
    pub(super) fn heard(&mut self, piece: &Piece) {
        let now = Instant::now();
        if piece.sign || piece.grown {
            self.alive = now;
        }
        if piece.grown {
            self.progressed = now;
        }
        self.spoken |= piece.spoken;
        if piece.progress == Progress::Whole {
            self.whole.get_or_insert(now);
        }
    }

    /// What the next piece must come by.
    pub(super) fn due(&self) -> Due {
        let limit = if self.spoken { self.limits.idle } else { self.limits.first_byte };
        if let Some(whole) = self.whole {
            let limit = GRACE.min(self.limits.idle);
            return Due { at: whole + limit, limit, lacking: Lacking::Life };
        }
        let life = Due { at: self.alive + limit, limit, lacking: Lacking::Life };
        // The last candidate keeps nobody waiting: alive, it may think until the deadline.
        if !self.fallback {
            return life;
        }
        let limit = self.limits.progress.max(limit);
        let words = Due { at: self.progressed + limit, limit, lacking: Lacking::Words };
        if words.at < life.at { words } else { life }
    }
}

impl Due {
    /// Why an answer was given up that did not keep to this.
    pub(super) fn missed(&self) -> Broken {
        let seconds = self.limit.as_secs_f64();
        match self.lacking {
            Lacking::Life => {
                Broken::new(Fault::Stalled, format!("nothing was received for {seconds} s"))
            }
            Lacking::Words => Broken {
                spent: true,
                ..Broken::new(
                    Fault::Stalled,
                    format!("the server was there, but the model said nothing for {seconds} s"),
                )
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn limits() -> Limits {
        Limits {
            first_byte: 10 * SECOND,
            idle: 5 * SECOND,
            progress: 30 * SECOND,
            ..Limits::default()
        }
    }

    fn piece(sign: bool, grown: bool) -> Piece {
        Piece { sign, grown, spoken: grown, progress: Progress::Open }
    }

    /// How long the next piece may take.
    fn left(pace: &Pace<'_>) -> Duration {
        pace.due().at - Instant::now()
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_that_make_no_line_are_no_sign_of_life() {
        let limits = limits();
        let mut pace = Pace::begin(&limits, false);
        tokio::time::advance(4 * SECOND).await;
        pace.heard(&piece(false, false));
        assert_eq!(left(&pace), 6 * SECOND);
        pace.heard(&piece(true, false));
        assert_eq!(left(&pace), 10 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn signs_of_life_without_words_end_when_another_model_waits() {
        let limits = limits();
        for (fallback, last) in [(true, 2 * SECOND), (false, 10 * SECOND)] {
            let mut pace = Pace::begin(&limits, fallback);
            for _ in 0..7 {
                tokio::time::advance(4 * SECOND).await;
                pace.heard(&piece(true, false));
            }
            assert_eq!(left(&pace), last);
            assert_eq!(pace.due().missed().spent, fallback);
            // A word begins both clocks anew.
            pace.heard(&piece(true, true));
            assert_eq!(left(&pace), 5 * SECOND);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_follows_a_whole_answer_does_not_prolong_itself() {
        let limits = limits();
        let mut pace = Pace::begin(&limits, false);
        let whole = Piece { progress: Progress::Whole, ..piece(true, true) };
        pace.heard(&whole);
        tokio::time::advance(SECOND).await;
        pace.heard(&whole);
        assert_eq!(left(&pace), SECOND);
    }
}
