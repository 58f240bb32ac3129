//! What the tests of the keeper run: the keeper itself, and an agent that can be killed.
//!
//! `agent keeper …` is the keeper, `agent reader …` reads a document. `agent run SPOOL GRACE_MS KEY COMMAND` prints the keeper's name,
//! runs the command and prints how it ended; without key and command it runs nothing. `agent bench bare|kept N`
//! runs a short command many times.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a program of the tests")]

use std::ffi::OsString;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use mainstay_tools::Keeper;
use mainstay_tools::keeper::{self, Job, Launch, Limits, Program, Streams};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let verb = arguments.next().unwrap_or_default();
    if verb == "keeper" {
        return keeper::serve(arguments);
    }
    if verb == "reader" {
        return mainstay_tools::reader::serve(arguments);
    }
    let arguments: Vec<String> = arguments.map(|text| text.into_string().unwrap()).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match verb.to_str() {
        Some("run") => runtime.block_on(run(&arguments)),
        Some("bench") => runtime.block_on(bench(&arguments[0], arguments[1].parse().unwrap())),
        _ => return ExitCode::FAILURE,
    }
    ExitCode::SUCCESS
}

fn launch(spool: &str, grace: u64) -> Keeper {
    Keeper::new(Launch {
        program: "/proc/self/exe".into(),
        arguments: vec![OsString::from("keeper")],
        spool: spool.into(),
        grace: Duration::from_millis(grace),
    })
}

fn job(key: &str, command: &str) -> Job {
    Job {
        key: key.to_owned(),
        session: "session".to_owned(),
        program: Program::Line(command.to_owned()),
        directory: "/".into(),
        environment: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
        limits: Limits::default(),
        input: false,
        given: None,
        streams: Streams::Together,
        background: false,
    }
}

async fn run(arguments: &[String]) {
    let keeper = launch(&arguments[0], arguments[1].parse().unwrap());
    let name = keeper.name().await.unwrap();
    println!("keeper {name}");
    if let [_, _, key, command] = arguments {
        let ended = keeper.run(&name, &job(key, command)).await.unwrap();
        println!("ended {}", ended.how);
    }
    // Killed, not left: an agent has no other way to stop.
    std::future::pending::<()>().await;
}

/// Runs the same command bare, or through a keeper; `time` tells the difference, as all processes
/// are waited for.
async fn bench(way: &str, rounds: u32) {
    let start = Instant::now();
    if way == "bare" {
        for _ in 0..rounds {
            let output = Command::new("/bin/sh").args(["-c", "echo hello"]).output().unwrap();
            assert!(output.status.success());
        }
        return println!("{:?} a round", start.elapsed() / rounds);
    }
    let spool = std::env::temp_dir().join(format!("keeper-bench-{}", std::process::id()));
    let keeper = launch(spool.to_str().unwrap(), 1000);
    let name = keeper.name().await.unwrap();
    for number in 0..rounds {
        let job = job(&number.to_string(), "echo hello");
        assert_eq!(keeper.run(&name, &job).await.unwrap().output.text(), "hello\n");
    }
    println!("{:?} a round", start.elapsed() / rounds);
    keeper.leave().await;
    // Its guard is our only child, and is reaped by a thread.
    let children = "/proc/self/task".to_owned();
    while std::fs::read_dir(&children).unwrap().flatten().any(|task| {
        std::fs::read_to_string(task.path().join("children")).is_ok_and(|text| !text.is_empty())
    }) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let _ = std::fs::remove_dir_all(spool);
}
