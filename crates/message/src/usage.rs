//! What a model's answer took.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Tokens, as the provider counted them. The three kinds of input do not overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input that was read anew.
    pub input: u64,
    /// Input that came from the provider's cache.
    pub cached: u64,
    /// Input that was written to the provider's cache.
    pub cache_written: u64,
    /// Output, reasoning included.
    pub output: u64,
    /// The share of the output that was reasoning.
    pub reasoning: u64,
}

impl Usage {
    /// All tokens that the model read.
    pub fn all_input(&self) -> u64 {
        self.input + self.cached + self.cache_written
    }

    /// All tokens, read and written.
    pub fn total(&self) -> u64 {
        self.all_input() + self.output
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.cached += other.cached;
        self.cache_written += other.cache_written;
        self.output += other.output;
        self.reasoning += other.reasoning;
    }
}
