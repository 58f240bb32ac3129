//! Keepers whose worker or guard is stopped.
//!
//! An answer that a keeper owes is waited for ten seconds, so each of these takes that long.

use std::time::{Duration, Instant};

use mainstay_tools::keeper::{Attached, Exit, Job, KeeperError, Limits};
use rustix::process::{Pid, Signal, kill_process};

use crate::scene::{in_time, job, kill, mark, parent, running, until, working};

const PATIENCE: Duration = Duration::from_secs(20);
const LIMIT: Duration = Duration::from_secs(2);

fn send(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

async fn stop(pid: i32) {
    send(pid, Signal::STOP);
    until("it is stopped", PATIENCE, || parent(pid).is_some_and(|(_, state)| state == 'T')).await;
}

fn limited(key: &str, command: &str) -> Job {
    Job { limits: Limits { wall: Some(LIMIT), idle: None, output: None }, ..job(key, command) }
}

#[tokio::test]
async fn slow_a_job_of_a_stopped_worker_is_given_up_after_its_limit_and_the_next_has_another() {
    let (scene, name, worker) = working().await;
    let mark = mark();
    let sleeping = limited("call", &format!("sleep {mark}"));
    let run = scene.keeper.run(&name, &sleeping);
    let stopped = async {
        until("the command runs", PATIENCE, || !running(&mark).is_empty()).await;
        stop(worker).await;
    };
    let began = Instant::now();
    let (ended, ()) = in_time(async { tokio::join!(run, stopped) }).await;
    assert!(matches!(ended, Err(KeeperError::Silent)), "{ended:?}");
    assert!(began.elapsed() >= LIMIT);
    assert!(!running(&mark).is_empty());

    // Work goes on with another keeper.
    let another = scene.keeper.name().await.unwrap();
    assert_ne!(another, name);
    let ended = in_time(scene.keeper.run(&another, &limited("next", "exit 4"))).await.unwrap();
    assert_eq!(ended.how, Exit::Code(4));

    // The stopped one goes with all it kept.
    in_time(scene.keeper.leave()).await;
    assert!(running(&mark).is_empty());
    until("the worker is gone", PATIENCE, || parent(worker).is_none()).await;
}

#[tokio::test]
async fn slow_a_prepared_job_of_a_stopped_worker_is_given_up_after_its_limit() {
    let (scene, name, worker) = working().await;
    let mark = mark();
    stop(worker).await;
    scene.keeper.prepare(&name, limited("call", &format!("sleep {mark}")));
    let begun = in_time(scene.keeper.begin(&name, "call")).await;
    assert!(matches!(begun, Err(KeeperError::Silent)), "{begun:?}");
    // It may begin when its keeper goes on, and is ended at once.
    in_time(scene.keeper.leave()).await;
    assert!(running(&mark).is_empty());
}

#[tokio::test]
async fn slow_who_comes_after_is_told_that_a_stopped_keeper_does_not_answer() {
    let (scene, name, worker) = working().await;
    let mark = mark();
    let mut server = job("server", &format!("sleep {mark}"));
    server.background = true;
    scene.keeper.start(&name, &server).await.unwrap();
    stop(worker).await;

    let another = scene.another();
    let (attached, ended, polled) = in_time(async {
        tokio::join!(
            another.attach(&name, "session"),
            scene.keeper.ended("server"),
            scene.keeper.poll("server"),
        )
    })
    .await;
    // It is not gone: whoever took it for that would start it again.
    assert!(matches!(attached, Attached::Silent), "{attached:?}");
    assert!(matches!(ended, Err(KeeperError::Silent)), "{ended:?}");
    assert!(matches!(polled, Err(KeeperError::Silent)), "{polled:?}");
    assert!(!running(&mark).is_empty());
    in_time(scene.keeper.leave()).await;
    // On a busy machine a woken worker may need longer than its agent waits, and ends all the same.
    until("the end of the server", Duration::from_secs(10), || running(&mark).is_empty()).await;
}

#[tokio::test]
async fn slow_a_keeper_that_cannot_be_woken_is_killed_when_its_agent_leaves() {
    let (scene, name, worker) = working().await;
    let mark = mark();
    let mut server = job("server", &format!("sleep {mark}"));
    server.background = true;
    scene.keeper.start(&name, &server).await.unwrap();
    // As by a debugger: whoever wakes it finds it stopped again.
    let stopping = tokio::task::spawn_blocking(move || {
        while kill_process(Pid::from_raw(worker).unwrap(), Signal::STOP).is_ok() {
            std::thread::sleep(Duration::from_micros(200));
        }
    });
    until("it is stopped", PATIENCE, || parent(worker).is_some_and(|(_, state)| state == 'T'))
        .await;
    in_time(scene.keeper.leave()).await;
    assert!(running(&mark).is_empty());
    in_time(stopping).await.unwrap();
}

#[tokio::test]
async fn a_stopped_guard_holds_nobody_up_and_goes_with_its_worker() {
    let (scene, name, worker) = working().await;
    let guard = parent(worker).unwrap().0;
    stop(guard).await;
    let ended = in_time(scene.keeper.run(&name, &limited("call", "exit 4"))).await.unwrap();
    assert_eq!(ended.how, Exit::Code(4));
    in_time(scene.keeper.leave()).await;
    until("the guard is gone", PATIENCE, || parent(guard).is_none()).await;
}

#[tokio::test]
async fn what_a_killed_worker_left_to_a_stopped_guard_is_killed() {
    let (scene, name, worker) = working().await;
    let mark = mark();
    let guard = parent(worker).unwrap().0;
    let sleeping = job("call", &format!("sleep {mark}"));
    let run = scene.keeper.run(&name, &sleeping);
    let killed = async {
        until("the command runs", PATIENCE, || !running(&mark).is_empty()).await;
        stop(guard).await;
        kill(worker);
    };
    let (ended, ()) = in_time(async { tokio::join!(run, killed) }).await;
    assert!(matches!(ended, Err(KeeperError::Lost)), "{ended:?}");
    until("it is killed", PATIENCE, || running(&mark).is_empty()).await;
    until("the guard is gone", PATIENCE, || parent(guard).is_none()).await;
}
