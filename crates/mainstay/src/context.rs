//! What every command is given: the options, the output, and a way to the store.

use mainstay_store::{Location, Options, Store};

use crate::error::Error;
use crate::output::Output;
use crate::paths::{Globals, Paths};

/// The surroundings of a command.
#[derive(Debug)]
pub(crate) struct Context {
    globals: Globals,
    /// Where to print.
    pub(crate) output: Output,
}

impl Context {
    /// The surroundings that these options ask for.
    pub(crate) fn new(globals: Globals) -> Self {
        let output = Output::new(globals.json);
        Self { globals, output }
    }

    /// Whether answers are wanted in JSON.
    pub(crate) fn json(&self) -> bool {
        self.globals.json
    }

    /// The profile that was typed, whatever variables and files say.
    pub(crate) fn typed_profile(&self) -> Option<&str> {
        self.globals.profile.as_deref()
    }

    /// Where things are. Commands that need none of it work without a home.
    pub(crate) fn paths(&self) -> Result<Paths, Error> {
        Paths::resolve(&self.globals)
    }

    /// An error whose hints name the same home and store.
    pub(crate) fn completed(&self, mut error: Error) -> Error {
        if let Ok(paths) = self.paths() {
            error.hints = error.hints.iter().map(|hint| paths.completed(hint)).collect();
        }
        error
    }
}

/// How the program opens stores.
pub(crate) fn options() -> Options {
    Options::new(mainstay_agent::schema())
}

/// Opens a store that must be there: looking at it never makes one.
pub(crate) fn open_existing(place: &Location) -> Result<Store, mainstay_store::Error> {
    Store::open(place, options().existing())
}
