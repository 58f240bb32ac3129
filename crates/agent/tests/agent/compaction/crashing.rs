//! A process that dies while a summary is being made.

use super::scene::{body, rounds};
use super::together::{SOON, session, start};
use crate::fixture::{Engine, column, runtime, turn};

#[test]
fn a_summary_whose_process_died_is_settled_and_has_changed_nothing() {
    let (test, id, gate) = session(Engine::Sqlite);
    let before = test.entries(id).len();
    let mut one = start(&test, id);
    one.line_with("compacting", SOON);
    test.model.wait_for_requests(12, SOON);
    one.kill_and_wait();
    gate.open();
    assert_eq!(test.entries(id).len(), before);
    runtime().block_on(async {
        let mut work = test.open(id);
        let ended = turn(&mut work, "go on").await;
        assert_eq!(ended.report.answer, "All read.");
    });
    let sent = body(rounds(&test).last().unwrap());
    assert!(sent.contains("Now comes file 0,") && !sent.contains("a record of this session"));
    let states = column(&test.store, "SELECT state FROM model_calls WHERE purpose = 'summary'");
    assert_eq!(states, ["unknown"]);
    test.model.assert_no_violations();
}
