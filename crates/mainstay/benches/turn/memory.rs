//! The peak of the agent's memory.

use std::process::Stdio;

use crate::measure::peak_memory;
use crate::report::Report;
use crate::scene::{Model, Scene};

pub(crate) fn measure(report: &mut Report) {
    for (rounds, bar, what) in
        [(0, 15.0, "peak memory of one answer"), (100, 20.0, "peak memory after 100 rounds")]
    {
        let model = Model::start(rounds, "echo {k}");
        let scene = Scene::new(&model.url);
        let mut command = scene.mainstay(&["run", "--yes", "count"]);
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        report.at_most(what, peak_memory(child), bar, " MiB");
    }
}
