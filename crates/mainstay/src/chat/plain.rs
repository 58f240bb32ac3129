//! The chat without a terminal: a line is a message, the answer goes to standard output.

use std::io::BufRead as _;

use mainstay_agent::{Input, OpenSession};
use mainstay_message::Content;
use tokio::sync::mpsc::{Receiver, channel};
use tokio_util::sync::CancellationToken;

use crate::chat::commands::slash::{self, Slash};
use crate::chat::place::Place;
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;
use crate::turn_output::TurnOutput;

/// Answers line by line until there are no more.
pub(crate) fn run(mut place: Place<'_>) -> Result<Exit, Error> {
    let mut turn_output = TurnOutput::new(place.context.json());
    let ended =
        engine::block_on(async |cancel| answer(&mut place, &mut turn_output, &cancel).await)?;
    ended.or_else(|error| {
        let error = place.context.completed(error);
        turn_output.error(&error);
        Ok(error.kind.exit())
    })
}

async fn answer(
    place: &mut Place<'_>,
    turn_output: &mut TurnOutput,
    cancel: &CancellationToken,
) -> Result<Exit, Error> {
    let mut session = place.open_session(None)?;
    let mut exit = Exit::Done;
    if place.session.is_some() && session.last_turn().is_some_and(|turn| turn.outcome.is_none()) {
        (session, exit) = go_on(session, place, turn_output, cancel).await?;
    }
    let mut lines = lines();
    while !cancel.is_cancelled() {
        let line = tokio::select! {
            () = cancel.cancelled() => break,
            line = lines.recv() => line,
        };
        let Some(line) = line else { break };
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let found = |name: &str| place.agent.skills(&place.workspace).get(name).is_some();
        let skill = slash::skill(&line, found).is_some();
        match slash::parse(line.trim()).filter(|_| !skill) {
            Some(Ok((Slash::Quit, _))) => break,
            Some(_) => {
                turn_output.aside("Commands need a terminal; only /quit works here.");
                continue;
            }
            None => {}
        }
        let content = if skill {
            engine::message_content(&place.agent, &place.workspace, line, place.context.output)?
        } else {
            vec![Content::Text(line)]
        };
        let input = Input { content, key: None };
        let mut observer = |event| turn_output.event(&event);
        let ended = session.turn(&input, &mut observer, cancel).await?;
        turn_output.ended(&ended, &place.paths);
        exit = engine::exit(&ended);
    }
    session.leave().await?;
    place.agent.leave().await;
    Ok(if cancel.is_cancelled() { Exit::Interrupted } else { exit })
}

/// Finishes the turn that is not over, with what was chosen for it.
async fn go_on(
    session: OpenSession,
    place: &Place<'_>,
    turn_output: &mut TurnOutput,
    cancel: &CancellationToken,
) -> Result<(OpenSession, Exit), Error> {
    let (mut session, mut changes) = place.for_last_turn(session)?;
    let mut observer = |event| {
        turn_output.event(&event);
        changes.at(&event).iter().for_each(|change| turn_output.event(change));
    };
    let ended = session.resume(&mut observer, cancel).await?;
    // The answer is recorded: it is told also where the session cannot be taken up again.
    let exit = match &ended {
        Some(ended) => {
            turn_output.ended(ended, &place.paths);
            engine::exit(ended)
        }
        None => Exit::Done,
    };
    Ok((place.for_next_turn(session)?, exit))
}

/// The lines of standard input, as they come. Reading it cannot be given up, so a thread does.
fn lines() -> Receiver<Result<String, Error>> {
    let (sender, lines) = channel(1);
    let read = move || {
        for line in std::io::stdin().lock().lines() {
            let line = line.map_err(|error| {
                Error::usage(format!("could not read standard input: {error}"))
                    .hint("Check where standard input comes from; it must be text.")
            });
            let over = line.is_err();
            if sender.blocking_send(line).is_err() || over {
                return;
            }
        }
    };
    // Without the thread there are no lines, and the chat ends.
    let _ = std::thread::Builder::new().name("lines".to_owned()).spawn(read);
    lines
}
