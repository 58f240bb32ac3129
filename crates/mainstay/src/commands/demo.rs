//! `mainstay demo`

mod below;
mod model;
mod play;
mod scene;
mod script;
mod stage;
mod verdict;

use std::io::{self, Write as _};
use std::time::Duration;

use clap::Args;
use mainstay_store::{Clock, SystemClock};

use crate::context::Context;
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;
use crate::interrupt;
use scene::Scene;
use stage::Stage;
use verdict::Verdict;

/// Watch the agent get killed and continue
///
/// A script plays the model; everything else is real. The agent does a small task in a temporary
/// directory, is killed with SIGKILL in the middle of a command, and is resumed; then you see that
/// every step ran exactly once. It needs no network and no configuration, takes a few seconds, and
/// touches neither your home nor your store. With --json, only the verdict is printed.
#[derive(Args, Debug)]
pub(crate) struct DemoArgs {}

/// How long the whole may take. It takes some seconds; a machine that is busy is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn run(_: &DemoArgs, context: &Context) -> Result<Exit, Error> {
    let started = SystemClock.uptime_millis();
    let stage = Stage::new(context.output, context.json());
    let unable = |error: std::io::Error| {
        Error::failed(format!("could not start the demo: {error}"))
            .hint("Check the installation: `mainstay doctor`")
    };
    below::adopt().map_err(unable)?;
    let model = model::serve().map_err(unable)?;
    // The scene is set when signals are heard already, so that none leaves it standing.
    let (scene, played) = engine::block_on(async |cancel| {
        let scene = Scene::set(model)?;
        let played = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            played = tokio::time::timeout(PATIENCE, play::play(stage, &scene)) => Some(played),
        };
        // What is left to do takes a moment, and the scene must not stay.
        interrupt::ignore_signals();
        Ok::<_, Error>((scene, played))
    })??;
    let Some(played) = played else {
        drop(scene);
        // The terminal may be gone.
        let _ = writeln!(io::stderr(), "interrupted");
        return Ok(Exit::Interrupted);
    };
    let seen = played.unwrap_or_else(|_| {
        let seconds = PATIENCE.as_secs();
        Err(Error::failed(format!("the demo did not finish within {seconds} s"))
            .hint("Try it again when the machine is less busy."))
    })?;
    let verdict = Verdict::of(&seen, &scene, SystemClock.uptime_millis() - started);
    verdict.tell(stage)?;
    if context.json() {
        context.output.answer(&verdict, "")?;
    }
    Ok(if verdict.is_good() { Exit::Done } else { Exit::Failed })
}
