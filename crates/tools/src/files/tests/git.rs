//! Warnings about what git does not hold, with repositories that git itself made.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::{Place, assert_says, assert_works, said};

const MODIFIED: &str = "changes that are not in git";
const UNTRACKED: &str = "untracked.";

fn git(directory: &Path, arguments: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"])
        .args(arguments)
        .current_dir(directory)
        .env_remove("GIT_DIR")
        .env_remove("GIT_INDEX_FILE")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Reads and writes a file, and gives the words of the write.
async fn written(place: &Place, path: &str) -> String {
    assert_works(&place.call("read_file", json!({ "path": path })).await);
    let outcome = place.call("write_file", json!({ "path": path, "content": "mine\n" })).await;
    assert_works(&outcome);
    said(&outcome)
}

/// Checks every state that a file can be in, in a repository that is set up by `arguments`.
async fn check(setup: &[&[&str]]) {
    let place = Place::new();
    let root = &place.workplace.workspace;
    for name in ["clean", "modified", "staged", "deep/down/clean", "deep/down/modified"] {
        place.file(name, format!("{name}\n"));
    }
    setup.iter().for_each(|arguments| git(root, arguments));
    git(root, &["add", "-A"]);
    git(root, &["commit", "-qm", "one"]);
    place.file("modified", "changed\n");
    place.file("deep/down/modified", "changed\n");
    place.file("staged", "changed and staged\n");
    git(root, &["add", "staged"]);
    // An entry with more flags, which takes another version of the index.
    place.file("intended", "new\n");
    git(root, &["add", "-N", "intended"]);
    place.file("untracked", "new\n");
    place.file("empty", "");

    for name in ["clean", "staged", "deep/down/clean", "empty"] {
        assert_eq!(written(&place, name).await, format!("Wrote {name} (5 bytes)."), "{setup:?}");
    }
    for name in ["modified", "deep/down/modified", "intended"] {
        let words = written(&place, name).await;
        assert!(words.contains(MODIFIED), "{setup:?} {name}: {words}");
    }
    let words = written(&place, "untracked").await;
    assert!(words.contains(UNTRACKED), "{setup:?}: {words}");
    // What the session wrote itself is no loss.
    let again = place.call("write_file", json!({ "path": "modified", "content": "more\n" })).await;
    assert_eq!(said(&again), "Wrote modified (5 bytes).");
}

#[tokio::test]
async fn a_loss_that_git_does_not_cover_is_told_for_every_kind_of_index() {
    check(&[&["init", "-q"]]).await;
    check(&[&["init", "-q"], &["config", "index.version", "4"]]).await;
    check(&[&["init", "-q", "--object-format=sha256"]]).await;
    check(&[&["init", "-q"], &["config", "core.autocrlf", "input"]]).await;
}

#[tokio::test]
async fn an_edit_tells_of_the_loss_too() {
    let place = Place::new();
    git(&place.workplace.workspace, &["init", "-q"]);
    place.file("a", "one\n");
    let given = json!({ "path": "a", "old": "one", "new": "1" });
    assert_says(&place.call("edit_file", given).await, UNTRACKED);
}

#[tokio::test]
async fn outside_a_repository_git_is_not_mentioned() {
    let place = Place::new();
    place.file("a", "one\n");
    assert_eq!(written(&place, "a").await, "Wrote a (5 bytes).");
}

#[tokio::test]
async fn further_working_trees_and_line_ends_of_windows_are_understood() {
    let place = Place::new();
    let root = &place.workplace.workspace;
    git(root, &["init", "-q", "main"]);
    place.file("main/a", "one\n");
    place.file("main/b", "one\n");
    git(&root.join("main"), &["add", "-A"]);
    git(&root.join("main"), &["commit", "-qm", "one"]);
    git(&root.join("main"), &["worktree", "add", "-q", "../other"]);
    fs::write(root.join("other/a"), "one\r\n").unwrap();
    fs::write(root.join("other/b"), "two\n").unwrap();
    let words = written(&place, "other/a").await;
    assert_eq!(words, "Wrote other/a (5 bytes). Its lines ended with CRLF and end with LF now.");
    assert!(written(&place, "other/b").await.contains(MODIFIED));
}

#[tokio::test]
async fn a_filtered_file_counts_as_held_when_git_takes_it_for_unchanged() {
    let place = Place::new();
    let root = &place.workplace.workspace;
    git(root, &["init", "-q"]);
    git(root, &["config", "filter.upper.clean", "tr a-z A-Z"]);
    place.file(".gitattributes", "a filter=upper\n");
    let path = place.file("a", "one\n");
    // Older than the index, so that git itself can trust the time.
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_modified(
        std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000),
    )
    .unwrap();
    drop(file);
    git(root, &["add", "-A"]);
    assert_eq!(written(&place, "a").await, "Wrote a (5 bytes).");
}

#[tokio::test]
async fn what_cannot_be_known_is_said_to_be_unknown() {
    let place = Place::new();
    let root = &place.workplace.workspace;
    git(root, &["init", "-q"]);
    place.file("a", "one\n");
    git(root, &["add", "a"]);
    place.file(".git/index", "garbage that is no index at all");
    assert!(
        written(&place, "a").await.contains("has the old content: its index is of an unknown kind")
    );

    let place = Place::new();
    let root = &place.workplace.workspace;
    git(root, &["init", "-q"]);
    place.file("a", "one\n");
    git(root, &["add", "a"]);
    git(root, &["update-index", "--split-index"]);
    place.file("b", "one\n");
    assert!(
        written(&place, "b").await.contains("has the old content: its index is split or sparse")
    );
}

#[test]
fn no_index_makes_the_reader_panic() {
    use crate::files::git_index::{Hash, entries};

    let place = Place::new();
    let root = &place.workplace.workspace;
    git(root, &["init", "-q"]);
    git(root, &["config", "index.version", "4"]);
    place.file("a/b", "one\n");
    place.file("a/c", "one\n");
    git(root, &["add", "-A"]);
    let index = fs::read(root.join(".git/index")).unwrap();
    assert!(entries(&index, Hash::Sha1, b"a/c").is_some());
    for length in 0..index.len() {
        let _ = entries(&index[..length], Hash::Sha1, b"a/c");
        for bits in [0xff, 0x80, 0x01] {
            let mut broken = index.clone();
            broken[length] ^= bits;
            let _ = entries(&broken, Hash::Sha256, b"a/c");
            let _ = entries(&broken, Hash::Sha1, b"a/c");
        }
    }
}
