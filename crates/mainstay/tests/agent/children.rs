//! Child sessions met from outside: approved, resumed by hand, set aside, undone, deleted, killed.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use mainstay_testkit::model::{ModelRequest, ModelServer, Reply, Script, Shape};
use mainstay_testkit::postgres;
use mainstay_testkit::process::{Signal, wait_for};
use mainstay_testkit::shim::{Kind, Mode};
use mainstay_testkit::sweep::{Outcome, Sweep};
use serde_json::{Value, json};

use crate::hooks::write_hooks;
use crate::world::{Told, World, configuration, program};

const PATIENCE: Duration = Duration::from_secs(30);

/// The parent gives `tasks` away; each child runs two commands that leave a line, and answers. A
/// task that names two numbers is passed on to one more child.
fn family(
    tasks: usize,
    command: impl Fn(&str, usize) -> String + Send + Sync + 'static,
) -> impl Script {
    move |asked: &ModelRequest| {
        let text = asked.last_user_text();
        let results = asked.results();
        let Some(name) = text.strip_prefix("task ") else {
            return match (text.as_str(), results.len()) {
                ("begin", 0) => (0..tasks).fold(Reply::text("Go."), |reply, number| {
                    reply.call("delegate", json!({ "task": format!("task {number}") }))
                }),
                ("begin", _) => {
                    let answers = results.iter().map(|(_, text)| {
                        text.lines().find(|line| line.starts_with("child ")).unwrap_or("nothing")
                    });
                    Reply::text(answers.collect::<Vec<_>>().join(", "))
                }
                _ => Reply::text("Something else."),
            };
        };
        match (name.strip_suffix(" deeper"), results.len()) {
            (Some(name), 0) => {
                Reply::call_of("delegate", json!({ "task": format!("task {name}") }))
            }
            (None, round @ 0..2) => {
                Reply::call_of("shell", json!({ "command": command(name, round) }))
            }
            _ => Reply::text(format!("child {name} is done")),
        }
    }
}

fn counting(name: &str, round: usize) -> String {
    format!("echo {round} >> count-{name}")
}

fn data(told: &Told) -> Value {
    serde_json::from_str(&told.stdout).unwrap_or_else(|error| panic!("{error}: {told:#?}"))
}

/// A world with a turn that waits because its children ask.
fn parked(tasks: usize) -> (World, String) {
    let world = World::new(family(tasks, counting));
    world.configure_more("[policy]\nwrite = \"ask\"\nexecute = \"ask\"");
    let told = world.run(&["run", "--json", "begin"]).ended_with(3);
    let session = told.session();
    (world, session)
}

fn requests(world: &World) -> Vec<Value> {
    let told = world.run(&["approvals", "--json"]).ended_with(0);
    data(&told)["requests"].as_array().unwrap().clone()
}

#[test]
fn something_new_stops_children_that_wait() {
    let (world, session) = parked(2);
    assert_eq!(requests(&world).len(), 2);
    let told = world.run(&["run", "--session", &session, "else"]).ended_with(0);
    assert_eq!(told.stdout.trim(), "Something else.");
    let shown = world.run(&["sessions", "show", &session, "--json"]).ended_with(0).stdout;
    assert_eq!(shown.matches("The helper was stopped").count(), 2, "{shown}");
    assert_eq!(requests(&world), Vec::<Value>::new());
    assert_eq!(world.file("count-0"), "");
    let nothing = world.run(&["resume"]).ended_with(0);
    assert!(nothing.stderr.contains("there is nothing to resume"), "{nothing:#?}");
    world.model.assert_no_violations();
}

#[test]
fn a_yes_to_a_child_goes_on_with_the_turn_that_waits_for_it() {
    let (world, session) = parked(1);
    let request = requests(&world)[0]["id"].as_str().unwrap().to_owned();
    let told = world.run(&["approve", &request]).ended_with(0);
    assert!(told.stdout.contains(&format!("resume {session}")), "{told:#?}");
    let told = world.run(&["resume", &session, "--json"]).ended_with(3);
    assert_eq!(told.session(), session);
    let request = requests(&world)[0]["id"].as_str().unwrap().to_owned();
    let told = world.run(&["--json", "approve", &request, "--resume"]).ended_with(0);
    assert_eq!(told.session(), session);
    assert_eq!(told.event("end")["answer"], "child 0 is done");
    assert_eq!(world.file("count-0"), "0\n1\n");
}

#[test]
fn a_child_resumed_by_hand_takes_its_parent_along() {
    let (world, session) = parked(2);
    let child = requests(&world)[0]["session"].as_str().unwrap().to_owned();
    assert_ne!(child, session);
    let told = world.run(&["resume", &child, "--yes", "--json"]).ended_with(0);
    assert_eq!(told.session(), session);
    assert_eq!(told.event("end")["answer"], "child 0 is done, child 1 is done");
    assert_eq!((world.file("count-0"), world.file("count-1")), ("0\n1\n".into(), "0\n1\n".into()));
}

#[test]
fn a_child_that_another_process_works_on_is_waited_for_and_not_said_to_be_stopped() {
    let world = World::new(family(1, |name, round| format!("{}; sleep 2", counting(name, round))));
    world.configure_more("[policy]\nwrite = \"ask\"\nexecute = \"ask\"");
    let session = world.run(&["run", "--json", "begin"]).ended_with(3).session();
    let child = requests(&world)[0]["session"].as_str().unwrap().to_owned();
    // The key of its input goes on with its turn alone.
    let other = world.start(&["run", "--session", &child, "--key", &child, "--yes", "again"]);
    wait_for("the child", PATIENCE, || !world.file("count-0").is_empty());
    let mut waiting = world.start(&["resume", &session, "--yes", "--json"]);
    waiting.line_with("tool_call", PATIENCE);
    waiting.signal(Signal::INT);
    world.ended(waiting, PATIENCE).ended_with(130);
    let shown = world.run(&["sessions", "show", &session, "--json"]).ended_with(0).stdout;
    assert!(shown.contains("worked on by another process"), "{shown}");
    world.ended(other, PATIENCE).ended_with(0);
    assert_eq!(world.file("count-0"), "0\n1\n");
}

#[test]
fn children_go_with_their_parent_and_never_before_it() {
    let (world, session) = parked(2);
    let child = requests(&world)[0]["session"].as_str().unwrap().to_owned();
    // Deleted alone, it would begin once more.
    let told = world.run(&["sessions", "delete", &child, "--yes"]).ended_with(4);
    assert!(told.stdout.contains(&format!("in use by session {session}")), "{told:#?}");
    world.run(&["sessions", "show", &child]).ended_with(0);
    let told = world.run(&["sessions", "delete", &child, &session, "--yes", "--json"]);
    assert_eq!(data(&told.ended_with(0))["deleted"].as_array().unwrap().len(), 3);
    assert_eq!(requests(&world), Vec::<Value>::new());
}

#[test]
fn a_fork_and_a_copy_of_a_parent_that_waits_leave_its_children_alone() {
    let (world, session) = parked(2);
    let fork = world.run(&["sessions", "fork", &session, "--json"]).ended_with(0);
    let fork = data(&fork)["id"].as_str().unwrap().to_owned();
    let file = world.home().join("copy.jsonl").display().to_string();
    let exported = world.run(&["sessions", "export", &session]).ended_with(0);
    std::fs::write(&file, exported.stdout).unwrap();
    let copy = world.run(&["sessions", "import", &file, "--json"]).ended_with(0);
    let copy = data(&copy)["id"].as_str().unwrap().to_owned();
    for other in [&fork, &copy] {
        let told = world.run(&["run", "--session", other, "else"]).ended_with(0);
        assert_eq!(told.stdout.trim(), "Something else.");
        world.run(&["sessions", "delete", other, "--yes"]).ended_with(0);
    }
    assert_eq!(requests(&world).len(), 2);
    let told = world.run(&["resume", &session, "--yes", "--json"]).ended_with(0);
    assert_eq!(told.event("end")["answer"], "child 0 is done, child 1 is done");
    assert_eq!((world.file("count-0"), world.file("count-1")), ("0\n1\n".into(), "0\n1\n".into()));
    world.model.assert_no_violations();
}

#[test]
fn nothing_of_a_family_at_work_is_deleted() {
    let world = World::new(family(2, |name, round| match name {
        "0" => counting(name, round),
        name => format!("{}; sleep 30", counting(name, round)),
    }));
    let mut running = world.start(&["run", "--yes", "--json", "begin"]);
    let line = running.line_with("\"session\"", PATIENCE);
    let session = serde_json::from_str::<Value>(&line).unwrap()["id"].as_str().unwrap().to_owned();
    let line = running.line_with("child 0 is done", PATIENCE);
    let (_, rest) = line.split_once("(session ").unwrap();
    let child = rest.split_once(')').unwrap().0.to_owned();
    wait_for("the other child", PATIENCE, || !world.file("count-1").is_empty());
    world.run(&["sessions", "delete", &session, "--yes"]).ended_with(4);
    world.run(&["sessions", "show", &child]).ended_with(0);
    running.kill_and_wait();
    // With nobody at work all of it goes, what it had left too.
    let told = world.run(&["sessions", "delete", &session, "--yes", "--json"]).ended_with(0);
    assert_eq!(data(&told)["deleted"].as_array().unwrap().len(), 3);
    kill_keepers(&world);
}

#[test]
fn stopped_while_some_wait_for_room_each_says_how_far_it_came() {
    let world =
        World::new(family(6, |name, round| format!("{}; sleep 300", counting(name, round))));
    let mut running = world.start(&["run", "--yes", "--json", "begin"]);
    let begun = || (0..6).filter(|child| !world.file(&format!("count-{child}")).is_empty()).count();
    wait_for("four at work", PATIENCE, || begun() == 4);
    let line = running.line_with("\"session\"", PATIENCE);
    let session = serde_json::from_str::<Value>(&line).unwrap()["id"].as_str().unwrap().to_owned();
    running.signal(Signal::INT);
    world.ended(running, Duration::from_secs(8)).ended_with(130);
    world.nothing_runs();
    let shown = world.run(&["sessions", "show", &session, "--json"]).ended_with(0).stdout;
    assert_eq!(shown.matches("The helper was stopped (session").count(), 4, "{shown}");
    assert_eq!(shown.matches("stopped before it began").count(), 2, "{shown}");
    assert_eq!(begun(), 4);
}

#[test]
fn what_children_did_to_files_is_undone_with_their_parents_turn() {
    let world = World::new(family(3, counting));
    std::fs::write(world.workspace().join("count-1"), "before\n").unwrap();
    let told = world.run(&["run", "--yes", "--json", "begin"]).ended_with(0);
    assert_eq!(world.file("count-1"), "before\n0\n1\n");
    world.run(&["undo", &told.session()]).ended_with(0);
    assert_eq!(world.file("count-1"), "before\n");
    assert!(!world.workspace().join("count-0").exists());
    assert!(!world.workspace().join("count-2").exists());
}

#[test]
fn what_a_child_did_after_it_waited_is_undone_too() {
    let (world, session) = parked(2);
    let request = requests(&world)[0]["id"].as_str().unwrap().to_owned();
    world.run(&["approve", &request]).ended_with(0);
    world.run(&["resume", &session]).ended_with(3);
    std::fs::write(world.workspace().join("mine"), "of a person, meanwhile").unwrap();
    world.run(&["resume", &session, "--yes"]).ended_with(0);
    assert_eq!((world.file("count-0"), world.file("count-1")), ("0\n1\n".into(), "0\n1\n".into()));
    world.run(&["undo", &session]).ended_with(0);
    assert_eq!((world.file("count-0"), world.file("count-1")), (String::new(), String::new()));
    assert_eq!(world.file("mine"), "of a person, meanwhile");
}

#[test]
fn hooks_see_the_calls_of_children_and_take_their_tasks_for_nobodys_words() {
    let world = World::new(family(2, counting));
    let moments = ["SessionStart", "UserPromptSubmit", "PreToolUse", "Stop"];
    let note = |moment: &str| {
        let command = format!("echo {moment} >> '{}'", world.home().join("fired").display());
        (moment.to_owned(), json!([{ "hooks": [{ "type": "command", "command": command }] }]))
    };
    write_hooks(&world, &moments.into_iter().map(note).collect());
    world.run(&["run", "--yes", "begin"]).ended_with(0);
    let fired = std::fs::read_to_string(world.home().join("fired")).unwrap();
    let counts = moments.map(|moment| fired.lines().filter(|line| *line == moment).count());
    assert_eq!(counts, [1, 1, 6, 1], "{fired}");
}

#[test]
fn a_family_lives_in_postgresql_too() {
    let store = postgres::fresh();
    let world = World::new(family(2, counting));
    world.configure_more("[policy]\nwrite = \"ask\"\nexecute = \"ask\"");
    let run = |words: &[&str]| world.run(&[&["--store", store.as_str()], words].concat());
    let session = run(&["run", "--json", "begin"]).ended_with(3).session();
    let list = run(&["approvals", "--json"]).ended_with(0);
    let request = data(&list)["requests"][0]["id"].as_str().unwrap().to_owned();
    run(&["approve", &request]).ended_with(0);
    run(&["resume", &session, "--json"]).ended_with(3);
    let told = run(&["resume", &session, "--yes", "--json"]).ended_with(0);
    assert_eq!(told.event("end")["answer"], "child 0 is done, child 1 is done");
    assert_eq!((world.file("count-0"), world.file("count-1")), ("0\n1\n".into(), "0\n1\n".into()));
    run(&["undo", &session]).ended_with(0);
    assert_eq!((world.file("count-0"), world.file("count-1")), (String::new(), String::new()));
    let told = run(&["sessions", "delete", &session, "--yes", "--json"]).ended_with(0);
    assert_eq!(data(&told)["deleted"].as_array().unwrap().len(), 3);
    world.nothing_runs();
}

#[test]
fn a_family_killed_with_its_record_in_postgresql_goes_on() {
    let store = postgres::fresh();
    let world =
        World::new(family(6, |name, round| format!("{}; sleep 0.2", counting(name, round))));
    let run = |words: &[&str]| world.run(&[&["--store", store.as_str()], words].concat());
    let begin: &[&str] = &["--store", &store, "run", "--yes", "--json", "begin"];
    let resume: &[&str] = &["--store", &store, "resume", "--yes", "--json"];
    let counted =
        || (0..6).map(|child| world.file(&format!("count-{child}")).lines().count()).sum::<usize>();
    for (words, enough) in [(begin, 3), (resume, 6), (resume, 9)] {
        let mut running = world.start(words);
        wait_for("some work", PATIENCE, || counted() >= enough);
        running.kill_and_wait();
    }
    let told = run(&["resume", "--yes", "--json"]).ended_with(0);
    let answer = told.event("end")["answer"].as_str().unwrap().to_owned();
    assert_eq!(answer.matches("is done").count(), 6, "{told:#?}");
    for child in 0..6 {
        assert_eq!(world.file(&format!("count-{child}")), "0\n1\n");
    }
    world.nothing_runs();
    world.model.assert_no_violations();
}

/// Kills the keepers of a world, and what they keep.
fn kill_keepers(world: &World) {
    for line in world.processes() {
        let pid: i32 = line.split(':').next().unwrap().parse().unwrap();
        // One that is gone already is gone.
        let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
    }
}

#[test]
fn slow_heavy_a_parent_killed_with_its_keeper_has_each_result_once() {
    // Half of the children have a child of their own, who does the work.
    let script = || {
        // Most of the time is spent asleep, on a busy machine too.
        let mut all = family(8, |name, round| format!("{}; sleep 0.2", counting(name, round)));
        move |asked: &ModelRequest| {
            if asked.last_user_text() == "begin" && asked.results().is_empty() {
                return (0..8).fold(Reply::text("Go."), |reply, number| {
                    let deeper = if number % 2 == 0 { "" } else { " deeper" };
                    reply.call("delegate", json!({ "task": format!("task {number}{deeper}") }))
                });
            }
            all.reply(asked)
        }
    };
    let usual = {
        let world = World::new(script());
        let start = Instant::now();
        world.run(&["run", "--yes", "begin"]).ended_with(0);
        start.elapsed()
    };
    let mut killed = 0;
    let mut random = fastrand::Rng::with_seed(4);
    for number in 0..16 {
        let world = World::new(script());
        let begin: &[&str] = &["run", "--yes", "--json", "begin"];
        let (keepers_die, mut words) = (number % 2 == 1, begin);
        // Once, twice or three times in a row.
        for again in 0..=number % 3 {
            let mut running = world.start(words);
            let delay = if again == 0 { f64::from(number) / 20.0 } else { random.f64() / 2.0 };
            let until = Instant::now() + usual.mul_f64(delay);
            while Instant::now() < until && running.is_running() {
                std::thread::sleep(Duration::from_millis(1));
            }
            killed += usize::from(running.kill_and_wait().code().is_none());
            if keepers_die {
                kill_keepers(&world);
            }
            words = &["resume", "--yes", "--json"];
        }
        let told = world.run(&["resume", "--yes", "--json"]).ended_with(0);
        if told.stdout.contains("nothing to resume") {
            continue;
        }
        let end = told.event("end");
        let answer = end["answer"].as_str().unwrap();
        assert_eq!(answer.matches("is done").count(), 8, "kill {number}: {told:#?}");
        for child in 0..8 {
            let counted = world.file(&format!("count-{child}"));
            let mut lines: Vec<&str> = counted.lines().collect();
            lines.dedup();
            assert!(lines.len() <= 2 && lines.len() == counted.lines().count(), "{counted}");
            assert!(keepers_die || lines == ["0", "1"], "kill {number}: {counted}");
        }
        let shown = world.run(&["sessions", "show", &told.session(), "--json"]).ended_with(0);
        assert_eq!(shown.stdout.matches("The helper answered").count(), 8, "{shown:#?}");
        world.nothing_runs();
        world.model.assert_no_violations();
    }
    println!("{killed} of 31 kills came in time");
    assert!(killed > 15, "most kills came too late");
}

#[test]
fn slow_a_parent_that_was_paused_past_its_lease_writes_no_more() {
    let world =
        World::new(family(5, |name, round| format!("{}; sleep 0.3", counting(name, round))));
    let mut paused = world.start(&["run", "--yes", "--json", "begin"]);
    let line = paused.line_with("\"session\"", PATIENCE);
    let session = serde_json::from_str::<Value>(&line).unwrap()["id"].as_str().unwrap().to_owned();
    wait_for("a child", PATIENCE, || !world.file("count-0").is_empty());
    paused.signal(Signal::STOP);
    let told = world.run(&["resume", &session, "--yes", "--json", "--wait"]).ended_with(0);
    let answer = told.event("end")["answer"].as_str().unwrap().to_owned();
    assert_eq!(answer.matches("is done").count(), 5, "{told:#?}");
    paused.signal(Signal::CONT);
    let late = world.ended(paused, PATIENCE);
    assert_ne!(late.code, Some(0), "{late:#?}");
    for child in 0..5 {
        assert_eq!(world.file(&format!("count-{child}")), "0\n1\n");
    }
    let shown = world.run(&["sessions", "show", &session, "--json"]).ended_with(0).stdout;
    assert_eq!(shown.matches("The helper answered").count(), 5, "{shown}");
    world.nothing_runs();
}

/// Kills a family at every sync: resumed, each command ran once and each answer is there; undone,
/// nothing of it is left.
#[test]
fn slow_heavy_a_family_killed_at_any_sync_goes_on_and_can_be_undone() {
    let places = |directory: &Path| (directory.join("home"), directory.with_file_name("work"));
    let model = ModelServer::start(family(3, counting));
    let prepare = |directory: &Path| -> Command {
        let (home, work) = places(directory);
        std::fs::create_dir_all(&home).unwrap();
        std::fs::create_dir_all(&work).unwrap();
        std::fs::write(work.join("count-1"), "before\n").unwrap();
        std::fs::write(home.join("config.toml"), configuration(Shape::Chat, &model)).unwrap();
        program(&home, &work, &["run", "--yes", "begin"])
    };
    let verify = |outcome: &Outcome<'_>| {
        let (home, work) = places(outcome.directory);
        let run = |words: &[&str]| Told::from(program(&home, &work, words).output().unwrap());
        let file = |child| {
            std::fs::read_to_string(work.join(format!("count-{child}"))).unwrap_or_default()
        };
        let told = run(&["resume", "--yes", "--json"]);
        if told.code == Some(0) && told.event("end")["outcome"] != "nothing" {
            let answer = told.event("end")["answer"].as_str().unwrap().to_owned();
            assert_eq!(answer.matches("is done").count(), 3, "{told:#?}");
        }
        let begun = run(&["sessions", "list"]).stdout.contains("begin");
        let counted = if begun { "0\n1\n" } else { "" };
        let now = [file(0), file(1), file(2)];
        assert_eq!(now, [counted.into(), format!("before\n{counted}"), counted.to_owned()]);
        if begun {
            run(&["undo"]).ended_with(0);
            assert_eq!([file(0), file(1), file(2)], ["", "before\n", ""]);
        }
    };
    let swept = Sweep::of(Mode::Kill).only(&[Kind::Sync]).run(prepare, verify);
    println!("{} points, {} kills", swept.points, swept.struck);
    assert!(swept.struck > 5, "{swept:?}");
}
