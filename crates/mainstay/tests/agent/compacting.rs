//! Compaction through the program: what a user sees, who may, and what a kill leaves.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use mainstay_testkit::model::{Gate, ModelRequest, ModelServer, Reply, Script, Shape};
use mainstay_testkit::shim::{Kind, Mode};
use mainstay_testkit::sweep::{Outcome, Sweep};
use serde_json::{Value, json};

use crate::hooks::write_hooks;
use crate::terminal::Terminal;
use crate::world::{Told, World, configuration, program};

const PATIENCE: Duration = Duration::from_secs(30);
/// What a summary begins with.
const SUMMARY: &str = "SUMMARY: it was counted.";
/// How what stands for replaced entries begins.
const RECORD: &str = "a record of this session";

fn is_summary(asked: &ModelRequest) -> bool {
    asked.system().starts_with("You write the record")
}

/// Speaks at length and runs a command in each of so many rounds of a turn that wants counting. How
/// far it is, is read from the last call, which is always there.
fn counter(rounds: u64) -> impl Script {
    move |asked: &ModelRequest| {
        if is_summary(asked) {
            return Reply::text(SUMMARY);
        }
        if !asked.last_user_text().contains("count") {
            return Reply::text("Done.");
        }
        let last = asked.calls().last().and_then(|call| {
            call.arguments["command"].as_str()?.split_whitespace().nth(1)?.parse::<u64>().ok()
        });
        let next = last.map_or(0, |last| last + 1);
        if next >= rounds {
            return Reply::text("All counted.");
        }
        let words = format!("Now comes number {next}, as the plan says. ").repeat(40);
        Reply::text(words).call("shell", json!({ "command": format!("echo {next} >> count") }))
    }
}

/// The model's window, small.
fn with_window(world: &World) {
    world.configure_more("[models.\"local/qwen\"]\nwindow = 12000\nmax_output = 1000");
}

fn data(told: &Told) -> Value {
    serde_json::from_str(&told.stdout).unwrap_or_else(|error| panic!("{error}: {told:#?}"))
}

/// Counts, and answers the session.
fn counted(world: &World) -> String {
    world.run(&["run", "--yes", "--json", "count"]).ended_with(0).session()
}

fn last_asked(world: &World) -> String {
    world.model.asked().pop().unwrap().body.to_string()
}

#[test]
fn a_session_is_compacted_and_uncompacted_from_the_command_line() {
    let world = World::new(counter(10));
    let id = counted(&world);
    let told = world.run(&["sessions", "compact", &id, "--focus", "the numbers"]).ended_with(0);
    assert!(told.stdout.contains("is compacted: about "), "{told:#?}");
    assert!(told.stdout.contains(&format!("sessions uncompact {id}")), "{told:#?}");
    let summary = world.model.asked().pop().unwrap();
    assert!(is_summary(&summary) && summary.last_user_text().contains("the numbers"));
    world.run(&["run", "--session", &id, "go on"]).ended_with(0);
    let sent = last_asked(&world);
    assert!(sent.contains(RECORD) && sent.contains(SUMMARY), "{sent}");
    assert!(!sent.contains("Now comes number 1,"), "{sent}");

    let back = data(&world.run(&["sessions", "uncompact", &id, "--json"]).ended_with(0));
    assert_eq!(back["number"], 1);
    world.run(&["run", "--session", &id, "go on"]).ended_with(0);
    let sent = last_asked(&world);
    assert!(sent.contains("Now comes number 1,") && !sent.contains(RECORD), "{sent}");
    let none = world.run(&["sessions", "uncompact", &id]).ended_with(0);
    assert!(none.stdout.contains("no compaction in force"), "{none:#?}");
    let words = ["sessions", "compact", &id, "--json", "--model", "local/other"];
    let again = data(&world.run(&words).ended_with(0));
    assert_eq!(again["number"], 2);
    assert_eq!(world.model.asked().pop().unwrap().model(), "other");
    let before = again["before"].as_u64().unwrap();
    assert!(again["after"].as_u64().unwrap() * 5 <= before * 4, "{again}");

    // What it took is in the ledger, and there is nothing to gain once more.
    let calls = world.model.asked().iter().filter(|asked| is_summary(asked)).count();
    assert_eq!(calls, 2);
    let none = world.run(&["sessions", "compact", &id]).ended_with(1);
    assert!(none.stderr.contains("was not compacted") && none.stderr.contains("mainstay context"));
    world.model.assert_no_violations();
    world.nothing_runs();
}

#[test]
fn who_wants_to_compact_what_another_process_has_is_told_who() {
    let gate = Gate::new();
    let held = gate.clone();
    let mut script = counter(10);
    let world = World::new(move |asked: &ModelRequest| match is_summary(asked) {
        true => Reply::text(SUMMARY).held_by(&held),
        false => script.reply(asked),
    });
    let id = counted(&world);
    let before = world.model.requests();
    let one = world.start(&["sessions", "compact", &id]);
    world.model.wait_for_requests(before + 1, PATIENCE);
    for words in [["sessions", "compact", &id], ["sessions", "uncompact", &id]] {
        let other = world.run(&words).ended_with(4);
        assert!(other.stderr.contains(&format!("{}@", one.pid())), "{}", other.stderr);
    }
    gate.open();
    assert!(world.ended(one, PATIENCE).ended_with(0).stdout.contains("is compacted"));
    world.model.assert_no_violations();
}

#[test]
fn a_long_turn_tells_its_compactions_and_finishes() {
    let world = World::new(counter(40));
    with_window(&world);
    let told = world.run(&["run", "--yes", "--json", "count"]).ended_with(0);
    assert_eq!(told.event("end")["answer"], "All counted.");
    let event = told.event("compacted");
    assert_eq!((&event["number"], &event["why"]), (&json!(1), &json!("window")), "{event}");
    assert!(event["after"].as_u64().unwrap() * 5 <= event["before"].as_u64().unwrap() * 4);
    assert_eq!(world.file("count").lines().count(), 40);
    let sent = last_asked(&world);
    assert!(sent.contains(RECORD) && sent.contains("exit code 0"), "{sent}");
    // In words it is a note.
    let again = world.run(&["run", "--yes", "count"]).ended_with(0);
    assert!(again.stderr.contains("note: compacted: about "), "{}", again.stderr);
    world.model.assert_no_violations();
    world.nothing_runs();
}

#[test]
fn a_helper_s_session_is_compacted_like_any_other() {
    let mut script = counter(40);
    let world = World::new(move |asked: &ModelRequest| {
        match (asked.last_user_text().contains("give it away"), asked.results().is_empty()) {
            (true, true) => Reply::call_of("delegate", json!({ "task": "count" })),
            _ => script.reply(asked),
        }
    });
    with_window(&world);
    let told = world.run(&["run", "--yes", "--json", "give it away"]).ended_with(0);
    assert_eq!(told.event("end")["answer"], "Done.");
    assert_eq!(world.file("count").lines().count(), 40);
    let helper = |asked: &ModelRequest| asked.system().contains("You are a helper");
    let compacted = |asked: &ModelRequest| asked.body.to_string().contains(RECORD);
    assert!(world.model.asked().iter().any(|asked| helper(asked) && compacted(asked)));
    let parents = |asked: &&ModelRequest| !helper(asked) && !is_summary(asked);
    assert!(!world.model.asked().iter().filter(parents).any(compacted));
    world.model.assert_no_violations();
    world.nothing_runs();
}

#[test]
fn hooks_before_a_compaction_add_to_it_or_prevent_it() {
    let told = |line: &str| json!([{ "hooks": [{ "type": "command", "command": line }] }]);
    let world = World::new(counter(10));
    let id = counted(&world);
    write_hooks(
        &world,
        &json!({ "hooks": { "PreCompact": told("cat > seen; echo 'in French'") } }),
    );
    world.run(&["sessions", "compact", &id, "--focus", "numbers"]).ended_with(0);
    let seen: Value = serde_json::from_str(&world.file("seen")).unwrap();
    assert_eq!(seen["hook_event_name"], "PreCompact");
    assert_eq!(
        (&seen["trigger"], &seen["custom_instructions"]),
        (&json!("manual"), &json!("numbers"))
    );
    assert!(world.model.asked().pop().unwrap().last_user_text().contains("in French"));

    let world = World::new(counter(30));
    with_window(&world);
    let no = json!([{ "matcher": "auto", "hooks": [
        { "type": "command", "command": "echo x >> asked; echo 'not today' >&2; exit 2" }] }]);
    write_hooks(&world, &json!({ "hooks": { "PreCompact": no } }));
    let told = world.run(&["run", "--yes", "--json", "count"]).ended_with(0);
    assert_eq!(told.event("end")["answer"], "All counted.");
    assert!(!world.model.asked().iter().any(is_summary), "a summary was made all the same");
    assert_eq!(world.file("asked"), "x\n", "the hook is not asked in every round");
    let notice = told.event("notice");
    assert!(notice["message"].as_str().unwrap().contains("not today"), "{notice}");
    world.nothing_runs();
}

#[test]
fn the_chat_compacts_and_takes_it_back() {
    let gate = Gate::new();
    let held = gate.clone();
    let mut script = counter(10);
    let world = World::new(move |asked: &ModelRequest| match is_summary(asked) {
        true => Reply::text(SUMMARY).held_by(&held),
        false => script.reply(asked),
    });
    let mut terminal = Terminal::start(&world, (30, 100), &["chat", "--yes"]);
    terminal.sees("local/qwen");
    terminal.send("/compact");
    terminal.sees("there is nothing to compact yet");
    terminal.send("count");
    terminal.sees("All counted.");
    terminal.send("/compact the numbers");
    terminal.sees("making room: a summary");
    gate.open();
    terminal.sees("compacted: about ");
    terminal.send("go on");
    terminal.sees("Done.");
    assert!(last_asked(&world).contains(SUMMARY));
    terminal.send("/uncompact");
    terminal.sees("compaction 1 is taken back");
    terminal.send("go on again");
    world.model.wait_for_requests(world.model.requests() + 1, PATIENCE);
    assert!(!last_asked(&world).contains(RECORD));
    terminal.send("/uncompact");
    terminal.sees("no compaction is in force");
    terminal.keys("\x04");
    assert_eq!(terminal.ended().0.code(), Some(0));
    world.model.assert_no_violations();
    world.nothing_runs();
}

#[test]
fn settings_that_make_no_sense_are_told() {
    let world = World::new(counter(1));
    for (line, words) in [
        ("at = 1.5", "compaction.at is 1.5"),
        ("on_failure = \"shrug\"", "compaction.on_failure is \"shrug\""),
        ("model = \"nobody/x\"", "there is no provider \"nobody\""),
        ("timeout = \"soon\"", "compaction.timeout is no time"),
    ] {
        let usual = configuration(Shape::Chat, &world.model);
        world.configure(&format!("{usual}\n[compaction]\n{line}\n"));
        let failed = world.run(&["run", "hello"]);
        assert_ne!(failed.code, Some(0));
        assert!(failed.stderr.contains(words), "{line}: {}", failed.stderr);
    }
}

/// A run of a command on a home of its own, killed somewhere.
struct Sweeping<'a> {
    servers: Mutex<HashMap<PathBuf, ModelServer>>,
    rounds: u64,
    /// What is done before, unharmed.
    before: &'a [&'a str],
    /// What is killed; `ID` stands for the session.
    command: &'a [&'a str],
}

impl Sweeping<'_> {
    fn prepare(&self, home: &Path) -> Command {
        let server = ModelServer::start(counter(self.rounds));
        let workspace = home.with_file_name("work");
        std::fs::create_dir_all(&workspace).unwrap();
        let text = format!(
            "{}\n[models.\"local/qwen\"]\nwindow = 12000\nmax_output = 1000\n",
            configuration(Shape::Chat, &server)
        );
        std::fs::write(home.join("config.toml"), text).unwrap();
        self.servers.lock().unwrap().insert(home.to_owned(), server);
        let mut id = String::new();
        if !self.before.is_empty() {
            let told: Told = program(home, &workspace, self.before).output().unwrap().into();
            id = told.ended_with(0).session();
        }
        let words: Vec<&str> = self
            .command
            .iter()
            .map(|word| if *word == "ID" { id.as_str() } else { word })
            .collect();
        program(home, &workspace, &words)
    }

    fn server(&self, home: &Path) -> ModelServer {
        self.servers.lock().unwrap().remove(home).unwrap()
    }
}

fn run(home: &Path, words: &[&str]) -> Told {
    program(home, &home.with_file_name("work"), words).output().unwrap().into()
}

/// The numbers of all compactions.
fn compactions(home: &Path, id: &str) -> Vec<i64> {
    let shown = data(&run(home, &["sessions", "show", id, "--json"]).ended_with(0));
    let log = shown["log"].as_array().unwrap();
    let made = log.iter().filter(|entry| entry["kind"] == "compaction");
    (1..).take(made.count()).collect()
}

#[test]
fn slow_heavy_killed_at_every_sync_of_a_compaction_the_view_is_the_old_or_the_new_one() {
    let sweeping = Sweeping {
        servers: Mutex::default(),
        rounds: 8,
        before: &["run", "--yes", "--json", "count"],
        command: &["sessions", "compact", "ID"],
    };
    let verify = |outcome: &Outcome<'_>| {
        let home = outcome.directory;
        let server = sweeping.server(home);
        let sessions = data(&run(home, &["sessions", "list", "--json"]).ended_with(0));
        let id = sessions[0]["id"].as_str().unwrap().to_owned();
        let made = compactions(home, &id);
        run(home, &["run", "--session", &id, "go on"]).ended_with(0);
        let sent = server.asked().pop().unwrap().body.to_string();
        let (old, new) = (sent.contains("Now comes number 0,"), sent.contains(SUMMARY));
        assert_eq!((old, new), (made.is_empty(), !made.is_empty()), "{sent}");
        assert_eq!(sent.contains(RECORD), new, "{sent}");
        assert!(sent.contains("go on") && sent.contains("count"), "{sent}");
        if outcome.status.success() {
            assert_eq!(made, [1], "it said that it is compacted");
        }
        // Nothing is held, and it can be compacted if it was not.
        let again = run(home, &["sessions", "compact", &id]);
        assert_eq!(again.code == Some(0), made.is_empty(), "{again:#?}");
        run(home, &["store", "check"]).ended_with(0);
        server.assert_no_violations();
    };
    let sweep = Sweep::of(Mode::Kill).only(&[Kind::Sync]);
    let swept = sweep.run(|home| sweeping.prepare(home), verify);
    println!("{} points, {} kills", swept.points, swept.struck);
    assert!(swept.points >= 3, "{swept:?}");
}

#[test]
fn slow_heavy_killed_at_syncs_of_a_turn_that_compacts_it_is_resumed_and_every_request_is_valid() {
    let rounds = 26;
    let sweeping = Sweeping {
        servers: Mutex::default(),
        rounds,
        before: &[],
        command: &["run", "--yes", "--json", "count"],
    };
    let verify = |outcome: &Outcome<'_>| {
        let home = outcome.directory;
        let server = sweeping.server(home);
        let sessions = run(home, &["sessions", "list", "--json"]);
        if sessions.code != Some(0) || data(&sessions)[0]["id"].is_null() {
            return;
        }
        let id = data(&sessions)[0]["id"].as_str().unwrap().to_owned();
        let told = run(home, &["resume", &id, "--yes", "--json"]).ended_with(0);
        assert_eq!(told.event("end")["answer"], "All counted.", "{told:#?}");
        let expected: String = (0..rounds).map(|number| format!("{number}\n")).collect();
        let count = home.with_file_name("work").join("count");
        assert_eq!(std::fs::read_to_string(count).unwrap(), expected);
        let made = compactions(home, &id);
        assert!((1..=4).contains(&made.len()), "{made:?}");
        assert!(server.asked().pop().unwrap().body.to_string().contains("count"));
        run(home, &["store", "check"]).ended_with(0);
        server.assert_no_violations();
    };
    let sweep = Sweep::of(Mode::Kill).only(&[Kind::Sync]).every(3);
    let swept = sweep.run(|home| sweeping.prepare(home), verify);
    println!("{} points, {} kills", swept.points, swept.struck);
    assert!(swept.points > rounds, "{swept:?}");
}
