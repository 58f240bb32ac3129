//! `edit_file`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use super::{Place, assert_fails, assert_says, assert_works, data};
use crate::files::text::hash;
use crate::{Fact, Outcome, Settled};

fn arguments(path: &str, old: &str, new: &str) -> Value {
    json!({ "path": path, "old": old, "new": new })
}

async fn edit(place: &Place, path: &str, old: &str, new: &str) -> Outcome {
    place.call("edit_file", arguments(path, old, new)).await
}

#[tokio::test]
async fn an_edit_shows_its_change_and_keeps_mode_and_link() {
    let place = Place::new();
    let path = place.file("a", "one\ntwo\nthree\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("a", place.path("link")).unwrap();
    let outcome = edit(&place, "link", "two", "2").await;
    assert_works(&outcome);
    assert_eq!(data(&outcome), "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n");
    assert_eq!(place.content("a"), "one\n2\nthree\n");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(fs::symlink_metadata(place.path("link")).unwrap().is_symlink());
    let expected = Fact::File {
        path: path.to_str().unwrap().to_owned(),
        hash: hash(b"one\n2\nthree\n"),
        changed: true,
    };
    assert_eq!(outcome.facts, [expected]);
}

#[tokio::test]
async fn an_edit_that_does_not_fit_changes_nothing_and_helps() {
    let place = Place::new();
    place.file("a", "let total = 1;\nx\nx\n");
    let miss = edit(&place, "a", "let totl = 1;", "y").await;
    assert_fails(&miss, "most like it is line 1");
    assert_eq!(data(&miss), "1\tlet total = 1;\n");
    assert_fails(&edit(&place, "a", "x", "y").await, "2 times, in lines 2, 3");
    for given in [
        json!({ "path": "a" }),
        json!({ "path": "a", "old": "x" }),
        json!({ "path": "a", "old": "x", "new": "y", "patch": "@@" }),
    ] {
        assert_fails(&place.call("edit_file", given).await, "Give either");
    }
    assert_fails(&edit(&place, "none", "x", "y").await, "does not exist");
    assert_eq!(place.content("a"), "let total = 1;\nx\nx\n");
    let all = json!({ "path": "a", "old": "x", "new": "y", "all": true });
    assert_works(&place.call("edit_file", all).await);
    assert_eq!(place.content("a"), "let total = 1;\ny\ny\n");
}

#[tokio::test]
async fn a_byte_order_mark_stays_and_a_binary_file_is_refused() {
    let place = Place::new();
    place.file("a", "\u{FEFF}one\r\ntwo\r\n");
    assert_works(&edit(&place, "a", "one\ntwo", "1\n2").await);
    assert_eq!(place.content("a"), "\u{FEFF}1\r\n2\r\n");
    let patch = json!({ "path": "a", "patch": "@@ -1,2 +1,2 @@\n-1\n+x\n 2\n" });
    assert_works(&place.call("edit_file", patch).await);
    assert_eq!(place.content("a"), "\u{FEFF}x\r\n2\r\n");
    place.file("b", b"a\0b");
    assert_fails(&edit(&place, "b", "a", "c").await, "binary");
}

#[tokio::test]
async fn a_file_that_is_too_big_is_not_edited() {
    let place = Place::new();
    place.file("a", format!("one\n{}", "x".repeat(16 << 20)));
    assert_fails(&edit(&place, "a", "one", "1").await, "too large to edit (16 MiB)");
}

#[tokio::test]
async fn an_edit_of_a_file_that_somebody_changed_is_made_and_told() {
    let place = Place::new();
    place.file("a", "one\n");
    assert_works(&place.call("read_file", json!({ "path": "a" })).await);
    place.file("a", "one\ntheirs\n");
    let outcome = edit(&place, "a", "one", "1").await;
    assert_works(&outcome);
    assert_says(&outcome, "changed on disk since you last");
    assert_eq!(place.content("a"), "1\ntheirs\n");
}

#[tokio::test]
async fn the_plan_names_the_file_before_and_after() {
    let place = Place::new();
    let path = place.file("a", "one\n");
    let plan = place.plan("edit_file", &arguments("a", "one", "1")).await.unwrap();
    let expected =
        json!({ "path": path.to_str().unwrap(), "before": hash(b"one\n"), "after": hash(b"1\n") });
    assert_eq!(plan, expected);
    assert_eq!(place.content("a"), "one\n");
    assert_eq!(place.plan("edit_file", &arguments("a", "two", "2")).await, None);
}

#[tokio::test]
async fn an_interrupted_edit_is_settled_by_what_is_in_the_file() {
    let place = Place::new();
    place.file("a", "one\n");
    let given = arguments("a", "one", "1");
    let plan = place.plan("edit_file", &given).await;
    // It is as it was before.
    assert_eq!(place.settle("edit_file", &given, plan.as_ref()).await, Settled::NotStarted);
    // It is as it should be after.
    assert_works(&place.run("edit_file", &given, plan.as_ref()).await);
    let Settled::Done(outcome) = place.settle("edit_file", &given, plan.as_ref()).await else {
        panic!("an edit that was made is not known as such");
    };
    assert_works(&outcome);
    assert_eq!(outcome.facts.len(), 1);
    // It is neither.
    place.file("a", "theirs\n");
    let settled = place.settle("edit_file", &given, plan.as_ref()).await;
    assert!(
        matches!(&settled, Settled::Unknown(words) if words.contains("neither")),
        "{settled:?}"
    );
    // It is gone.
    fs::remove_file(place.path("a")).unwrap();
    let settled = place.settle("edit_file", &given, plan.as_ref()).await;
    assert!(
        matches!(&settled, Settled::Unknown(words) if words.contains("no longer exists")),
        "{settled:?}"
    );
    // There was no plan, because the edit did not fit.
    let settled = place.settle("edit_file", &given, None).await;
    assert!(
        matches!(&settled, Settled::Unknown(words) if words.contains("did not fit")),
        "{settled:?}"
    );
}

#[tokio::test]
async fn an_edit_is_made_in_what_is_there_now_while_what_it_replaces_is_there_once() {
    let place = Place::new();
    place.file("a", "one\n");
    let given = arguments("a", "one", "1");
    let plan = place.plan("edit_file", &given).await;
    place.file("a", "one\ntheirs\n");
    assert_works(&place.run("edit_file", &given, plan.as_ref()).await);
    assert_eq!(place.content("a"), "1\ntheirs\n");
    place.file("a", "one\none\n");
    assert_fails(&place.run("edit_file", &given, plan.as_ref()).await, "2 times");
    place.file("a", "theirs\n");
    assert_fails(&place.run("edit_file", &given, plan.as_ref()).await, "a is unchanged");
    assert_eq!(place.content("a"), "theirs\n");
}

#[tokio::test]
async fn an_interrupted_edit_of_what_somebody_changed_is_made_again_only_if_it_was_not() {
    let place = Place::new();
    place.file("a", "one\n");
    // It would not fit again after it was made, so it was not made.
    let given = arguments("a", "one", "1");
    let plan = place.plan("edit_file", &given).await;
    place.file("a", "one\ntheirs\n");
    assert_eq!(place.settle("edit_file", &given, plan.as_ref()).await, Settled::NotStarted);
    // It would fit again, so nobody can tell.
    let given = arguments("a", "one", "one more");
    let settled = place.settle("edit_file", &given, plan.as_ref()).await;
    assert!(matches!(&settled, Settled::Unknown(_)), "{settled:?}");
}

#[tokio::test]
async fn a_file_that_somebody_writes_in_place_is_waited_for_and_then_left_alone() {
    let place = Place::new();
    let path = place.file("a", "one\n");
    let writer = fs::OpenOptions::new().append(true).open(&path).unwrap();
    assert_fails(&edit(&place, "a", "one", "1").await, "open for writing");
    let late = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        std::io::Write::write_all(&mut &writer, b"theirs\n").unwrap();
    });
    assert_works(&edit(&place, "a", "one", "1").await);
    late.join().unwrap();
    assert_eq!(place.content("a"), "1\ntheirs\n");
}

#[tokio::test]
async fn edits_of_one_file_at_the_same_time_all_happen() {
    let place = std::sync::Arc::new(Place::new());
    let lines: String = (0..16).map(|line| format!("line {line:02}\n")).collect();
    place.file("a", lines);
    let mut edits = tokio::task::JoinSet::new();
    for line in 0..16 {
        let place = place.clone();
        edits.spawn(async move {
            let given = arguments("a", &format!("line {line:02}"), &format!("LINE {line:02}"));
            place.run("edit_file", &given, None).await
        });
    }
    edits.join_all().await.iter().for_each(assert_works);
    let expected: String = (0..16).map(|line| format!("LINE {line:02}\n")).collect();
    assert_eq!(place.content("a"), expected);
}
