//! Processes that are spoken with.

use std::time::Duration;

use mainstay_tools::keeper::{Conversation, Exit, KeeperError, KillReason};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use crate::scene::{Scene, in_time, job, mark, running, until};

const PATIENCE: Duration = Duration::from_secs(10);

#[tokio::test]
async fn what_is_said_reaches_a_process_and_what_it_answers_comes_back() {
    let scene = Scene::new();
    let keeper = scene.keeper.name().await.unwrap();
    let echo = job("echo", "while read line; do echo \"heard $line\"; echo oh >&2; done; exit 5");
    let Conversation { stream, hold } =
        in_time(scene.keeper.converse(&keeper, &echo)).await.unwrap();
    assert_eq!(hold.key(), "echo");
    let (reads, mut writes) = stream.into_split();
    let mut lines = BufReader::new(reads).lines();
    for number in 0..100 {
        writes.write_all(format!("{number}\n").as_bytes()).await.unwrap();
        let line = in_time(lines.next_line()).await.unwrap();
        assert_eq!(line.unwrap(), format!("heard {number}"));
    }
    // The end of what is said is the end of its input, and its end is the end of what it says.
    drop(writes);
    assert_eq!(in_time(lines.next_line()).await.unwrap(), None);
    let ended = in_time(scene.keeper.watch("echo")).await.unwrap();
    assert_eq!((ended.how, ended.output.text()), (Exit::Code(5), "oh\n".repeat(100)));
    scene.keeper.leave().await;
}

#[tokio::test]
async fn a_slow_reader_holds_the_process_up_and_nothing_is_lost() {
    let scene = Scene::new();
    let keeper = scene.keeper.name().await.unwrap();
    let much = job("much", "head -c 30000000 /dev/zero; sleep 1000");
    let mut told = in_time(scene.keeper.converse(&keeper, &much)).await.unwrap();
    let mut piece = vec![0; 1 << 20];
    let mut total = 0;
    while total < 30_000_000 {
        total += in_time(told.stream.read(&mut piece)).await.unwrap();
    }
    assert_eq!(scene.keeper.poll("much").await.unwrap().total, 0, "the keeper saw none of it");
    scene.keeper.leave().await;
}

#[tokio::test]
async fn it_ends_with_all_it_started_when_nobody_holds_it() {
    let scene = Scene::new();
    let keeper = scene.keeper.name().await.unwrap();
    let mark = mark();
    let deaf = format!("trap '' TERM HUP; setsid sleep {mark} & sleep {mark}; sleep {mark}");
    let told = in_time(scene.keeper.converse(&keeper, &job("deaf", &deaf))).await.unwrap();
    until("it runs", PATIENCE, || running(&mark).len() == 2).await;
    drop(told);
    until("all of it ends", PATIENCE, || running(&mark).is_empty()).await;
    let ended = in_time(scene.keeper.watch("deaf")).await.unwrap();
    assert_eq!(ended.how, Exit::Killed(KillReason::Stopped));
    scene.keeper.leave().await;
}

#[tokio::test]
async fn what_cannot_be_started_is_said_and_without_a_loan_nothing_is() {
    let scene = Scene::new();
    let keeper = scene.keeper.name().await.unwrap();
    let mut missing = job("missing", "");
    missing.program = mainstay_tools::keeper::Program::Arguments(vec!["/no/such/program".into()]);
    let failed = in_time(scene.keeper.converse(&keeper, &missing)).await;
    let words = failed.err().unwrap().to_string();
    assert!(words.contains("could not be started: No such file"), "{words}");
    let mut unlent = job("unlent", "true");
    unlent.streams = mainstay_tools::keeper::Streams::Lent;
    let refused = in_time(scene.keeper.start(&keeper, &unlent)).await;
    assert!(matches!(refused, Err(KeeperError::Refused(_))), "{refused:?}");
    scene.keeper.leave().await;
}

#[tokio::test]
async fn a_killed_agents_conversation_ends_at_once_whatever_the_grace() {
    let scene = Scene::new();
    let mark = mark();
    let command = format!("trap '' TERM; sleep {mark}; sleep {mark}");
    let mut agent = scene.conversing_agent(Duration::from_secs(3600), &command);
    agent.line_with("talking", PATIENCE);
    until("it runs", PATIENCE, || running(&mark).len() == 1).await;
    agent.kill_and_wait();
    until("it ends", PATIENCE, || running(&mark).is_empty()).await;
}
