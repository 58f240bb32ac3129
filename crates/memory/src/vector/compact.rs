//! Vectors as they are stored: a byte an angle.

use std::f64::consts::TAU;

use super::wide;
use super::{DIMENSION, Vector};

/// A vector in 1024 bytes, each angle rounded to a 256th of the circle.
#[derive(Clone, PartialEq, Eq)]
pub struct Compact(Box<[u8; DIMENSION]>);

/// How far a similarity of two compact vectors can be from that of the vectors they were made of:
/// each angle is off by half a step at most, so each difference by one. The usual error is a
/// hundredth of this, because the roundings of 1024 angles cancel out.
pub fn compact_error_bound() -> f64 {
    TAU / 256.0
}

impl Compact {
    /// The compact form of a vector.
    pub fn of(vector: &Vector) -> Self {
        let mut steps = Box::new([0; DIMENSION]);
        for (step, angle) in steps.iter_mut().zip(vector.angles()) {
            // An angle in the last half step belongs to zero: a circle has 256 steps.
            *step = ((angle * (256.0 / TAU)).round() as u16 % 256) as u8;
        }
        Self(steps)
    }

    /// The vector whose stored bytes these are, if it is one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let steps: &[u8; DIMENSION] = bytes.try_into().ok()?;
        Some(Self(Box::new(*steps)))
    }

    /// The bytes to store.
    pub fn bytes(&self) -> &[u8; DIMENSION] {
        &self.0
    }

    /// The rounded angles as a vector.
    pub fn vector(&self) -> Vector {
        Vector::new(&self.0.map(|step| f64::from(step) * (TAU / 256.0)))
    }

    /// How alike two vectors are, as [`similarity`](super::similarity) says it.
    pub fn similarity(&self, other: &Self) -> f64 {
        f64::from(wide::similarity(&self.0, &other.0))
    }

    /// The same with the stored bytes of a vector, if they are one.
    pub fn similarity_to(&self, bytes: &[u8]) -> Option<f64> {
        let other: &[u8; DIMENSION] = bytes.try_into().ok()?;
        Some(f64::from(wide::similarity(&self.0, other)))
    }
}

impl std::fmt::Debug for Compact {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Compact({:?}…)", &self.0[..4])
    }
}
