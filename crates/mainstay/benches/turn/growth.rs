//! How a round grows with the conversation.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Instant;

use crate::bare;
use crate::measure::median;
use crate::report::Report;
use crate::round::first_request;
use crate::scene::{Model, Scene};

const ROUNDS: usize = 1_000;

pub(crate) fn measure(report: &mut Report) {
    let model = Model::start(ROUNDS, "echo {k}");
    let like = first_request();
    let scene = Scene::new(&model.url);

    let output = bare::command(&model.url, &scene.workspace(), &like).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let theirs: Vec<f64> = text.lines().map(|line| line.parse::<f64>().unwrap() / 1e3).collect();

    let mut command = scene.mainstay(&["run", "--yes", "--json", "count"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let (mut ours, mut last) = (Vec::new(), Instant::now());
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        if line.unwrap().contains("\"type\":\"tool_result\"") {
            ours.push(last.elapsed().as_secs_f64() * 1e3);
            last = Instant::now();
        }
    }
    assert!(child.wait().unwrap().success());
    assert_eq!((ours.len(), theirs.len()), (ROUNDS, ROUNDS));

    let near = |times: &[f64], round: usize| median(times[round - 10..round + 10].to_vec());
    let (early, late) = (near(&ours, 20), near(&ours, ROUNDS - 10));
    let (bare_early, bare_late) = (near(&theirs, 20), near(&theirs, ROUNDS - 10));
    let figures = format!("{early:.2}, {late:.2} (bare: {bare_early:.2}, {bare_late:.2})");
    report.note("ms of wall time of a round near 10 and near 1,000", &figures);
    report.at_most(
        "growth of a round from 10 to 1,000, to a bare one's",
        (late - early).max(0.0) / (bare_late - bare_early).max(0.001),
        1.5,
        " times",
    );
}
