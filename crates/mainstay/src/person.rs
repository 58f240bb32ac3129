//! What only a person does, and nobody on a person's behalf.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use mainstay_tools::keeper;

use crate::env;
use crate::error::Error;

/// Refuses what a command of an agent must not do: the agent does not decide about itself.
pub(crate) fn only(what: &str) -> Result<(), Error> {
    if env::GIVEN.iter().all(|variable| variable.get().is_none()) && !keeper::is_kept() {
        return Ok(());
    }
    let message = format!("{what} is for people, and this is run by a command of an agent");
    Err(Error::failed(message).hint("Run it in a terminal of your own."))
}

/// Asks on a terminal; where nobody can answer, says how to say yes.
pub(crate) fn confirms(question: &str) -> Result<bool, Error> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(
            Error::usage(format!("nobody can be asked: {question}")).hint("Say it with --yes.")
        );
    }
    let mut output = io::stderr().lock();
    // With standard error gone the answer decides.
    let _ = write!(output, "{question} [y/N] ");
    let _ = output.flush();
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(|error| {
        Error::failed(format!("the answer cannot be read: {error}")).hint("Say it with --yes.")
    })?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
