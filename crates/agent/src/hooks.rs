//! Hooks: commands of the user that are run at fixed points of a turn.
//!
//! A hook gets JSON on its standard input and may answer in JSON, with the names and the meaning
//! that users of Claude Code know, so that theirs run here. It runs under the keeper within a time
//! limit. One that hangs, crashes or prints nonsense costs at most that time and a notice: only
//! what a hook says can block something, not that it failed, unless its configuration says so.
//!
//! Hooks belong to the home, never to a workspace, which is written by whoever wrote the project.
//! A hook is an effect. Those before a call run again for a call that was not started when a
//! process died; those after a call have run when its result is durable, and run again if the
//! process died in between.

mod after_call;
mod answer;
mod before_call;
mod matcher;
mod names;
mod payload;
mod run;
mod session_hooks;
mod shape;
mod stop_hooks;

use std::time::Duration;

pub(crate) use after_call::run_hooks_after;
pub(crate) use answer::{HookReply, Permission};
pub(crate) use before_call::HookVerdict;
use matcher::Matcher;
pub(crate) use payload::Payload;
pub(crate) use run::fire;
pub(crate) use session_hooks::show_notices;

/// When hooks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// A session is begun or taken up by a process.
    SessionStart,
    /// A user sent an input.
    UserPromptSubmit,
    /// A call is about to run.
    PreToolUse,
    /// A call brought a result.
    PostToolUse,
    /// A call failed.
    PostToolUseFailure,
    /// The conversation is about to be compacted.
    PreCompact,
    /// The turn is about to end with an answer.
    Stop,
}

impl Moment {
    const ALL: [Moment; 7] = [
        Moment::SessionStart,
        Moment::UserPromptSubmit,
        Moment::PreToolUse,
        Moment::PostToolUse,
        Moment::PostToolUseFailure,
        Moment::PreCompact,
        Moment::Stop,
    ];

    /// Its name in files and payloads.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Moment::SessionStart => "SessionStart",
            Moment::UserPromptSubmit => "UserPromptSubmit",
            Moment::PreToolUse => "PreToolUse",
            Moment::PostToolUse => "PostToolUse",
            Moment::PostToolUseFailure => "PostToolUseFailure",
            Moment::PreCompact => "PreCompact",
            Moment::Stop => "Stop",
        }
    }
}

/// All hooks, in the order of their configuration.
#[derive(Clone, Debug, Default)]
pub struct Hooks {
    all: Vec<Hook>,
}

/// One hook.
#[derive(Clone, Debug)]
pub(crate) struct Hook {
    moment: Moment,
    matcher: Matcher,
    command: String,
    limit: Duration,
    failure: Failure,
}

/// What a hook that fails means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    /// A notice.
    Told,
    /// What it was asked about is not done.
    Blocks,
}

impl Hooks {
    /// Whether any hook waits for this moment.
    pub(crate) fn any(&self, moment: Moment) -> bool {
        self.all.iter().any(|hook| hook.moment == moment)
    }

    /// The hooks that wait for this moment and match one of these names.
    pub(crate) fn matching(&self, moment: Moment, names: &[&str]) -> Vec<&Hook> {
        let waiting = self.all.iter().filter(|hook| hook.moment == moment);
        waiting.filter(|hook| hook.matcher.matches(names)).collect()
    }
}
