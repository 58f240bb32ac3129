//! Jobs that are got ready before they begin.

use std::path::Path;
use std::time::Duration;

use mainstay_message::Redactor;
use mainstay_message::redactor::Origin;
use mainstay_testkit::capability::Capability;
use mainstay_tools::keeper::{Collected, Ended, Exit, Job, KillReason, Limits, Program};
use mainstay_tools::sandbox::{Sandbox, Specification, Support};
use serde_json::Value;

use crate::scene::{Scene, children, in_time, is_inside, job, kill, parent, until, working};

const SOON: Duration = Duration::from_secs(10);

/// A job that writes a line to a file each time it runs, in a sandbox.
fn counting(key: &str, file: &Path) -> Job {
    let sandbox = Sandbox { write: vec!["/".into()], ..Sandbox::default() };
    let sandbox = Some(Specification::from(&sandbox));
    Job { sandbox, ..job(key, &format!("echo {key} | tee -a {}", file.display())) }
}

fn lines(file: &Path) -> usize {
    std::fs::read_to_string(file).unwrap_or_default().lines().count()
}

/// Begins a job, or runs it where it is not ready.
async fn run(scene: &Scene, name: &str, job: &Job) -> Ended {
    match in_time(scene.keeper.begin(name, &job.key)).await.unwrap() {
        Some(ended) => ended,
        None => in_time(scene.keeper.run(name, job)).await.unwrap(),
    }
}

/// Gets a job ready until this holds: one that is seen too late was let go again.
async fn hold(what: &str, scene: &Scene, name: &str, job: &Job, mut holds: impl FnMut() -> bool) {
    const OFTEN: Duration = Duration::from_millis(700);
    let begun = std::time::Instant::now();
    while begun.elapsed() < SOON {
        scene.keeper.prepare(name, job.clone());
        let prepared = std::time::Instant::now();
        while prepared.elapsed() < OFTEN {
            if holds() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    }
    panic!("Waited {SOON:?} in vain for: {what}.");
}

/// Whether processes can be got ready here: without landlock, which only whoever runs the tests may
/// say is missing, they are not.
fn is_possible() -> bool {
    Capability::Landlock.require(Support::of_kernel().landlock > 0)
}

/// Whether the keeper's log has a line of this kind about a job.
fn is_logged(scene: &Scene, name: &str, kind: &str, key: &str) -> bool {
    let log = std::fs::read_to_string(scene.spool().join(name).join("log")).unwrap_or_default();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.into_iter().any(|line| line[kind]["key"] == key)
}

#[tokio::test]
async fn a_prepared_job_has_done_nothing_until_it_is_run_and_then_runs_once() {
    let (scene, name, worker) = working().await;
    let file = scene.directory.path().join("lines");
    let mut begun = 0;
    for round in 1..=20 {
        let job = counting(&format!("k{round}"), &file);
        if is_possible() && round == 1 {
            // It sleeps: it has come as far as it comes by itself.
            let waits = || children(worker).iter().any(|(_, state)| *state == 'S');
            hold("its process waits at its gate", &scene, &name, &job, waits).await;
        } else {
            scene.keeper.prepare(&name, job.clone());
        }
        assert_eq!(lines(&file), round - 1);
        begun += usize::from(in_time(scene.keeper.begin(&name, &job.key)).await.unwrap().is_some());
        let ended = run(&scene, &name, &job).await;
        assert_eq!(ended.output.text(), format!("k{round}\n"));
        assert_eq!(lines(&file), round);
        // Asked again it is told again, and does not run again.
        scene.keeper.prepare(&name, job.clone());
        assert_eq!(run(&scene, &name, &job).await.how, ended.how);
        assert_eq!(lines(&file), round);
    }
    // A machine that stands still for a second lets some go.
    assert!(begun > 0 || !is_possible());
    in_time(scene.keeper.leave()).await;
}

#[tokio::test]
async fn one_that_is_not_run_is_gone_when_another_starts_or_its_time_is_over() {
    let (scene, name, worker) = working().await;
    let file = scene.directory.path().join("lines");
    let empty = || children(worker).is_empty();
    scene.keeper.prepare(&name, counting("unwanted", &file));
    // In the same sandbox and in none: neither waits for the one that is held.
    let other = counting("other", &file);
    assert_eq!(in_time(scene.keeper.run(&name, &other)).await.unwrap().output.text(), "other\n");
    scene.keeper.prepare(&name, counting("unwanted", &file));
    let ended = in_time(scene.keeper.run(&name, &job("free", "echo free"))).await.unwrap();
    assert_eq!(ended.output.text(), "free\n");
    until("nothing is held", SOON, empty).await;
    // Another that is got ready takes its place; by itself it goes after its time.
    scene.keeper.prepare(&name, counting("unwanted", &file));
    let other = counting("unwanted too", &file);
    if is_possible() {
        hold("one is held", &scene, &name, &other, || children(worker).len() == 1).await;
    }
    until("nothing is held", SOON, empty).await;
    assert_eq!(lines(&file), 1, "only the other ran");
    // Its time over, it is started like any other.
    assert_eq!(run(&scene, &name, &other).await.how, Exit::Code(0));
    assert_eq!(lines(&file), 2);
    in_time(scene.keeper.leave()).await;
}

#[tokio::test]
async fn one_that_cannot_be_started_says_so_when_it_is_run() {
    let (scene, name, worker) = working().await;
    let file = scene.directory.path().join("lines");
    let nowhere = Job { directory: "/nowhere".into(), ..counting("nowhere", &file) };
    let words = vec!["/etc/passwd".to_owned()];
    let no_program = Job { program: Program::Arguments(words), ..counting("no program", &file) };
    // At once, and when its process waits or, without a directory, has ended already.
    let twice = [nowhere, no_program].into_iter().flat_map(|job| {
        let later = Job { key: format!("{} later", job.key), ..job.clone() };
        [(job, false), (later, is_possible())]
    });
    for (job, is_awaited) in twice {
        scene.keeper.prepare(&name, job.clone());
        if is_awaited {
            let waits = || children(worker).iter().any(|(_, state)| *state == 'S');
            let is_over = || is_logged(&scene, &name, "let_go", &job.key);
            until("its process waits or has ended", SOON, || waits() || is_over()).await;
        }
        let ended = run(&scene, &name, &job).await;
        assert!(matches!(ended.how, Exit::Failed(_)), "{}: {:?}", job.key, ended.how);
    }
    in_time(scene.keeper.leave()).await;
}

#[tokio::test]
async fn another_command_of_the_sandbox_cannot_look_into_a_process_that_waits() {
    if !is_possible() {
        return;
    }
    let (scene, name, _) = working().await;
    let file = scene.directory.path().join("lines");
    // It shares the keeper's memory, and is of the same domain as this one.
    let (seen, opened) = (file.with_file_name("seen"), file.with_file_name("opened"));
    let look = format!(
        "true 2>/dev/null < $process/mem && echo $process >> {}; echo $process >> {}",
        opened.display(),
        seen.display()
    );
    let looking = busybody(&look, &file);
    in_time(scene.keeper.start(&name, &looking)).await.unwrap();
    let unwanted = counting("unwanted", &file);
    hold("it is looked for while it waits", &scene, &name, &unwanted, || lines(&seen) > 0).await;
    assert_eq!(lines(&opened), 0, "nobody looks into it");
    in_time(scene.keeper.leave()).await;
}

/// A command in the background that does this with each process that waits.
fn busybody(what: &str, file: &Path) -> Job {
    let command = format!(
        "while :; do for process in /proc/[0-9]*; do \
           read -r name 2>/dev/null < $process/comm || continue; \
           [ \"$name\" = sandbox-start ] || continue; {what}; \
         done; done"
    );
    Job { program: Program::Line(command), background: true, ..counting("busybody", file) }
}

#[tokio::test]
async fn one_that_another_command_stops_holds_nobody_up() {
    if !is_possible() {
        return;
    }
    let (scene, name, worker) = working().await;
    let file = scene.directory.path().join("lines");
    let stop = "kill -STOP ${process#/proc/} 2>/dev/null";
    in_time(scene.keeper.start(&name, &busybody(stop, &file))).await.unwrap();
    for round in 0..3 {
        let held = counting(&format!("stopped {round}"), &file);
        let stopped = || children(worker).iter().any(|(_, state)| *state == 'T');
        hold("it is stopped", &scene, &name, &held, stopped).await;
        if round == 1 {
            until("its time is over", SOON, || !stopped()).await;
        }
        // Neither in no sandbox nor in the same one.
        let free = job(&format!("free {round}"), "echo free");
        let ended = in_time(scene.keeper.run(&name, &free)).await.unwrap();
        assert_eq!(ended.output.text(), "free\n");
        // It may be stopped when it is its program already, as any command can stop another.
        let limits = Limits { wall: Some(Duration::from_millis(500)), ..Limits::default() };
        let other = Job { limits, ..counting(&format!("other {round}"), &file) };
        in_time(scene.keeper.run(&name, &other)).await.unwrap();
    }
    // One that is stopped when it is to begin never does: at the latest when its time is over, sooner
    // where another is run. It can be run then.
    for alone in [true, false] {
        let last = counting(&format!("last {alone}"), &file);
        let stopped = || children(worker).iter().any(|(_, state)| *state == 'T');
        hold("it is stopped", &scene, &name, &last, stopped).await;
        let before = lines(&file);
        // The first opens the gate before the second is looked at.
        let (begun, other) = tokio::join!(in_time(scene.keeper.begin(&name, &last.key)), async {
            if alone {
                None
            } else {
                Some(in_time(scene.keeper.run(&name, &job("beside", "true"))).await)
            }
        });
        assert_eq!(begun.unwrap(), None);
        assert!(other.is_none_or(|other| other.unwrap().how == Exit::Code(0)));
        assert_eq!(lines(&file), before);
    }
    in_time(scene.keeper.stop("busybody")).await.unwrap();
    let before = lines(&file);
    for alone in [true, false] {
        let last = counting(&format!("last {alone}"), &file);
        assert_eq!(in_time(scene.keeper.run(&name, &last)).await.unwrap().how, Exit::Code(0));
    }
    assert_eq!(lines(&file), before + 2);
    in_time(scene.keeper.leave()).await;
    until("nothing is left", SOON, || children(worker).is_empty()).await;
}

#[tokio::test]
async fn one_that_waits_is_not_taken_for_what_another_left() {
    if !is_possible() {
        return;
    }
    let (scene, name, worker) = working().await;
    let file = scene.directory.path().join("lines");
    let keeper = scene.keeper.clone();
    let (other, running) = (job("killed", "exec sleep 300"), name.clone());
    let running = tokio::spawn(async move { keeper.run(&running, &other).await });
    until("the other runs", SOON, || !children(worker).is_empty()).await;
    let sleeping = children(worker);
    let waits = Job { session: "another".to_owned(), ..counting("waits", &file) };
    let held = || {
        let pids = children(worker).into_iter().map(|(pid, _)| pid);
        let mut new = pids.filter(|pid| !sleeping.iter().any(|(other, _)| other == pid));
        new.find(|pid| is_inside(*pid))
    };
    hold("one waits", &scene, &name, &waits, || held().is_some()).await;
    let since = std::time::Instant::now();
    let waiting = held();
    in_time(scene.keeper.stop("killed")).await.unwrap();
    // Its time may be over where the machine stands still.
    if since.elapsed() < Duration::from_millis(200) {
        assert!(waiting.is_some() && held() == waiting, "it waits on");
    }
    assert_eq!(run(&scene, &name, &waits).await.how, Exit::Code(0));
    assert!(matches!(in_time(running).await.unwrap().unwrap().how, Exit::Killed(_)));
    in_time(scene.keeper.leave()).await;
}

#[tokio::test]
async fn nothing_is_held_when_the_agent_leaves_or_the_keeper_dies() {
    for killed in ["nobody", "the worker", "the worker and its guard"] {
        let (scene, name, worker) = working().await;
        let file = scene.directory.path().join("lines");
        let mut held = Vec::new();
        if is_possible() {
            let look = || {
                held = children(worker);
                !held.is_empty()
            };
            hold("its process is there", &scene, &name, &counting("unwanted", &file), look).await;
        }
        match killed {
            "nobody" => in_time(scene.keeper.leave()).await,
            "the worker" => kill(worker),
            _ => {
                let (guard, _) = parent(worker).unwrap();
                kill(guard);
                kill(worker);
            }
        }
        let alive = |pid: i32| parent(pid).is_some_and(|(_, state)| state != 'Z');
        until("it is gone", SOON, || !held.iter().any(|(pid, _)| alive(*pid))).await;
        assert_eq!(lines(&file), 0);
    }
}

#[tokio::test]
async fn one_that_began_is_read_limited_and_killed_like_any_other() {
    let (scene, name, worker) = working().await;
    let file = scene.directory.path().join("lines");
    let line = |key: &str, line: &str| Job {
        program: Program::Line(line.to_owned()),
        ..counting(key, &file)
    };
    // More than its pipe holds, so that somebody must read.
    let long = line("long", "head -c 300000 /dev/zero; exit 3");
    scene.keeper.prepare(&name, long.clone());
    let ended = run(&scene, &name, &long).await;
    assert_eq!((ended.how, ended.output.total), (Exit::Code(3), 300_000));
    let wall = Duration::from_millis(300);
    let limits = Limits { wall: Some(wall), ..Limits::default() };
    let slow = Job { limits, ..line("slow", "sleep 300") };
    scene.keeper.prepare(&name, slow.clone());
    let ended = run(&scene, &name, &slow).await;
    assert_eq!(ended.how, Exit::Killed(KillReason::Wall(wall)));
    assert!(ended.took >= wall, "{:?}", ended.took);
    // Its end is not waited for any more.
    let unwanted = line("unwanted", "sleep 300 | cat");
    for is_noticed in [false, true] {
        let unwanted = Job { key: format!("unwanted {is_noticed}"), ..unwanted.clone() };
        scene.keeper.prepare(&name, unwanted.clone());
        let runs = || {
            if is_noticed {
                is_logged(&scene, &name, "started", &unwanted.key)
            } else {
                !children(worker).is_empty()
            }
        };
        tokio::select! {
            ended = run(&scene, &name, &unwanted) => panic!("it ended: {ended:?}"),
            () = until("it runs", SOON, runs) => {}
        }
        until("it is gone", SOON, || children(worker).is_empty()).await;
    }
    in_time(scene.keeper.leave()).await;
}

#[tokio::test]
async fn the_log_tells_one_that_was_let_go_from_one_that_nobody_knows_of() {
    if !is_possible() {
        return;
    }
    let (scene, name, worker) = working().await;
    let file = scene.directory.path().join("lines");
    scene.keeper.prepare(&name, counting("let go", &file));
    in_time(scene.keeper.run(&name, &job("other", "true"))).await.unwrap();
    let is_there = || !children(worker).is_empty();
    hold("its process is there", &scene, &name, &counting("held", &file), is_there).await;
    kill(worker);
    let dead = || !matches!(scene.keeper.collect(&name, "held"), Collected::Running);
    until("the keeper is dead", SOON, dead).await;
    assert_eq!(scene.keeper.collect(&name, "let go"), Collected::NeverStarted);
    // Its agent could have let it begin.
    assert!(matches!(scene.keeper.collect(&name, "held"), Collected::InDoubt(_)));
    assert_eq!(scene.keeper.collect(&name, "unheard of"), Collected::NeverStarted);
    assert_eq!(lines(&file), 0);
}

#[tokio::test]
async fn one_that_would_begin_before_a_new_secret_is_known_is_started_after() {
    let (scene, name, _) = working().await;
    let file = scene.directory.path().join("lines");
    let redactor = Redactor::default();
    scene.keeper.redact(&redactor);
    let secret = "sk-test-0123456789abcdefXYZ";
    let told = Job { program: Program::Line(format!("echo {secret}")), ..counting("told", &file) };
    scene.keeper.prepare(&name, told.clone());
    redactor.add("MY_KEY", secret, Origin::Configured);
    assert_eq!(in_time(scene.keeper.begin(&name, "told")).await.unwrap(), None);
    let ended = in_time(scene.keeper.run(&name, &told)).await.unwrap();
    assert_eq!(ended.output.text(), "[redacted: MY_KEY]\n");
    in_time(scene.keeper.leave()).await;
}

#[tokio::test]
async fn a_keeper_that_is_busy_cuts_off_nobody_who_prepares_much() {
    let (scene, name, worker) = working().await;
    let file = scene.directory.path().join("lines");
    let pid = rustix::process::Pid::from_raw(worker).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let last = counting("last", &file);
    for number in 0..100 {
        scene.keeper.prepare(&name, counting(&format!("unwanted {number}"), &file));
    }
    scene.keeper.prepare(&name, last.clone());
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    assert_eq!(run(&scene, &name, &last).await.output.text(), "last\n");
    assert_eq!(lines(&file), 1);
    in_time(scene.keeper.leave()).await;
}
