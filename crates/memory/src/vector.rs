//! Phase vectors: words and facts as 1024 angles, compared by the mean cosine of their differences.
//!
//! A word is an *atom*, angles that follow from its letters alone, so that every implementation has
//! the same ones. Two vectors are *bound* by adding their angles, which hides both and can be undone
//! by *unbinding*; a *bundle* is the angle of the sum of vectors on the unit circle, similar to each
//! of them. Vectors of unrelated words have a similarity around 0, within about 1/√1024.
//!
//! A fact is the bundle of its text, bound to [`ROLE_CONTENT`], and of each of its entities, bound to
//! [`ROLE_ENTITY`]. So the similarity of a fact with `bind(atom("ada"), ROLE_ENTITY)` says whether
//! the fact is about Ada, which is not the same as having the word.

mod compact;
mod wide;

use std::f64::consts::TAU;

use sha2::{Digest, Sha256};

pub use compact::{Compact, compact_error_bound};

/// How many angles a vector has.
pub const DIMENSION: usize = 1024;

/// The word of the atom that a fact's text is bound to. Reserved words are written in capitals;
/// tokens and names of entities are not, so no text can collide with them.
pub const ROLE_CONTENT: &str = "ROLE_CONTENT";
/// The word of the atom that a fact's entities are bound to.
pub const ROLE_ENTITY: &str = "ROLE_ENTITY";
/// The word of the atom that stands for a text without tokens.
pub const EMPTY: &str = "EMPTY";

/// Angles, each in [0, 2π).
#[derive(Clone, Debug, PartialEq)]
pub struct Vector(Box<[f64; DIMENSION]>);

impl Vector {
    /// A vector of these angles, each brought into [0, 2π).
    pub fn new(angles: &[f64; DIMENSION]) -> Self {
        Self(Box::new(angles.map(wrapped)))
    }

    /// The angles.
    pub fn angles(&self) -> &[f64; DIMENSION] {
        &self.0
    }
}

/// The vector of a word: the SHA-256 of `word:0`, `word:1`, …, read as little-endian numbers of 16
/// bits, each times 2π/65536.
pub fn atom(word: &str) -> Vector {
    let mut angles = Box::new([0.0; DIMENSION]);
    let mut block = format!("{word}:");
    let length = block.len();
    for (index, part) in angles.chunks_exact_mut(16).enumerate() {
        block.truncate(length);
        block.push_str(&index.to_string());
        let digest = Sha256::digest(block.as_bytes());
        for (angle, bytes) in part.iter_mut().zip(digest.chunks_exact(2)) {
            *angle = f64::from(u16::from_le_bytes([bytes[0], bytes[1]])) * (TAU / 65536.0);
        }
    }
    Vector(angles)
}

/// Both as one, similar to neither.
pub fn bind(one: &Vector, other: &Vector) -> Vector {
    combined(one, other, |one, other| one + other)
}

/// What was bound with `key` to make `bound`.
pub fn unbind(bound: &Vector, key: &Vector) -> Vector {
    combined(bound, key, |bound, key| bound - key)
}

/// The vector that is similar to each of `parts`. Of none it is the zero vector.
pub fn bundle<'a>(parts: impl IntoIterator<Item = &'a Vector>) -> Vector {
    let mut sums = Box::new([(0.0, 0.0); DIMENSION]);
    for part in parts {
        for (sum, angle) in sums.iter_mut().zip(part.angles()) {
            let (sine, cosine) = angle.sin_cos();
            sum.0 += cosine;
            sum.1 += sine;
        }
    }
    let mut angles = Box::new([0.0; DIMENSION]);
    for (angle, (real, imaginary)) in angles.iter_mut().zip(sums.iter()) {
        *angle = wrapped(imaginary.atan2(*real));
    }
    Vector(angles)
}

/// How alike two vectors are: 1 for the same, around 0 for unrelated ones, −1 for opposites.
pub fn similarity(one: &Vector, other: &Vector) -> f64 {
    let sum: f64 =
        one.angles().iter().zip(other.angles()).map(|(one, other)| (one - other).cos()).sum();
    sum / DIMENSION as f64
}

/// The vector of a text: the bundle of its tokens' atoms.
pub fn text(text: &str) -> Vector {
    let atoms: Vec<Vector> = crate::words::tokens(text).iter().map(|token| atom(token)).collect();
    if atoms.is_empty() { atom(EMPTY) } else { bundle(&atoms) }
}

/// The vector of a text in the place of a fact's content.
pub fn content(words: &str) -> Vector {
    bind(&text(words), &atom(ROLE_CONTENT))
}

/// The vector of an entity in the place of a fact's entity.
pub fn entity(name: &str) -> Vector {
    bind(&atom(&crate::entities::folded(name)), &atom(ROLE_ENTITY))
}

/// The vector of a fact: its content and its entities.
pub fn fact<'a>(words: &str, entities: impl IntoIterator<Item = &'a str>) -> Vector {
    let mut parts = vec![content(words)];
    parts.extend(entities.into_iter().map(entity));
    bundle(&parts)
}

fn combined(one: &Vector, other: &Vector, with: impl Fn(f64, f64) -> f64) -> Vector {
    let mut angles = Box::new([0.0; DIMENSION]);
    for ((angle, one), other) in angles.iter_mut().zip(one.angles()).zip(other.angles()) {
        *angle = wrapped(with(*one, *other));
    }
    Vector(angles)
}

/// The angle in [0, 2π): what is barely below zero would be rounded up to 2π itself.
fn wrapped(angle: f64) -> f64 {
    let angle = angle.rem_euclid(TAU);
    if angle < TAU { angle } else { 0.0 }
}
