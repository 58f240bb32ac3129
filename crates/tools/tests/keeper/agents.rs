//! Agents and keepers that are killed.

use std::process::Command;
use std::time::Duration;

use mainstay_tools::keeper::{Attached, Collected, Exit, KeeperError, KillReason};

use crate::scene::{Scene, children, in_time, job, kill, mark, parent, running, until, worker};

const PATIENCE: Duration = Duration::from_secs(10);

fn keeper_name(agent: &mut mainstay_testkit::process::Running) -> String {
    let line = agent.line_with("keeper ", PATIENCE);
    line.strip_prefix("keeper ").unwrap().to_owned()
}

#[tokio::test]
async fn a_killed_agents_command_is_collected_by_the_next_and_ran_once() {
    let scene = Scene::new();
    let file = scene.directory.path().join("ran");
    let command = format!(
        "echo x >> {0}; while [ ! -e {0}.go ]; do sleep 0.01; done; exit 6",
        file.display()
    );
    let mut agent = scene.agent(Duration::from_secs(30), "call", &command);
    let name = keeper_name(&mut agent);
    until("the command runs", PATIENCE, || file.exists()).await;
    agent.kill_and_wait();

    let Attached::Alive(jobs) = scene.keeper.attach(&name, "session").await else {
        panic!("the keeper is gone");
    };
    assert_eq!((jobs.len(), jobs[0].key.as_str()), (1, "call"));
    assert!(jobs[0].ended.is_none());
    std::fs::write(file.with_extension("go"), "").unwrap();
    assert_eq!(in_time(scene.keeper.ended("call")).await.unwrap().how, Exit::Code(6));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\n");
    // It is this agent's keeper now.
    assert_eq!(scene.keeper.name().await.unwrap(), name);
    scene.keeper.leave().await;
}

#[tokio::test]
async fn a_command_that_ended_while_no_agent_ran_is_collected() {
    let scene = Scene::new();
    let mark = mark();
    // Something else runs, so that the keeper stays.
    let mut agent =
        scene.agent(PATIENCE, "call", &format!("setsid sleep {mark} & echo out; exit 3"));
    let name = keeper_name(&mut agent);
    agent.line_with("ended", PATIENCE);
    agent.kill_and_wait();
    let Attached::Alive(_) = scene.keeper.attach(&name, "session").await else {
        panic!("the keeper is gone");
    };
    let ended = in_time(scene.keeper.ended("call")).await.unwrap();
    assert_eq!((ended.how, ended.output.text().as_str()), (Exit::Code(3), "out\n"));
    scene.keeper.leave().await;
    assert!(running(&mark).is_empty());
}

#[tokio::test]
async fn after_its_grace_a_keeper_kills_everything_and_its_spool_tells() {
    let scene = Scene::new();
    let mark = mark();
    let command = format!("(setsid sleep {mark} &); echo out; sleep {mark}");
    let mut agent = scene.agent(Duration::from_millis(300), "call", &command);
    let name = keeper_name(&mut agent);
    until("the command runs", PATIENCE, || running(&mark).len() == 2).await;
    let worker = worker(&scene, &name);
    assert_eq!(scene.keeper.collect(&name, "call"), Collected::Running);
    agent.kill_and_wait();
    until("everything is killed", PATIENCE, || running(&mark).is_empty()).await;
    until("the keeper is gone", PATIENCE, || parent(worker).is_none()).await;
    assert!(matches!(scene.keeper.attach(&name, "session").await, Attached::Gone));
    let Collected::Ended(ended) = scene.keeper.collect(&name, "call") else {
        panic!("the spool does not tell");
    };
    assert_eq!(ended.how, Exit::Killed(KillReason::AgentGone));
    assert_eq!(ended.output.text(), "out\n");
    assert_eq!(scene.keeper.collect(&name, "another"), Collected::NeverStarted);
}

#[tokio::test]
async fn a_killed_keeper_leaves_nothing_and_its_job_in_doubt() {
    let scene = Scene::new();
    let name = scene.keeper.name().await.unwrap();
    let mark = mark();
    let job = job("call", &format!("(env -i setsid sleep {mark} &); trap '' TERM; sleep {mark}"));
    let run = scene.keeper.run(&name, &job);
    let killed = async {
        until("the command runs", PATIENCE, || running(&mark).len() == 2).await;
        kill(worker(&scene, &name));
    };
    let (lost, ()) = in_time(async { tokio::join!(run, killed) }).await;
    assert!(lost.is_err());
    until("nothing is left", PATIENCE, || running(&mark).is_empty()).await;
    assert!(matches!(scene.keeper.attach(&name, "session").await, Attached::Gone));
    assert!(matches!(scene.keeper.collect(&name, "call"), Collected::InDoubt(_)));
    assert_eq!(scene.keeper.collect(&name, "another"), Collected::NeverStarted);
    assert!(matches!(scene.keeper.collect("nobody", "call"), Collected::InDoubt(_)));
    // A new one takes its place, and refuses what was planned for the old one.
    assert_ne!(scene.keeper.name().await.unwrap(), name);
    assert!(scene.keeper.run(&name, &crate::scene::job("next", "true")).await.is_err());
    scene.keeper.leave().await;
}

#[tokio::test]
async fn what_a_keeper_left_that_was_killed_with_its_guard_is_swept() {
    let scene = Scene::new();
    let mark = mark();
    let command = format!("(setsid sleep {mark} &); sleep {mark}");
    let mut agent = scene.agent(PATIENCE, "call", &command);
    let name = keeper_name(&mut agent);
    until("the command runs", PATIENCE, || running(&mark).len() == 2).await;
    let worker = worker(&scene, &name);
    agent.stop();
    kill(parent(worker).unwrap().0);
    kill(worker);
    agent.kill_and_wait();
    assert_eq!(running(&mark).len(), 2);
    assert!(matches!(scene.keeper.attach(&name, "session").await, Attached::Gone));
    assert!(running(&mark).is_empty());
    assert!(matches!(scene.keeper.collect(&name, "call"), Collected::InDoubt(_)));
}

#[tokio::test]
async fn whoever_starts_a_keeper_sweeps_too() {
    let scene = Scene::new();
    let mark = mark();
    let mut agent = scene.agent(PATIENCE, "call", &format!("sleep {mark}"));
    let name = keeper_name(&mut agent);
    until("the command runs", PATIENCE, || running(&mark).len() == 1).await;
    let worker = worker(&scene, &name);
    agent.stop();
    kill(parent(worker).unwrap().0);
    kill(worker);
    agent.kill_and_wait();
    // A signal takes a moment, and a keeper that lives is left alone.
    until("the worker is dead", PATIENCE, || parent(worker).is_none()).await;
    scene.keeper.name().await.unwrap();
    until("the leftover is killed", PATIENCE, || running(&mark).is_empty()).await;
    scene.keeper.leave().await;
}

#[tokio::test]
async fn a_notice_reaches_the_agent_that_comes_after() {
    let scene = Scene::new();
    let name = scene.keeper.name().await.unwrap();
    let mut endings = scene.keeper.endings();
    let mut background = job("server", "sleep 0.2; exit 9");
    background.background = true;
    scene.keeper.start(&name, &background).await.unwrap();
    let first = in_time(endings.recv()).await.unwrap();
    assert_eq!((first.key.as_str(), first.ended.how), ("server", Exit::Code(9)));

    let another = scene.another();
    let mut again = another.endings();
    let Attached::Alive(jobs) = another.attach(&name, "session").await else {
        panic!("the keeper is gone");
    };
    assert_eq!(jobs.len(), 1);
    assert_eq!(in_time(again.recv()).await.unwrap().key, "server");
    // One of two agents leaves: the session goes on.
    let mark = mark();
    let mut other = job("other", &format!("sleep {mark}"));
    other.background = true;
    another.start(&name, &other).await.unwrap();
    until("it runs", PATIENCE, || running(&mark).len() == 1).await;
    scene.keeper.leave().await;
    assert_eq!(running(&mark).len(), 1);
    another.leave().await;
    assert!(running(&mark).is_empty());
}

#[tokio::test]
async fn a_keeper_whose_agent_is_gone_and_that_has_nothing_to_do_goes() {
    let scene = Scene::new();
    let mut agent = scene.agent(Duration::from_secs(300), "call", "exit 1");
    let name = keeper_name(&mut agent);
    agent.line_with("ended", PATIENCE);
    let worker = worker(&scene, &name);
    assert!(children(worker).is_empty());
    agent.kill_and_wait();
    until("the keeper is gone", PATIENCE, || parent(worker).is_none()).await;
    // The agent may not have written down what it heard.
    assert!(matches!(scene.keeper.collect(&name, "call"), Collected::Ended(_)));
}

#[tokio::test]
async fn stopping_a_session_leaves_the_others_alone() {
    let scene = Scene::new();
    let name = scene.keeper.name().await.unwrap();
    let (one, other) = (mark(), mark());
    for (session, mark) in [("one", &one), ("other", &other)] {
        let mut job = job(mark, &format!("(setsid sleep {mark} &); sleep {mark}"));
        (job.session, job.background) = (session.to_owned(), true);
        scene.keeper.start(&name, &job).await.unwrap();
    }
    until("both run", PATIENCE, || running(&one).len() + running(&other).len() == 4).await;
    scene.keeper.stop_session("one").await;
    assert_eq!((running(&one).len(), running(&other).len()), (0, 2));
    scene.keeper.leave().await;
    assert!(running(&other).is_empty());
}

#[tokio::test]
async fn what_a_killed_agent_planned_and_did_not_start_was_never_started() {
    let scene = Scene::new();
    let mut agent = Command::new(mainstay_testkit::process::example("agent"));
    agent.arg("run").arg(scene.spool()).arg("30000");
    let mut agent = mainstay_testkit::process::Running::spawn(&mut agent);
    let name = keeper_name(&mut agent);
    let log = scene.spool().join(&name).join("log");
    let header = || std::fs::read_to_string(&log).is_ok_and(|log| log.ends_with('\n'));
    until("the keeper is up", PATIENCE, header).await;
    let worker = worker(&scene, &name);
    agent.kill_and_wait();
    until("the keeper is gone", PATIENCE, || parent(worker).is_none()).await;
    assert!(matches!(scene.keeper.attach(&name, "session").await, Attached::Gone));
    assert_eq!(scene.keeper.collect(&name, "call"), Collected::NeverStarted);
}

#[tokio::test]
async fn heavy_an_agent_killed_at_any_time_leaves_no_doubt() {
    let (mut ran, mut never) = (0, 0);
    for round in 0..120_u64 {
        let scene = Scene::new();
        let file = scene.directory.path().join("ran");
        let command = format!("echo x >> {}; sleep 0.01; exit 7", file.display());
        let mut agent = scene.agent(Duration::from_secs(30), "call", &command);
        let name = keeper_name(&mut agent);
        // Not a wait for anything: the moment of the kill is what varies.
        tokio::time::sleep(Duration::from_micros(round * 200)).await;
        agent.kill_and_wait();
        let found = match scene.keeper.attach(&name, "session").await {
            Attached::Silent => panic!("it does not answer"),
            Attached::Alive(_) => match scene.keeper.poll("call").await {
                Ok(_) => Some(in_time(scene.keeper.ended("call")).await.unwrap()),
                Err(_) => None,
            },
            Attached::Gone => match scene.keeper.collect(&name, "call") {
                Collected::Ended(ended) => Some(ended),
                Collected::NeverStarted => None,
                doubt => panic!("round {round}: {doubt:?}"),
            },
        };
        let written = std::fs::read_to_string(&file).unwrap_or_default();
        match found {
            Some(ended) => {
                assert_eq!((ended.how, written.as_str()), (Exit::Code(7), "x\n"), "round {round}");
                ran += 1;
            }
            None => {
                assert_eq!(written, "", "round {round}");
                never += 1;
            }
        }
        scene.keeper.leave().await;
        assert!(!file.exists() || std::fs::read_to_string(&file).unwrap() == "x\n");
    }
    assert_eq!(ran + never, 120);
    assert!(ran > 20, "{ran} ran, {never} did not");
}

#[tokio::test]
async fn what_is_left_of_a_keeper_killed_with_its_guard_is_killed_by_the_agent_that_lives() {
    let scene = Scene::new();
    let name = scene.keeper.name().await.unwrap();
    let mark = mark();
    let mut job = job("server", &format!("(setsid sleep {mark} &); sleep {mark}"));
    job.background = true;
    scene.keeper.start(&name, &job).await.unwrap();
    until("it runs", PATIENCE, || running(&mark).len() == 2).await;
    let worker = worker(&scene, &name);
    let guard = parent(worker).unwrap().0;
    kill(guard);
    kill(worker);
    until("nothing is left", PATIENCE, || running(&mark).is_empty()).await;
    assert!(parent(guard).is_none_or(|(_, state)| state == 'Z'));
}

#[tokio::test]
async fn spools_of_keepers_that_are_long_dead_are_removed() {
    let scene = Scene::new();
    // Ids begin with the time: this one is of the first day of 2025.
    let old = scene.spool().join("0".repeat(20));
    let young = scene.spool().join(mainstay_store::Id::new().to_string());
    let foreign = scene.spool().join("notes");
    for directory in [&old, &young, &foreign] {
        std::fs::create_dir_all(directory).unwrap();
        let header = r#"{"keeper":{"identity":"1@host/another-boot/1/1"}}"#;
        std::fs::write(directory.join("log"), format!("{header}\n")).unwrap();
    }
    scene.keeper.name().await.unwrap();
    until("the old one is removed", PATIENCE, || !old.exists()).await;
    assert!(young.exists() && foreign.exists());
    let name = young.file_name().unwrap().to_str().unwrap();
    assert!(matches!(scene.keeper.collect(name, "call"), Collected::InDoubt(_)));
    scene.keeper.leave().await;
}

#[tokio::test]
async fn a_keeper_has_neither_the_terminal_nor_the_environment_of_its_agent() {
    let scene = Scene::new();
    let name = scene.keeper.name().await.unwrap();
    scene.keeper.run(&name, &job("call", "true")).await.unwrap();
    let worker = worker(&scene, &name);
    let session = |pid: i32| {
        rustix::process::getsid(rustix::process::Pid::from_raw(pid)).unwrap().as_raw_nonzero().get()
    };
    assert_eq!(session(worker), parent(worker).unwrap().0);
    assert_eq!(std::fs::read(format!("/proc/{worker}/environ")).unwrap(), b"");
    assert_eq!(std::fs::read_link(format!("/proc/{worker}/cwd")).unwrap().to_str(), Some("/"));
    for descriptor in 0..3 {
        let open = std::fs::read_link(format!("/proc/{worker}/fd/{descriptor}")).unwrap();
        assert_eq!(open.to_str(), Some("/dev/null"));
    }
    scene.keeper.leave().await;
}

#[tokio::test]
async fn a_keeper_that_dies_after_it_was_reached_is_lost_and_knows_its_jobs_still() {
    let scene = Scene::new();
    let mark = mark();
    let mut agent = scene.agent(PATIENCE, "call", &format!("sleep {mark}"));
    let name = keeper_name(&mut agent);
    until("the command runs", PATIENCE, || !running(&mark).is_empty()).await;
    agent.kill_and_wait();
    assert!(matches!(scene.keeper.attach(&name, "session").await, Attached::Alive(_)));
    assert!(scene.keeper.poll_with(&name, "call").await.unwrap().ended.is_none());
    let never = scene.keeper.poll_with(&name, "another").await;
    assert!(matches!(never, Err(KeeperError::Unknown(_))), "{never:?}");
    let worker = worker(&scene, &name);
    let (guard, _) = parent(worker).unwrap();
    for pid in [guard, worker] {
        kill(pid);
    }
    // To be taken for a command that never started, it would be started again.
    let lost = in_time(scene.keeper.poll_with(&name, "call")).await;
    assert!(matches!(lost, Err(KeeperError::Lost)), "{lost:?}");
    assert!(matches!(scene.keeper.attach(&name, "session").await, Attached::Gone));
    assert!(matches!(scene.keeper.collect(&name, "call"), Collected::InDoubt(_)));
    assert!(running(&mark).is_empty());
}

/// The directories of keepers.
fn directories(scene: &Scene) -> Vec<String> {
    let entries = std::fs::read_dir(scene.spool()).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn keepers_that_are_side_by_side_leave_no_directory() {
    let scene = Scene::new();
    let agents: Vec<_> = (0..6).map(|_| scene.another()).collect();
    for agent in &agents {
        let name = agent.name().await.unwrap();
        agent.run(&name, &job("call", "seq 20000")).await.unwrap();
    }
    // Each of them has looked at the others by now.
    tokio::time::sleep(Duration::from_millis(200)).await;
    for agent in &agents {
        agent.leave().await;
    }
    until("no directory is left", PATIENCE, || directories(&scene).is_empty()).await;
}

#[tokio::test]
async fn a_keeper_whose_work_was_taken_up_leaves_no_directory() {
    let scene = Scene::new();
    let mut agent = scene.agent(PATIENCE, "call", "echo out; sleep 0.5");
    let name = keeper_name(&mut agent);
    until("the command runs", PATIENCE, || {
        matches!(scene.keeper.collect(&name, "call"), Collected::Running)
    })
    .await;
    agent.kill_and_wait();
    assert!(matches!(scene.keeper.attach(&name, "session").await, Attached::Alive(_)));
    scene.keeper.ended("call").await.unwrap();
    scene.keeper.leave().await;
    until("no directory is left", PATIENCE, || directories(&scene).is_empty()).await;
}

#[tokio::test]
async fn what_a_dead_keeper_may_be_asked_for_is_kept_and_the_rest_is_cleared_up() {
    let scene = Scene::new();
    let mut agent = scene.agent(Duration::ZERO, "call", "seq 100000");
    let name = keeper_name(&mut agent);
    let output = scene.spool().join(&name).join("output-call");
    until("the command wrote much", PATIENCE, || output.exists()).await;
    // While anybody lives who may ask, nothing is touched.
    mainstay_tools::keeper::clear_up(&scene.spool(), |_| false);
    assert!(output.exists());
    agent.kill_and_wait();
    until("the long output goes", PATIENCE, || {
        mainstay_tools::keeper::clear_up(&scene.spool(), |asked| asked == name);
        !output.exists()
    })
    .await;
    assert!(matches!(scene.keeper.collect(&name, "call"), Collected::Ended(_)));
    mainstay_tools::keeper::clear_up(&scene.spool(), |_| false);
    assert_eq!(directories(&scene), [""; 0]);
    assert!(!scene.spool().exists());
}

/// Commands that try not to be found, with as many processes as they have.
const HIDING: &[(&str, usize)] = &[
    ("(env -i setsid sleep MARK &); env -i setsid sleep MARK", 2),
    ("(prlimit --locks=0:0 env -i setsid sleep MARK &); sleep MARK", 2),
    ("(prlimit --locks=0:0 --rss=0:0 env -i setsid sleep MARK &); sleep MARK", 2),
    ("(env -i setsid sh -c '(sleep MARK &)'); sleep MARK", 2),
];

#[tokio::test]
async fn what_hides_from_a_keeper_killed_with_its_guard_is_found_by_its_stamp() {
    for (command, processes) in HIDING {
        let scene = Scene::new();
        let mark = mark();
        let mut agent = scene.agent(PATIENCE, "call", &command.replace("MARK", &mark));
        let name = keeper_name(&mut agent);
        until("the command runs", PATIENCE, || running(&mark).len() == *processes).await;
        // Another keeper's processes hide as well, and are kept.
        let other = crate::scene::mark();
        let living = scene.keeper.name().await.unwrap();
        let mut kept = job("kept", &command.replace("MARK", &other));
        kept.background = true;
        scene.keeper.start(&living, &kept).await.unwrap();
        until("the other one runs", PATIENCE, || running(&other).len() == *processes).await;
        let worker = worker(&scene, &name);
        agent.stop();
        kill(parent(worker).unwrap().0);
        kill(worker);
        agent.kill_and_wait();
        until("the worker is dead", PATIENCE, || parent(worker).is_none()).await;
        // One that hides altogether may have been found by who clears up elsewhere.
        assert!(!running(&mark).is_empty(), "{command}");
        let survey = mainstay_tools::keeper::survey(&scene.spool());
        let outlived: Vec<i32> = survey.outlived.iter().map(|left| left.pid).collect();
        assert!(running(&mark).iter().all(|pid| outlived.contains(pid)), "{command}: {survey:?}");
        assert!(!running(&other).iter().any(|pid| outlived.contains(pid)), "{command}: {survey:?}");
        let kept: Vec<_> =
            survey.keepers.iter().map(|keeper| (&keeper.name, keeper.jobs)).collect();
        assert_eq!(kept, [(&living, 1)], "{command}");
        mainstay_tools::keeper::clear_up(&scene.spool(), |_| false);
        assert_eq!(running(&mark), [0; 0], "{command}");
        assert_eq!(running(&other).len(), *processes, "{command}");
        assert_eq!(directories(&scene), [living], "{command}");
        scene.keeper.leave().await;
    }
}
