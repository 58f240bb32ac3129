//! Nothing escapes a cancel.

use std::time::{Duration, Instant};

use crate::scene::{Scene, job, mark, running, until};

/// Runs a command until its processes are there, cancels it, and demands that they are gone within
/// a second.
async fn dies_with_its_call(scene: &Scene, command: &str, processes: usize) {
    let mark = mark();
    let command = command.replace("MARK", &mark);
    let name = scene.keeper.name().await.unwrap();
    let job = job(&mark, &command);
    {
        let run = scene.keeper.run(&name, &job);
        let there = until(&command, Duration::from_secs(10), || running(&mark).len() >= processes);
        tokio::select! {
            ended = run => panic!("{command} ended: {ended:?}"),
            () = there => {}
        }
    }
    let cancelled = Instant::now();
    until(&command, Duration::from_secs(1), || running(&mark).is_empty()).await;
    assert!(cancelled.elapsed() < Duration::from_secs(1), "{command}");
}

const ESCAPES: &[(&str, usize)] = &[
    ("sleep MARK", 1),
    ("sleep MARK | cat", 1),
    ("setsid sleep MARK", 1),
    ("(setsid sleep MARK &); sleep MARK", 2),
    ("((sleep MARK &) &); sleep MARK", 2),
    ("(setsid setsid sh -c '(sleep MARK &)' &); sleep MARK", 2),
    ("trap '' TERM; sleep MARK; sleep MARK", 1),
    ("sh -c \"trap '' TERM HUP INT; while :; do sleep MARK; done\"", 1),
    ("nohup sleep MARK", 1),
    ("(nohup setsid sleep MARK >/dev/null 2>&1 </dev/null &); sleep MARK", 2),
    ("env -i setsid sleep MARK", 1),
    ("(env -i setsid sleep MARK >/dev/null 2>&1 &); sleep MARK", 2),
    ("sh -c 'kill -STOP $$' MARK", 1),
    ("sh -c 'f() { (f &); }; f; sleep 300' MARK", 1),
    ("sh -c 'trap \"\" TERM; f() { (f &); }; f; sleep 300' MARK", 1),
    ("for i in 1 2 3 4 5 6 7 8; do (setsid sleep MARK &); done; sleep MARK", 9),
];

#[tokio::test]
async fn every_escape_is_gone_within_a_second_of_a_cancel() {
    let scene = Scene::new();
    for (command, processes) in ESCAPES {
        dies_with_its_call(&scene, command, *processes).await;
    }
    scene.keeper.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_escape_is_told_from_the_processes_of_another_job() {
    let scene = Scene::new();
    let name = scene.keeper.name().await.unwrap();
    let other = mark();
    let mut server = job("server", &format!("(env -i setsid sleep {other} &); sleep {other}"));
    server.background = true;
    scene.keeper.start(&name, &server).await.unwrap();
    until("the other job", Duration::from_secs(10), || running(&other).len() == 2).await;
    for (command, processes) in ESCAPES {
        dies_with_its_call(&scene, command, *processes).await;
        assert_eq!(running(&other).len(), 2, "{command}");
    }
    scene.keeper.stop("server").await.unwrap();
    assert!(running(&other).is_empty());
    scene.keeper.leave().await;
}

#[tokio::test]
async fn what_is_left_running_is_owned_and_listed_and_goes_with_the_agent() {
    let scene = Scene::new();
    let name = scene.keeper.name().await.unwrap();
    let mark = mark();
    let started = Instant::now();
    let job = job("left", &format!("sleep {mark} & echo started"));
    let ended = scene.keeper.run(&name, &job).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(2));
    assert_eq!(ended.output.text(), "started\n");
    assert_eq!(ended.left.len(), 1);
    assert_eq!(ended.left[0].command, format!("sleep {mark}"));
    let list = scene.keeper.list("session").await.unwrap();
    assert_eq!((list.len(), list[0].key.as_str(), list[0].left.len()), (1, "left", 1));
    scene.keeper.leave().await;
    assert!(running(&mark).is_empty());
}

#[tokio::test]
async fn the_end_of_what_was_left_running_is_announced() {
    let scene = Scene::new();
    let mut endings = scene.keeper.endings();
    let name = scene.keeper.name().await.unwrap();
    let job = job("left", "(sleep 0.3; echo late) & echo early");
    let ended = scene.keeper.run(&name, &job).await.unwrap();
    assert_eq!((ended.output.text().as_str(), ended.left.is_empty()), ("early\n", false));
    let ending = crate::scene::in_time(endings.recv()).await.unwrap();
    assert_eq!((ending.key.as_str(), ending.keeper), ("left", name));
    assert_eq!(ending.ended.output.text(), "early\nlate\n");
    scene.keeper.leave().await;
}

#[tokio::test]
async fn a_limit_on_time_or_silence_ends_a_job_and_says_so() {
    let scene = Scene::new();
    let name = scene.keeper.name().await.unwrap();
    let mark = mark();
    let mut wall =
        job("wall", &format!("echo begun; trap '' TERM; sleep {mark} & wait; sleep {mark}"));
    wall.limits.wall = Some(Duration::from_millis(300));
    let ended = crate::scene::in_time(scene.keeper.run(&name, &wall)).await.unwrap();
    assert_eq!(ended.how.to_string(), "killed: it took longer than 0.3 s");
    assert_eq!((ended.how.code(), ended.output.text().as_str()), (124, "begun\n"));
    let mut idle = job("idle", &format!("echo a; sleep 0.1; echo b; sleep {mark}"));
    idle.limits.idle = Some(Duration::from_millis(300));
    let ended = crate::scene::in_time(scene.keeper.run(&name, &idle)).await.unwrap();
    assert_eq!(ended.how.to_string(), "killed: it wrote nothing for 0.3 s");
    assert_eq!(ended.output.text(), "a\nb\n");
    assert!(running(&mark).is_empty());
    scene.keeper.leave().await;
}
