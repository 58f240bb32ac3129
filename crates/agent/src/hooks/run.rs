//! Running hooks, side by side, each within its time.

use std::time::Duration;

use futures_util::future::join_all;
use mainstay_store::Id;
use mainstay_tools::keeper::{Ended, Job, Limits, Program, Streams};
use mainstay_tools::{Workplace, clean_environment};
use tokio::time::timeout;

use super::answer::HookReply;
use super::{Hook, Hooks, Payload};

/// The longest output of a hook that is read.
const LONGEST_OUTPUT: u64 = 256 << 10;
/// The longest payload that hooks are given.
const LONGEST_PAYLOAD: usize = 8 << 20;
/// How long a keeper may take beyond a hook's own time before it is taken for lost: it has to end
/// the hook first.
const SLACK: Duration = Duration::from_secs(10);
/// Variables that hooks get beyond what commands of a model do: they show things to a person.
const SHOWING: [&str; 3] = ["DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"];

/// Runs the hooks of a moment that match, and answers what they said. Dropped before that, it ends
/// them.
pub(crate) async fn fire(
    hooks: &Hooks,
    payload: &Payload<'_>,
    session: &str,
    workplace: &Workplace,
) -> HookReply {
    let mut reply = HookReply::default();
    let matching = hooks.matching(payload.moment, &payload.names);
    if matching.is_empty() {
        return reply;
    }
    let bytes = payload.bytes(session, &workplace.workspace);
    if bytes.len() > LONGEST_PAYLOAD {
        let name = payload.moment.name();
        reply.notices.push(format!("{name} hooks were not run: their input is too large"));
        reply.block = Some("it is too long for the hooks that check it".to_owned());
        return reply;
    }
    let running = matching.into_iter().map(|hook| run(hook, &bytes, session, workplace));
    // In the order of their configuration, however long each took.
    for said in join_all(running).await {
        reply.join(said);
    }
    reply
}

async fn run(hook: &Hook, payload: &[u8], session: &str, workplace: &Workplace) -> HookReply {
    let keeper = match workplace.keeper.name().await {
        Ok(keeper) => keeper,
        Err(error) => return HookReply::failed(hook, &format!("could not be run: {error}")),
    };
    let job = job(hook, payload, session, workplace);
    let running = timeout(hook.limit.saturating_add(SLACK), workplace.keeper.run(&keeper, &job));
    let ended = match running.await {
        Ok(Ok(ended)) => ended,
        Ok(Err(error)) => return HookReply::failed(hook, &format!("could not be run: {error}")),
        Err(_) => return HookReply::failed(hook, "did not end, and its keeper does not respond"),
    };
    let output = output(&ended);
    let mut reply = HookReply::read(hook, &ended, output.as_deref());
    if !ended.left.is_empty() {
        // What a hook starts ends with it.
        if workplace.keeper.stop(&job.key).await.is_err() {
            reply.join(HookReply::failed(hook, "left processes that could not be stopped"));
        }
    }
    reply
}

fn job(hook: &Hook, payload: &[u8], session: &str, workplace: &Workplace) -> Job {
    let mut environment = clean_environment(workplace);
    for (name, value) in &workplace.environment {
        if let (Some(name), Some(value)) = (name.to_str(), value.to_str())
            && SHOWING.contains(&name)
        {
            environment.push((name.to_owned(), value.to_owned()));
        }
    }
    let project = workplace.workspace.display().to_string();
    environment.push(("CLAUDE_PROJECT_DIR".to_owned(), project));
    Job {
        // A new key each time: a hook that runs again is another job.
        key: format!("hook-{}", Id::new()),
        session: session.to_owned(),
        program: Program::Line(hook.command.clone()),
        directory: workplace.workspace.clone(),
        environment,
        limits: Limits { wall: Some(hook.limit), idle: None, output: Some(LONGEST_OUTPUT) },
        input: false,
        given: Some(payload.to_vec()),
        streams: Streams::Apart,
        background: false,
        // The user configured it and it may need the network or the home; a sandbox would break it.
        sandbox: None,
    }
}

/// All that a hook wrote. Returns `None` if it is more than is read.
fn output(ended: &Ended) -> Option<Vec<u8>> {
    let shown = &ended.output;
    let whole = (shown.total <= LONGEST_OUTPUT).then(|| shown.whole());
    if let Some(file) = &shown.file {
        // Nobody else reads it, and sessions are long.
        let _ = std::fs::remove_file(file);
    }
    whole
}
