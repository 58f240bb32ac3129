//! The maths against vectors that another implementation made (`make.py`), and what compactness
//! costs.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's error is a panic")]

use std::f64::consts::TAU;

use mainstay_memory::vector::{
    self, Compact, DIMENSION, ROLE_CONTENT, ROLE_ENTITY, Vector, atom, bind, bundle, similarity,
    unbind,
};
use serde_json::Value;

const SENTENCE: &str = "Ada Lovelace wrote the first program, for a machine that was never built.";
const OTHER: &str = "The first program was written by Ada Lovelace!";
const EXACT: f64 = 1e-12;

fn made_elsewhere() -> Value {
    serde_json::from_str(include_str!("vectors.json")).unwrap()
}

fn fact() -> Vector {
    vector::fact(SENTENCE, ["Ada Lovelace", "Analytical  Engine"])
}

/// The way from one angle to another, the shorter one.
fn distance(one: f64, other: f64) -> f64 {
    let distance = (one - other).rem_euclid(TAU);
    distance.min(TAU - distance)
}

#[test]
fn vectors_are_those_of_another_implementation() {
    let cases = [
        ("atom ada", atom("ada")),
        ("atom größe", atom("größe")),
        ("bind ada rust", bind(&atom("ada"), &atom("rust"))),
        ("unbind ada rust", unbind(&atom("ada"), &atom("rust"))),
        ("bundle ada rust sea", bundle(&[atom("ada"), atom("rust"), atom("sea")])),
        ("text", vector::text(SENTENCE)),
        ("text of nothing", vector::text(" … - ")),
        ("fact", fact()),
    ];
    let made = made_elsewhere();
    let made = made["vectors"].as_object().unwrap();
    assert_eq!(made.len(), cases.len());
    for (name, vector) in cases {
        let expected = made[name].as_array().unwrap();
        assert_eq!(expected.len(), DIMENSION);
        for (at, (angle, expected)) in vector.angles().iter().zip(expected).enumerate() {
            assert!((0.0..TAU).contains(angle), "{name} {at}: {angle}");
            let off = distance(*angle, expected.as_f64().unwrap());
            assert!(off < EXACT, "{name} {at}: {angle} and {expected}");
        }
    }
}

#[test]
fn similarities_are_those_of_another_implementation() {
    let cases = [
        ("ada ada", similarity(&atom("ada"), &atom("ada"))),
        ("ada rust", similarity(&atom("ada"), &atom("rust"))),
        ("ada bundle", similarity(&atom("ada"), &bundle(&["ada", "rust", "sea"].map(atom)))),
        ("text other", similarity(&vector::text(SENTENCE), &vector::text(OTHER))),
        ("fact entity", similarity(&fact(), &vector::entity("Ada  LOVELACE"))),
        ("fact content", similarity(&fact(), &vector::content(SENTENCE))),
        ("fact stranger", similarity(&fact(), &vector::entity("Grace Hopper"))),
    ];
    let made = made_elsewhere();
    let made = made["similarities"].as_object().unwrap();
    assert_eq!(made.len(), cases.len());
    for (name, similarity) in cases {
        let expected = made[name].as_f64().unwrap();
        assert!((similarity - expected).abs() < EXACT, "{name}: {similarity} and {expected}");
    }
}

#[test]
fn what_is_bound_comes_back_and_is_hidden_meanwhile() {
    let (word, key) = (atom("ada"), atom("key"));
    let bound = bind(&word, &key);
    assert!((similarity(&unbind(&bound, &key), &word) - 1.0).abs() < EXACT);
    assert!(similarity(&bound, &word).abs() < 0.1);
    assert!(similarity(&bound, &key).abs() < 0.1);
}

#[test]
fn a_bundle_of_one_is_that_one_and_of_none_is_zero() {
    let word = atom("ada");
    let alone = bundle([&word]);
    for (one, other) in word.angles().iter().zip(alone.angles()) {
        assert!(distance(*one, *other) < EXACT);
    }
    assert_eq!(bundle([]).angles(), &[0.0; DIMENSION]);
}

#[test]
fn angles_are_below_a_whole_turn_however_little_is_below_zero() {
    let tiny = Vector::new(&[-1e-20; DIMENSION]);
    assert_eq!(tiny.angles(), &[0.0; DIMENSION]);
    assert_eq!(Compact::of(&Vector::new(&[TAU - 1e-9; DIMENSION])).bytes(), &[0; DIMENSION]);
}

/// The role is what tells them apart, so a fact's vector holds an entity only where it is one.
#[test]
fn a_fact_holds_its_entities_and_its_words_in_different_roles() {
    let about = vector::fact("she wrote a program", ["Ada"]);
    let says = vector::fact("ada", []);
    let (as_entity, as_word) = (vector::entity("Ada"), vector::content("ada"));
    assert!(similarity(&about, &as_entity) > 0.5);
    assert!(similarity(&about, &as_word).abs() < 0.1);
    assert!(similarity(&says, &as_word) > 0.9);
    assert!(similarity(&says, &as_entity).abs() < 0.1);
    assert_ne!(atom(ROLE_CONTENT), atom(ROLE_ENTITY));
}

/// What is left when an entity and its role are unbound from a fact's vector is near zero angles
/// where the fact holds the entity. It is not near the fact's content, with or without the entity:
/// a bundle holds both side by side, not one bound to the other.
#[test]
fn an_unbound_entity_leaves_nothing_and_not_the_content() {
    let words = "she wrote the first program";
    let zero = Vector::new(&[0.0; DIMENSION]);
    let content = vector::content(words);
    for (names, holds) in [(["Ada Lovelace"], true), (["Grace Hopper"], false)] {
        let rest = unbind(&vector::fact(words, names), &vector::entity("Ada Lovelace"));
        assert_eq!(similarity(&rest, &zero) > 0.5, holds);
        assert!(similarity(&rest, &content).abs() < 0.1);
    }
}

#[test]
fn a_byte_an_angle_hardly_changes_a_similarity() {
    let words: Vec<String> = (0..60).map(|number| format!("word{number}")).collect();
    let texts: Vec<Vector> =
        (0..50).map(|start| vector::text(&words[start..start + 10].join(" "))).collect();
    let compact: Vec<Compact> = texts.iter().map(Compact::of).collect();
    let (mut worst, mut sum, mut pairs) = (0.0_f64, 0.0, 0.0);
    for (one, small) in texts.iter().zip(&compact) {
        for (other, other_small) in texts.iter().zip(&compact) {
            let off = (similarity(one, other) - small.similarity(other_small)).abs();
            worst = worst.max(off);
            sum += off;
            pairs += 1.0;
        }
    }
    println!(
        "worst {worst:.6}, mean {:.6}, bound {:.6}",
        sum / pairs,
        vector::compact_error_bound()
    );
    assert!(worst < vector::compact_error_bound());
    // What is met in practice.
    assert!(worst < 0.001, "{worst}");
}

#[test]
fn a_compact_vector_reads_back_from_its_bytes_and_from_no_others() {
    let compact = Compact::of(&fact());
    assert_eq!(Compact::from_bytes(compact.bytes()), Some(compact.clone()));
    assert_eq!(Compact::from_bytes(&compact.bytes()[1..]), None);
    assert_eq!(Compact::of(&compact.vector()), compact);
}
