//! Tasks for helpers: child sessions that begin once, answer once, and are stopped with their parent.

use std::process::Stdio;
use std::time::{Duration, Instant};

use mainstay_testkit::model::{ModelRequest, Reply, Script};
use mainstay_testkit::process::{Running, Signal, wait_for};
use serde_json::{Value, json};

use crate::world::{Told, World};

const PATIENCE: Duration = Duration::from_secs(30);
const CHILDREN: usize = 8;

/// The parent gives away `tasks` in one message and then says what came of each; a child counts in
/// three rounds, and answers.
fn family(tasks: usize) -> impl Script {
    resting(tasks, "")
}

/// The same, where each command ends with `rest`.
fn resting(tasks: usize, rest: &'static str) -> impl Script {
    move |asked: &ModelRequest| {
        let text = asked.last_user_text();
        let rounds = asked.results().len();
        let Some(number) = text.strip_prefix("task ") else {
            if rounds == 0 {
                return (0..tasks).fold(Reply::text("I give it away."), |reply, number| {
                    reply.call("delegate", json!({ "task": format!("task {number}") }))
                });
            }
            let answers = asked.results().into_iter().map(|(_, text)| {
                let answer = text.lines().find(|line| line.starts_with("child "));
                answer.unwrap_or("nothing").to_owned()
            });
            return Reply::text(answers.collect::<Vec<_>>().join(", "));
        };
        match rounds {
            3 => Reply::text(format!("child {number} is done")),
            round => {
                let command = format!("echo {number}.{round} >> count-{number}{rest}");
                Reply::call_of("shell", json!({ "command": command }))
            }
        }
    }
}

fn expected() -> String {
    (0..CHILDREN).map(|number| format!("child {number} is done")).collect::<Vec<_>>().join(", ")
}

/// Every child did each of its rounds once.
fn all_ran_once(world: &World) {
    for number in 0..CHILDREN {
        let counted = world.file(&format!("count-{number}"));
        assert_eq!(counted, format!("{number}.0\n{number}.1\n{number}.2\n"), "child {number}");
    }
}

fn session_of(world: &World) -> Option<String> {
    let told = world.run(&["sessions", "list", "--json"]);
    if told.code != Some(0) {
        return None;
    }
    let list: Value = serde_json::from_str(&told.stdout).unwrap();
    assert!(list.as_array().unwrap().len() <= 1, "children are listed: {list}");
    list[0]["id"].as_str().map(str::to_owned)
}

#[test]
fn eight_children_work_side_by_side_and_each_answer_arrives() {
    let world = World::new(family(CHILDREN));
    let told = world.run(&["run", "--yes", "begin"]).ended_with(0);
    assert_eq!(told.stdout.trim(), expected());
    all_ran_once(&world);
    let shown = world.run(&["cost", "--by", "session", "--json"]).ended_with(0).stdout;
    let rows: Value = serde_json::from_str(&shown).unwrap();
    let calls: i64 =
        rows["parts"].as_array().unwrap().iter().filter_map(|row| row["calls"].as_i64()).sum();
    assert_eq!(calls, 2 + 4 * CHILDREN as i64, "{shown}");
    world.nothing_runs();
    world.model.assert_no_violations();
}

/// Kills a run after a time, unless it is over.
fn killed_after(world: &World, delay: Duration) -> Told {
    let mut command = world.command(&["run", "--yes", "--json", "begin"]);
    let mut running = Running::spawn(command.stdin(Stdio::null()).stderr(Stdio::null()));
    let start = Instant::now();
    while start.elapsed() < delay && running.is_running() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let code = running.kill_and_wait().code();
    Told { code, stdout: String::new(), stderr: String::new() }
}

#[test]
fn slow_heavy_a_parent_killed_with_eight_children_has_each_result_once() {
    // Most of the time is spent asleep, so that it is much the same on a busy machine.
    let script = || resting(CHILDREN, "; sleep 0.2");
    let usual = {
        let world = World::new(script());
        let start = Instant::now();
        world.run(&["run", "--yes", "begin"]).ended_with(0);
        start.elapsed()
    };
    let mut killed = 0;
    for number in 0..24 {
        let world = World::new(script());
        let before = killed_after(&world, usual.mul_f64(f64::from(number) / 22.0));
        killed += usize::from(before.code.is_none());
        let Some(session) = session_of(&world) else { continue };
        let told = world.run(&["resume", &session, "--yes", "--json"]).ended_with(0);
        assert_eq!(told.event("end")["answer"], expected(), "kill {number}: {told:#?}");
        all_ran_once(&world);
        let shown = world.run(&["sessions", "show", &session, "--json"]).ended_with(0).stdout;
        for number in 0..CHILDREN {
            let answer = format!("child {number} is done");
            // Once as the result, once in the parent's last words.
            assert_eq!(shown.matches(&answer).count(), 2, "{answer} in {shown}");
        }
        world.nothing_runs();
        world.model.assert_no_violations();
    }
    println!("{killed} of 24 kills came in time");
    assert!(killed > 12, "most kills came too late");
}

#[test]
fn stopping_the_parent_stops_all_and_all_is_recorded() {
    for signal in [Signal::INT, Signal::TERM] {
        let world = World::new(|asked: &ModelRequest| match asked.last_user_text().as_str() {
            "begin" if asked.results().is_empty() => (0..3).fold(Reply::text("Go."), |reply, k| {
                reply.call("delegate", json!({ "task": format!("wait {k}") }))
            }),
            text if text.contains("again") => Reply::text("Here I am."),
            _ => Reply::call_of("shell", json!({ "command": "echo x >> begun; sleep 300" })),
        });
        let mut running = world.start(&["run", "--yes", "--json", "begin"]);
        let line = running.line_with("\"session\"", PATIENCE);
        let event: Value = serde_json::from_str(&line).unwrap();
        let session = event["id"].as_str().unwrap().to_owned();
        wait_for("three sleeping children", PATIENCE, || world.file("begun").lines().count() == 3);
        running.signal(signal);
        let told = world.ended(running, Duration::from_secs(8)).ended_with(130);
        assert_eq!(told.event("end")["outcome"], "cancelled", "{told:#?}");
        world.nothing_runs();
        let shown = world.run(&["sessions", "show", &session, "--json"]).ended_with(0).stdout;
        assert_eq!(shown.matches("The helper was stopped").count(), 3, "{shown}");
        // Nothing is left to be resumed, and the session goes on.
        let nothing = world.run(&["resume"]).ended_with(0);
        assert!(nothing.stderr.contains("there is nothing to resume"), "{nothing:#?}");
        let again = world.run(&["run", "--session", &session, "again"]).ended_with(0);
        assert_eq!(again.stdout.trim(), "Here I am.");
        world.model.assert_no_violations();
    }
}

#[test]
fn a_child_that_waits_for_a_person_parks_its_parent_and_goes_on_with_it() {
    let world = World::new(family(2));
    world.configure_more("[policy]\nwrite = \"ask\"\nexecute = \"ask\"");
    let told = world.run(&["run", "--json", "begin"]).ended_with(3);
    let reason = told.event("end")["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("count-"), "{reason}");
    let session = session_of(&world).unwrap();
    let told = world.run(&["resume", &session, "--yes", "--json"]).ended_with(0);
    assert_eq!(told.event("end")["answer"], "child 0 is done, child 1 is done", "{told:#?}");
    assert_eq!(world.file("count-0"), "0.0\n0.1\n0.2\n");
    assert_eq!(world.file("count-1"), "1.0\n1.1\n1.2\n");
}

#[test]
fn what_was_decided_for_a_helper_goes_on_with_the_turn_that_waits_for_it() {
    let world = World::new(|asked: &ModelRequest| {
        let helper = asked.last_user_text() == "the task";
        match (helper, asked.results().first()) {
            (true, None) => Reply::call_of("shell", json!({ "command": "./unknown" })),
            (true, Some(_)) => Reply::text("the helper is done"),
            (false, None) => Reply::call_of("delegate", json!({ "task": "the task" })),
            (false, Some(_)) => Reply::text("all is done"),
        }
    });
    world.run(&["run", "--json", "begin"]).ended_with(3);
    let told = world.run(&["approvals", "--json"]).ended_with(0);
    let waiting: Value = serde_json::from_str(&told.stdout).unwrap();
    let request = waiting["requests"][0]["id"].as_str().unwrap();
    let told = world.run(&["approve", request, "--resume"]).ended_with(0);
    assert_eq!(told.stdout.trim(), "all is done", "{told:#?}");
}

#[test]
fn what_a_child_asks_is_told_with_the_session_to_go_on_with() {
    let world = World::new(|asked: &ModelRequest| {
        let is_child = asked.last_user_text().starts_with("task");
        match (is_child, asked.results().len()) {
            (false, 0) => Reply::call_of("delegate", json!({ "task": "task 0" })),
            (true, 0) => {
                let command = "python3 -c 'open(\"ran\", \"a\").write(\"x\")'";
                Reply::call_of("shell", json!({ "command": command }))
            }
            (true, _) => Reply::text("the child is done"),
            (false, _) => Reply::text("all is done"),
        }
    });
    let told = world.run(&["run", "begin"]).ended_with(3);
    let session = session_of(&world).unwrap();
    let requests: Value =
        serde_json::from_str(&world.run(&["approvals", "--json"]).stdout).unwrap();
    let request = requests["requests"][0]["id"].as_str().unwrap();
    assert_ne!(requests["requests"][0]["session"], session.as_str());
    assert!(told.stderr.contains(&format!("approve {request}")), "{told:#?}");
    assert!(told.stderr.contains(&format!("resume {session}")), "{told:#?}");
    let listed = world.run(&["approvals"]).ended_with(0);
    assert!(listed.stdout.contains(&format!("session {session}")), "{listed:#?}");
    let told = world.run(&["approve", request]).ended_with(0);
    assert!(told.stdout.contains(&format!("resume {session}")), "{told:#?}");
    let told = world.run(&["approve", request]).ended_with(1);
    assert!(told.stderr.contains(&format!("resume {session}")), "{told:#?}");
    let told = world.run(&["resume", &session]).ended_with(0);
    assert!(told.stdout.contains("all is done"), "{told:#?}");
    assert_eq!(world.file("ran"), "x");
}

#[test]
fn a_child_is_charged_to_its_parent_and_cannot_outspend_it() {
    let world = World::new(|asked: &ModelRequest| match asked.last_user_text().as_str() {
        "begin" if asked.results().is_empty() => {
            Reply::call_of("delegate", json!({ "task": "forever" }))
        }
        "begin" => Reply::text(asked.results()[0].1.clone()),
        _ => {
            let command = format!("echo {}", asked.results().len());
            Reply::call_of("shell", json!({ "command": command }))
        }
    });
    world.configure_more("[budget]\nturn_calls = 20");
    // The child has half of what is left. When that is spent, its parent goes on.
    let told = world.run(&["run", "--yes", "--json", "begin"]).ended_with(0);
    let answer = told.event("end")["answer"].as_str().unwrap().to_owned();
    assert!(answer.contains("did not finish"), "{answer}");
    assert!(answer.contains("calls of models made"), "{answer}");
    assert!(world.model.asked().len() <= 12, "{}", world.model.asked().len());
}

#[test]
fn helpers_of_helpers_have_an_end() {
    let world = World::new(|asked: &ModelRequest| {
        let depth: usize = asked.last_user_text().trim_start_matches("depth ").parse().unwrap_or(0);
        match asked.results().first() {
            None => Reply::call_of("delegate", json!({ "task": format!("depth {}", depth + 1) })),
            Some((_, text)) => Reply::text(format!("{depth}: {text}")),
        }
    });
    let told = world.run(&["run", "--yes", "begin"]).ended_with(0);
    assert!(told.stdout.contains("may not have helpers of its own"), "{told:#?}");
    assert!(world.model.asked().len() < 10);
}
