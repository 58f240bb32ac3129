//! What a turn makes of its calls: in parallel, killed in the middle, refused, nonsense.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use mainstay_testkit::model::{ModelRequest, ModelServer, Reply, Shape, rounds};
use mainstay_testkit::process::wait_for;
use mainstay_testkit::shim::Mode;
use mainstay_testkit::sweep::{Outcome, Sweep};
use serde_json::{Value, json};

use crate::world::{Told, World, configuration, program};

const PATIENCE: Duration = Duration::from_secs(20);

fn last_results(model: &ModelServer) -> Vec<String> {
    let asked = model.asked().pop().unwrap();
    asked.results().into_iter().map(|(_, text)| text).collect()
}

#[test]
fn parallel_reads_are_shown_in_the_order_they_were_asked_for() {
    for shape in Shape::ALL {
        let world = World::speaking(
            shape,
            rounds(2, |number| ("read_file", json!({ "path": format!("{number}.txt") })))
                .in_parallel(4)
                .finally("read"),
        );
        // The first ones are the longest to read.
        for number in 0..8_usize {
            let text = format!("file {number}\n").repeat(if number % 4 == 0 { 2000 } else { 1 });
            std::fs::write(world.workspace().join(format!("{number}.txt")), text).unwrap();
        }
        world.run(&["run", "read"]).ended_with(0);
        let asked = world.model.asked().pop().unwrap();
        let calls: Vec<String> =
            asked.calls().iter().map(|call| call.arguments["path"].to_string()).collect();
        let expected: Vec<String> = (0..8).map(|number| format!("\"{number}.txt\"")).collect();
        assert_eq!(calls, expected, "{shape}");
        for (number, text) in last_results(&world.model).iter().enumerate() {
            assert!(text.contains(&format!("file {number}")), "{shape}, {number}: {text}");
        }
        world.model.assert_no_violations();
    }
}

#[test]
fn a_read_that_came_is_kept_though_another_of_its_message_never_ends() {
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        0 => Reply::empty()
            .call("read_file", json!({ "path": "fast.txt" }))
            .call("shell", json!({ "command": "touch begun; sleep 1; cat fast.txt" })),
        _ => Reply::text("done"),
    });
    std::fs::write(world.workspace().join("fast.txt"), "the first words").unwrap();
    let mut running = world.start(&["run", "--yes", "--json", "read"]);
    wait_for("the second call", PATIENCE, || world.workspace().join("begun").exists());
    std::fs::write(world.workspace().join("fast.txt"), "other words").unwrap();
    running.kill_and_wait();
    world.run(&["resume", "--yes"]).ended_with(0);
    let results = last_results(&world.model);
    assert!(results[0].contains("the first words"), "it was read again: {results:?}");
    assert!(results[1].contains("other words"), "{results:?}");
    world.model.assert_no_violations();
}

/// Files are written and edited, and the agent is killed at each change in the workspace.
fn editing() -> impl Fn(&ModelRequest) -> Reply + Send + 'static {
    |asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("write_file", json!({ "path": "a.txt", "content": "one\ntwo\n" })),
        1 => {
            let arguments = json!({ "path": "a.txt", "old": "two", "new": "two, three" });
            Reply::call_of("edit_file", &arguments)
        }
        2 => Reply::call_of("write_file", json!({ "path": "b/c.txt", "content": "deep\n" })),
        3 => Reply::call_of("edit_file", json!({ "path": "old.txt", "old": "x", "new": "xx" })),
        _ => Reply::text("edited"),
    }
}

#[test]
fn killed_between_the_effect_and_the_record_files_are_changed_once() {
    let servers: Mutex<HashMap<PathBuf, ModelServer>> = Mutex::new(HashMap::new());
    let prepare = |workspace: &Path| -> Command {
        let server = ModelServer::start(editing());
        let home = workspace.with_file_name("home");
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(workspace.join("old.txt"), "x\n").unwrap();
        std::fs::write(home.join("config.toml"), configuration(Shape::Chat, &server)).unwrap();
        servers.lock().unwrap().insert(workspace.to_owned(), server);
        program(&home, workspace, &["run", "--json", "--key", "k", "edit"])
    };
    let verify = |outcome: &Outcome<'_>| {
        let workspace = outcome.directory;
        let server = servers.lock().unwrap().remove(workspace).unwrap();
        let home = workspace.with_file_name("home");
        let told = program(&home, workspace, &["run", "--json", "--key", "k", "edit"]);
        let told = Told::from({ told }.output().unwrap()).ended_with(0);
        assert_eq!(told.event("end")["answer"], "edited");
        let read = |name: &str| std::fs::read_to_string(workspace.join(name)).unwrap();
        assert_eq!(read("a.txt"), "one\ntwo, three\n");
        assert_eq!(read("b/c.txt"), "deep\n");
        assert_eq!(read("old.txt"), "xx\n", "edited twice or never");
        let results = last_results(&server);
        for (number, result) in results.iter().enumerate() {
            let done = ["Created", "Changed", "Wrote"].iter().any(|word| result.contains(word));
            assert!(done, "call {number} is told as: {result}");
        }
        server.assert_no_violations();
    };
    let swept = Sweep::of(Mode::Kill).run(prepare, verify);
    assert!(swept.struck >= 8, "{swept:?}");
}

#[test]
fn nonsense_is_answered_and_the_turn_goes_on() {
    for shape in [Shape::Chat, Shape::Anthropic, Shape::Responses] {
        let world = World::speaking(shape, |asked: &ModelRequest| match asked.results().len() {
            0 => Reply::call_of("teleport", json!({ "to": "the moon" })),
            1 => Reply::empty().call_with_words("shell", "{\"command\": \"echo half >> count"),
            2 => Reply::empty().call_with_words("shell", "[1, 2]"),
            3 => Reply::call_of("shell", json!({ "comand": "echo misspelt >> count" })),
            4 => Reply::call_of("read_file", json!({ "path": 7 })),
            5 => Reply::call_of("shell", json!({})),
            _ => Reply::text("done"),
        });
        world.run(&["run", "--yes", "go"]).ended_with(0);
        let results = last_results(&world.model);
        assert!(results[0].contains("no tool teleport"), "{shape}: {}", results[0]);
        assert!(results[0].contains("read_file"), "{shape}: the others are not named");
        assert!(results[1].contains("not a JSON object"), "{shape}: {}", results[1]);
        assert!(results[2].contains("not a JSON object"), "{shape}: {}", results[2]);
        assert!(results[3].contains("comand"), "{shape}: {}", results[3]);
        assert_eq!(results.len(), 6, "{shape}");
        assert_eq!(world.file("count"), "", "{shape}");
        world.model.assert_no_violations();
    }
}

/// An answer in which a provider gives each of its calls the same id.
fn same_id_twice(commands: &[&str]) -> Reply {
    let calls: Vec<Value> = commands
        .iter()
        .enumerate()
        .map(|(index, command)| {
            let arguments = json!({ "command": command }).to_string();
            json!({ "index": index, "id": "call_same", "type": "function",
                "function": { "name": "shell", "arguments": arguments } })
        })
        .collect();
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        let body = json!({ "id": "x", "object": "chat.completion.chunk", "created": 1,
            "model": "m", "choices": [choice] });
        format!("data: {body}\n\n")
    };
    let text = chunk(json!({ "role": "assistant", "tool_calls": calls }), Value::Null)
        + &chunk(json!({}), json!("tool_calls"))
        + "data: [DONE]\n\n";
    Reply::raw(200, &[("content-type", "text/event-stream")], text)
}

#[test]
fn an_id_that_a_provider_uses_twice_names_two_calls() {
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        0 => same_id_twice(&["echo 0 >> count; echo zero", "echo 1 >> count; echo one"]),
        2 => same_id_twice(&["echo 2 >> count; echo two"]),
        _ => Reply::text("done"),
    });
    world.run(&["run", "--yes", "go"]).ended_with(0);
    assert_eq!(world.file("count"), "0\n1\n2\n");
    let results = last_results(&world.model);
    for (result, word) in results.iter().zip(["zero", "one", "two"]) {
        assert!(result.contains(word), "{results:?}");
    }
    assert_eq!(results.len(), 3, "{results:?}");
    world.model.assert_no_violations();
}

#[test]
fn a_write_outside_the_workspace_waits_for_a_person() {
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("new.txt");
    let path = target.clone();
    let world = World::new(move |asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("write_file", json!({ "path": path, "content": "hello" })),
        _ => Reply::text("done"),
    });
    let parked = world.run(&["run", "go"]).ended_with(3);
    assert!(parked.stderr.contains(target.to_str().unwrap()), "{}", parked.stderr);
    assert!(parked.stderr.contains("--yes"), "{}", parked.stderr);
    assert!(!target.exists());
    world.run(&["resume", "--yes"]).ended_with(0);
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "hello");
    world.model.assert_no_violations();
}

#[test]
fn a_denied_action_is_not_done_even_with_yes() {
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("shell", json!({ "command": "echo x >> count" })),
        1 => Reply::call_of("write_file", json!({ "path": "a.txt", "content": "a" })),
        _ => Reply::text("done"),
    });
    world.configure_more("[policy]\nexecute = \"deny\"\nwrite = \"deny\"");
    world.run(&["run", "--yes", "go"]).ended_with(0);
    assert_eq!(world.file("count") + &world.file("a.txt"), "");
    assert!(last_results(&world.model).iter().all(|result| result.contains("Not allowed")));
}

#[test]
fn a_parked_call_is_forgotten_when_something_else_is_asked() {
    let world =
        World::new(|asked: &ModelRequest| match asked.last_user_text().contains("instead") {
            true => Reply::text("something else"),
            false => Reply::call_of("shell", json!({ "command": "make x >> count" })),
        });
    let parked = world.run(&["run", "--json", "go"]).ended_with(3);
    let session = parked.session();
    let told = world.run(&["run", "--yes", "--session", &session, "instead"]).ended_with(0);
    assert_eq!(told.stdout, "something else\n");
    assert_eq!(world.file("count"), "");
    assert!(last_results(&world.model)[0].contains("not run"), "{:?}", last_results(&world.model));
    world.model.assert_no_violations();
}

#[test]
fn no_tool_opens_the_store_or_the_home() {
    let world = World::new(|_: &ModelRequest| Reply::text("hello"));
    world.run(&["run", "make a store"]).ended_with(0);
    let home = world.home();
    let config = std::fs::read_to_string(home.join("config.toml")).unwrap();
    std::os::unix::fs::symlink(&home, world.workspace().join("link")).unwrap();
    std::fs::hard_link(home.join("store.db"), world.workspace().join("hard.db")).unwrap();
    let paths = [
        home.join("store.db").display().to_string(),
        home.join("store.db-wal").display().to_string(),
        home.join("config.toml").display().to_string(),
        "../home/config.toml".to_owned(),
        "link/config.toml".to_owned(),
        "link/store.db".to_owned(),
        "hard.db".to_owned(),
    ];
    let tries: Vec<(&str, Value)> = paths
        .iter()
        .flat_map(|path| {
            [
                ("read_file", json!({ "path": path })),
                ("write_file", json!({ "path": path, "content": "model = \"evil/x\"" })),
                ("edit_file", json!({ "path": path, "old": "model", "new": "evil" })),
                ("grep", json!({ "pattern": "base_url|SQLite", "path": path })),
            ]
        })
        .collect();
    let number = tries.len();
    let script = rounds(number, move |number| tries[number].clone());
    let model = ModelServer::start(script);
    world.configure(&config.replace(&world.model.url(), &model.url()));
    let config = std::fs::read_to_string(home.join("config.toml")).unwrap();
    world.run(&["run", "--yes", "look"]).ended_with(0);
    let asked = model.asked().pop().unwrap();
    for (call, (_, text)) in asked.calls().iter().zip(asked.results()) {
        let leaked = text.contains("base_url =") || text.contains("SQLite format");
        let done = ["Created", "Changed", "Wrote"].iter().any(|word| text.contains(word));
        assert!(!leaked && !done, "{} {}: {text}", call.name, call.arguments);
    }
    assert_eq!(asked.results().len(), number);
    assert_eq!(std::fs::read_to_string(home.join("config.toml")).unwrap(), config);
    world.run(&["store", "check"]).ended_with(0);
    model.assert_no_violations();
}

#[test]
fn a_command_sees_no_keys() {
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("shell", json!({ "command": "env; cat /proc/$PPID/environ" })),
        _ => Reply::text("done"),
    });
    world.configure_more("api_key_env = \"LOCAL_KEY\"");
    let mut command = world.command(&["run", "--yes", "go"]);
    command.env("LOCAL_KEY", "sk-very-secret-1").env("OTHER_TOKEN", "sk-very-secret-2");
    Told::from(command.output().unwrap()).ended_with(0);
    let result = last_results(&world.model).pop().unwrap();
    assert!(result.contains("PATH="), "{result}");
    assert!(!result.contains("sk-very-secret"), "{result}");
}

#[test]
fn a_long_output_is_kept_head_and_tail() {
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("shell", json!({ "command": "seq 1 400000; exit 5" })),
        _ => Reply::text("done"),
    });
    world.run(&["run", "--yes", "go"]).ended_with(0);
    let result = last_results(&world.model).pop().unwrap();
    assert!(result.len() < 100_000, "{} bytes", result.len());
    assert!(result.contains("\n2\n") && result.contains("\n400000"), "head or tail is missing");
    assert!(result.contains("code 5") || result.contains("exit code 5"), "{}", &result[..200]);
}

#[test]
fn a_directory_that_looks_like_a_repository_runs_nothing_when_git_looks_at_it() {
    let command = "mkdir -p x/objects x/refs && echo 'ref: refs/heads/main' > x/HEAD \
        && cp settings x/config && cd x && git status";
    let world = World::new(move |asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("shell", json!({ "command": command })),
        _ => Reply::text("I looked."),
    });
    let ran = world.workspace().join("ran");
    let settings = format!(
        "[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = \"touch {}; false\"\n",
        ran.display()
    );
    std::fs::write(world.workspace().join("settings"), settings).unwrap();
    world.run(&["run", "look"]).ended_with(0);
    assert!(last_results(&world.model)[0].contains("safe.bareRepository"));
    assert!(!ran.exists());
}
