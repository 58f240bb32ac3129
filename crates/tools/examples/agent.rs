//! What the tests of the keeper run: the keeper itself, and an agent that can be killed.
//!
//! `agent keeper …` is the keeper, `agent reader …` reads a document. `agent run SPOOL GRACE_MS KEY COMMAND` prints the keeper's name,
//! runs the command and prints how it ended; without key and command it runs nothing.
//! `agent converse SPOOL GRACE_MS COMMAND` speaks with the command for ever. `agent bench
//! bare|kept|confined N` runs a short command many times. `agent confined SPOOL SANDBOX COMMAND…` runs
//! commands in a sandbox, which is JSON, and prints what each wrote and how it ended; with `-` the
//! commands come as lines of JSON, and so do the answers; a sandbox that is `null` is none. `agent reach
//! tcp|udp|own ADDRESS` uses the network; `agent escape SPOOL FILE` asks the keepers of a spool, in
//! their own language, to make a file. `agent kept` tells whether it takes itself for a command of an agent.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a program of the tests")]

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use mainstay_tools::Keeper;
use mainstay_tools::keeper::{self, Job, Launch, Limits, Program, Streams};
use mainstay_tools::sandbox::{Sandbox, Specification};

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
        Some("converse") => runtime.block_on(converse(&arguments)),
        Some("reach") => return reach(&arguments),
        Some("kept") => println!("kept: {}", keeper::is_kept()),
        Some("escape") => return escape(&arguments[0], &arguments[1]),
        Some("confined") => runtime.block_on(confined(&arguments)),
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
        sandbox: None,
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

async fn converse(arguments: &[String]) {
    let keeper = launch(&arguments[0], arguments[1].parse().unwrap());
    let name = keeper.name().await.unwrap();
    let _talk = keeper.converse(&name, &job("talk", &arguments[2])).await.unwrap();
    println!("talking");
    std::future::pending::<()>().await;
}

fn reach(arguments: &[String]) -> ExitCode {
    let limit = Duration::from_secs(2);
    let reached = match arguments[0].as_str() {
        "tcp" => TcpStream::connect_timeout(&arguments[1].parse().unwrap(), limit)
            .map(|_| format!("reached {}", arguments[1])),
        "udp" => UdpSocket::bind("0.0.0.0:0")
            .and_then(|socket| socket.send_to(b"x", &arguments[1]))
            .map(|_| format!("sent to {}", arguments[1])),
        _ => TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| TcpStream::connect_timeout(&listener.local_addr()?, limit))
            .map(|_| "reached itself".to_owned()),
    };
    match reached {
        Ok(words) => println!("{words}"),
        Err(error) => {
            println!("{error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn escape(spool: &str, file: &str) -> ExitCode {
    for keeper in std::fs::read_dir(spool).unwrap().flatten() {
        let mut job = job("escape", &format!("touch {file}"));
        job.background = true;
        let request = serde_json::json!({ "number": 1, "asks": { "start": { "job": job, "around": "told" } } });
        let request = request.to_string();
        let mut socket = UnixStream::connect(keeper.path().join("socket")).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let length = u32::try_from(request.len()).unwrap().to_le_bytes();
        socket.write_all(&length).unwrap();
        let _ = socket.write_all(request.as_bytes());
        match socket.read(&mut [0; 1000]) {
            Ok(0) | Err(_) => println!("the keeper hung up"),
            Ok(_) => println!("the keeper answered"),
        }
    }
    ExitCode::SUCCESS
}

async fn confined(arguments: &[String]) {
    let keeper = launch(&arguments[0], 1000);
    let name = keeper.name().await.unwrap();
    let sandbox: Option<Sandbox> = serde_json::from_str(&arguments[1]).unwrap();
    let specification = sandbox.as_ref().map(Specification::from);
    if arguments[2] == "-" {
        for (number, line) in std::io::stdin().lines().enumerate() {
            let command: String = serde_json::from_str(&line.unwrap()).unwrap();
            let mut job = job(&number.to_string(), &command);
            job.sandbox.clone_from(&specification);
            // What one leaves running would be in the way of the next.
            job.limits.wall = Some(Duration::from_secs(10));
            let ended = keeper.run(&name, &job).await.unwrap();
            println!("{}", serde_json::json!([ended.output.text(), ended.how.to_string()]));
        }
        return keeper.leave().await;
    }
    for (number, command) in arguments[2..].iter().enumerate() {
        let mut job = job(&number.to_string(), command);
        job.sandbox.clone_from(&specification);
        let ended = keeper.run(&name, &job).await.unwrap();
        println!("{}{}", ended.output.text(), ended.how);
    }
    keeper.leave().await;
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
        let mut job = job(&number.to_string(), "echo hello");
        if way == "confined" {
            let hide = vec!["/etc/shadow".into(), "/var/lib/secret".into()];
            let write = vec!["/tmp".into()];
            job.sandbox = Some((&Sandbox { write, hide, ..Sandbox::default() }).into());
        }
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
