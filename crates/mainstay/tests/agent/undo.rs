//! What turns did to files is undone: byte for byte, also after a kill at any moment.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use mainstay_testkit::model::{ModelRequest, ModelServer, Reply, Shape};
use mainstay_testkit::postgres;
use mainstay_testkit::process::wait_for;
use mainstay_testkit::shim::{Kind, Mode};
use mainstay_testkit::sweep::{Outcome, Sweep};
use serde_json::{Value, json};

use crate::world::{Told, World, configuration, program};

/// Everything below a directory: kind, mode and content of each path.
fn tree(root: &Path) -> BTreeMap<String, String> {
    fn walk(at: &Path, root: &Path, found: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let mode = metadata.permissions().mode();
            let what = if metadata.is_symlink() {
                format!("link {}", path.read_link().unwrap().display())
            } else if metadata.is_dir() {
                walk(&path, root, found);
                format!("directory {mode:o}")
            } else {
                format!("file {mode:o} {:?}", std::fs::read(&path).unwrap())
            };
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            found.insert(name, what);
        }
    }
    let mut found = BTreeMap::new();
    walk(root, root, &mut found);
    found
}

fn json_of(told: &Told) -> Value {
    serde_json::from_str(&told.stdout).unwrap_or_else(|error| panic!("{error}: {told:#?}"))
}

/// Makes a workspace with files, directories, links and modes.
fn furnish(workspace: &Path) {
    for directory in ["src/deep", "docs", "empty"] {
        std::fs::create_dir_all(workspace.join(directory)).unwrap();
    }
    for number in 0..20 {
        let directory = ["", "src", "src/deep", "docs"][number % 4];
        let path = workspace.join(directory).join(format!("file{number}.txt"));
        std::fs::write(&path, format!("{number}\n").repeat(number + 1)).unwrap();
    }
    std::fs::write(workspace.join("tool.sh"), "#!/bin/sh\n").unwrap();
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(workspace.join("tool.sh"), executable).unwrap();
    std::os::unix::fs::symlink("src/file1.txt", workspace.join("link")).unwrap();
}

/// A call that changes something, chosen at random.
fn random_call(random: &mut fastrand::Rng, number: usize) -> (&'static str, Value) {
    let any = "$(find . -type f -not -name .keep | sort | sed -n '${N}p')"
        .replace("${N}", &(1 + random.usize(..12)).to_string());
    let shell = |command: String| ("shell", json!({ "command": command }));
    match random.usize(..10) {
        0 => ("write_file", json!({ "path": format!("new/{number}/made.txt"), "content": "made" })),
        1 => (
            "write_file",
            json!({ "path": format!("src/file{}.txt", random.usize(..20)), "content": format!("written {number}") }),
        ),
        2 => shell(format!("f={any}; echo changed {number} >> \"$f\"")),
        3 => shell(format!("f={any}; rm -f \"$f\"")),
        4 => shell(format!("f={any}; mv \"$f\" moved{number} || true")),
        5 => shell(format!("rm -rf docs; echo file > docs{number}; mkdir -p docs/again")),
        6 => shell(format!("f={any}; chmod 600 \"$f\"; mkdir -p made{number}/a/b")),
        7 => shell(format!(
            "ln -sf nowhere{number} link; mkdir -p empty; rmdir empty; ln -s x l{number}"
        )),
        8 => shell(format!(
            "rm -rf src/deep; echo now a file > src/deep; printf 'x' > $(printf 'odd\\377{number}')"
        )),
        _ => shell(format!(
            "mkdir -p src/deep 2>/dev/null || {{ rm -f src/deep; mkdir src/deep; }}; echo {number} > src/deep/n{number}"
        )),
    }
}

fn fifty_changes_are_undone(store: Option<&str>, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let calls: Vec<(&str, Value)> =
        (0..50).map(|number| random_call(&mut random, number)).collect();
    let world = World::new(move |asked: &ModelRequest| match calls.get(asked.results().len()) {
        Some((tool, arguments)) => Reply::call_of(*tool, arguments.clone()),
        None => Reply::text("All changed."),
    });
    furnish(&world.workspace());
    let before = tree(&world.workspace());
    let run = |words: &[&str]| {
        let mut all = store.map_or(Vec::new(), |store| vec!["--store", store]);
        all.extend(words);
        world.run(&all).ended_with(0)
    };
    let session = run(&["run", "--yes", "--json", "change"]).session();
    let after = tree(&world.workspace());
    assert_ne!(after, before, "seed {seed}: nothing was changed");
    let listed = json_of(&run(&["undo", "--list", "--json"]));
    assert!(listed["turns"][0]["paths"].as_array().unwrap().len() > 10, "{listed}");

    let dry = json_of(&run(&["undo", &session, "--dry-run", "--json"]));
    assert_eq!(tree(&world.workspace()), after, "a dry run changed something");
    let undone = json_of(&run(&["undo", &session, "--json"]));
    assert_eq!(undone["left"], json!([]), "seed {seed}");
    assert_eq!((&undone["put_back"], &undone["removed"]), (&dry["put_back"], &dry["removed"]));
    assert_eq!(tree(&world.workspace()), before, "seed {seed}: {undone}");

    run(&["undo", &session, "--redo"]);
    assert_eq!(tree(&world.workspace()), after, "seed {seed}: the way forward again");
    run(&["undo", &session]);
    assert_eq!(tree(&world.workspace()), before, "seed {seed}: the way back again");
    world.model.assert_no_violations();
}

#[test]
fn slow_fifty_random_changes_are_undone_byte_for_byte() {
    for seed in [1, 2, 3] {
        fifty_changes_are_undone(None, seed);
    }
}

#[test]
fn slow_fifty_random_changes_are_undone_with_the_record_in_postgresql() {
    fifty_changes_are_undone(Some(&postgres::fresh()), 4);
}

/// A world whose model runs these commands, one a turn.
fn commands(lines: &'static [&'static str]) -> World {
    World::new(move |asked: &ModelRequest| {
        let done = asked.results().len();
        let last = asked.body["messages"].as_array().unwrap().last().unwrap();
        match lines.get(done) {
            Some(line) if last["role"] == "user" => {
                Reply::call_of("shell", json!({ "command": line }))
            }
            _ => Reply::text("done"),
        }
    })
}

#[test]
fn what_somebody_else_changed_is_told_and_not_overwritten() {
    let world = commands(&["echo agent > a; echo agent > b"]);
    std::fs::write(world.workspace().join("a"), "old a").unwrap();
    let session = world.run(&["run", "--yes", "--json", "go"]).ended_with(0).session();
    std::fs::write(world.workspace().join("a"), "mine").unwrap();

    let refused = world.run(&["undo", &session]).ended_with(1);
    assert!(refused.stderr.contains("a changed after turn 1 by other means"), "{refused:#?}");
    assert!(refused.stderr.contains("--keep") && refused.stderr.contains("--force"));
    assert_eq!((world.file("a"), world.file("b")), ("mine".into(), "agent\n".into()));

    world.run(&["undo", &session, "--keep"]).ended_with(0);
    assert_eq!(world.file("a"), "mine");
    assert!(!world.workspace().join("b").exists());
    world.run(&["undo", &session, "--redo"]).ended_with(0);
    assert_eq!((world.file("a"), world.file("b")), ("mine".into(), "agent\n".into()));

    world.run(&["undo", &session, "--force"]).ended_with(0);
    assert_eq!(world.file("a"), "old a");
    world.run(&["undo", &session, "--redo"]).ended_with(0);
    assert_eq!(world.file("a"), "mine", "what was overwritten is lost");
}

#[test]
fn turns_are_undone_one_after_the_other_or_back_to_one_and_the_model_learns_of_it() {
    let world = commands(&["echo 1 > one", "echo 2 > two", "echo 3 > three; rm one"]);
    let session = world.run(&["run", "--yes", "--json", "a"]).ended_with(0).session();
    for text in ["b", "c"] {
        world.run(&["run", "--session", &session, "--yes", text]).ended_with(0);
    }
    let there = |names: &[&str]| {
        let all: Vec<String> = tree(&world.workspace()).into_keys().collect();
        assert_eq!(all, names);
    };
    there(&["three", "two"]);
    world.run(&["undo"]).ended_with(0);
    there(&["one", "two"]);
    world.run(&["undo"]).ended_with(0);
    there(&["one"]);
    world.run(&["undo", "--redo"]).ended_with(0);
    there(&["one", "two"]);
    world.run(&["undo", "--turn", "1"]).ended_with(0);
    there(&[]);
    let nothing = world.run(&["undo"]).ended_with(0);
    assert!(nothing.stdout.contains("Nothing to undo"), "{nothing:#?}");

    world.run(&["run", "--session", &session, "--yes", "d"]).ended_with(0);
    let last = world.model.asked().pop().unwrap();
    let heard = last.body["messages"].to_string();
    assert!(
        heard.contains("the user undid what turn 3 did to files; put back: one; removed: three"),
        "{heard}"
    );
    world.model.assert_no_violations();
}

#[test]
fn a_file_outside_the_workspace_that_a_tool_changed_is_put_back() {
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("deep/er/file");
    let other = outside.path().join("other");
    std::fs::write(&other, "old").unwrap();
    let (made, changed) = (path.to_str().unwrap().to_owned(), other.to_str().unwrap().to_owned());
    let world = World::new(move |asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("write_file", json!({ "path": made, "content": "new" })),
        1 => Reply::call_of("read_file", json!({ "path": changed })),
        2 => Reply::call_of("write_file", json!({ "path": changed, "content": "new" })),
        _ => Reply::text("done"),
    });
    let session = world.run(&["run", "--yes", "--json", "go"]).ended_with(0).session();
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "new");
    assert!(path.exists());
    world.run(&["undo", &session]).ended_with(0);
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "old");
    assert!(!outside.path().join("deep").exists());
}

#[test]
fn a_command_that_was_killed_in_the_middle_is_undone() {
    let world = commands(&["rm -rf src; echo half > half; touch begun; sleep 60"]);
    furnish(&world.workspace());
    let before = tree(&world.workspace());
    let mut running = world.start(&["run", "--yes", "go"]);
    wait_for("the command", Duration::from_secs(10), || world.workspace().join("begun").exists());
    running.kill_and_wait();
    let undone = world.run(&["undo"]).ended_with(0);
    assert!(undone.stdout.contains("Undid turn 1"), "{undone:#?}");
    assert_eq!(tree(&world.workspace()), before);
    world.nothing_runs();
}

#[test]
fn a_command_that_only_looks_is_not_saved_for() {
    let world = commands(&["ls; cat a", "echo b > b"]);
    std::fs::write(world.workspace().join("a"), "a").unwrap();
    let session = world.run(&["run", "--yes", "--json", "look"]).ended_with(0).session();
    let rows = || {
        let info = json_of(&world.run(&["store", "info", "--json"]).ended_with(0));
        info["tables"]["snapshots"].as_i64().unwrap()
    };
    assert_eq!(rows(), 0);
    world.run(&["run", "--session", &session, "--yes", "write"]).ended_with(0);
    assert_eq!(rows(), 2, "one before, one after");
}

#[test]
fn a_command_that_a_person_allowed_is_saved_for_too() {
    let world = commands(&["./change.sh"]);
    furnish(&world.workspace());
    let script = world.workspace().join("change.sh");
    std::fs::write(&script, "#!/bin/sh\nrm -rf src; echo x > made\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let before = tree(&world.workspace());
    world.run(&["run", "go"]).ended_with(3);
    let asked = json_of(&world.run(&["approvals", "--json"]).ended_with(0));
    let id = asked["requests"][0]["id"].as_str().unwrap().to_owned();
    world.run(&["approve", &id]).ended_with(0);
    world.run(&["resume"]).ended_with(0);
    assert!(world.workspace().join("made").exists());
    world.run(&["undo"]).ended_with(0);
    assert_eq!(tree(&world.workspace()), before);
}

#[test]
fn a_key_in_a_file_is_not_stored_and_that_is_said() {
    const KEY: &str = "sk-live-4f9a8b7c6d5e4f3a2b1c";
    let world = commands(&["echo x > x; echo changed >> .env"]);
    std::fs::write(world.workspace().join(".env"), format!("KEY={KEY}\n")).unwrap();
    let told: Told =
        world.command(&["run", "--yes", "go"]).env("SERVICE_API_KEY", KEY).output().unwrap().into();
    assert!(told.ended_with(0).stderr.contains(".env (contains a key"));
    for entry in std::fs::read_dir(world.home()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap_or_default();
        let found = bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes());
        assert!(!found, "the key is in {}", path.display());
    }
    let undone: Told =
        world.command(&["undo"]).env("SERVICE_API_KEY", KEY).output().unwrap().into();
    assert!(!world.workspace().join("x").exists(), "{undone:#?}");
    assert!(world.file(".env").ends_with("changed\n"), "what is not kept was touched");
}

#[test]
fn what_a_hook_does_after_a_tool_is_undone_with_it() {
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("write_file", json!({ "path": "a", "content": "x" })),
        _ => Reply::text("done"),
    });
    world.configure_more("[[hooks.PostToolUse]]\ncommand = \"echo formatted > other\"\n");
    std::fs::write(world.workspace().join("other"), "old").unwrap();
    world.run(&["run", "--yes", "go"]).ended_with(0);
    assert_eq!(world.file("other"), "formatted\n");
    world.run(&["undo"]).ended_with(0);
    assert_eq!(world.file("other"), "old");
    assert!(!world.workspace().join("a").exists());
}

#[test]
fn a_session_in_use_is_not_undone() {
    let world = commands(&["touch begun; sleep 60"]);
    let mut running = world.start(&["run", "--yes", "go"]);
    wait_for("the command", Duration::from_secs(10), || world.workspace().join("begun").exists());
    let refused = world.run(&["undo"]).ended_with(4);
    assert!(refused.stderr.contains("is in use by"), "{refused:#?}");
    assert!(world.workspace().join("begun").exists());
    running.kill_and_wait();
}

#[test]
fn git_and_what_it_ignores_stay_and_are_named() {
    let world = commands(&[
        "echo x > .git/HEAD; mkdir -p built; head -c 20000000 /dev/zero > built/big; echo y > a",
    ]);
    std::fs::create_dir_all(world.workspace().join(".git")).unwrap();
    std::fs::write(world.workspace().join(".git/HEAD"), "ref: main").unwrap();
    std::fs::write(world.workspace().join(".gitignore"), "built/\n").unwrap();
    world.run(&["run", "--yes", "go"]).ended_with(0);
    let undone = world.run(&["undo"]).ended_with(0);
    assert!(undone.stdout.contains("not saved, so unchanged: built (ignored"), "{undone:#?}");
    assert!(world.workspace().join("built/big").exists());
    assert_eq!(world.file(".git/HEAD"), "x\n");
    assert!(!world.workspace().join("a").exists());
}

/// Kills an undo at every point where it touches a file of the workspace or the store.
#[test]
fn slow_heavy_an_undo_killed_anywhere_comes_to_the_same_end() {
    let model = ModelServer::start(|asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of(
            "shell",
            json!({ "command": "rm -rf src docs; echo changed > docs; chmod 700 tool.sh; rm link; mkdir link; echo x > link/x; echo new > new" }),
        ),
        _ => Reply::text("done"),
    });
    let places = |directory: &Path| (directory.join("home"), directory.join("work"));
    let prepare = |directory: &Path| -> Command {
        let (home, work) = places(directory);
        std::fs::create_dir_all(&home).unwrap();
        std::fs::create_dir_all(&work).unwrap();
        furnish(&work);
        std::fs::write(home.join("config.toml"), configuration(Shape::Chat, &model)).unwrap();
        let ran = program(&home, &work, &["run", "--yes", "go"]).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        program(&home, &work, &["undo", "--turn", "1"])
    };
    let expected = {
        let directory = tempfile::tempdir().unwrap();
        furnish(directory.path());
        tree(directory.path())
    };
    let verify = |outcome: &Outcome<'_>| {
        let (home, work) = places(outcome.directory);
        let again = program(&home, &work, &["undo", "--turn", "1"]).output().unwrap();
        assert!(again.status.success(), "{again:?}");
        assert_eq!(tree(&work), expected);
        // And it was written down once: taken back, everything is as the turn left it.
        let back = program(&home, &work, &["undo", "--redo"]).output().unwrap();
        assert!(String::from_utf8_lossy(&back.stdout).contains("Redid"), "{back:?}");
        assert_eq!(std::fs::read_to_string(work.join("docs")).unwrap(), "changed\n");
        assert!(!work.join("src").exists());
    };
    let kinds = [Kind::Sync, Kind::Rename, Kind::Unlink, Kind::Write, Kind::Create];
    let swept = Sweep::of(Mode::Kill).only(&kinds).every(2).run(prepare, verify);
    println!("{} points, {} kills", swept.points, swept.struck);
    assert!(swept.struck > 20, "{swept:?}");
}

/// Kills a run at every sync: whatever it came to can be undone.
#[test]
fn slow_heavy_a_run_killed_at_any_sync_can_be_undone() {
    let places = |directory: &Path| (directory.join("home"), directory.with_file_name("work"));
    let model = ModelServer::start(|asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("write_file", json!({ "path": "made/by/tool", "content": "x" })),
        1 => Reply::call_of("shell", json!({ "command": "rm -rf src docs; echo new > new" })),
        2 => Reply::call_of("shell", json!({ "command": "mv file0.txt moved; rm -f link" })),
        _ => Reply::text("done"),
    });
    let prepare = |directory: &Path| -> Command {
        let (home, work) = places(directory);
        std::fs::create_dir_all(&home).unwrap();
        std::fs::create_dir_all(&work).unwrap();
        furnish(&work);
        std::fs::write(home.join("config.toml"), configuration(Shape::Chat, &model)).unwrap();
        program(&home, &work, &["run", "--yes", "go"])
    };
    let expected = {
        let directory = tempfile::tempdir().unwrap();
        furnish(directory.path());
        tree(directory.path())
    };
    let verify = |outcome: &Outcome<'_>| {
        let (home, work) = places(outcome.directory);
        let undone: Told = program(&home, &work, &["undo"]).output().unwrap().into();
        if undone.code != Some(0) {
            // Nothing was recorded yet, so nothing was done.
            let none = ["there is no store", "no session in"];
            assert!(none.iter().any(|words| undone.stderr.contains(words)), "{undone:#?}");
        }
        assert_eq!(tree(&work), expected, "{undone:#?}");
    };
    let swept = Sweep::of(Mode::Kill).only(&[Kind::Sync]).run(prepare, verify);
    println!("{} points, {} kills", swept.points, swept.struck);
    assert!(swept.struck > 5, "{swept:?}");
}
