//! Several who want to compact one session.

use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::time::Duration;

use mainstay_agent::{Compacted, Opened};
use mainstay_journal::{SessionId, transcript};
use mainstay_testkit::model::{Gate, ModelRequest, Reply, Shape};
use mainstay_testkit::process::{Running, example};
use tokio_util::sync::CancellationToken;

use super::scene::{agent_on, compactions, fill, is_summary, reading, summary};
use crate::fixture::{Engine, TestAgent, runtime, turn};

pub(super) const SOON: Duration = Duration::from_secs(20);
/// How long a lease lives in the processes.
const LEASE: Duration = Duration::from_millis(900);

/// A session with something to compact. The first summary waits for the gate; those of others are told
/// apart by their number.
pub(super) fn session(engine: Engine) -> (TestAgent, SessionId, Gate) {
    let gate = Gate::new();
    let held = gate.clone();
    let (mut round, mut summaries) = (0, 0);
    let mut test = agent_on(engine, None, move |asked: &ModelRequest| {
        if is_summary(asked) {
            summaries += 1;
            let reply = summary(summaries);
            return if summaries == 1 { reply.held_by(&held) } else { reply };
        }
        round += 1;
        if round > 10 { Reply::text("All read.") } else { reading(round - 1) }
    });
    test.settings.asking.first_byte = SOON;
    test.settings.compaction.timeout = SOON;
    fill(&test, 20, 100);
    let id = runtime().block_on(async {
        let mut work = test.begin();
        turn(&mut work, "read it all").await;
        work.id()
    });
    (test, id, gate)
}

/// Nobody holds anything, no call is open, and there is one compaction.
fn all_is_well(test: &TestAgent, id: SessionId, text: &str) {
    assert_eq!(test.store.lease_holders().unwrap().len(), 0, "something is held");
    let made = compactions(test, id);
    assert_eq!(made.iter().map(|made| made.number).collect::<Vec<_>>(), [1]);
    assert!(made[0].summary.as_deref().unwrap().starts_with(text), "{made:?}");
    let work = test.open(id);
    assert!(work.size() > 0);
    let shown = format!("{:?}", transcript(&test.entries(id)));
    assert!(shown.contains(text) && shown.contains("read it all"), "{shown}");
    test.model.assert_no_violations();
}

#[test]
fn of_two_threads_one_compacts_and_the_other_is_told_who() {
    let (test, id, gate) = session(Engine::Sqlite);
    gate.open();
    let together = Barrier::new(2);
    let compact = || {
        let agent = test.agent();
        let runtime = runtime();
        together.wait();
        let opened = agent.open(id).unwrap();
        // Neither lets go before both have asked.
        together.wait();
        match opened {
            Opened::Got(mut work) => {
                let cancel = CancellationToken::new();
                Some(runtime.block_on(work.compact(None, &mut |_| {}, &cancel)).unwrap())
            }
            Opened::Held(holder) => {
                assert_eq!(holder.process.pid, std::process::id());
                None
            }
        }
    };
    let (one, other) = std::thread::scope(|scope| {
        let (one, other) = (scope.spawn(compact), scope.spawn(compact));
        (one.join().unwrap(), other.join().unwrap())
    });
    let made: Vec<Compacted> = one.into_iter().chain(other).collect();
    assert!(matches!(made[..], [Compacted::Made { number: 1, .. }]), "{made:?}");
    all_is_well(&test, id, "SUMMARY 1");
}

/// A process that compacts.
pub(super) fn start(test: &TestAgent, id: SessionId) -> Running {
    let mut command = Command::new(example("compactor"));
    command
        .arg(&test.url)
        .arg(test.model.base_url(Shape::Chat))
        .arg(id.as_str())
        .arg(LEASE.as_millis().to_string());
    Running::spawn(command.stdin(Stdio::null()))
}

#[test]
fn of_two_processes_one_compacts_and_the_other_goes_on_with_its_view() {
    let (test, id, gate) = session(Engine::Sqlite);
    let mut one = start(&test, id);
    one.line_with("compacting", SOON);
    let mut other = start(&test, id);
    let pid = one.pid();
    assert_eq!(other.next_line(SOON).unwrap(), format!("held by {pid}"));
    gate.open();
    assert_eq!(one.next_line(SOON).unwrap(), "made 1");
    assert!(one.wait(SOON).success() && other.wait(SOON).success());
    let mut third = start(&test, id);
    third.line_with("compacting", SOON);
    // It sees what the first one made: there is nothing left to compact.
    let told = third.next_line(SOON).unwrap();
    assert!(told.starts_with("not: "), "{told}");
    third.wait(SOON);
    all_is_well(&test, id, "SUMMARY 1");
}

fn the_holder_is_stopped_past_its_lease(engine: Engine) {
    let (test, id, gate) = session(engine);
    let before = test.entries(id).len();
    let mut one = start(&test, id);
    one.line_with("compacting", SOON);
    test.model.wait_for_requests(12, SOON);
    one.stop();
    // Somebody else takes over and compacts.
    let mut other = loop {
        let mut other = start(&test, id);
        match other.next_line(SOON).unwrap().as_str() {
            "compacting" => break other,
            _ => drop(other.wait(SOON)),
        }
    };
    assert_eq!(other.next_line(SOON).unwrap(), "made 1");
    assert!(other.wait(SOON).success());
    // The first one comes back with its summary, and changes nothing.
    gate.open();
    one.cont();
    let told = one.next_line(SOON).unwrap();
    assert!(told.starts_with("error: ") && told.contains("was taken over"), "{told}");
    one.wait(SOON);
    assert_eq!(test.entries(id).len(), before + 1);
    all_is_well(&test, id, "SUMMARY 2");
}

#[test]
fn slow_a_compactor_stopped_past_its_lease_changes_nothing_when_it_comes_back() {
    the_holder_is_stopped_past_its_lease(Engine::Sqlite);
}

#[test]
fn slow_a_compactor_stopped_past_its_lease_changes_nothing_when_it_comes_back_on_postgres() {
    the_holder_is_stopped_past_its_lease(Engine::Postgres);
}
