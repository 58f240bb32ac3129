//! A tool round against the bare loop.

use std::io::{Read, Write};
use std::net::TcpListener;

use crate::bare;
use crate::measure::{Taken, median, run};
use crate::report::Report;
use crate::scene::{Model, Scene};

const ROUNDS: usize = 100;
const REPEATS: usize = 15;

pub(crate) fn measure(report: &mut Report) {
    let (many, none) = (Model::start(ROUNDS, "echo {k}"), Model::start(0, "echo {k}"));
    let like = first_request();
    report.note("first request, bytes", &like.len().to_string());
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    // Turn by turn, so that a slow minute of the machine is shared. A run without rounds is taken
    // off each: starting is measured elsewhere.
    for repeat in 0..=REPEATS {
        let bare = |model: &Model| {
            let scene = Scene::new(&model.url);
            checked(run(&mut bare::command(&model.url, &scene.workspace(), &like)))
        };
        let agent = |model: &Model| {
            let scene = Scene::new(&model.url);
            checked(run(&mut scene.mainstay(&["run", "--yes", "count"])))
        };
        let (bare, agent) = (bare(&many).less(&bare(&none)), agent(&many).less(&agent(&none)));
        // The first pair warms the caches.
        if repeat > 0 {
            theirs.push(bare);
            ours.push(agent);
        }
    }
    let middle = |taken: &[Taken], figure: fn(&Taken) -> f64| {
        median(taken.iter().map(figure).collect()) / ROUNDS as f64
    };
    let wall = |taken: &Taken| taken.wall.as_secs_f64() * 1e3;
    let cpu = |taken: &Taken| taken.cpu.as_secs_f64() * 1e3;
    let (bare_cpu, bare_wall) = (middle(&theirs, cpu), middle(&theirs, wall));
    let (our_cpu, our_wall) = (middle(&ours, cpu), middle(&ours, wall));
    report.note("a bare round: ms of CPU, of wall time", &format!("{bare_cpu:.2}, {bare_wall:.2}"));
    report.note("a round: ms of CPU, of wall time", &format!("{our_cpu:.2}, {our_wall:.2}"));
    report.at_most("CPU of a round, to a bare one", our_cpu / bare_cpu, 1.5, " times");
    report.at_most("wall time of a round, to a bare one", our_wall / bare_wall, 1.5, " times");
}

fn checked((taken, output): (Taken, std::process::Output)) -> Taken {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    taken
}

/// The body of the first request that the product sends.
pub(crate) fn first_request() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let scene = Scene::new(&format!("http://{}", listener.local_addr().unwrap()));
    let mut command = scene.mainstay(&["run", "count"]);
    command.stderr(std::process::Stdio::null()).stdout(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let mut bytes = Vec::new();
    let body = loop {
        let mut buffer = [0; 4096];
        let length = stream.read(&mut buffer).unwrap();
        bytes.extend_from_slice(&buffer[..length]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let wanted: usize = head
            .lines()
            .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok())
            .unwrap();
        if body.len() >= wanted {
            break body.to_owned();
        }
    };
    let _ = stream.write_all(b"HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n");
    child.wait().unwrap();
    body
}
