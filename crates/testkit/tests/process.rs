//! Children die with the test, and can be stopped, resumed and read.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "test-only code stands outside the product's seams"
)]

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::Duration;

use mainstay_testkit::process::{Running, Signal, wait_for};

const WAIT: Duration = Duration::from_secs(10);

fn shell(script: &str) -> Running {
    Running::spawn(Command::new("bash").arg("-c").arg(script))
}

fn state_of(pid: u32) -> Option<char> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    status.rsplit_once(") ")?.1.chars().next()
}

#[test]
fn a_child_is_gone_when_it_leaves_its_scope() {
    let child = shell("sleep 100");
    let pid = child.pid();
    assert!(state_of(pid).is_some());
    drop(child);
    assert_eq!(state_of(pid), None);
}

#[test]
fn lines_are_read_as_they_come() {
    let mut child = shell("echo one; echo two; echo three; exit 3");
    assert_eq!(child.next_line(WAIT).as_deref(), Some("one"));
    assert_eq!(child.line_with("thr", WAIT), "three");
    assert_eq!(child.next_line(WAIT), None);
    assert_eq!(child.wait(WAIT).code(), Some(3));
}

#[test]
fn a_stopped_child_stands_still_until_it_is_resumed() {
    let mut child = shell("trap 'echo term; exit' TERM; echo ready; while :; do sleep 0.01; done");
    child.line_with("ready", WAIT);
    child.stop();
    wait_for("the child to stand still", WAIT, || state_of(child.pid()) == Some('T'));
    child.signal(Signal::TERM);
    assert!(child.is_running());
    child.cont();
    child.line_with("term", WAIT);
}

#[test]
fn a_killed_child_says_so() {
    assert_eq!(shell("sleep 100").kill_and_wait().signal(), Some(9));
}

#[test]
#[should_panic(expected = "Timed out after 20ms waiting for: the moon.")]
fn waiting_in_vain_names_what_was_waited_for() {
    wait_for("the moon", Duration::from_millis(20), || false);
}

#[test]
#[should_panic(expected = "The child wrote no line in 20ms.")]
fn a_silent_child_ends_the_wait_at_the_deadline() {
    shell("sleep 100").next_line(Duration::from_millis(20));
}
