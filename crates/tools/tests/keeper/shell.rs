//! The `shell` tool.

use std::ffi::OsString;
use std::time::Duration;

use mainstay_tools::{Fact, Grant, Invocation, Outcome, Piece, Settled, Shell, Tool, Workplace};
use serde_json::{Value, json};

use crate::scene::{Scene, in_time, mark, running, until};

fn workplace(scene: &Scene) -> Workplace {
    let mut workplace = Workplace::new(scene.directory.path(), scene.keeper.clone());
    let variables = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", "/somewhere"),
        ("LC_ALL", "C.UTF-8"),
        ("OPENAI_API_KEY", "sk-secret"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("MY_TOKEN", "secret"),
        ("ALLOWED", "yes"),
    ];
    workplace.environment =
        variables.map(|(name, value)| (OsString::from(name), OsString::from(value))).to_vec();
    workplace.pass = vec!["ALLOWED".to_owned()];
    workplace
}

async fn shell(workplace: &Workplace, id: &str, arguments: Value) -> Outcome {
    let call = Invocation {
        id,
        session: "session",
        arguments: &arguments,
        workplace,
        grant: Grant::NONE,
        target: None,
    };
    let plan = Shell.plan(call).await;
    in_time(Shell.run(call, plan.as_ref())).await
}

fn said(outcome: &Outcome) -> Vec<&str> {
    let pieces = outcome.pieces.iter();
    let said = pieces.filter_map(|piece| match piece {
        Piece::Said(words) => Some(words.as_str()),
        _ => None,
    });
    said.collect()
}

fn data(outcome: &Outcome) -> &str {
    let mut pieces = outcome.pieces.iter();
    let data = pieces.find_map(|piece| match piece {
        Piece::Data(words) => Some(words.as_str()),
        _ => None,
    });
    data.unwrap_or_default()
}

#[tokio::test]
async fn the_exit_code_is_always_told() {
    let scene = Scene::new();
    let workplace = workplace(&scene);
    let cases = [
        ("echo hi", "exit code 0 (", 0),
        ("echo oh >&2; exit 3", "exit code 3 (", 3),
        ("kill -9 $$", "exit code 137: ended by SIGKILL (", 137),
        ("no-such-program", "exit code 127 (", 127),
    ];
    for (number, (command, first, code)) in cases.into_iter().enumerate() {
        let outcome = shell(&workplace, &format!("c{number}"), json!({ "command": command })).await;
        assert!(said(&outcome)[0].starts_with(first), "{outcome:?}");
        assert_eq!(outcome.failed, code != 0);
        assert_eq!(outcome.facts, [Fact::Exit { command: command.to_owned(), code }]);
    }
    let outcome = shell(&workplace, "d", json!({ "command": "sleep 60", "timeout": 0.2 })).await;
    assert!(said(&outcome)[0].starts_with("killed: it took longer than 0.2 s ("), "{outcome:?}");
    assert!(outcome.failed);
    let outcome = shell(&workplace, "e", json!({ "command": "pwd; exit 1" })).await;
    assert_eq!(data(&outcome).trim(), scene.directory.path().to_str().unwrap());
    scene.keeper.leave().await;
}

#[tokio::test]
async fn no_key_reaches_a_command() {
    let scene = Scene::new();
    let outcome = shell(&workplace(&scene), "call", json!({ "command": "env" })).await;
    let mut names: Vec<_> =
        data(&outcome).lines().filter_map(|line| line.split_once('=')).map(|pair| pair.0).collect();
    names.sort_unstable();
    let ours = ["ALLOWED", "HOME", "LC_ALL", "PATH", "TERM", "GIT_TERMINAL_PROMPT"];
    assert!(ours.iter().all(|name| names.contains(name)), "{names:?}");
    assert!(!data(&outcome).contains("secret"), "{names:?}");
    // Git's own word for the name of a setting, which is ours.
    names.retain(|name| *name != "GIT_CONFIG_KEY_0");
    assert!(!names.iter().any(|name| name.contains("KEY") || name.contains("TOKEN")), "{names:?}");
    scene.keeper.leave().await;
}

#[tokio::test]
async fn a_child_in_the_background_is_told_and_remembered() {
    let scene = Scene::new();
    let workplace = workplace(&scene);
    let mark = mark();
    let command = format!("sleep {mark} & echo started");
    let outcome = shell(&workplace, "call", json!({ "command": command })).await;
    assert!(data(&outcome).starts_with("started\n"), "{outcome:?}");
    // What a process calls itself is data.
    let is_data =
        |piece: &Piece| matches!(piece, Piece::Data(words) if words.contains(mark.as_str()));
    assert!(outcome.pieces.iter().any(is_data), "{outcome:?}");
    assert!(!said(&outcome).concat().contains(&mark), "{outcome:?}");
    assert!(said(&outcome)[1].starts_with("It left a process running, which"), "{outcome:?}");
    let keeper = scene.keeper.name().await.unwrap();
    let background = Fact::Background { process: "call".to_owned(), keeper, command };
    assert!(outcome.facts.contains(&background));
    scene.keeper.leave().await;
    assert!(running(&mark).is_empty());
}

#[tokio::test]
async fn a_long_output_is_shown_in_part_and_kept_whole() {
    let scene = Scene::new();
    let outcome = shell(&workplace(&scene), "call", json!({ "command": "seq 50000" })).await;
    assert!(data(&outcome).len() < 40_000);
    let expected: String = (1..=50_000).map(|n| format!("{n}\n")).collect();
    let whole = outcome.whole.as_ref().map(|whole| whole.bytes.as_slice());
    assert_eq!(whole, Some(expected.as_bytes()));
    scene.keeper.leave().await;
}

#[tokio::test]
async fn an_interrupted_call_is_settled_by_what_the_keeper_saw() {
    let scene = Scene::new();
    let workplace = workplace(&scene);
    let file = scene.directory.path().join("ran");
    let command = format!("echo x >> {0}; sleep 0.2; exit 5", file.display());
    // The agent of this call dies: it runs in another process.
    let mut agent = scene.agent(Duration::from_secs(30), "call", &command);
    let name = agent.line_with("keeper ", Duration::from_secs(10));
    until("it runs", Duration::from_secs(10), || file.exists()).await;
    agent.kill_and_wait();
    let plan = json!({ "keeper": name.strip_prefix("keeper ").unwrap() });
    let arguments = json!({ "command": command });
    let settle = async |id| {
        let call = Invocation {
            id,
            session: "session",
            arguments: &arguments,
            workplace: &workplace,
            grant: Grant::NONE,
            target: None,
        };
        in_time(Shell.settle(call, Some(&plan))).await
    };
    let Settled::Done(outcome) = settle("call").await else { panic!("it is not settled") };
    assert!(said(&outcome)[0].starts_with("exit code 5 ("), "{outcome:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\n");
    assert_eq!(settle("another").await, Settled::NotStarted);
    let call = Invocation {
        id: "call",
        session: "session",
        arguments: &arguments,
        workplace: &workplace,
        grant: Grant::NONE,
        target: None,
    };
    let nowhere = json!({ "keeper": "nobody" });
    assert!(matches!(Shell.settle(call, Some(&nowhere)).await, Settled::Unknown(_)));
    scene.keeper.leave().await;
}

#[tokio::test]
async fn wrong_arguments_do_nothing() {
    let scene = Scene::new();
    let workplace = workplace(&scene);
    for arguments in [json!({}), json!({ "command": "true", "timeout": 0 }), json!({ "cmd": "x" })]
    {
        let outcome = shell(&workplace, "call", arguments).await;
        assert!(outcome.failed && said(&outcome)[0].contains("Nothing was done"), "{outcome:?}");
    }
    scene.keeper.leave().await;
}
