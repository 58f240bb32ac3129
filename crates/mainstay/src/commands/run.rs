//! `mainstay run`

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use mainstay_agent::{Agent, Input, OpenSession, TurnReport};
use mainstay_journal::session::Session;
use tokio_util::sync::CancellationToken;

use crate::choices::{self, Changes, Choices, TurnAgent};
use crate::context::Context;
use crate::engine;
use crate::error::{Error, Kind};
use crate::exit::Exit;
use crate::paths::Paths;
use crate::turn_output::TurnOutput;
use crate::wording;

/// Run a task and print the answer
///
/// Every step is on disk before the next one begins. Whatever happens to this process, `mainstay
/// resume` continues where it stopped. With --json, each event is one line.
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// Continue this session (a prefix of its ID is enough) instead of starting a new one
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    #[command(flatten)]
    choices: Choices,

    /// Directory to work in [default: the current one, or the session's]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    workspace: Option<PathBuf>,

    /// Idempotency key: the same key again prints the first answer instead of running again
    #[arg(long, value_name = "NAME")]
    key: Option<String>,

    /// What to do; `-` reads it from standard input
    #[arg(value_name = "TEXT|-")]
    text: String,
}

pub(crate) fn run(args: &RunArgs, context: &Context) -> Result<Exit, Error> {
    let mut turn_output = TurnOutput::new(context.json());
    attempt(args, context, &mut turn_output).or_else(|error| {
        let error = context.completed(error);
        turn_output.error(&error);
        Ok(error.kind.exit())
    })
}

fn attempt(args: &RunArgs, context: &Context, turn_output: &mut TurnOutput) -> Result<Exit, Error> {
    let paths = context.paths()?;
    args.choices.check()?;
    let text = text(&args.text)?;
    if let Some(key) = &args.key
        && (key.is_empty() || key.len() > 200)
    {
        return Err(Error::usage("--key must have 1 to 200 bytes")
            .hint("Use a shorter key, or leave --key out."));
    }
    let wanted = args.workspace.as_deref().map(directory).transpose()?;
    let (store, owner) = engine::open_store(&paths)?;

    let claim = match (&args.key, &args.session) {
        (Some(key), None) => Some(engine::claim_key(&store, key)?),
        _ => None,
    };
    let known = known_session(args, &store, owner)?;
    let workspace = match (wanted, &known) {
        (wanted, Some(session)) => workspace_of(session, wanted)?,
        (Some(workspace), None) => workspace,
        (None, None) => current_directory()?,
    };
    let mut taken_up = unfinished(args, &store, known.as_ref())?;
    let (made, session) = loop {
        let typed = args.choices.overrides();
        let made = choices::agent(context, &store, owner, &workspace, typed, taken_up.as_ref())?;
        let session = match &known {
            Some(session) => *engine::open(&made.agent, session.id)?,
            None => made.agent.begin(&workspace, &wording::today())?,
        };
        // Whoever had the session meanwhile may have chosen otherwise.
        match unfinished(args, &store, known.as_ref())? {
            Some(now) if !choices::suits(taken_up.as_ref(), &now) => taken_up = Some(now),
            _ => break (made, session),
        }
    };
    let TurnAgent { agent, changes } = made;
    let content = engine::message_content(&agent, &workspace, text, context.output)?;
    let input = Input { content, key: args.key.clone() };
    let turn = PreparedTurn { session, input: &input, turn_output, paths: &paths, changes };
    let ended = engine::block_on(async |cancel| turn.done(&agent, cancel).await)??;
    drop(claim);
    Ok(engine::exit(&ended))
}

/// The session that is meant: the one that was named, or the one that has the key already.
fn known_session(
    args: &RunArgs,
    store: &mainstay_store::Store,
    owner: mainstay_store::OwnerId,
) -> Result<Option<Session>, Error> {
    use mainstay_journal::{session, turn};
    let found = store.read(|tx| match (&args.session, &args.key) {
        (Some(typed), _) => session::find(tx, owner, typed).map(Some),
        (None, Some(key)) => match turn::with_key_anywhere(tx, owner, key)? {
            Some(turn) => session::get(tx, turn.session),
            None => Ok(None),
        },
        (None, None) => Ok(None),
    });
    Ok(found?)
}

/// The turn that the key names, if it is not over: it goes on with what was chosen for it.
fn unfinished(
    args: &RunArgs,
    store: &mainstay_store::Store,
    session: Option<&Session>,
) -> Result<Option<mainstay_journal::turn::Turn>, Error> {
    use mainstay_journal::turn::{State, with_key};
    let (Some(key), Some(session)) = (&args.key, session) else { return Ok(None) };
    let turn = store.read(|tx| with_key(tx, session.id, key))?;
    Ok(turn.filter(|turn| turn.state != State::Ended))
}

/// The workspace of a session, which it keeps for life: its prompt names it. It must be there.
pub(crate) fn workspace_of(session: &Session, wanted: Option<PathBuf>) -> Result<PathBuf, Error> {
    let kept = Path::new(&session.workspace);
    let elsewhere = "Start a new session in another directory: leave the session out.";
    let found = directory(kept).map_err(|error| error.only_hint(elsewhere))?;
    match wanted {
        Some(wanted) if wanted != found => Err(Error::usage(format!(
            "session {} belongs to {}, and a session keeps its workspace",
            session.id,
            kept.display()
        ))
        .hint(elsewhere)),
        _ => Ok(kept.to_owned()),
    }
}

/// A turn that is about to be done.
struct PreparedTurn<'a> {
    session: OpenSession,
    input: &'a Input,
    turn_output: &'a mut TurnOutput,
    paths: &'a Paths,
    /// What is chosen otherwise than before for a turn that is taken up.
    changes: Changes,
}

impl PreparedTurn<'_> {
    /// Does it, tells how it ended, and ends what still runs for it.
    async fn done(mut self, agent: &Agent, cancel: CancellationToken) -> Result<TurnReport, Error> {
        let Self { session, input, turn_output, paths, changes } = &mut self;
        let mut observer = |event| {
            turn_output.event(&event);
            changes.at(&event).iter().for_each(|change| turn_output.event(change));
        };
        let ended = session.turn(input, &mut observer, &cancel).await?;
        // The answer is recorded: nobody has to wait for the clearing up.
        turn_output.ended(&ended, paths);
        self.session.leave().await?;
        agent.leave().await;
        Ok(ended)
    }
}

/// The longest input.
const LONGEST: u64 = 4 << 20;

fn too_long() -> Error {
    Error::usage("the text is longer than 4 MiB")
        .hint("Put it into a file and ask the agent to read it.")
}

fn text(typed: &str) -> Result<String, Error> {
    let text = if typed == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().lock().take(LONGEST + 1).read_to_end(&mut bytes).map_err(|error| {
            Error::usage(format!("could not read standard input: {error}"))
                .hint("Check where standard input comes from.")
        })?;
        if bytes.len() as u64 > LONGEST {
            return Err(too_long());
        }
        String::from_utf8(bytes).map_err(|error| {
            let place = error.utf8_error().valid_up_to();
            Error::usage(format!("standard input is not text: byte {place} is not UTF-8"))
                .hint("Put it into a file and ask the agent to look at it.")
        })?
    } else {
        typed.to_owned()
    };
    if text.len() as u64 > LONGEST {
        return Err(too_long());
    }
    if text.trim().is_empty() {
        return Err(Error::usage("the text is empty").hint("Pass what to do: `mainstay run \"…\"`"));
    }
    Ok(text)
}

pub(crate) fn directory(path: &Path) -> Result<PathBuf, Error> {
    let wrong = |what: String| {
        Error { kind: Kind::Usage, message: what, hints: Vec::new() }
            .hint("Pass a directory with --workspace DIR.")
    };
    let found = path.canonicalize().map_err(|error| {
        wrong(format!("could not use the workspace {}: {error}", path.display()))
    })?;
    if !found.is_dir() {
        return Err(wrong(format!("the workspace {} is not a directory", path.display())));
    }
    Ok(found)
}

pub(crate) fn current_directory() -> Result<PathBuf, Error> {
    std::env::current_dir().map_err(|error| {
        Error::usage(format!("could not use the current directory: {error}"))
            .hint("Pass a directory with --workspace DIR.")
    })
}
