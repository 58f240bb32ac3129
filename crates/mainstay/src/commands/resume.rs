//! `mainstay resume`

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use mainstay_agent::{Agent, OpenSession, Opened};
use mainstay_journal::session::{self, Session};
use mainstay_journal::turn::{self, State, Turn};
use mainstay_store::{OwnerId, Store, wall_millis};
use tokio_util::sync::CancellationToken;

use super::run::workspace_of;
use crate::choices::{self, Choices, TurnAgent};
use crate::context::Context;
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;
use crate::turn_output::TurnOutput;

/// Continue an interrupted or parked turn, then exit
///
/// Commands that were running are collected, not run again. Without ID, continues the newest
/// unfinished turn. A finished turn is not repeated; its answer is printed again.
///
/// The turn keeps the models, the profile, the budget and the --yes that it was begun with. Each
/// option changes that one choice for this turn; the others stay.
#[derive(Args, Debug)]
pub(crate) struct ResumeArgs {
    /// Session to continue (a prefix of its ID is enough)
    id: Option<String>,

    #[command(flatten)]
    choices: Choices,

    /// If another process has the session, wait for it, and take over if it dies
    #[arg(long)]
    wait: bool,
}

impl ResumeArgs {
    /// As if only the session had been typed.
    pub(super) fn of(session: mainstay_journal::SessionId) -> Self {
        Self { id: Some(session.to_string()), choices: Choices::default(), wait: false }
    }
}

pub(crate) fn run(args: &ResumeArgs, context: &Context) -> Result<Exit, Error> {
    let mut turn_output = TurnOutput::new(context.json());
    attempt(args, context, &mut turn_output).or_else(|error| {
        let error = context.completed(error);
        turn_output.error(&error);
        Ok(error.kind.exit())
    })
}

fn attempt(
    args: &ResumeArgs,
    context: &Context,
    turn_output: &mut TurnOutput,
) -> Result<Exit, Error> {
    let paths = context.paths()?;
    args.choices.check()?;
    let (store, owner) = engine::open_store(&paths)?;
    let Some(session) = find(args, &store, owner)? else {
        turn_output.no_turn("nothing", "nothing to resume: every turn is finished");
        return Ok(Exit::Done);
    };
    let last = || store.read(|tx| turn::last(tx, session.id));
    let mut turn = last()?;
    let workspace = match turn.as_ref().and_then(|turn| turn.outcome) {
        // What is over is only told again.
        Some(turn::Outcome::Answered) => PathBuf::from(&session.workspace),
        _ => workspace_of(&session, None)?,
    };
    let agent_for = |turn: Option<&Turn>| {
        let turn = turn.filter(|turn| goes_on(turn));
        let typed = args.choices.overrides();
        choices::agent(context, &store, owner, &workspace, typed, turn)
    };
    let mut made = agent_for(turn.as_ref())?;
    let resumed = engine::block_on(async |cancel: CancellationToken| {
        let mut open_session = loop {
            let Some(open_session) =
                take(args, &made.agent, &session, turn_output, &cancel).await?
            else {
                return Ok(None);
            };
            // Whoever had the session meanwhile may have chosen otherwise.
            match last()? {
                Some(now) if goes_on(&now) && !choices::suits(turn.as_ref(), &now) => {
                    drop(open_session);
                    made = agent_for(Some(&now))?;
                    turn = Some(now);
                }
                _ => break open_session,
            }
        };
        let TurnAgent { agent, changes } = &mut made;
        let mut observer = |event| {
            turn_output.event(&event);
            changes.at(&event).iter().for_each(|change| turn_output.event(change));
        };
        let ended = open_session.resume(&mut observer, &cancel).await?;
        if let Some(ended) = &ended {
            turn_output.ended(ended, &paths);
        }
        open_session.leave().await?;
        agent.leave().await;
        Ok::<_, Error>(Some(ended))
    })??;
    match resumed {
        Some(Some(ended)) => Ok(engine::exit(&ended)),
        Some(None) => {
            turn_output.no_turn("nothing", &format!("session {} has no turn yet", session.id));
            Ok(Exit::Done)
        }
        None => {
            turn_output.no_turn("cancelled", "stopped; another process is using the session");
            Ok(Exit::Interrupted)
        }
    }
}

/// Whether a resume goes on with a turn: one that is over otherwise than by an error is told again.
fn goes_on(turn: &Turn) -> bool {
    matches!(turn.outcome, None | Some(turn::Outcome::Failed))
}

/// The session that is meant.
fn find(args: &ResumeArgs, store: &Store, owner: OwnerId) -> Result<Option<Session>, Error> {
    let now = wall_millis();
    let found = store.read(|tx| -> mainstay_journal::Result<Option<Session>> {
        if let Some(typed) = &args.id {
            let mut session = session::find(tx, owner, typed)?;
            // A helper's answer is waited for by the turn that gave it the task: that one goes on, and
            // takes the helper along.
            while let Some(parent) = session.begun_by
                && let Some(parent) = session::get(tx, parent)?
                && turn::last(tx, parent.id)?.is_some_and(|turn| turn.state != State::Ended)
            {
                session = parent;
            }
            return Ok(Some(session));
        }
        let unfinished = turn::unfinished(tx, owner)?;
        // What was interrupted comes before what waits, and what waits before what must wait.
        let rank = |turn: &turn::Turn| match (turn.state, turn.resume_at()) {
            (State::Open, _) => 0,
            (_, Some(at)) if at > now => 2,
            _ => 1,
        };
        match unfinished.iter().min_by_key(|turn| rank(turn)) {
            Some(turn) => session::get(tx, turn.session),
            None => Ok(None),
        }
    });
    Ok(found?)
}

/// Takes the session up, or waits for it.
async fn take(
    args: &ResumeArgs,
    agent: &Agent,
    session: &Session,
    turn_output: &TurnOutput,
    cancel: &CancellationToken,
) -> Result<Option<OpenSession>, Error> {
    let mut told = false;
    loop {
        let holder = match agent.open(session.id)? {
            Opened::Got(open_session) => return Ok(Some(*open_session)),
            Opened::Held(holder) if !args.wait => return Err(engine::held(session.id, &holder)),
            Opened::Held(holder) => holder,
        };
        if !told {
            turn_output.aside(&format!("waiting for {}", holder.process));
            told = true;
        }
        tokio::select! {
            () = cancel.cancelled() => return Ok(None),
            () = tokio::time::sleep(Duration::from_millis(100)) => {}
        }
    }
}
