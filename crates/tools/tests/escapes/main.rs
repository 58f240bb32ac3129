//! Attempts to escape from the sandbox, by real children of a real keeper, as root and as an ordinary user.
//!
//! Nothing is said about how an attempt fails. What counts is what is seen from outside: after each one the
//! user's files, and somebody who runs outside, are as they were, and nothing that is secret was told.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests: a panic is their error, and they stand outside the product's seams"
)]

mod attempts;
mod races;
mod scene;

use mainstay_testkit::capability::Capability;
use mainstay_tools::sandbox::{NetworkWay, ProcessWay, Support};

use crate::attempts::{ABOUT_FILES, Attempt, TABLES};
use crate::scene::{Scene, users};

/// Whether this kernel can hold everything that is tried.
fn is_held() -> bool {
    let support = Support::of_kernel();
    Capability::Landlock.require(support.landlock >= 6)
        && Capability::NetworkNamespace.require(support.network == NetworkWay::Namespace)
        && Capability::ProcessNamespace.require(ProcessWay::of_kernel() == ProcessWay::Namespace)
}

fn all() -> impl Iterator<Item = &'static Attempt> {
    TABLES.iter().copied().flatten()
}

#[test]
fn there_are_two_hundred_attempts_and_no_two_of_a_name() {
    let mut names: Vec<&str> = all().map(|attempt| attempt.name).collect();
    assert!(names.len() >= 200, "{}", names.len());
    names.sort_unstable();
    let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

#[test]
fn slow_no_attempt_changes_reads_or_tells_anything_outside() {
    if !is_held() {
        return;
    }
    for user in users() {
        let mut scene = Scene::new(user);
        let before = scene.outside();
        for attempt in all() {
            let told = scene.run(attempt).expect("the agent answers");
            assert!(!told.contains("SECRET-"), "{user:?}: {}: {told}", attempt.name);
            let after = scene.outside();
            assert_eq!(before, after, "{user:?}: {}: {told}", attempt.name);
        }
        assert_eq!(scene.leaks(), Vec::<String>::new(), "{user:?}");
    }
}

/// A test in which nothing is tried proves nothing: without a sandbox most attempts on files do what they
/// are named for. Each third is made, by an ordinary user, who cannot harm the machine.
#[test]
fn slow_most_attempts_on_files_succeed_where_there_is_no_sandbox() {
    let Some(user) = users().into_iter().flatten().next() else { return };
    let mut harmful = Vec::new();
    let mut harmless = Vec::new();
    let mut scene = Scene::open(Some(user));
    let attempts = ABOUT_FILES.iter().copied().flatten();
    for attempt in attempts.filter(|attempt| !attempt.is_for_root()).step_by(3) {
        let before = scene.try_outside();
        let told = scene.run(attempt);
        let has_worked = told.is_none_or(|told| told.contains("SECRET-"))
            || scene.try_outside().as_ref() != before.as_ref();
        if has_worked { &mut harmful } else { &mut harmless }.push(attempt.name);
        if has_worked && !scene.is_restored(before.as_ref()) {
            scene = Scene::open(Some(user));
        }
    }
    let (worked, failed) = (harmful.len(), harmless.len());
    assert!(worked >= 45, "{worked} worked, {failed} did not: {harmless:?}");
}
