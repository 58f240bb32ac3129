//! `write_file`.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use serde_json::{Value, json};

use super::{Place, assert_fails, assert_says, assert_works, said, tool};
use crate::files::text::hash;
use crate::{Action, Fact, Invocation, Outcome, Seen, Workplace};

fn arguments(path: &str, content: &str) -> Value {
    json!({ "path": path, "content": content })
}

async fn write(place: &Place, path: &str, content: &str) -> Outcome {
    place.call("write_file", arguments(path, content)).await
}

async fn read(place: &Place, path: &str) {
    assert_works(&place.call("read_file", json!({ "path": path })).await);
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[tokio::test]
async fn a_new_file_has_the_mode_that_users_expect_and_gets_its_directories() {
    let place = Place::new();
    let outcome = write(&place, "a/b/c.txt", "hello\n").await;
    assert_works(&outcome);
    assert_eq!(said(&outcome), "Created a/b/c.txt (6 bytes).");
    assert_eq!(place.content("a/b/c.txt"), "hello\n");
    // The kernel applies the same mask to these.
    fs::write(place.path("plain"), "").unwrap();
    fs::create_dir(place.path("directory")).unwrap();
    assert_eq!(mode(&place.path("a/b/c.txt")), mode(&place.path("plain")));
    assert_eq!(mode(&place.path("a/b")), mode(&place.path("directory")));
    let Fact::File { hash: noted, changed, .. } = &outcome.facts[0] else { panic!("{outcome:?}") };
    assert_eq!((noted, *changed), (&hash(b"hello\n"), true));
}

#[tokio::test]
async fn mode_and_symbolic_link_stay() {
    let place = Place::new();
    let path = place.file("script", "old\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    symlink("script", place.path("link")).unwrap();
    symlink("not-yet", place.path("dangling")).unwrap();
    assert_works(&write(&place, "link", "new\n").await);
    assert_works(&write(&place, "dangling", "new\n").await);
    assert!(fs::symlink_metadata(place.path("link")).unwrap().is_symlink());
    assert!(fs::symlink_metadata(place.path("dangling")).unwrap().is_symlink());
    assert_eq!(mode(&path), 0o751);
    assert_eq!(
        (place.content("script"), place.content("not-yet")),
        ("new\n".into(), "new\n".into())
    );
}

#[tokio::test]
async fn of_a_file_with_two_names_only_the_written_one_changes_and_that_is_said() {
    let place = Place::new();
    let path = place.file("one", "old\n");
    fs::hard_link(&path, place.path("two")).unwrap();
    read(&place, "one").await;
    assert_says(&write(&place, "one", "new\n").await, "had 2 names (hard links)");
    assert_eq!((place.content("one"), place.content("two")), ("new\n".into(), "old\n".into()));
    assert_eq!(fs::metadata(&path).unwrap().nlink(), 1);
}

#[tokio::test]
async fn a_file_that_was_not_read_is_replaced_with_a_warning() {
    let place = Place::new();
    place.file("a", "old\n");
    assert_says(&write(&place, "a", "new\n").await, "had not been read in this session");
    // The session wrote it itself, so it knows it now.
    assert_eq!(said(&write(&place, "a", "newer\n").await), "Wrote a (6 bytes).");
    place.file("b", "old\n");
    read(&place, "b").await;
    assert_eq!(said(&write(&place, "b", "new\n").await), "Wrote b (4 bytes).");
}

#[tokio::test]
async fn a_file_that_somebody_else_changed_is_left_alone_until_it_is_read_again() {
    let place = Place::new();
    place.file("a", "old\n");
    read(&place, "a").await;
    place.file("a", "theirs\n");
    let refused = write(&place, "a", "mine\n").await;
    assert_fails(&refused, "changed on disk since you last");
    assert_eq!(refused.facts, []);
    assert_eq!(place.content("a"), "theirs\n");
    read(&place, "a").await;
    assert_works(&write(&place, "a", "mine\n").await);
    // What the session wrote counts like what it read.
    place.file("a", "theirs again\n");
    assert_fails(&write(&place, "a", "mine again\n").await, "changed on disk since you last");
}

#[tokio::test]
async fn facts_stand_in_for_the_session_after_a_restart() {
    let place = Place::new();
    place.file("a", "old\n");
    let outcome = place.call("read_file", json!({ "path": "a" })).await;
    let seen = Seen::default();
    outcome.facts.iter().for_each(|fact| seen.note(fact));
    let workplace = Workplace { seen, ..place.workplace.clone() };
    let place = Place { workplace, ..place };
    place.file("a", "theirs\n");
    assert_fails(&write(&place, "a", "mine\n").await, "changed on disk since you last");
}

#[tokio::test]
async fn a_run_after_a_crash_is_not_refused_because_of_its_own_first_run() {
    let place = Place::new();
    place.file("a", "old\n");
    let given = arguments("a", "new\n");
    let plan = place.plan("write_file", &given).await;
    assert_works(&place.run("write_file", &given, plan.as_ref()).await);
    // The session before the crash had read it; the outcome of the write was not committed.
    let seen = Seen::default();
    seen.note(&crate::files::seen::fact(&place.path("a"), hash(b"old\n"), false));
    let workplace = Workplace { seen, ..place.workplace.clone() };
    let place = Place { workplace, ..place };
    let again = place.run("write_file", &given, plan.as_ref()).await;
    assert_works(&again);
    assert_says(&again, "Wrote a (4 bytes). It already existed");
    let Fact::File { changed, .. } = &again.facts[0] else { panic!("{again:?}") };
    assert!(changed);
}

#[tokio::test]
async fn a_run_after_a_crash_leaves_alone_what_somebody_wrote_since() {
    let place = Place::new();
    let path = place.file("a", "old\n");
    let given = arguments("a", "new\n");
    let plan = place.plan("write_file", &given).await;
    assert_works(&place.run("write_file", &given, plan.as_ref()).await);
    place.file("a", "mine\n");
    // Another process, which has seen nothing.
    let workplace = Workplace { seen: Seen::default(), ..place.workplace.clone() };
    let place = Place { workplace, ..place };
    let again = place.run("write_file", &given, plan.as_ref()).await;
    assert!(again.failed, "{again:?}");
    assert_eq!(fs::read_to_string(path).unwrap(), "mine\n");
}

#[tokio::test]
async fn the_same_content_is_no_change() {
    let place = Place::new();
    let path = place.file("a", "same\n");
    let inode = fs::metadata(&path).unwrap().ino();
    let outcome = write(&place, "a", "same\n").await;
    assert_eq!(said(&outcome), "a already had exactly this content.");
    assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
    let Fact::File { changed, .. } = &outcome.facts[0] else { panic!("{outcome:?}") };
    assert!(!changed);
}

#[tokio::test]
async fn other_line_ends_a_deleted_file_and_a_directory_are_told() {
    let place = Place::new();
    place.file("a", "x\r\n");
    assert_says(&write(&place, "a", "y\n").await, "ended with CRLF");
    fs::remove_file(place.path("a")).unwrap();
    assert_says(&write(&place, "a", "z\n").await, "had been deleted");
    fs::create_dir(place.path("directory")).unwrap();
    assert_fails(&write(&place, "directory", "").await, "is a directory");
    assert_fails(&write(&place, "a/b", "").await, "Could not resolve");
}

#[tokio::test]
async fn a_huge_file_is_replaced_without_being_compared() {
    let place = Place::new();
    let path = place.file("huge", "x");
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(70 << 20).unwrap();
    assert_says(&write(&place, "huge", "small\n").await, "too large (70 MiB)");
    assert_eq!(place.content("huge"), "small\n");
}

#[tokio::test]
async fn the_policy_is_told_the_real_path() {
    let place = Place::new();
    fs::create_dir(place.outside("elsewhere")).unwrap();
    symlink(place.outside("elsewhere"), place.path("inside")).unwrap();
    for name in ["write_file", "edit_file"] {
        let given = arguments("inside/new", "");
        let action = super::tool(name).action(&place.invocation(&given));
        assert_eq!(action, Action::Write(place.outside("elsewhere/new")));
    }
    let given = json!({});
    assert_eq!(super::tool("grep").action(&place.invocation(&given)), Action::Read);
}

#[tokio::test]
async fn what_leads_elsewhere_than_when_it_was_judged_is_left_alone() {
    let place = Place::new();
    place.file("a/f", "one\n");
    fs::create_dir(place.outside("other")).unwrap();
    fs::write(place.outside("other/f"), "one\n").unwrap();
    symlink("a", place.path("link")).unwrap();
    let written = arguments("link/f", "mine\n");
    let edited = json!({ "path": "link/f", "old": "one", "new": "mine" });
    for (name, arguments) in [("write_file", &written), ("edit_file", &edited)] {
        let judged = place.path("a/f");
        let call = || Invocation { target: Some(&judged), ..place.invocation(arguments) };
        let plan = tool(name).plan(call()).await;
        assert!(plan.is_some());
        fs::remove_file(place.path("link")).unwrap();
        symlink("../other", place.path("link")).unwrap();
        assert!(tool(name).plan(call()).await.is_none());
        for plan in [plan, None] {
            let outcome = tool(name).run(call(), plan.as_ref()).await;
            assert_fails(&outcome, "link/f now points somewhere else, so it was left alone.");
        }
        fs::remove_file(place.path("link")).unwrap();
        symlink("a", place.path("link")).unwrap();
    }
    assert_eq!(fs::read_to_string(place.outside("other/f")).unwrap(), "one\n");
    assert_eq!(place.content("a/f"), "one\n");
}
