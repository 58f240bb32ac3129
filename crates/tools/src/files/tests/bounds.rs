//! What is closed to all tools, and what must not make one wait.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Place, assert_fails, assert_says, assert_works, data, pipe, said};
use crate::Outcome;

/// Calls every tool that takes a single file, and checks that it refuses.
async fn assert_closed(place: &Place, path: &str) {
    for (tool, arguments) in [
        ("read_file", json!({ "path": path })),
        ("write_file", json!({ "path": path, "content": "mine" })),
        ("edit_file", json!({ "path": path, "old": "secret", "new": "mine" })),
        ("list", json!({ "path": path })),
        ("glob", json!({ "pattern": "*", "path": path })),
        ("grep", json!({ "pattern": "secret", "path": path })),
    ] {
        let outcome = place.call(tool, arguments).await;
        assert!(outcome.failed, "{tool} {path}: {outcome:?}");
        assert!(!data(&outcome).contains("secret"), "{tool} {path}: {outcome:?}");
        if tool != "glob" {
            assert_says(&outcome, "which tools cannot open");
        }
    }
}

#[tokio::test]
async fn a_closed_file_is_refused_by_each_of_its_names() {
    let place = Place::new();
    let store = place.outside("store.db");
    fs::write(&store, "secret\n").unwrap();
    fs::write(place.outside("home/inside"), "secret\n").unwrap();
    symlink(&store, place.path("link")).unwrap();
    symlink(place.outside("home"), place.path("home-link")).unwrap();
    fs::hard_link(&store, place.path("hard")).unwrap();
    fs::hard_link(place.outside("home/inside"), place.path("hard-inside")).unwrap();
    symlink("hard", place.path("link-to-hard")).unwrap();
    for path in [
        store.to_str().unwrap(),
        "../store.db",
        "../store.db-wal",
        "../home/inside",
        "../home/not/there",
        "../home",
        "link",
        "home-link/inside",
        "hard",
        "hard-inside",
        "link-to-hard",
    ] {
        assert_closed(&place, path).await;
    }
    assert_eq!(fs::read_to_string(&store).unwrap(), "secret\n");
}

#[tokio::test]
async fn what_is_lent_is_read_and_never_changed_and_opens_nothing_else() {
    let mut place = Place::new();
    let lent = place.outside("home/skills");
    fs::create_dir_all(lent.join("one")).unwrap();
    fs::write(lent.join("one/SKILL.md"), "shown\n").unwrap();
    fs::hard_link(lent.join("one/SKILL.md"), lent.join("one/again")).unwrap();
    fs::write(place.outside("home/keys.toml"), "secret\n").unwrap();
    fs::write(place.outside("store.db"), "secret\n").unwrap();
    fs::hard_link(place.outside("home/keys.toml"), lent.join("one/keys")).unwrap();
    fs::hard_link(place.outside("store.db"), lent.join("one/store")).unwrap();
    symlink("../../keys.toml", lent.join("one/link")).unwrap();
    place.workplace.lent = vec![lent];
    for path in ["../home/skills/one/SKILL.md", "../home/skills/one/again"] {
        let read = place.call("read_file", json!({ "path": path })).await;
        assert!(data(&read).contains("shown"), "{read:?}");
    }
    let found = place.call("grep", json!({ "pattern": "shown", "path": "../home/skills" })).await;
    assert!(data(&found).contains("SKILL.md"), "{found:?}");
    let secret = place.call("grep", json!({ "pattern": "secret", "path": "../home/skills" })).await;
    assert!(!data(&secret).contains("secret"), "{secret:?}");
    for path in ["one/keys", "one/store", "one/link", "../keys.toml", "../new", ".."] {
        let path = format!("../home/skills/{path}");
        let read = place.call("read_file", json!({ "path": path })).await;
        assert!(read.failed && !data(&read).contains("secret"), "{path}: {read:?}");
        assert_says(&read, "which tools cannot open");
    }
    for (tool, arguments) in [
        ("write_file", json!({ "path": "../home/skills/one/SKILL.md", "content": "mine" })),
        ("write_file", json!({ "path": "../home/skills/new/SKILL.md", "content": "mine" })),
        ("edit_file", json!({ "path": "../home/skills/one/SKILL.md", "old": "shown", "new": "x" })),
    ] {
        let outcome = place.call(tool, arguments).await;
        assert!(outcome.failed, "{outcome:?}");
        assert_says(&outcome, "propose_skill");
    }
    assert_eq!(fs::read_to_string(place.outside("home/skills/one/SKILL.md")).unwrap(), "shown\n");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_tool_costs_the_store_its_locks() {
    use std::os::unix::fs::MetadataExt;

    let place = Place::new();
    let path = place.outside("store.db");
    fs::write(&path, "secret\n").unwrap();
    fs::hard_link(&path, place.path("hard")).unwrap();
    symlink(&path, place.path("link")).unwrap();
    place.file("rules/text", "secret\n");
    fs::hard_link(&path, place.path("rules/.gitignore")).unwrap();
    symlink(&path, place.path(".ignore")).unwrap();
    let store = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let lock = rustix::fs::FlockOperation::NonBlockingLockExclusive;
    rustix::fs::fcntl_lock(&store, lock).unwrap();
    let inode = format!(":{} ", store.metadata().unwrap().ino());
    let is_locked = || fs::read_to_string("/proc/locks").unwrap().contains(&inode);
    assert!(is_locked());
    for name in ["hard", "link", "../store.db", "rules/.gitignore", ".ignore"] {
        assert_closed(&place, name).await;
        assert!(is_locked(), "{name}");
    }
    for (tool, arguments) in [
        ("grep", json!({ "pattern": "secret" })),
        ("grep", json!({ "pattern": "secret", "path": "rules" })),
        ("glob", json!({ "pattern": "**/.*" })),
        ("list", json!({ "depth": 5 })),
    ] {
        assert_works(&place.call(tool, arguments).await);
        assert!(is_locked(), "{tool}");
    }
    // It is a test of something only if opening and closing does cost the lock.
    drop(fs::File::open(&path).unwrap());
    assert!(!is_locked());
}

#[tokio::test]
async fn a_search_goes_round_closed_files() {
    let place = Place::new();
    let mut closed = place.workplace.clone();
    closed.forbidden.push(place.path("private"));
    let place = Place { workplace: closed, ..place };
    place.file("private/inside", "secret\n");
    place.file("open", "secret\n");
    fs::write(place.outside("store.db"), "secret\n").unwrap();
    fs::hard_link(place.outside("store.db"), place.path("hard")).unwrap();
    let found = place.call("grep", json!({ "pattern": "secret" })).await;
    assert_eq!(data(&found), "open\n1:secret\n");
    let found = place.call("glob", json!({ "pattern": "**/*" })).await;
    assert!(!data(&found).contains("private"));
    let found = place.call("list", json!({ "depth": 3 })).await;
    assert!(!data(&found).contains("inside"));
}

/// Runs a call that must not wait.
async fn promptly(place: &Place, tool: &str, arguments: Value) -> Outcome {
    tokio::time::timeout(Duration::from_secs(20), place.call(tool, arguments)).await.unwrap()
}

#[tokio::test]
async fn a_pipe_makes_no_tool_wait() {
    let place = Place::new();
    pipe(&place.path("pipe"));
    place.file("text", "word\n");
    for (tool, arguments) in [
        ("read_file", json!({ "path": "pipe" })),
        ("write_file", json!({ "path": "pipe", "content": "" })),
        ("edit_file", json!({ "path": "pipe", "old": "a", "new": "b" })),
        ("grep", json!({ "path": "pipe", "pattern": "a" })),
    ] {
        assert_fails(&promptly(&place, tool, arguments).await, "not a regular file");
    }
    assert_eq!(
        data(&promptly(&place, "grep", json!({ "pattern": "word" })).await),
        "text\n1:word\n"
    );
    assert!(data(&promptly(&place, "list", json!({})).await).contains("pipe (not a regular file)"));
}

#[tokio::test]
async fn rules_behind_links_to_pipes_and_closed_files_are_not_opened() {
    let place = Place::new();
    fs::write(place.outside("store.db"), "*\n").unwrap();
    pipe(&place.outside("pipe"));
    for (directory, target) in [("one", "pipe"), ("two", "store.db")] {
        place.file(&format!("{directory}/text"), "word\n");
        symlink(place.outside(target), place.path(&format!("{directory}/.ignore"))).unwrap();
    }
    place.file("three/text", "word\n");
    let found = promptly(&place, "grep", json!({ "pattern": "word" })).await;
    assert_eq!(data(&found), "three/text\n1:word\n");
    assert_says(&found, "2 directories were left out");
    // As the root it is searched, without any rules.
    let found = promptly(&place, "grep", json!({ "pattern": "word", "path": "one" })).await;
    assert_eq!(data(&found), "one/text\n1:word\n");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn endless_files_end() {
    let place = Place::new();
    assert_fails(
        &promptly(&place, "read_file", json!({ "path": "/dev/zero" })).await,
        "not a regular file",
    );
    let other = format!("/proc/{}", std::os::unix::process::parent_id());
    let outcome =
        promptly(&place, "read_file", json!({ "path": format!("{other}/pagemap") })).await;
    assert_fails(&outcome, "binary");
    let outcome = promptly(&place, "read_file", json!({ "path": format!("{other}/status") })).await;
    assert_works(&outcome);
    assert!(data(&outcome).contains("Umask:"));
    symlink(format!("{other}/mem"), place.path("memory")).unwrap();
    assert!(promptly(&place, "read_file", json!({ "path": "memory" })).await.failed);
}

#[tokio::test]
async fn names_with_line_breaks_stay_on_their_line() {
    let place = Place::new();
    place.file("a\nb", "word\n");
    assert_eq!(data(&place.call("list", json!({})).await), "a\\nb (5 bytes)\n");
    let outcome = place.call("read_file", json!({ "path": "a\nb" })).await;
    assert!(said(&outcome).starts_with("a\\nb, 1 line."));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_the_process_knows_of_itself_is_closed() {
    let place = Place::new();
    symlink("/proc/self/environ", place.path("environment")).unwrap();
    let own = format!("/proc/{}/task/{}/environ", std::process::id(), std::process::id());
    for path in ["/proc/self/environ", "/proc/thread-self/environ", &own, "environment"] {
        let outcome = place.call("read_file", json!({ "path": path })).await;
        assert_fails(&outcome, "which tools cannot open");
    }
}

mod confined {
    use super::super::tool;
    use super::*;
    use crate::sandbox::{Confinement, Sandbox};
    use crate::{Grant, Invocation};

    fn confined() -> Place {
        let mut place = Place::new();
        fs::create_dir(place.outside("hidden")).unwrap();
        fs::write(place.outside("hidden/key"), "secret\n").unwrap();
        fs::write(place.outside("plain"), "plain\n").unwrap();
        place.workplace.confinement = Confinement::to(Sandbox {
            write: vec![place.workplace.workspace.clone()],
            hide: vec![place.outside("hidden"), place.outside("home")],
            ..Sandbox::default()
        });
        place
    }

    #[tokio::test]
    async fn the_kernel_refuses_what_is_hidden_and_the_rest_works() {
        let place = confined();
        place.file("a.txt", "one\n");
        assert_works(&place.call("read_file", json!({ "path": "a.txt" })).await);
        let edit = json!({ "path": "a.txt", "old": "one", "new": "two" });
        assert_works(&place.call("edit_file", edit).await);
        assert_works(
            &place.call("write_file", json!({ "path": "new/b.txt", "content": "two\n" })).await,
        );
        assert_eq!(place.content("a.txt") + &place.content("new/b.txt"), "two\ntwo\n");
        assert_works(&place.call("read_file", json!({ "path": "../plain" })).await);
        for path in ["../hidden/key", "/proc/1/environ"] {
            let outcome = place.call("read_file", json!({ "path": path })).await;
            assert_fails(&outcome, "Permission denied");
        }
        let found = place.call("grep", json!({ "pattern": "secret", "path": ".." })).await;
        assert!(!data(&found).contains("secret"), "{found:?}");
        let write = json!({ "path": "../hidden/key", "content": "mine" });
        assert!(place.call("write_file", write).await.failed);
        assert_eq!(fs::read_to_string(place.outside("hidden/key")).unwrap(), "secret\n");
    }

    #[tokio::test]
    async fn a_write_outside_that_the_policy_let_through_is_done() {
        let place = confined();
        for path in ["plain", "new/deep.txt"] {
            let arguments = json!({ "path": format!("../{path}"), "content": "mine\n" });
            assert!(place.call("write_file", arguments.clone()).await.failed, "nobody let it");
            let grant = Grant { write: vec![place.outside(path)], ..Grant::default() };
            let call = || Invocation { grant: &grant, ..place.invocation(&arguments) };
            let plan = tool("write_file").plan(call()).await;
            assert_works(&tool("write_file").run(call(), plan.as_ref()).await);
        }
        assert_eq!(fs::read_to_string(place.outside("plain")).unwrap(), "mine\n");
        assert_eq!(fs::read_to_string(place.outside("new/deep.txt")).unwrap(), "mine\n");
    }

    #[tokio::test]
    async fn many_calls_at_once_all_end() {
        let place = confined();
        place.file("a.txt", "one\n");
        let arguments = json!({ "path": "a.txt" });
        let calls = (0..50).map(|_| place.run("read_file", &arguments, None));
        for outcome in futures_util::future::join_all(calls).await {
            assert_works(&outcome);
        }
    }
}
