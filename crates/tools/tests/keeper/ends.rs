//! Every end is told right, and nothing is left in the keeper.

use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use mainstay_tools::keeper::Exit;

use crate::scene::{Scene, children, in_time, job, until, worker};

fn descriptors(pid: i32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heavy_a_thousand_short_children_end_with_the_right_codes_and_leave_nothing() {
    let scene = Scene::new();
    let name = scene.keeper.name().await.unwrap();
    in_time(scene.keeper.run(&name, &job("first", "true"))).await.unwrap();
    let worker = worker(&scene, &name);
    let before = descriptors(worker);
    let check = async |number: i32| {
        let signals = [1, 2, 3, 6, 9, 10, 13, 14, 15];
        let (command, expected) = match number % 5 {
            0 => {
                let signal = signals[usize::try_from(number / 5).unwrap() % signals.len()];
                (format!("kill -{signal} $$"), Exit::Signal(signal))
            }
            1 => (format!("(exit 7) & wait; exit {}", number % 256), Exit::Code(number % 256)),
            2 => {
                (format!("(true &); (sleep 0 &); exit {}", number % 256), Exit::Code(number % 256))
            }
            _ => (format!("exit {}", number % 256), Exit::Code(number % 256)),
        };
        let ended =
            scene.keeper.run(&name, &job(&format!("job-{number}"), &command)).await.unwrap();
        assert_eq!(ended.how, expected, "{number}: {command}");
    };
    let all = stream::iter(0..1000).for_each_concurrent(8, check);
    tokio::time::timeout(Duration::from_secs(100), all).await.unwrap();
    until("no child is left", Duration::from_secs(2), || children(worker).is_empty()).await;
    assert_eq!(descriptors(worker), before);
    scene.keeper.leave().await;
}

#[tokio::test]
async fn a_key_is_started_once_whoever_asks() {
    let scene = Scene::new();
    let name = scene.keeper.name().await.unwrap();
    let file = scene.directory.path().join("count");
    let job = job("once", &format!("echo x >> {}; sleep 0.1; exit 4", file.display()));
    let (one, other) = tokio::join!(scene.keeper.run(&name, &job), scene.keeper.run(&name, &job));
    let again = scene.keeper.run(&name, &job).await;
    for ended in [one, other, again] {
        assert_eq!(ended.unwrap().how, Exit::Code(4));
    }
    assert_eq!(std::fs::read_to_string(file).unwrap(), "x\n");
    scene.keeper.leave().await;
}

#[tokio::test]
async fn a_job_that_cannot_start_says_why() {
    let scene = Scene::new();
    let name = scene.keeper.name().await.unwrap();
    let mut job = job("nowhere", "true");
    job.directory = "/no/such/place".into();
    let ended = scene.keeper.run(&name, &job).await.unwrap();
    assert_eq!(
        ended.how.to_string(),
        "could not be started: the directory /no/such/place does not exist"
    );
    scene.keeper.leave().await;
}

#[tokio::test]
async fn a_polite_agent_leaves_neither_process_nor_directory() {
    let scene = Scene::new();
    let name = scene.keeper.name().await.unwrap();
    scene.keeper.run(&name, &job("a", "echo")).await.unwrap();
    let worker = worker(&scene, &name);
    let guard = crate::scene::parent(worker).unwrap().0;
    scene.keeper.leave().await;
    let gone = |pid| crate::scene::parent(pid).is_none();
    until("the keeper is gone", Duration::from_secs(5), || gone(worker) && gone(guard)).await;
    assert!(!scene.spool().join(&name).exists());
    // The next use starts another.
    assert_ne!(scene.keeper.name().await.unwrap(), name);
    scene.keeper.leave().await;
}

#[tokio::test]
async fn a_home_with_a_long_path_works() {
    let directory = tempfile::tempdir().unwrap();
    let spool = directory.path().join("d".repeat(120)).join("e".repeat(120));
    let keeper = crate::scene::keeper(spool, Duration::from_secs(1));
    let name = keeper.name().await.unwrap();
    assert_eq!(keeper.run(&name, &job("a", "exit 5")).await.unwrap().how, Exit::Code(5));
    keeper.leave().await;
}

#[tokio::test]
async fn children_start_with_no_signal_blocked() {
    let scene = Scene::new();
    let name = scene.keeper.name().await.unwrap();
    let command = "grep '^SigBlk' /proc/self/status";
    let ended = scene.keeper.run(&name, &job("signals", command)).await.unwrap();
    assert_eq!(ended.output.text(), "SigBlk:\t0000000000000000\n");
    scene.keeper.leave().await;
}
