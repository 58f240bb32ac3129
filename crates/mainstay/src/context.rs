//! What every command is given: the options, the output, and a way to the store.

use mainstay_store::{Options, Store};

use crate::error::Error;
use crate::last_words;
use crate::leftovers;
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
        let paths = Paths::resolve(&self.globals)?;
        last_words::keep_in(&paths.home);
        Ok(paths)
    }

    /// An error whose hints name the same home and store.
    pub(crate) fn completed(&self, mut error: Error) -> Error {
        if let Ok(paths) = self.paths() {
            error.hints = error.hints.iter().map(|hint| paths.completed(hint)).collect();
        }
        error
    }
}

/// How the program opens stores. What is being made is written down in the home, where there is one.
pub(crate) fn options(paths: &Paths) -> Options {
    let options = Options::new(mainstay_agent::schema());
    if paths.home.is_dir() { options.records(leftovers::records(paths)) } else { options }
}

/// Opens a store that must be there: looking at it never makes one.
pub(crate) fn open_existing(paths: &Paths) -> Result<Store, mainstay_store::Error> {
    let store = Store::open(&paths.store, options(paths).existing())?;
    if store.is_read_only() {
        let place = &paths.store;
        Output::new(false)
            .warning(format!("{place} is read-only: it can be looked at, not changed"));
    }
    Ok(store)
}
