//! The one trait of all tools.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::BoxFuture;
use mainstay_message::ToolSpec;
use serde_json::Value;

use crate::{Grant, Outcome, Settled, Workplace};

/// A tool.
///
/// The engine asks for the [`plan`](Tool::plan), commits it as the intent, then runs the call and
/// commits the outcome. To cancel a call the engine drops its future: a tool whose work goes on
/// outside the future (a thread, a process) ends it when that happens.
pub trait Tool: Send + Sync {
    /// What the model is told about it.
    fn spec(&self) -> ToolSpec;

    /// What the engine has to know about it.
    fn traits(&self) -> Traits;

    /// When a model sees its description.
    fn exposure(&self) -> Exposure {
        Exposure::ByDefault
    }

    /// What a call would do, for the policy.
    fn action(&self, call: &Invocation<'_>) -> Action;

    /// What a call asks to be allowed beyond the sandbox.
    fn wants(&self, _call: &Invocation<'_>) -> Grant {
        Grant::default()
    }

    /// What must be known after a crash to tell how far the call came. It has no effect outside.
    fn plan<'a>(&'a self, _call: Invocation<'a>) -> BoxFuture<'a, Option<Value>> {
        Box::pin(async { None })
    }

    /// Gets a call ready that will be run in a moment, when its intent is durable. It has no effect
    /// outside, and may be all there is of the call.
    fn prepare(&self, _call: Invocation<'_>, _plan: Option<&Value>) {}

    /// Says how a call that was started, and whose outcome nobody saw, ended.
    fn settle<'a>(
        &'a self,
        _call: Invocation<'a>,
        _plan: Option<&'a Value>,
    ) -> BoxFuture<'a, Settled> {
        Box::pin(async { Settled::Unknown(String::new()) })
    }

    /// Ends a call that was started and is not waited for any longer, and says how it ended. Returns
    /// `None` if [`settle`](Tool::settle) finds that out.
    fn abandon<'a>(&'a self, _call: Invocation<'a>) -> BoxFuture<'a, Option<Outcome>> {
        Box::pin(async { None })
    }

    /// Runs a call. Whatever goes wrong is an outcome the model can read.
    fn run<'a>(&'a self, call: Invocation<'a>, plan: Option<&'a Value>) -> BoxFuture<'a, Outcome>;
}

/// One call of a tool.
#[derive(Clone, Copy)]
pub struct Invocation<'a> {
    /// The call's id in the journal, unique for ever. It names the process that the keeper starts.
    pub id: &'a str,
    /// The session it belongs to.
    pub session: &'a str,
    /// The arguments, an object.
    pub arguments: &'a Value,
    /// Where the call happens.
    pub workplace: &'a Workplace,
    /// What it may do beyond the sandbox.
    pub grant: &'a Grant,
    /// The real path that it was judged to change. A call whose path leads anywhere else by now fails.
    /// It is `None` before it was judged, and for calls that change no file of their arguments.
    pub target: Option<&'a Path>,
}

/// What the engine has to know about a tool.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// What becomes of a call that a crash interrupted.
    pub replay: Replay,
    /// Whether it may run at the same time as other calls.
    pub concurrency: Concurrency,
    /// The longest a call may take; the engine ends it then. A tool with a limit of its own in its
    /// arguments names the longest one here.
    pub wall: Duration,
}

/// What becomes of a call that was started and whose outcome nobody saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// It changes nothing: it is run again.
    Pure,
    /// Done twice it has the same result: it is run again.
    Idempotent,
    /// The keeper knows: it is collected through [`Tool::settle`].
    Kept,
    /// [`Tool::settle`] finds out what it can; the model is told.
    Unknown,
}

/// Whether a call may run at the same time as others of the same message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concurrency {
    /// At the same time as others that may too.
    Parallel,
    /// Alone, in the order that the model asked for.
    Exclusive,
}

/// When a model sees a tool's description. Until then `more_tools` lists the tool by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// With the first request, however little room the model has.
    Always,
    /// With the first request, unless the model has little room.
    ByDefault,
    /// Once it asks with `more_tools`.
    OnDemand,
}

/// What a call would do, for the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Looks at something.
    Read,
    /// Changes a file.
    Write(PathBuf),
    /// Runs a command line.
    Execute(String),
    /// Gives text to a command that runs, and that may be a shell.
    Input {
        /// The command line that was started.
        command: String,
        /// All that it was given before. It is `None` if that is not known.
        before: Option<String>,
        /// What it is given now.
        text: String,
    },
    /// Reaches places on the network, named as a person would read them.
    Network(Vec<String>),
    /// Leaves something that later sessions go by: a memory, a skill, a schedule.
    Persist(String),
    /// Puts before a person what later sessions would go by. Nothing does before the person says so.
    Propose(String),
    /// Gives a task to a child session, whose own calls are judged one by one.
    Delegate(String),
    /// Asks the person something. The engine does it; the tool itself is not run.
    Ask {
        /// What is asked.
        question: String,
        /// Answers to choose from.
        choices: Vec<String>,
    },
}
