//! How long and how much.

use std::time::Duration;

/// What bounds a call. All times have sensible defaults; a test makes them small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For a connection to be made.
    pub connect: Duration,
    /// Without a sign of life until the model has said its first word; models that think in silence
    /// need it. A sign is a whole line: an event, a ping, a comment.
    pub first_byte: Duration,
    /// Without a sign of life after that.
    pub idle: Duration,
    /// Without a word of the model, signs of life or not, while another healthy candidate is left.
    pub progress: Duration,
    /// Over everything: all attempts, all waits, all candidates.
    pub chain: Duration,
    /// The longest wait told by a provider that is obeyed; a longer one means the next candidate.
    pub retry_after: Duration,
    /// The same while another healthy candidate is left.
    pub patience: Duration,
    /// Attempts at one candidate, while each fails with a fault that may pass.
    pub attempts: u32,
    /// The same while another healthy candidate is left: better a quick change than a long wait.
    pub attempts_with_fallback: u32,
    /// The bound of the first wait; each further one doubles it. The wait is a random share of it.
    pub backoff_base: Duration,
    /// What that bound never passes.
    pub backoff_cap: Duration,
    /// The bytes of one line or one event of a stream.
    pub event_bytes: usize,
    /// The bytes of a whole answer.
    pub answer_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(120),
            idle: Duration::from_secs(60),
            progress: Duration::from_secs(5 * 60),
            chain: Duration::from_secs(15 * 60),
            retry_after: Duration::from_secs(60),
            patience: Duration::from_secs(5),
            attempts: 4,
            attempts_with_fallback: 2,
            backoff_base: Duration::from_millis(500),
            backoff_cap: Duration::from_secs(30),
            event_bytes: 4 << 20,
            answer_bytes: 32 << 20,
        }
    }
}
