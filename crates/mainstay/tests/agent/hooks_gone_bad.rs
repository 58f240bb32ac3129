//! Hooks of every bad kind at once: the turn ends in time, and nothing is left of them.

use std::time::{Duration, Instant};

use mainstay_testkit::model::{ModelRequest, Reply};
use mainstay_testkit::process::wait_for;
use serde_json::{Value, json};

use crate::hooks::write_hooks;
use crate::world::World;

/// What each hook may take, in seconds.
const LIMIT: u64 = 2;

/// Hooks that do everything wrong, and whether each is told to the user. `MARK` becomes a time to
/// sleep that nobody else uses, so that what is left of them can be found.
const BAD: &[(&str, Told)] = &[
    ("sleep MARK", Told::Yes),
    ("trap '' TERM HUP INT; sleep MARK & wait; sleep MARK", Told::Yes),
    ("kill -STOP $$; sleep MARK", Told::Yes),
    // A bounded fork bomb that does not want to die.
    (
        "bomb() { trap '' TERM; [ $1 -le 0 ] || { bomb $(($1 - 1)) & bomb $(($1 - 1)) & }; sleep MARK; }; bomb 5",
        Told::Yes,
    ),
    // Daemons: another session, no terminal, another directory, no mark in the environment.
    ("setsid sleep MARK < /dev/null > /dev/null 2>&1 &", Told::No),
    ("cd /; env -i setsid -f sleep MARK > /dev/null 2>&1; exit 0", Told::No),
    ("kill -SEGV $$", Told::Yes),
    ("kill -KILL $$", Told::Yes),
    ("yes flood", Told::Yes),
    ("yes flood >&2", Told::Yes),
    ("head -c 5000000 /dev/zero", Told::Yes),
    ("printf '\\377\\376\\000garbage'", Told::Yes),
    ("echo '{ this is no JSON'", Told::Yes),
    (
        "printf '{\"systemMessage\":\"'; head -c 3000000 /dev/zero | tr '\\000' x; printf '\"}'",
        Told::Yes,
    ),
    ("exec 0<&-; exec 1>&-; exec 2>&-; exit 0", Told::No),
    // Never reads its input, which is larger than a pipe.
    ("sleep 0.1; exit 0", Told::No),
    ("/nowhere/missing-program", Told::Yes),
    ("/etc/passwd", Told::Yes),
    ("exit 1", Told::Yes),
    ("echo 'not found, I said' >&2; exit 127", Told::Yes),
    ("echo '{\"decision\": \"block\", \"reason\": \"too late\"}'; sleep MARK", Told::Yes),
    (
        "cd / && rm -rf \"$CLAUDE_PROJECT_DIR/nothing\"; ulimit -v 1000; head -c 99999999 /dev/zero | sort",
        Told::Maybe,
    ),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Yes,
    No,
    Maybe,
}

fn hooks(mark: &str, timeout: u64) -> Value {
    let commands: Vec<Value> = BAD
        .iter()
        .map(|(line, _)| {
            json!({ "type": "command", "command": line.replace("MARK", mark), "timeout": timeout })
        })
        .collect();
    json!([{ "matcher": "*", "hooks": commands }])
}

#[test]
fn slow_twenty_bad_hooks_at_once_cost_their_time_and_a_notice_each() {
    // A large input for those that never read it.
    let content = "words\n".repeat(40_000);
    let world = World::new(move |asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("write_file", json!({ "path": "a.txt", "content": content })),
        _ => Reply::text("done"),
    });
    let mark = format!("987{}.5", std::process::id());
    let moments = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"];
    let all: serde_json::Map<String, Value> =
        moments.iter().map(|moment| ((*moment).to_owned(), hooks(&mark, LIMIT))).collect();
    write_hooks(&world, &Value::Object(all));
    let begun = Instant::now();
    let told = world.run(&["run", "--json", "go"]).ended_with(0);
    let took = begun.elapsed();
    // Each moment takes as long as its slowest hook, and what killing that takes.
    // A busy machine takes longer to kill than to wait, and still not minutes.
    let most = Duration::from_secs((LIMIT + 10) * moments.len() as u64);
    assert!(took < most, "{took:?}");
    assert_eq!(told.event("end")["answer"], "done");
    assert_eq!(world.file("a.txt").len(), 240_000);
    let notices: Vec<String> = told
        .events()
        .iter()
        .filter(|event| event["type"] == "notice" && event["about"] == "hook")
        .map(|event| event["message"].as_str().unwrap().to_owned())
        .collect();
    for moment in moments {
        let of =
            notices.iter().filter(|words| words.contains(&format!("the {moment} hook"))).count();
        let least = BAD.iter().filter(|(_, told)| *told == Told::Yes).count();
        let most = BAD.iter().filter(|(_, told)| *told != Told::No).count();
        assert!((least..=most).contains(&of), "{moment}: {of} of {least}: {notices:#?}");
    }
    assert!(notices.iter().all(|words| words.len() < 500), "{notices:#?}");
    world.model.assert_no_violations();
    world.nothing_runs();
    assert_eq!(sleeping(&mark), Vec::<String>::new());
}

#[test]
fn bad_hooks_are_gone_when_the_agent_is_killed() {
    let world = World::new(|_: &ModelRequest| Reply::text("done"));
    let mark = format!("986{}.5", std::process::id());
    write_hooks(&world, &json!({ "UserPromptSubmit": hooks(&mark, 60) }));
    let mut command = world.command(&["run", "go"]);
    let mut running = world.started(command.env("MAINSTAY_KEEPER_GRACE", "0.2"));
    wait_for("the hooks", Duration::from_secs(20), || sleeping(&mark).len() > 30);
    running.kill_and_wait();
    wait_for("their end", Duration::from_secs(20), || sleeping(&mark).is_empty());
    wait_for("the end of the keeper", Duration::from_secs(10), || world.processes().is_empty());
}

/// The processes that sleep so long.
fn sleeping(mark: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.trim_end() == format!("sleep {mark}") {
            found.push(format!("{}: {line}", entry.file_name().to_string_lossy()));
        }
    }
    found
}
