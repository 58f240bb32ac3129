//! Keys that the program knows are in no file of its own, on no screen, and go to nobody but the
//! provider whose they are.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use mainstay_testkit::model::{ModelRequest, Reply, Shape};
use mainstay_testkit::process::wait_for;
use serde_json::json;

use crate::hooks::write_hooks;
use crate::world::{Told, World, configuration};

const PROVIDER_KEY: &str = "sk-prov-7Qw3/eRt+Y9uIoP1aSdF5gHjK2lZxCvB";
const TOKEN: &str = "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6";
const PASSWORD: &str = "pw-S3cr3tZ9";
const FETCHED_KEY: &str = "fetched-8Hn4Rk2Wq6Ty0Ui3Op5Lm7";

fn configured(world: &World) {
    let text = configuration(Shape::Chat, &world.model);
    world.configure(&format!("{text}api_key_env = \"LOCAL_PROVIDER\"\n"));
}

fn command(world: &World, words: &[&str]) -> Command {
    let mut command = world.command(words);
    command
        .env("LOCAL_PROVIDER", PROVIDER_KEY)
        .env("SOME_SERVICE_TOKEN", TOKEN)
        .env("DATABASE_URL", format!("postgres://me:{PASSWORD}@db.example/x"));
    command
}

fn run(world: &World, words: &[&str]) -> Told {
    Told::from(command(world, words).output().unwrap())
}

/// Every way in which the secrets may be met. Of base64 what does not depend on its neighbours.
fn forms() -> Vec<String> {
    let mut forms = Vec::new();
    for secret in [PROVIDER_KEY, TOKEN, PASSWORD, FETCHED_KEY] {
        let hexadecimal: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        forms.extend([secret.to_owned(), hexadecimal.to_uppercase(), hexadecimal]);
        forms.push(secret.replace('/', "%2F").replace('+', "%2B"));
        for offset in 0..3 {
            let text = format!("{}{secret}", "x".repeat(offset));
            let printed =
                Command::new("sh").args(["-c", "printf %s \"$0\" | base64 -w0", &text]).output();
            let encoded = String::from_utf8(printed.unwrap().stdout).unwrap();
            forms.push(encoded[4..encoded.len() - 4].to_owned());
        }
    }
    forms
}

/// Panics where bytes hold a secret.
fn assert_clean(what: &str, bytes: &[u8], forms: &[String]) {
    let text = String::from_utf8_lossy(bytes);
    for form in forms {
        assert!(!text.contains(form), "{what} holds {form}");
    }
}

/// Panics where a file below a directory holds a secret; answers how many were looked at.
fn assert_clean_below(directory: &Path, forms: &[String]) -> usize {
    let mut seen = 0;
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            seen += assert_clean_below(&path, forms);
        } else if kind.is_file() && !path.ends_with("hooks.json") {
            assert_clean(&path.display().to_string(), &std::fs::read(&path).unwrap(), forms);
            seen += 1;
        }
    }
    seen
}

fn assert_clean_world(world: &World, told: &Told) {
    let forms = forms();
    assert_clean("standard output", told.stdout.as_bytes(), &forms);
    assert_clean("standard error", told.stderr.as_bytes(), &forms);
    assert!(assert_clean_below(&world.home(), &forms) >= 2);
    for asked in world.model.asked() {
        assert_clean("a request", asked.body.to_string().as_bytes(), &forms);
    }
}

/// A file with everything in it, as a project may have one.
fn write_secrets(world: &World) {
    let text = format!("KEY={PROVIDER_KEY}\nTOKEN={TOKEN}\nurl=postgres://me:{PASSWORD}@db\n");
    std::fs::write(world.workspace().join("secrets.txt"), text).unwrap();
}

#[test]
fn a_key_that_a_tool_a_file_a_hook_or_a_user_brings_is_recorded_nowhere() {
    let every = "cat secrets.txt; for n in 0 1 2; do (printf %${n}s; cat secrets.txt) | base64 -w0; \
                 echo; done; od -An -v -tx1 secrets.txt | tr -d ' \\n'";
    let world = World::new(move |asked: &ModelRequest| match asked.results().len() {
        0 => Reply::empty()
            .reasoning(format!("thinking of {TOKEN}"))
            .call("read_file", json!({ "path": "secrets.txt" }))
            .call("grep", json!({ "pattern": "=" })),
        2 => Reply::call_of("shell", json!({ "command": every })),
        // Long enough for a blob, and cut in the middle of keys.
        3 => Reply::call_of(
            "shell",
            json!({ "command": "yes \"$(cat secrets.txt)\" | head -n 5000" }),
        ),
        4 => Reply::call_of("shell", json!({ "command": format!("echo {TOKEN}; exit 1") })),
        5 => Reply::call_of(
            "process",
            json!({ "action": "start", "command": "cat secrets.txt; sleep 30" }),
        ),
        6 => {
            Reply::call_of("write_file", json!({ "path": "new", "content": format!("x {TOKEN}") }))
        }
        _ => Reply::text(format!("The keys are {PROVIDER_KEY}, {TOKEN}.\nThat is {PASSWORD}.")),
    });
    configured(&world);
    write_secrets(&world);
    write_hooks(
        &world,
        &json!({
            "UserPromptSubmit": [{ "command": "cat secrets.txt" }],
            "PreToolUse": [{ "command": format!("echo '{{\"systemMessage\": \"{TOKEN}\"}}'") }],
            "PostToolUse": [{ "command": "cat secrets.txt >&2; exit 2" }],
        }),
    );
    std::fs::write(world.workspace().join("AGENTS.md"), format!("Use {TOKEN} here.")).unwrap();
    let input = format!("Log in with {TOKEN} or {PROVIDER_KEY}");
    for more in [&["--json"][..], &[]] {
        let mut words = vec!["run", "--yes"];
        words.extend(more);
        words.push(&input);
        let told = run(&world, &words).ended_with(0);
        assert!(told.stdout.contains("[redacted: LOCAL_PROVIDER]"), "{told:#?}");
        assert!(told.stdout.contains("[redacted: SOME_SERVICE_TOKEN]"), "{told:#?}");
        assert!(told.stdout.contains("[redacted: password in DATABASE_URL]"), "{told:#?}");
        assert_clean_world(&world, &told);
    }
    // The provider got its own key, in its header.
    let key = format!("Bearer {PROVIDER_KEY}");
    assert!(world.model.asked().iter().all(|asked| asked.header("authorization") == Some(&key)));
    // A mark would be written over the secret that it stands for.
    assert!(!world.workspace().join("new").exists());
    world.model.assert_no_violations();
}

#[test]
fn a_killed_agent_leaves_no_key_in_its_log_its_blobs_or_its_keepers_spool() {
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of(
            "shell",
            json!({ "command": "cat secrets.txt | base64 -w0; cat secrets.txt" }),
        ),
        1 => Reply::call_of(
            "shell",
            json!({ "command": "yes \"$(cat secrets.txt)\" | head -n 5000" }),
        ),
        _ => {
            Reply::call_of("shell", json!({ "command": "cat secrets.txt; touch begun; sleep 30" }))
        }
    });
    configured(&world);
    let text = format!("{PROVIDER_KEY}\n{TOKEN} {PASSWORD}\n");
    std::fs::write(world.workspace().join("secrets.txt"), text).unwrap();
    let mut command = command(&world, &["run", "--yes", "--json", "go"]);
    let mut running = world.started(&mut command);
    wait_for("the last command", Duration::from_secs(20), || {
        world.workspace().join("begun").exists()
    });
    running.kill_and_wait();
    let files = assert_clean_below(&world.home(), &forms());
    assert!(files >= 4, "the store, its log and the keeper's: {files}");
    let told = run(&world, &["sessions", "list"]).ended_with(0);
    assert_clean_world(&world, &told);
}

#[test]
fn a_key_in_the_words_of_a_provider_is_told_to_nobody() {
    let words = format!("Incorrect API key provided: {PROVIDER_KEY}. See {TOKEN}.");
    let refusing = World::new({
        let words = words.clone();
        move |_: &ModelRequest| Reply::status(401, words.clone())
    });
    configured(&refusing);
    for more in [&["--json"][..], &[]] {
        let told = run(&refusing, &[&["run", "go"], more].concat());
        assert_ne!(told.code, Some(0), "{told:#?}");
        // The client of the provider has taken its own key out already.
        let mark = "[redacted: SOME_SERVICE_TOKEN]";
        assert!(told.stderr.contains(mark) || told.stdout.contains(mark), "{told:#?}");
        assert_clean_world(&refusing, &told);
    }
    let mut tries = 0;
    let recovering = World::new(move |_: &ModelRequest| {
        tries += 1;
        if tries == 1 { Reply::status(500, words.clone()) } else { Reply::text("well again") }
    });
    configured(&recovering);
    let told = run(&recovering, &["run", "--json", "go"]).ended_with(0);
    assert!(told.event("notice")["message"].as_str().unwrap().contains("[redacted: "), "{told:#?}");
    assert_clean_world(&recovering, &told);
}

#[test]
fn a_key_that_a_command_fetched_is_known_from_then_on() {
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("read_file", json!({ "path": "found.txt" })),
        _ => Reply::text(format!("It is {FETCHED_KEY}.")),
    });
    let text = configuration(Shape::Chat, &world.model);
    let script = world.workspace().join("key.sh");
    std::fs::write(&script, format!("echo {FETCHED_KEY}")).unwrap();
    world.configure(&format!("{text}api_key_command = \"sh {}\"\n", script.display()));
    std::fs::write(world.workspace().join("found.txt"), FETCHED_KEY).unwrap();
    let told = run(&world, &["run", "go"]).ended_with(0);
    assert_eq!(told.stdout, "It is [redacted: key from a command].\n");
    assert_clean_world(&world, &told);
}

#[test]
fn a_key_that_a_person_types_into_a_command_is_recorded_nowhere() {
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("ask_user", json!({ "question": "Which one?" })),
        1 => Reply::call_of("shell", json!({ "command": "make" })),
        _ => Reply::text("So be it."),
    });
    configured(&world);
    run(&world, &["run", "begin"]).ended_with(3);
    let waiting = |kind: &str| {
        let told = run(&world, &["approvals", "--json"]).ended_with(0);
        let list: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
        let found = &list[kind][0];
        (found["id"].as_str().unwrap().to_owned(), found["session"].as_str().unwrap().to_owned())
    };
    let typed = format!("it is {PROVIDER_KEY}");
    let (question, session) = waiting("questions");
    let told = run(&world, &["answer", &question, &typed]).ended_with(0);
    assert_clean_world(&world, &told);
    run(&world, &["resume", &session]).ended_with(3);
    let (request, _) = waiting("requests");
    let told = run(&world, &["deny", &request, "--reason", &typed]).ended_with(0);
    assert_clean_world(&world, &told);
    let told = run(&world, &["sessions", "rename", &session, &typed]).ended_with(0);
    assert_clean_world(&world, &told);
    let told = run(&world, &["resume", &session]).ended_with(0);
    assert_clean_world(&world, &told);
}
