//! The `process` tool.

use mainstay_tools::{
    Action, Fact, Grant, Invocation, KnownProcess, Outcome, Process, ProcessState, Settled, Tool,
    Workplace,
};
use serde_json::{Value, json};

use crate::scene::{Scene, in_time, kill, mark, running, until, worker};

async fn process(workplace: &Workplace, id: &str, arguments: Value) -> (bool, String, Vec<Fact>) {
    let call = Invocation {
        id,
        session: "session",
        arguments: &arguments,
        workplace,
        grant: Grant::NONE,
        target: None,
    };
    let plan = Process.plan(call).await;
    let outcome: Outcome = in_time(Process.run(call, plan.as_ref())).await;
    let content = outcome.content("n");
    let text = content.first().and_then(|content| content.text()).unwrap_or_default().to_owned();
    (outcome.failed, text, outcome.facts)
}

fn workplace(scene: &Scene) -> Workplace {
    Workplace::new(scene.directory.path(), scene.keeper.clone())
}

#[tokio::test]
async fn a_process_lives_through_all_its_actions() {
    let scene = Scene::new();
    let workplace = workplace(&scene);
    let mut endings = scene.keeper.endings();
    let start = json!({ "action": "start", "command": "read line; echo got $line; exit 3" });
    let (failed, text, facts) = process(&workplace, "p", start).await;
    assert!(!failed && text.contains("Started process p"), "{text}");
    assert!(matches!(&facts[..], [Fact::Background { process, .. }] if process == "p"));

    let (_, list, _) = process(&workplace, "l", json!({ "action": "list" })).await;
    assert!(list.contains("p: read line; echo got $line; exit 3: running for"), "{list}");
    let (failed, text, _) =
        process(&workplace, "a", json!({ "action": "acknowledge", "process": "p" })).await;
    assert!(failed && text.contains("has not ended"), "{text}");
    let wait = json!({ "action": "wait", "process": "p", "seconds": 0.05 });
    let (_, text, _) = process(&workplace, "w", wait).await;
    assert!(text.contains("p: running for"), "{text}");
    let write = json!({ "action": "write", "process": "p", "text": "words\n" });
    assert_eq!(process(&workplace, "t", write).await.1, "Written.");
    let wait = json!({ "action": "wait", "process": "p" });
    let (_, text, _) = process(&workplace, "w", wait).await;
    assert!(text.contains("p: ended, exit code 3") && text.contains("got words"), "{text}");
    let read = json!({ "action": "read", "process": "p", "offset": 4 });
    let (_, text, _) = process(&workplace, "r", read).await;
    assert!(text.contains("Bytes 4 to 10 of 10.") && text.contains("words"), "{text}");

    // Looking took nothing away.
    assert_eq!(in_time(endings.recv()).await.unwrap().key, "p");
    let (_, text, facts) =
        process(&workplace, "a", json!({ "action": "acknowledge", "process": "p" })).await;
    assert_eq!(facts, [Fact::Acknowledged { process: "p".to_owned() }], "{text}");
    assert!(matches!(
        workplace.processes.get("p").unwrap().state,
        ProcessState::Acknowledged(how) if how == "exit code 3"
    ));
    scene.keeper.leave().await;
}

#[tokio::test]
async fn a_stopped_process_is_gone_with_all_it_started() {
    let scene = Scene::new();
    let workplace = workplace(&scene);
    let mark = mark();
    let command = format!("(setsid sleep {mark} &); sleep {mark}");
    process(&workplace, "p", json!({ "action": "start", "command": command })).await;
    until("it runs", std::time::Duration::from_secs(10), || running(&mark).len() == 2).await;
    let (_, text, _) = process(&workplace, "s", json!({ "action": "stop", "process": "p" })).await;
    assert!(text.contains("p: ended, killed: it was stopped"), "{text}");
    assert!(running(&mark).is_empty());
    let (failed, text, _) =
        process(&workplace, "s", json!({ "action": "poll", "process": "q" })).await;
    assert!(failed && text.contains("There is no process named q"), "{text}");
    scene.keeper.leave().await;
}

#[tokio::test]
async fn a_process_that_ended_while_no_agent_ran_is_told() {
    let scene = Scene::new();
    let grace = std::time::Duration::from_millis(100);
    let mut agent = scene.agent(grace, "p", "sleep 0.05; echo bye; exit 3");
    let keeper = agent.line_with("keeper ", std::time::Duration::from_secs(10));
    let keeper = keeper.strip_prefix("keeper ").unwrap().to_owned();
    until("the log", std::time::Duration::from_secs(10), || {
        let log = std::fs::read_to_string(scene.spool().join(&keeper).join("log"));
        log.is_ok_and(|log| log.contains("started"))
    })
    .await;
    agent.kill_and_wait();
    let gone = worker(&scene, &keeper);
    until("the keeper is gone", std::time::Duration::from_secs(10), || {
        crate::scene::parent(gone).is_none()
    })
    .await;
    let workplace = workplace(&scene);
    let known = |name: &str, state| KnownProcess {
        name: name.to_owned(),
        keeper: keeper.clone(),
        command: "sleep".to_owned(),
        state,
        input: None,
    };
    workplace.processes.load([
        known("p", ProcessState::Running),
        known("q", ProcessState::Ended("exit code 1".to_owned())),
    ]);
    let (_, list, _) = process(&workplace, "l", json!({ "action": "list" })).await;
    assert!(list.contains("p: sleep: ended, exit code 3"), "{list}");
    assert!(list.contains("q: sleep: ended, exit code 1"), "{list}");
    let (_, text, _) = process(&workplace, "l", json!({ "action": "poll", "process": "p" })).await;
    assert!(text.contains("bye"), "{text}");
    let (_, text, _) = process(&workplace, "l", json!({ "action": "read", "process": "p" })).await;
    assert!(text.contains("Bytes 0 to 4 of 4"), "{text}");
}

#[tokio::test]
async fn a_start_that_was_interrupted_is_settled() {
    let scene = Scene::new();
    let workplace = workplace(&scene);
    let mark = mark();
    let arguments = json!({ "action": "start", "command": format!("sleep {mark}") });
    let call = Invocation {
        id: "p",
        session: "session",
        arguments: &arguments,
        workplace: &workplace,
        grant: Grant::NONE,
        target: None,
    };
    let plan = Process.plan(call).await;
    assert_eq!(Process.settle(call, plan.as_ref()).await, Settled::NotStarted);
    Process.run(call, plan.as_ref()).await;
    let Settled::Done(outcome) = Process.settle(call, plan.as_ref()).await else {
        panic!("it is not settled");
    };
    assert!(matches!(&outcome.facts[..], [Fact::Background { .. }]));
    until("it runs", std::time::Duration::from_secs(10), || running(&mark).len() == 1).await;

    let name = scene.keeper.name().await.unwrap();
    kill(worker(&scene, &name));
    assert!(matches!(Process.settle(call, plan.as_ref()).await, Settled::Unknown(_)));
    assert!(running(&mark).is_empty());
}

#[tokio::test]
async fn a_process_of_a_killed_agent_is_reached_by_the_next() {
    let scene = Scene::new();
    let mark = mark();
    let mut agent = scene.agent(std::time::Duration::from_secs(30), "p", &format!("sleep {mark}"));
    let keeper = agent.line_with("keeper ", std::time::Duration::from_secs(10));
    let keeper = keeper.strip_prefix("keeper ").unwrap().to_owned();
    until("it runs", std::time::Duration::from_secs(10), || running(&mark).len() == 1).await;
    agent.kill_and_wait();
    let workplace = workplace(&scene);
    workplace.processes.load([KnownProcess {
        name: "p".to_owned(),
        keeper,
        command: format!("sleep {mark}"),
        state: ProcessState::Running,
        input: None,
    }]);
    let (_, text, _) = process(&workplace, "l", json!({ "action": "list" })).await;
    assert!(text.contains(": running for"), "{text}");
    let (_, text, _) = process(&workplace, "s", json!({ "action": "stop", "process": "p" })).await;
    assert!(text.contains("p: ended, killed"), "{text}");
    assert!(running(&mark).is_empty());
    scene.keeper.leave().await;
}

#[tokio::test]
async fn a_text_for_a_process_comes_with_all_that_it_was_given_before() {
    let scene = Scene::new();
    let workplace = workplace(&scene);
    let write = |text: &str| json!({ "action": "write", "process": "p", "text": text });
    let action = |workplace: &Workplace, text: &str| {
        let arguments = write(text);
        Process.action(&Invocation {
            id: "t",
            session: "session",
            arguments: &arguments,
            workplace,
            grant: Grant::NONE,
            target: None,
        })
    };
    let input = |before: Option<&str>, text: &str| Action::Input {
        command: "sh".to_owned(),
        before: before.map(str::to_owned),
        text: text.to_owned(),
    };
    process(&workplace, "p", json!({ "action": "start", "command": "sh" })).await;
    assert_eq!(action(&workplace, "echo x"), input(Some(""), "echo x"));
    assert_eq!(process(&workplace, "t", write("echo x")).await.1, "Written.");
    assert_eq!(process(&workplace, "t", write(" y")).await.1, "Written.");
    assert_eq!(action(&workplace, "#;z\n"), input(Some("echo x y"), "#;z\n"));
    // Whoever takes the process over does not know what it was given.
    let known = workplace.processes.get("p").unwrap();
    let other = Workplace::new(scene.directory.path(), scene.keeper.clone());
    other.processes.load([KnownProcess { input: None, ..known }]);
    assert_eq!(action(&other, "ls\n"), input(None, "ls\n"));
    process(&workplace, "s", json!({ "action": "stop", "process": "p" })).await;
}
