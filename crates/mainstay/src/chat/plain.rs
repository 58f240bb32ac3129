//! The chat without a terminal: a line is a message, the answer goes to standard output.

use std::io::BufRead as _;

use mainstay_agent::{Input, OpenSession};
use mainstay_message::Content;
use tokio::sync::mpsc::{Receiver, channel};
use tokio_util::sync::CancellationToken;

use super::place::Place;
use super::slash::{self, Slash};
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;
use crate::telling::Telling;

/// Answers line by line until there are no more.
pub(crate) fn run(mut place: Place<'_>) -> Result<Exit, Error> {
    let mut telling = Telling::new(place.context.json());
    let ended = engine::block_on(async |cancel| answer(&mut place, &mut telling, &cancel).await)?;
    ended.or_else(|error| {
        let error = place.context.completed(error);
        telling.error(&error);
        Ok(error.kind.exit())
    })
}

async fn answer(
    place: &mut Place<'_>,
    telling: &mut Telling,
    cancel: &CancellationToken,
) -> Result<Exit, Error> {
    let mut work = place.work(None)?;
    let mut exit = Exit::Done;
    if place.session.is_some() && work.last_turn().is_some_and(|turn| turn.outcome.is_none()) {
        (work, exit) = go_on(work, place, telling, cancel).await?;
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
                telling.aside("Commands need a terminal; only /quit works here.");
                continue;
            }
            None => {}
        }
        let content = match skill {
            true => engine::said(&place.agent, &place.workspace, line, place.context.output)?,
            false => vec![Content::Text(line)],
        };
        let input = Input { content, key: None };
        let mut observer = |event| telling.event(&event);
        let ended = work.turn(&input, &mut observer, cancel).await?;
        telling.ended(&ended, &place.settings)?;
        exit = engine::exit(&ended);
    }
    work.leave().await?;
    place.agent.leave().await;
    Ok(if cancel.is_cancelled() { Exit::Interrupted } else { exit })
}

/// Finishes the turn that is not over, with what was chosen for it.
async fn go_on(
    work: OpenSession,
    place: &Place<'_>,
    telling: &mut Telling,
    cancel: &CancellationToken,
) -> Result<(OpenSession, Exit), Error> {
    let (mut work, mut changes) = place.for_last_turn(work)?;
    let mut observer = |event| {
        telling.event(&event);
        changes.at(&event).iter().for_each(|change| telling.event(change));
    };
    let ended = work.resume(&mut observer, cancel).await?;
    let work = place.for_next_turn(work)?;
    let Some(ended) = ended else { return Ok((work, Exit::Done)) };
    telling.ended(&ended, &place.settings)?;
    Ok((work, engine::exit(&ended)))
}

/// The lines of standard input, as they come. Reading it cannot be given up, so a thread does.
fn lines() -> Receiver<Result<String, Error>> {
    let (sender, lines) = channel(1);
    let read = move || {
        for line in std::io::stdin().lock().lines() {
            let line = line.map_err(|error| {
                Error::usage(format!("standard input cannot be read: {error}"))
                    .hint("Look at where standard input comes from; it must be text.")
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
