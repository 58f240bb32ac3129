//! How long it takes to start.

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::measure::median;
use crate::report::Report;
use crate::scene::Scene;

const REPEATS: usize = 41;

pub(crate) fn measure(report: &mut Report) {
    let scene = Scene::new("http://127.0.0.1:1");
    let (mut nothing, mut version) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        nothing.push(timed(&mut Command::new("/bin/true")));
        version.push(timed(&mut scene.mainstay(&["--version"])));
    }
    let (nothing, version) = (median(nothing), median(version));
    report.note("ms to start /bin/true, and --version", &format!("{nothing:.2}, {version:.2}"));
    report.at_most("start of --version, above that of /bin/true", version - nothing, 5.0, " ms");

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let scene = Scene::new(&format!("http://{}", listener.local_addr().unwrap()));
    let mut first = Vec::new();
    for repeat in 0..REPEATS / 2 {
        let mut command = scene.mainstay(&["run", "hello"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let start = Instant::now();
        let mut child = command.spawn().unwrap();
        let (stream, _) = listener.accept().unwrap();
        let taken = start.elapsed().as_secs_f64() * 1e3;
        drop(stream);
        child.kill().unwrap();
        child.wait().unwrap();
        // The first one makes the store.
        if repeat == 0 {
            report.note(
                "ms from `run` to the first request, with a new store",
                &format!("{taken:.1}"),
            );
        } else {
            first.push(taken);
        }
    }
    report.note("ms from `run` to the first request", &format!("{:.1}", median(first)));
}

fn timed(command: &mut Command) -> f64 {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let start = Instant::now();
    assert!(command.status().unwrap().success());
    start.elapsed().as_secs_f64() * 1e3
}
