//! A process that dies while a summary is being made.

use std::time::Duration;

use mainstay_store::params;

use crate::place::{body, opened, turn};
use crate::together::{session, start};

const SOON: Duration = Duration::from_secs(20);

#[test]
fn a_summary_whose_process_died_is_settled_and_has_changed_nothing() {
    let (place, id, gate) = session(None);
    let before = place.entries(id).len();
    let mut one = start(&place, None, id);
    one.line_with("compacting", SOON);
    place.model.wait_for_requests(12, SOON);
    one.kill_and_wait();
    gate.open();
    assert_eq!(place.entries(id).len(), before);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut work = opened(&place.agent(), id);
        let (ended, _) = turn(&mut work, "go on").await;
        assert_eq!(ended.answer, "All read.");
    });
    let sent = body(place.rounds().last().unwrap());
    assert!(sent.contains("Now comes file 0,") && !sent.contains("a record of this session"));
    let (store, _) = place.store();
    let states: Vec<String> = store
        .read(|tx| {
            tx.query("SELECT state FROM model_calls WHERE purpose = 'summary'", params![], |row| {
                row.get(0)
            })
        })
        .unwrap();
    assert_eq!(states, ["unknown"]);
    place.model.assert_no_violations();
}
