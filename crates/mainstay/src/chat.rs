//! The chat: in the terminal's normal screen, with its scrollback.
//!
//! What is finished is printed once and stays; only a few rows at the bottom are drawn anew. What is
//! shown is a pure state ([`render::screen`]), fed with keys and the engine's events, tested on a virtual
//! screen. Nothing that a model or a tool says can speak to the terminal: [`render::text`] lets no control
//! character through.

mod asker;
pub(crate) mod commands;
mod conversation;
pub(crate) mod input;
mod opening;
mod place;
mod plain;
pub(crate) mod render;
mod terminal;
#[cfg(test)]
mod tests;
mod turn;

use conversation::Conversation;
use input::history::History;
pub(crate) use place::Place;
pub(crate) use plain::run as plain;
use render::paint::{Colours, Painter};
use render::screen::Screen;
use terminal::Terminal;

use crate::error::Error;
use crate::exit::Exit;
use mainstay_store::{refuse_without_descriptors, refuse_without_thread};

/// Whether a chat can be drawn here.
pub(crate) fn can_be_drawn() -> bool {
    Terminal::is_here()
}

/// Talks until somebody leaves.
pub(crate) fn run(place: Place<'_>) -> Result<Exit, Error> {
    let history = History::of(&place.paths.home);
    let colours = if place.context.output.is_coloured() { Colours::On } else { Colours::Off };
    let (width, height) = Terminal::size();
    let screen = Screen::new(width, height, history);
    let painter = Painter::new(colours, width);
    // One thread draws and hears keys, the other works: a slow disk does not stop the typing.
    let runtime = refuse_without_thread()
        .and_then(|()| refuse_without_descriptors())
        .and_then(|()| {
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()
        })
        .map_err(|error| Error::failed(format!("could not start the runtime: {error}")))?;
    let terminal = Terminal::take()
        .map_err(|error| Error::failed(format!("could not use the terminal: {error}")))?;
    let ended = runtime.block_on(Conversation::run_until_left(place, screen, painter));
    drop(terminal);
    // What blocks a thread elsewhere does not hold the end up.
    runtime.shutdown_background();
    ended
}
