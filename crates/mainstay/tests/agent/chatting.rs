//! The chat in a real terminal: what is seen, what is recorded, and what a kill leaves.

use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use mainstay_testkit::model::{Gate, ModelRequest, Reply};
use mainstay_testkit::process::{Signal, wait_for};
use serde_json::{Value, json};

use crate::terminal::Terminal;
use crate::world::World;

const PATIENCE: Duration = Duration::from_secs(30);
const SIZE: (u16, u16) = (30, 90);

/// The only session there is, as data.
fn session(world: &World) -> Value {
    let told = world.run(&["sessions", "list", "--json"]).ended_with(0);
    let sessions: Value = serde_json::from_str(&told.stdout).unwrap();
    let id = sessions[0]["id"].as_str().unwrap().to_owned();
    let told = world.run(&["sessions", "show", &id, "--json"]).ended_with(0);
    serde_json::from_str(&told.stdout).unwrap()
}

fn id(world: &World) -> String {
    session(world)["id"].as_str().unwrap().to_owned()
}

/// The kinds of the entries, in their order.
fn kinds(session: &Value) -> Vec<String> {
    let log = session["log"].as_array().unwrap();
    log.iter().map(|entry| entry["kind"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_answer_stays_on_the_screen_and_the_terminal_is_given_back() {
    let answer = "Here it is:\n\n```rust\nfn main() {}\n```\n\nThat is **all**.";
    let world = World::new(move |_: &ModelRequest| Reply::text(answer));
    // Without a command, on a terminal, it is the chat.
    let mut terminal = Terminal::start(&world, SIZE, &[]);
    terminal.sees("local/qwen");
    terminal.send("show me");
    terminal.sees("That is all.");
    terminal.sees("tokens");
    terminal.keys("\x04");
    let id = id(&world);
    let (status, screen) = terminal.ended();
    assert_eq!(status.code(), Some(0), "{screen}");
    for words in ["› show me", "  fn main() {}", "That is all.", &format!("chat --session {id}")]
    {
        assert_eq!(screen.matches(words).count(), 1, "{words:?} in:\n{screen}");
    }
    assert!(!screen.contains("/help shows commands\n›"), "the editor is gone:\n{screen}");
    world.model.assert_no_violations();
    world.nothing_runs();
}

#[test]
fn a_kill_in_the_middle_loses_nothing_and_the_next_chat_finishes_the_turn() {
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("shell", json!({ "command": "echo once >> ran; sleep 1; echo end" })),
        _ => Reply::text(format!("It said: {}", asked.results()[0].1)),
    });
    let mut terminal = Terminal::start(&world, SIZE, &["chat", "--yes"]);
    terminal.sees("local/qwen");
    terminal.send("do it");
    wait_for("the command", PATIENCE, || world.file("ran") == "once\n");
    terminal.kill();
    let mut terminal = Terminal::start(&world, SIZE, &["chat", "--yes", "--session", &id(&world)]);
    terminal.sees("› do it");
    terminal.sees("It said: exit code 0");
    assert_eq!(world.file("ran"), "once\n");
    terminal.send("and more");
    terminal.sees("› and more");
    world.model.wait_for_requests(3, PATIENCE);
    terminal.keys("\x04");
    assert_eq!(terminal.ended().0.code(), Some(0));
    world.model.assert_no_violations();
    world.nothing_runs();
}

#[test]
fn words_that_steer_are_heard_at_the_next_step_and_survive_a_kill() {
    let gate = Gate::new();
    let held = gate.clone();
    let world = World::new(move |asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("shell", json!({ "command": "until test -e go; do sleep 0.02; done" })),
        // The answer never comes to the first process.
        _ => Reply::text(format!("I heard: {}", asked.last_user_text())).held_by(&held),
    });
    let mut terminal = Terminal::start(&world, SIZE, &["chat", "--yes"]);
    terminal.sees("local/qwen");
    terminal.send("do it");
    terminal.sees("until test");
    terminal.keys("leave the red one alone");
    terminal.sees("leave the red one alone");
    terminal.keys("\x13");
    terminal.sees("at the next step: leave the red one alone");
    std::fs::write(world.workspace().join("go"), "").unwrap();
    // Shown as said is recorded as said.
    terminal.sees("› leave the red one alone");
    world.model.wait_for_requests(2, PATIENCE);
    terminal.kill();
    let kept = session(&world);
    assert_eq!(kinds(&kept), ["user", "assistant", "result", "user"], "{kept}");
    let second = world.model.asked().pop().unwrap();
    assert_eq!(second.last_user_text(), "leave the red one alone");
    gate.open();
    let terminal = Terminal::start(&world, SIZE, &["chat", "--yes", "--session", &id(&world)]);
    terminal.sees("I heard: leave the red one alone");
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.ended().0.code(), Some(0));
    world.model.assert_no_violations();
}

#[test]
fn a_message_during_a_turn_is_queued_and_sent_after_its_answer() {
    let gate = Gate::new();
    let held = gate.clone();
    let world = World::new(move |asked: &ModelRequest| {
        Reply::text(format!("answer to {}", asked.last_user_text())).held_by(&held)
    });
    let mut terminal = Terminal::start(&world, SIZE, &["chat"]);
    terminal.sees("local/qwen");
    terminal.send("one");
    world.model.wait_for_requests(1, PATIENCE);
    terminal.send("two");
    terminal.sees("queued: two");
    assert_eq!(session(&world)["log"].as_array().unwrap().len(), 1, "two was not sent yet");
    gate.open();
    terminal.sees("answer to one");
    terminal.sees("answer to two");
    terminal.sees_no("queued");
    terminal.keys("\x04");
    assert_eq!(terminal.ended().0.code(), Some(0));
    world.model.assert_no_violations();
}

#[test]
fn ctrl_c_stops_the_turn_and_a_second_one_leaves() {
    let world = World::new(|asked: &ModelRequest| match asked.last_user_text().contains("again") {
        true => Reply::text("went on"),
        false => Reply::call_of("shell", json!({ "command": "touch ready; sleep 300" })),
    });
    let mut terminal = Terminal::start(&world, SIZE, &["chat", "--yes"]);
    terminal.sees("local/qwen");
    terminal.send("wait for ever");
    wait_for("the command", PATIENCE, || world.workspace().join("ready").exists());
    terminal.keys("\x03");
    terminal.sees("stopped; what was done is recorded");
    terminal.send("again");
    terminal.sees("went on");
    terminal.rests();
    terminal.keys("\x03");
    terminal.sees("Ctrl-C again leaves");
    terminal.keys("\x03");
    assert_eq!(terminal.ended().0.code(), Some(0));
    world.model.assert_no_violations();
    world.nothing_runs();
}

#[test]
fn two_ctrl_c_in_a_row_leave_and_nothing_keeps_running() {
    let world = World::new(|_: &ModelRequest| {
        Reply::call_of("shell", json!({ "command": "touch ready; sleep 300" }))
    });
    let mut terminal = Terminal::start(&world, SIZE, &["chat", "--yes"]);
    terminal.sees("local/qwen");
    terminal.send("wait for ever");
    wait_for("the command", PATIENCE, || world.workspace().join("ready").exists());
    terminal.keys("\x03\x03");
    let (status, screen) = terminal.ended();
    assert_eq!(status.code(), Some(0), "{screen}");
    assert!(screen.contains("go on: "), "{screen}");
    let log = session(&world)["log"].clone();
    let end = log.as_array().unwrap().last().unwrap();
    assert_eq!(end["body"]["end"]["outcome"], "cancelled", "{log}");
    world.nothing_runs();
}

#[test]
fn a_terminal_that_is_closed_stops_the_turn_and_nothing_keeps_running() {
    let world = World::new(|_: &ModelRequest| {
        Reply::call_of("shell", json!({ "command": "touch ready; sleep 300" }))
    });
    let mut terminal = Terminal::start(&world, SIZE, &["chat", "--yes"]);
    terminal.sees("local/qwen");
    terminal.send("wait for ever");
    wait_for("the command", PATIENCE, || world.workspace().join("ready").exists());
    assert_eq!(terminal.close().code(), Some(0));
    let log = session(&world)["log"].clone();
    let end = log.as_array().unwrap().last().unwrap();
    assert_eq!(end["body"]["end"]["outcome"], "cancelled", "{log}");
    world.nothing_runs();
}

#[test]
fn slow_a_question_of_the_policy_is_asked_here() {
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("write_file", json!({ "path": "one", "content": "" })),
        1 => Reply::call_of("write_file", json!({ "path": "two", "content": "" })),
        2 => Reply::call_of("write_file", json!({ "path": "three", "content": "" })),
        _ => Reply::text(format!("The last: {}", asked.results()[2].1)),
    });
    world.configure_more("[policy]\nwrite = \"ask\"");
    let mut terminal = Terminal::start(&world, SIZE, &["chat"]);
    terminal.sees("local/qwen");
    terminal.send("touch them");
    terminal.sees("work/one");
    terminal.sees("[Enter] deny");
    assert!(!world.workspace().join("one").exists(), "nothing is done before the answer");
    press(&mut terminal, "y", "allowed once");
    terminal.sees("work/two");
    press(&mut terminal, "\r", "✗ denied");
    terminal.sees("work/three");
    press(&mut terminal, "r", "Why not?");
    terminal.keys("three is too many\r");
    terminal.sees("denied: three is too many");
    terminal.sees("The last:");
    assert!(world.workspace().join("one").exists());
    assert!(!world.workspace().join("two").exists() && !world.workspace().join("three").exists());
    let last = world.model.asked().pop().unwrap();
    assert!(last.results()[2].1.contains("three is too many"), "{:?}", last.results());
    terminal.keys("\x04");
    assert_eq!(terminal.ended().0.code(), Some(0));
    world.model.assert_no_violations();
}

/// Presses a key when the question offers it.
fn press(terminal: &mut Terminal, key: &str, words: &str) {
    terminal.sees("[Enter] deny");
    terminal.keys(key);
    terminal.sees(words);
}

#[test]
fn a_kill_before_an_answer_to_the_policy_leaves_the_question() {
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("write_file", json!({ "path": "one", "content": "" })),
        _ => Reply::text("done"),
    });
    world.configure_more("[policy]\nwrite = \"ask\"");
    let mut terminal = Terminal::start(&world, SIZE, &["chat"]);
    terminal.sees("local/qwen");
    terminal.send("touch it");
    terminal.sees("[Enter] deny");
    terminal.kill();
    assert!(!world.workspace().join("one").exists());
    let mut terminal = Terminal::start(&world, SIZE, &["chat", "--session", &id(&world)]);
    terminal.sees("[Enter] deny");
    press(&mut terminal, "y", "allowed once");
    terminal.sees("done");
    assert!(world.workspace().join("one").exists());
    terminal.keys("\x04");
    terminal.ended();
}

#[test]
fn a_big_paste_is_folded_and_sent_whole_and_a_picture_goes_with_its_path() {
    let world = World::new(|_: &ModelRequest| Reply::text("seen"));
    std::fs::write(world.workspace().join("a.png"), b"\x89PNG\r\n\x1a\n0000").unwrap();
    let mut terminal = Terminal::start(&world, SIZE, &["chat"]);
    terminal.sees("local/qwen");
    let text: String = (0..3_000).map(|line| format!("line {line}\n")).collect();
    terminal.keys("look at @a.png and ");
    terminal.keys(&format!("\x1b[200~{text}\x1b[201~"));
    terminal.sees("[pasted 3000 lines]");
    terminal.keys("\r");
    terminal.sees("seen");
    let asked = world.model.asked().pop().unwrap();
    assert!(
        asked.last_user_text().contains("line 0\n") && asked.last_user_text().contains("line 2999")
    );
    assert!(asked.body.to_string().contains("image/png"), "the picture was not sent");
    terminal.keys("\x04");
    terminal.ended();
    world.model.assert_no_violations();
}

#[test]
fn what_was_sent_is_in_the_history_of_the_next_chat() {
    let world = World::new(|_: &ModelRequest| Reply::text("seen"));
    let mut terminal = Terminal::start(&world, SIZE, &["chat"]);
    terminal.sees("local/qwen");
    terminal.send("remember this");
    terminal.sees("seen");
    terminal.kill();
    let mut terminal = Terminal::start(&world, SIZE, &["chat"]);
    terminal.sees("local/qwen");
    terminal.keys("\x1b[A");
    terminal.sees("› remember this");
    terminal.keys("\x03\x04");
    terminal.ended();
}

#[test]
fn commands_of_the_chat_do_what_they_say() {
    let world = World::new(|asked: &ModelRequest| {
        Reply::text(format!("{} says {}", asked.model(), asked.last_user_text())).usage(1200, 0, 34)
    });
    world.configure_more("[models.\"local/other\"]\nwindow = 1000");
    let mut terminal = Terminal::start(&world, SIZE, &["chat"]);
    terminal.sees("local/qwen");
    terminal.send("/help");
    terminal.sees("/processes");
    terminal.send("/model local/other");
    terminal.sees("local/other is asked from now on");
    terminal.send("hello");
    terminal.sees("other says hello");
    terminal.rests();
    terminal.send("/retry");
    wait_for("the second turn", PATIENCE, || world.model.requests() == 2);
    terminal.rests();
    terminal.send("/cost");
    terminal.sees("2 calls");
    terminal.send("/new");
    terminal.sees("a new session");
    terminal.send("fresh");
    terminal.sees("other says fresh");
    terminal.rests();
    let asked = world.model.asked().pop().unwrap();
    assert!(!asked.body.to_string().contains("hello"), "a new session knows nothing of the old");
    terminal.send("/resume");
    terminal.sees("/resume ID goes on with one");
    terminal.send("/nothing");
    terminal.sees("There is no command /nothing");
    terminal.keys("\x15/quit\r");
    assert_eq!(terminal.ended().0.code(), Some(0));
    world.model.assert_no_violations();
}

#[test]
fn a_turn_that_failed_says_so_and_is_tried_again() {
    let mut first = true;
    let world = World::new(move |_: &ModelRequest| match std::mem::replace(&mut first, false) {
        true => Reply::status(400, "no such thing \u{1b}[2J here"),
        false => Reply::text("better now"),
    });
    let mut terminal = Terminal::start(&world, SIZE, &["chat"]);
    terminal.sees("local/qwen");
    terminal.send("try it");
    terminal.sees("error: ");
    terminal.sees("no such thing");
    terminal.sees("/retry tries again.");
    terminal.rests();
    terminal.send("/retry");
    terminal.sees("better now");
    assert!(terminal.screen().contains("› try it"), "nothing was cleared");
    terminal.keys("\x04");
    assert_eq!(terminal.ended().0.code(), Some(0));
    world.model.assert_no_violations();
}

#[test]
fn what_a_turn_did_is_undone_and_a_fork_goes_its_own_way() {
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("write_file", json!({ "path": "new.txt", "content": "x" })),
        _ if asked.last_user_text().ends_with("go on") => Reply::text("went on"),
        _ => Reply::text(format!("said {}", asked.last_user_text())),
    });
    let mut terminal = Terminal::start(&world, SIZE, &["chat"]);
    terminal.sees("local/qwen");
    terminal.send("write it");
    terminal.sees("said write it");
    terminal.rests();
    assert_eq!(world.file("new.txt"), "x");
    let first = id(&world);
    terminal.send("/undo");
    terminal.sees("removed   new.txt");
    assert!(!world.workspace().join("new.txt").exists());
    terminal.send("/undo redo");
    terminal.sees("Took back the undo of turn 1");
    assert_eq!(world.file("new.txt"), "x");
    terminal.send("/context");
    terminal.sees("all");
    terminal.send("/fork");
    terminal.sees("this is a fork now");
    terminal.send("go on");
    terminal.sees("went on");
    let told = world.run(&["sessions", "show", &first, "--json"]).ended_with(0);
    let kept: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(kept["turns"], 1, "{kept}");
    terminal.keys("\x04");
    assert_eq!(terminal.ended().0.code(), Some(0));
    world.model.assert_no_violations();
}

#[test]
fn without_colours_none_is_sent_on_a_narrow_screen_either() {
    let world =
        World::new(|_: &ModelRequest| Reply::text("# Head\n\n```rust\nfn main() {}\n```\n`x`"));
    let variables = [("TERM", "xterm-256color"), ("NO_COLOR", "1")];
    let mut terminal = Terminal::start_with(&world, (20, 20), &["chat"], &variables);
    terminal.sees("local/qwen");
    terminal.send("hello");
    terminal.sees("fn main() {}");
    terminal.resize(24, 60);
    terminal.keys("wide enough now for this line");
    terminal.sees("› wide enough now for this line");
    terminal.keys("\x03\x04");
    let written = terminal.written();
    terminal.ended();
    let coloured = (30..=37).chain(90..=97).find(|code| {
        written.contains(&format!("\x1b[{code}m")) || written.contains(&format!(";{code}m"))
    });
    assert_eq!(coloured, None, "{written:?}");
    assert!(!written.contains("\x1b[?1049h"), "the normal screen is kept");
}

#[test]
fn on_a_dumb_terminal_lines_are_answered_plainly() {
    let world =
        World::new(|asked: &ModelRequest| Reply::text(format!("heard {}", asked.last_user_text())));
    let mut terminal = Terminal::start_with(&world, SIZE, &[], &[("TERM", "dumb")]);
    terminal.keys("hello\n");
    terminal.sees("heard hello");
    let written = terminal.written();
    assert!(!written.contains('\x1b'), "{written:?}");
    terminal.kill();
}

#[test]
fn without_a_terminal_lines_are_answered_plainly() {
    let world = World::new(|asked: &ModelRequest| {
        Reply::text(format!("answer to {}", asked.last_user_text()))
    });
    let mut command = world.command(&["chat"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"one\n\ntwo\n/cost\n/quit\nthree\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "answer to one\nanswer to two\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("only /quit works here"));
    assert_eq!(output.status.code(), Some(0));
    world.nothing_runs();
    // On a terminal that cannot move its cursor it is the same.
    let mut terminal = Terminal::start_with(&world, SIZE, &["chat"], &[("TERM", "dumb")]);
    terminal.keys("one\n");
    terminal.sees("answer to one");
    assert!(!terminal.written().contains('\x1b'), "{:?}", terminal.written());
    terminal.kill();
}

#[test]
fn a_session_that_another_process_has_is_not_talked_in() {
    let gate = Gate::new();
    let held = gate.clone();
    let world = World::new(move |_: &ModelRequest| Reply::text("slow").held_by(&held));
    let mut terminal = Terminal::start(&world, SIZE, &["chat"]);
    terminal.sees("local/qwen");
    terminal.send("hello");
    world.model.wait_for_requests(1, PATIENCE);
    let told = world.run(&["chat", "--session", &id(&world)]).ended_with(4);
    assert!(told.stderr.contains("is being worked on by"), "{told:?}");
    gate.open();
    terminal.sees("slow");
    terminal.keys("\x04");
    terminal.ended();
}
