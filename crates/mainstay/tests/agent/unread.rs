//! Nobody reads what the program writes, or it cannot be written.

use std::fs::File;
use std::io::{BufRead as _, BufReader, PipeReader, PipeWriter, Read as _, Write as _, pipe};
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

use mainstay_testkit::model::{ModelRequest, Reply};
use mainstay_testkit::process::{Signal, wait_for, wait_with_deadline};
use rustix::process::{Pid, kill_process};
use serde_json::{Value, json};

use crate::terminal::Terminal;
use crate::world::World;

/// For what must end soon; only a hang takes longer.
const PATIENCE: Duration = Duration::from_secs(30);
const SIGNALS: [Signal; 3] = [Signal::INT, Signal::TERM, Signal::HUP];

/// More than any pipe or terminal holds.
fn long() -> String {
    "many words that nobody reads ".repeat(8_000)
}

/// A pipe with little room.
fn narrow() -> (PipeReader, PipeWriter) {
    let (read, write) = pipe().unwrap();
    rustix::pipe::fcntl_setpipe_size(&write, 4096).unwrap();
    (read, write)
}

/// A pipe with no room at all.
fn full() -> (PipeReader, PipeWriter) {
    let (read, mut write) = narrow();
    write.write_all(&[b'.'; 4096]).unwrap();
    (read, write)
}

fn ends(child: &mut Child) -> ExitStatus {
    wait_with_deadline(child, PATIENCE).unwrap_or_else(|| {
        let _ = child.kill();
        panic!("it does not end");
    })
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// The newest session, once there is one.
fn newest(world: &World) -> Option<Value> {
    let listed = world.run(&["sessions", "list", "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    listed.get(0).cloned()
}

/// Waits until the turn is over.
fn answered(world: &World) {
    wait_for("the end of the turn", PATIENCE, || {
        newest(world).is_some_and(|session| session["last_turn"]["outcome"] == "answered")
    });
}

/// Sees that the turn was stopped, recorded and let go.
fn goes_on(world: &World, outcome: &str) {
    let session = newest(world).unwrap()["id"].as_str().unwrap().to_owned();
    let shown = world.run(&["sessions", "show", &session, "--json"]).ended_with(0).stdout;
    assert!(shown.contains(&format!("\"{outcome}\"")), "{shown}");
    let more = world.run(&["run", "--session", &session, "go on"]).ended_with(0);
    assert_eq!(more.stdout, "went on\n");
    world.nothing_runs();
}

/// Says much and goes silent; goes on at the second input.
fn talkative() -> World {
    World::new(|asked: &ModelRequest| match asked.last_user_text().contains("go on") {
        true => Reply::text("went on"),
        false => {
            let reply = Reply::text(long());
            let events = reply.events(mainstay_testkit::model::Shape::Chat);
            reply.stall_after_events(events - 2)
        }
    })
}

#[test]
fn signals_are_heard_while_nobody_reads_the_events() {
    for signal in SIGNALS {
        let world = talkative();
        let (read, write) = narrow();
        let mut command = world.command(&["run", "--yes", "--json", "begin"]);
        let mut child =
            command.stdin(Stdio::null()).stdout(write).stderr(Stdio::null()).spawn().unwrap();
        drop(command);
        world.model.wait_for_requests(1, PATIENCE);
        // The pipe is full before the signal comes.
        wait_for("a full pipe", PATIENCE, || rustix::io::ioctl_fionread(&read).unwrap() >= 3000);
        send(&child, signal);
        assert_eq!(ends(&mut child).code(), Some(130), "{signal:?}");
        goes_on(&world, "cancelled");
    }
}

#[test]
fn signals_are_heard_while_nobody_reads_what_is_said_besides() {
    for signal in SIGNALS {
        let world = World::new(|asked: &ModelRequest| {
            match asked.last_user_text().contains("go on") {
                true => Reply::text("went on"),
                // Each is told.
                false => Reply::status(503, "busy now").header("retry-after", "1"),
            }
        });
        let (_read, write) = full();
        let mut command = world.command(&["run", "--yes", "begin"]);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(write).spawn().unwrap();
        drop(command);
        world.model.wait_for_requests(2, PATIENCE);
        send(&child, signal);
        assert_eq!(ends(&mut child).code(), Some(130), "{signal:?}");
        goes_on(&world, "cancelled");
    }
}

#[test]
fn a_turn_does_not_wait_for_its_reader_who_misses_nothing() {
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        _ if asked.last_user_text().contains("go on") => Reply::text("went on"),
        0 => Reply::text(long()).call("shell", json!({ "command": "echo done > file" })),
        _ => Reply::text(long()),
    });
    let (read, write) = narrow();
    let mut command = world.command(&["run", "--yes", "--json", "begin"]);
    let mut child =
        command.stdin(Stdio::null()).stdout(write).stderr(Stdio::null()).spawn().unwrap();
    drop(command);
    // It is over, and the session is free, while all but the first events wait to be read.
    answered(&world);
    goes_on(&world, "answered");
    assert!(child.try_wait().unwrap().is_none());
    let events: Vec<Value> = BufReader::new(read)
        .lines()
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .collect();
    assert_eq!(ends(&mut child).code(), Some(0));
    let spoken: String = events
        .iter()
        .filter(|event| event["type"] == "text")
        .map(|event| event["delta"].as_str().unwrap())
        .collect();
    assert!(spoken == format!("{0}{0}", long()), "{} bytes", spoken.len());
    assert_eq!(events.last().unwrap()["type"], "end");
    assert!(events.last().unwrap()["answer"] == long().trim_end());
}

#[test]
fn whoever_waits_with_an_answer_for_its_reader_hears_signals() {
    for (signal, words) in SIGNALS.into_iter().zip([
        &["run", "begin"][..],
        &["run", "begin", "--json"],
        &["run", "begin"],
    ]) {
        let world = World::new(|asked: &ModelRequest| {
            Reply::text(if asked.last_user_text().contains("go on") {
                "went on".into()
            } else {
                long()
            })
        });
        let (_read, write) = narrow();
        let mut command = world.command(words);
        let mut child =
            command.stdin(Stdio::null()).stdout(write).stderr(Stdio::null()).spawn().unwrap();
        drop(command);
        answered(&world);
        goes_on(&world, "answered");
        assert!(child.try_wait().unwrap().is_none());
        send(&child, signal);
        assert_eq!(ends(&mut child).code(), Some(130), "{signal:?}");
    }
}

#[test]
fn an_output_that_cannot_be_written_is_told_and_the_exit_code_says_so() {
    let world = World::new(|_: &ModelRequest| Reply::text("an answer"));
    let to_full = |words: &[&str]| {
        let mut command = world.command(words);
        let output = command.stdout(File::create("/dev/full").unwrap()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for words in [&["run", "--json", "hello"][..], &["run", "hello"], &["resume", "--json"]] {
        let (code, stderr) = to_full(words);
        if words[0] == "run" {
            assert_eq!(code, Some(1), "{words:?}: {stderr}");
            answered(&world);
        }
        assert!(stderr.contains("could not write to standard output: No space left"), "{stderr}");
        assert!(stderr.contains("sessions list"), "{stderr}");
    }
    let session = newest(&world).unwrap()["id"].as_str().unwrap().to_owned();
    let (code, stderr) = to_full(&["sessions", "show", &session]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("No space left"), "{stderr}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let world = World::new(|_: &ModelRequest| Reply::text(long()));
    for words in [&["run", "--json", "hello"][..], &["run", "hello"]] {
        let (mut read, write) = narrow();
        let mut command = world.command(words);
        let mut child =
            command.stdin(Stdio::null()).stdout(write).stderr(Stdio::piped()).spawn().unwrap();
        drop(command);
        read.read_exact(&mut [0; 10]).unwrap();
        drop(read);
        assert_eq!(ends(&mut child).code(), Some(0), "{words:?}");
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert!(!stderr.contains("error"), "{stderr}");
    }
}

#[test]
fn a_chat_on_a_stalled_terminal_goes_on_with_its_turn_and_hears_signals() {
    for signal in [Signal::TERM, Signal::HUP] {
        let world = World::new(|asked: &ModelRequest| match asked.results().len() {
            _ if asked.last_user_text().contains("go on") => Reply::text("went on"),
            0 => Reply::text(long()).call("shell", json!({ "command": "echo done > file" })),
            _ => Reply::text("said nothing more"),
        });
        let mut terminal = Terminal::start(&world, (24, 80), &["chat", "--yes"]);
        terminal.sees("local/qwen");
        terminal.send("begin");
        terminal.stall();
        wait_for("the command of the turn", PATIENCE, || world.file("file") == "done\n");
        answered(&world);
        if signal == Signal::HUP {
            // What could not be drawn is drawn when it is read again.
            terminal.unstall();
            terminal.sees("said nothing more");
            terminal.stall();
        }
        terminal.signal(signal);
        terminal.ended_unseen();
        goes_on(&world, "answered");
    }
}
