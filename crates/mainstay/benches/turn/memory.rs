//! The peak of the agent's memory, and the size of the program.

use std::process::Stdio;

use crate::measure::peak_memory;
use crate::report::Report;
use crate::scene::{Model, Scene};

pub(crate) fn measure(report: &mut Report) {
    let size = std::fs::metadata(env!("CARGO_BIN_EXE_mainstay")).unwrap().len();
    report.at_most("size of the program", size as f64 / 1e6, 30.0, " MB");
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
