//! `list`, `glob` and `grep`.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::{Place, assert_fails, assert_says, assert_works, data};

/// A repository with ignored, hidden and ordinary files, and links that go round.
fn tree() -> Place {
    let place = Place::new();
    fs::create_dir(place.path(".git")).unwrap();
    place.file(".gitignore", "/target\n*.log\n");
    place.file(".hidden/word.txt", "needle\n");
    place.file("target/word.txt", "needle\n");
    place.file("noise.log", "needle\n");
    place.file("src/word.txt", "hay\nneedle here\nhay\n");
    place.file("src/deep/word.rs", "Needle\n");
    place.file("program", b"needle\0");
    symlink("..", place.path("src/round")).unwrap();
    place
}

async fn found(place: &Place, tool: &str, arguments: Value) -> String {
    let outcome = place.call(tool, arguments).await;
    assert_works(&outcome);
    data(&outcome)
}

#[tokio::test]
async fn a_listing_is_sorted_and_leaves_out_what_is_ignored() {
    let place = tree();
    assert_eq!(found(&place, "list", json!({})).await, "program (7 bytes)\nsrc/\n");
    let deep = "program (7 bytes)\nsrc/\n  deep/\n    word.rs (7 bytes)\n  round -> ..\n  word.txt (20 bytes)\n";
    assert_eq!(found(&place, "list", json!({ "depth": 9 })).await, deep);
    assert_eq!(found(&place, "list", json!({ "path": ".hidden" })).await, "word.txt (7 bytes)\n");
    let outcome = place.call("list", json!({})).await;
    assert_says(&outcome, "5 more entries in it are hidden, ignored or closed.");
    assert_says(&place.call("list", json!({ "path": "program" })).await, "Use read_file");
    assert_fails(&place.call("list", json!({ "path": "none" })).await, "none does not exist");
}

#[tokio::test]
async fn a_long_listing_is_cut_and_says_how_much_is_left() {
    let place = Place::new();
    for number in 0..620 {
        place.file(&format!("{number:04}"), "");
    }
    let outcome = place.call("list", json!({})).await;
    assert_eq!(data(&outcome).lines().count(), 500);
    assert_says(&outcome, "620 entries. 120 entries are not shown");
}

#[tokio::test]
async fn names_are_found_newest_first_and_hidden_ones_when_named() {
    let place = tree();
    let old = fs::OpenOptions::new().write(true).open(place.path("src/word.txt")).unwrap();
    old.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(
        found(&place, "glob", json!({ "pattern": "word.*" })).await,
        "src/deep/word.rs\nsrc/word.txt\n"
    );
    assert_eq!(
        found(&place, "glob", json!({ "pattern": ".hidden/*" })).await,
        ".hidden/word.txt\n"
    );
    let absolute = place.path("src/*.txt");
    assert_eq!(found(&place, "glob", json!({ "pattern": absolute })).await, "src/word.txt\n");
    assert_eq!(
        found(&place, "glob", json!({ "pattern": "*.rs", "path": "src/deep" })).await,
        "src/deep/word.rs\n"
    );
    assert_says(&place.call("glob", json!({ "pattern": "*.c" })).await, "No files match under .");
    assert_fails(&place.call("glob", json!({ "pattern": "[" })).await, "not valid");
    assert_fails(
        &place.call("glob", json!({ "pattern": "*", "path": "program" })).await,
        "is a file",
    );
}

#[tokio::test]
async fn many_names_are_cut() {
    let place = Place::new();
    for number in 0..230 {
        place.file(&format!("{number:04}"), "");
    }
    let outcome = place.call("glob", json!({ "pattern": "*" })).await;
    assert_eq!(data(&outcome).lines().count(), 200);
    assert_says(&outcome, "230 files, newest first. 30 are not shown");
}

#[tokio::test]
async fn contents_are_found_without_ignored_hidden_and_binary_files() {
    let place = tree();
    let grep = |arguments| found(&place, "grep", arguments);
    assert_eq!(grep(json!({ "pattern": "needle" })).await, "src/word.txt\n2:needle here\n");
    assert_eq!(
        grep(json!({ "pattern": "^needle", "ignore_case": true, "files_only": true })).await,
        "src/deep/word.rs: 1\nsrc/word.txt: 1\n"
    );
    assert_eq!(
        grep(json!({ "pattern": "needle", "context": 1 })).await,
        "src/word.txt\n1-hay\n2:needle here\n3-hay\n"
    );
    assert_eq!(
        grep(json!({ "pattern": "eedle", "glob": "*.rs" })).await,
        "src/deep/word.rs\n1:Needle\n"
    );
    assert_eq!(
        grep(json!({ "pattern": "needle", "glob": ".hidden/*" })).await,
        ".hidden/word.txt\n1:needle\n"
    );
    // A file that is named is searched, whatever the rules say.
    assert_eq!(grep(json!({ "pattern": "n", "path": "noise.log" })).await, "noise.log\n1:needle\n");
    assert_eq!(grep(json!({ "pattern": "n", "path": "program" })).await, "");
    assert_fails(
        &place.call("grep", json!({ "pattern": "(" })).await,
        "not a valid regular expression",
    );
    assert_fails(
        &place.call("grep", json!({ "pattern": "a\nb" })).await,
        "not a valid regular expression",
    );
}

#[tokio::test]
async fn the_end_of_a_line_is_found_with_either_line_end() {
    let place = Place::new();
    place.file("windows", "needle\r\nneedle \r\n");
    place.file("unix", "needle\nneedle ");
    assert_eq!(
        found(&place, "grep", json!({ "pattern": "needle$" })).await,
        "unix\n1:needle\nwindows\n1:needle\n"
    );
}

#[tokio::test]
async fn rules_for_all_programs_hold_outside_a_repository() {
    let place = Place::new();
    place.file(".ignore", "skipped\n");
    place.file("skipped", "needle\n");
    place.file("kept", "needle\n");
    assert_eq!(found(&place, "grep", json!({ "pattern": "needle" })).await, "kept\n1:needle\n");
}

#[tokio::test]
async fn matches_are_cut_in_number_and_in_length() {
    let place = Place::new();
    place.file("many", "needle\n".repeat(5_000));
    let outcome = place.call("grep", json!({ "pattern": "needle" })).await;
    assert_eq!(data(&outcome).lines().count(), 201);
    assert_says(&outcome, "Stopped after 200 matching lines");
    let count = place.call("grep", json!({ "pattern": "needle", "files_only": true })).await;
    assert_eq!(data(&count), "many: 5000\n");

    place.file("many", format!("needle{}\n", "x".repeat(100_000)).repeat(3_000));
    let outcome = place.call("grep", json!({ "pattern": "needle" })).await;
    assert!(data(&outcome).len() < (32 << 10) + 1_000);
    assert_says(&outcome, "there may be more");

    place.file("many", format!("needle {}", "x".repeat(20 << 20)));
    let outcome = place.call("grep", json!({ "pattern": "needle" })).await;
    assert_says(&outcome, "No matches. 1 file could not be searched, including many.");
}

#[test]
fn a_search_over_a_big_tree_stops_when_it_is_dropped() {
    let place = Place::new();
    // Forty gibibytes to search, in the place of eight mebibytes.
    let first = place.file("0/0", "hay hay hay hay hay hay hay hay\n".repeat(1 << 18));
    for number in 1..5_000 {
        let path = place.path(&format!("{}/{number}", number % 50));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::hard_link(&first, path).unwrap();
    }
    // The one blocking thread is free for the next task when the search has stopped.
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let call = place.call("grep", json!({ "pattern": "needle" }));
        assert!(tokio::time::timeout(Duration::from_millis(50), call).await.is_err());
        let next = tokio::task::spawn_blocking(|| ());
        tokio::time::timeout(Duration::from_secs(2), next).await.unwrap().unwrap();
    });
}
