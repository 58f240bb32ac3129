//! What a round writes, and how often it waits for the disk.

use mainstay_testkit::oplog::Op;
use mainstay_testkit::shim::{Mode, Shim};

use crate::report::Report;
use crate::scene::{Model, Scene};

const FEW: usize = 10;
const MANY: usize = 60;

pub(crate) fn measure(report: &mut Report) {
    let (few, many) = (taken(FEW), taken(MANY));
    let rounds = (MANY - FEW) as f64;
    report.note("syncs a round", &format!("{:.2}", (many.0 - few.0) as f64 / rounds));
    report.note("bytes written a round", &format!("{:.0}", (many.1 - few.1) as f64 / rounds));
}

/// The syncs and the bytes of a run.
fn taken(rounds: usize) -> (usize, usize) {
    let model = Model::start(rounds, "echo {k}");
    let scene = Scene::new(&model.url);
    let shim = Shim::under(scene.home()).mode(Mode::Record);
    let mut command = scene.mainstay(&["run", "--yes", "count"]);
    assert!(shim.apply(&mut command).output().unwrap().status.success());
    let operations = shim.operations();
    let syncs = operations
        .iter()
        .filter(|operation| matches!(operation, Op::SyncFile { .. } | Op::SyncDirectory { .. }))
        .count();
    let bytes = operations
        .iter()
        .map(|operation| match operation {
            Op::Write { data, .. } => data.len(),
            _ => 0,
        })
        .sum();
    (syncs, bytes)
}
