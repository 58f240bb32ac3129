//! What a job writes arrives, and what is written to it.

use mainstay_message::Redactor;
use mainstay_message::redactor::Origin;
use mainstay_tools::keeper::{Exit, Job, Streams};

use crate::scene::{Scene, in_time, job};

#[tokio::test]
async fn a_long_output_has_head_and_tail_and_is_whole_in_the_spool() {
    let scene = Scene::new();
    let name = scene.keeper.name().await.unwrap();
    let ended = scene.keeper.run(&name, &job("long", "seq 1 100000")).await.unwrap();
    let expected: String = (1..=100_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(ended.output.total, expected.len() as u64);
    let text = ended.output.text();
    assert!(text.starts_with("1\n2\n") && text.ends_with("99999\n100000\n"));
    assert!(text.len() < 40_000 && text.contains(" bytes …]"));
    assert_eq!(ended.output.whole(), expected.as_bytes());
    let mut read = Vec::new();
    while read.len() < expected.len() {
        let (from, bytes, total) =
            scene.keeper.read("long", read.len() as u64, 50_000).await.unwrap();
        assert_eq!((from, total), (read.len() as u64, expected.len() as u64));
        read.extend(bytes);
    }
    assert_eq!(read, expected.as_bytes());
    scene.keeper.leave().await;
}

#[tokio::test]
async fn an_output_beyond_its_cap_is_cut_in_the_middle() {
    let scene = Scene::new();
    let name = scene.keeper.name().await.unwrap();
    let mut job = job("huge", "head -c 3000000 /dev/zero; echo end");
    job.limits.output = Some(100_000);
    let ended = in_time(scene.keeper.run(&name, &job)).await.unwrap();
    assert_eq!((ended.output.total, ended.output.kept), (3_000_004, 100_000));
    let whole = ended.output.whole();
    assert!(whole.ends_with(b"end\n") && whole.len() < 150_000);
    assert!(String::from_utf8_lossy(&whole).contains("bytes were not kept"));
    scene.keeper.leave().await;
}

#[tokio::test]
async fn characters_split_between_writes_stay_whole() {
    let scene = Scene::new();
    let name = scene.keeper.name().await.unwrap();
    // The euro sign in three writes, an emoji in two.
    let command =
        r"for b in '\342' '\202' '\254' '\360\237' '\230\200\n'; do printf $b; sleep 0.02; done";
    let ended = scene.keeper.run(&name, &job("split", command)).await.unwrap();
    assert_eq!(ended.output.text(), "€😀\n");
    let bytes = scene.keeper.run(&name, &job("bytes", r"printf '\000\377\n'")).await.unwrap();
    assert_eq!(bytes.output.head, b"\x00\xff\n");
    scene.keeper.leave().await;
}

#[tokio::test]
async fn input_can_be_written_and_closed() {
    let scene = Scene::new();
    let name = scene.keeper.name().await.unwrap();
    let mut job = job("cat", "cat; echo done");
    (job.input, job.background) = (true, true);
    scene.keeper.start(&name, &job).await.unwrap();
    // More than a pipe holds, so that the keeper has to wait for its reader.
    let text = "0123456789abcdef".repeat(20_000);
    scene.keeper.write("cat", text.as_bytes()).await.unwrap();
    scene.keeper.close_input("cat").await.unwrap();
    let ended = in_time(scene.keeper.watch("cat")).await.unwrap();
    assert_eq!(ended.output.whole(), format!("{text}done\n").as_bytes());
    assert!(scene.keeper.write("cat", b"x").await.is_err());
    assert!(scene.keeper.write("nobody", b"x").await.is_err());
    scene.keeper.leave().await;
}

#[tokio::test]
async fn a_job_without_input_reads_nothing_and_has_no_terminal() {
    let scene = Scene::new();
    let name = scene.keeper.name().await.unwrap();
    let command = "cat; (exec </dev/tty) 2>/dev/null && echo terminal || echo none";
    let ended = in_time(scene.keeper.run(&name, &job("a", command))).await.unwrap();
    assert_eq!(ended.output.text(), "none\n");
    scene.keeper.leave().await;
}

#[tokio::test]
async fn what_a_job_is_given_is_read_whole_and_then_ends() {
    let scene = Scene::new();
    let keeper = scene.keeper.name().await.unwrap();
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| u8::try_from(at % 251).unwrap()).collect();
    let given = |key: &str, command: &str| Job { given: Some(bytes.clone()), ..job(key, command) };
    let read = in_time(scene.keeper.run(&keeper, &given("read", "wc -c"))).await.unwrap();
    assert_eq!(read.output.text().trim(), "3000000");
    for (key, command) in [("deaf", "echo done"), ("closed", "exec 0<&-; echo done")] {
        let ended = in_time(scene.keeper.run(&keeper, &given(key, command))).await.unwrap();
        assert_eq!((ended.how, ended.output.text()), (Exit::Code(0), "done\n".to_owned()));
    }
    scene.keeper.leave().await;
}

#[tokio::test]
async fn the_two_outputs_are_told_apart_where_that_was_asked_for() {
    let scene = Scene::new();
    let keeper = scene.keeper.name().await.unwrap();
    let command = "echo out; echo err >&2; yes complaint | head -c 500000 >&2";
    let apart = Job { streams: Streams::Apart, ..job("apart", command) };
    let ended = in_time(scene.keeper.run(&keeper, &apart)).await.unwrap();
    assert_eq!(ended.output.text(), "out\n");
    let errors = ended.errors.unwrap();
    assert!(errors.text().starts_with("err\ncomplaint\n"));
    assert_eq!((errors.total, errors.file), (500_004, None));
    scene.keeper.leave().await;
}

#[tokio::test]
async fn no_secret_is_in_an_output_nor_on_the_disk() {
    let scene = Scene::new();
    let redactor = Redactor::default();
    scene.keeper.redact(&redactor);
    let keeper = scene.keeper.name().await.unwrap();
    // It is learnt while the keeper runs.
    redactor.add("MY_KEY", "sk-test-0123456789abcdefXYZ", Origin::Configured);
    let halves = "printf sk-test-01234567; sleep 0.05; echo 89abcdefXYZ; printf 'Go on? [y/s'";
    let many = "for n in $(seq 3000); do echo $n sk-test-0123456789abcdefXYZ; done";
    for (key, command) in [("short", halves.to_owned()), ("long", format!("{halves}; {many}"))] {
        let apart =
            Job { streams: Streams::Apart, ..job(key, &format!("{command}; ({command}) >&2")) };
        let ended = in_time(scene.keeper.run(&keeper, &apart)).await.unwrap();
        for shown in [&ended.output, &ended.errors.unwrap()] {
            let text = String::from_utf8(shown.whole()).unwrap();
            assert!(text.starts_with("[redacted: MY_KEY]\nGo on? [y/s"), "{text}");
            assert!(!text.contains("sk-test"), "{text}");
        }
    }
    let question = "printf 'Go on? [y/s'; read answer; echo $answer";
    let asking = Job { input: true, background: true, ..job("asks", question) };
    scene.keeper.start(&keeper, &asking).await.unwrap();
    let mut heard = Vec::new();
    while heard.is_empty() {
        heard = in_time(scene.keeper.read("asks", 0, 100)).await.unwrap().1;
    }
    assert_eq!(heard, b"Go on? [y/s", "the end of a question waits for nothing");
    for entry in std::fs::read_dir(scene.spool().join(&keeper)).unwrap().flatten() {
        let bytes = std::fs::read(entry.path()).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("sk-test-01234"), "{}", entry.path().display());
    }
    scene.keeper.leave().await;
}
