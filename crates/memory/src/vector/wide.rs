//! Compares compact vectors, many angles with one instruction.
//!
//! The loop has no branch and no table, so that the compiler makes vector instructions of it: those
//! that every processor of an architecture has, and wider ones where this processor has them.

use super::DIMENSION;

/// Sums side by side: as many as the widest registers hold, in the same order on every processor.
const LANES: usize = 16;

/// The mean cosine of the differences.
pub(super) fn similarity(one: &[u8; DIMENSION], other: &[u8; DIMENSION]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "the wide instructions are used only where they exist")]
        // SAFETY: the processor has AVX2, which was asked on the line before.
        return unsafe { with_avx2(one, other) };
    }
    lanes(one, other)
}

/// The same loop, compiled for processors with AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2(one: &[u8; DIMENSION], other: &[u8; DIMENSION]) -> f32 {
    lanes(one, other)
}

/// cos x = 1 − 2 sin²(x/2), and half a difference is within ±π/2, where a short series of the sine
/// is right to five digits and more, far beyond what the bytes say.
#[inline(always)]
fn lanes(one: &[u8; DIMENSION], other: &[u8; DIMENSION]) -> f32 {
    let mut sums = [0.0_f32; LANES];
    for (one, other) in one.chunks_exact(LANES).zip(other.chunks_exact(LANES)) {
        for ((sum, one), other) in sums.iter_mut().zip(one).zip(other) {
            let half =
                f32::from(one.wrapping_sub(*other).cast_signed()) * (std::f32::consts::PI / 256.0);
            let square = half * half;
            let series = 1.0 / 5040.0 - square * (1.0 / 362_880.0 - square / 39_916_800.0);
            let series = 1.0 / 6.0 - square * (1.0 / 120.0 - square * series);
            let sine = half * (1.0 - square * series);
            *sum += sine * sine;
        }
    }
    let sum: f32 = sums.iter().sum();
    1.0 - 2.0 * sum / DIMENSION as f32
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;

    /// Bytes that look random and are the same in every run.
    fn bytes(seed: u64) -> [u8; DIMENSION] {
        let mut state = seed;
        std::array::from_fn(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
    }

    fn by_the_book(one: &[u8; DIMENSION], other: &[u8; DIMENSION]) -> f64 {
        let differences =
            one.iter().zip(other).map(|(one, other)| f64::from(*one) - f64::from(*other));
        differences.map(|steps| (steps * (TAU / 256.0)).cos()).sum::<f64>() / DIMENSION as f64
    }

    #[test]
    fn the_wide_loop_agrees_with_the_library_s_cosine() {
        for seed in 0..64 {
            let (one, mut other) = (bytes(seed), bytes(seed + 1000));
            // From the same to unrelated.
            let same = DIMENSION * usize::try_from(seed).unwrap() / 64;
            other[..same].copy_from_slice(&one[..same]);
            let difference =
                (f64::from(similarity(&one, &other)) - by_the_book(&one, &other)).abs();
            assert!(difference < 1e-5, "{difference}");
        }
    }

    #[test]
    fn every_difference_of_two_steps_is_compared_rightly() {
        for steps in 0..=255 {
            let (one, other) = ([steps; DIMENSION], [0; DIMENSION]);
            let difference =
                (f64::from(similarity(&one, &other)) - by_the_book(&one, &other)).abs();
            assert!(difference < 1e-5, "{steps}: {difference}");
        }
    }

    #[test]
    fn wide_and_plain_instructions_answer_the_same_bits() {
        for seed in 0..64 {
            let (one, other) = (bytes(seed), bytes(seed + 1000));
            assert_eq!(similarity(&one, &other).to_bits(), lanes(&one, &other).to_bits());
        }
    }
}
