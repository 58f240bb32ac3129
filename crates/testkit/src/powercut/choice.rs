//! The lots: which of the changes that were not durable have happened.

use fastrand::Rng;

use super::Variant;

/// Draws for one state. Its seed is made of the state's own name, so that a state can be built
/// again without all those before it.
pub(super) struct Choice {
    variant: Variant,
    random: Rng,
    /// How likely a change has happened, in this state: few, many, or about half.
    likelihood: f64,
}

impl Choice {
    pub(super) fn new(variant: Variant, seed: u64, at: usize) -> Self {
        let number = match variant {
            Variant::Nothing => 0,
            Variant::Everything => 1,
            Variant::Subset(number) => 2 + 2 * u64::from(number),
            Variant::Torn(number) => 3 + 2 * u64::from(number),
        };
        let mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (number << 40) ^ at as u64;
        let mut random = Rng::with_seed(mixed);
        let likelihood = random.f64();
        Self { variant, random, likelihood }
    }

    /// Says whether the state is the live one, which needs no lots.
    pub(super) fn is_everything(&self) -> bool {
        self.variant == Variant::Everything
    }

    /// Says whether a change as a whole has happened.
    pub(super) fn happened(&mut self) -> bool {
        match self.variant {
            Variant::Nothing => false,
            Variant::Everything => true,
            Variant::Subset(_) | Variant::Torn(_) => self.random.f64() < self.likelihood,
        }
    }

    /// The parts of a write that have happened, as ranges of its bytes.
    pub(super) fn parts(&mut self, offset: u64, length: usize) -> Vec<std::ops::Range<usize>> {
        if !matches!(self.variant, Variant::Torn(_)) {
            return self.happened().then_some(0..length).into_iter().collect();
        }
        let mut parts = Vec::new();
        let mut start = 0;
        while start < length {
            // Sectors are those of the file, not of the write.
            let in_sector = ((offset + start as u64) % SECTOR) as usize;
            let end = length.min(start + SECTOR as usize - in_sector);
            if self.happened() {
                parts.push(start..end);
            }
            start = end;
        }
        parts
    }
}

const SECTOR: u64 = 512;
