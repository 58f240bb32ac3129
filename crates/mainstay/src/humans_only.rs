//! What only a human may do: an agent's commands are refused, and dangerous steps are confirmed.

use std::io::{self, BufRead as _, IsTerminal as _};

use mainstay_tools::keeper;

use crate::env;
use crate::error::Error;
use crate::printing;
use crate::wording;

/// Refuses when an agent's command runs this: an agent must not decide about itself.
pub(crate) fn require(what: &str) -> Result<(), Error> {
    if env::GIVEN.iter().all(|variable| variable.get().is_none()) && !keeper::is_kept() {
        return Ok(());
    }
    let message = format!("{what} is for humans only, and an agent's command ran this");
    Err(Error::failed(message).hint("Run it in your own terminal."))
}

/// Asks on the terminal whether to `action`, such as "delete 1 session". Without a terminal it is
/// an error that names `--yes`.
pub(crate) fn confirm(action: &str) -> Result<bool, Error> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(unconfirmed(action));
    }
    // With standard error gone the answer decides.
    let _ = printing::ask(&format!("{} [y/N] ", question(action)));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(|error| {
        Error::failed(format!("could not read the answer: {error}"))
            .hint("Pass --yes to answer in advance.")
    })?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn unconfirmed(action: &str) -> Error {
    Error::usage(format!("refusing to {action} without confirmation; pass --yes"))
        .hint("Add --yes, or run it in a terminal to be asked.")
}

/// "delete 1 session" as "Delete 1 session?".
fn question(action: &str) -> String {
    format!("{}?", wording::capital(action))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_action_is_named_in_the_question_and_in_the_refusal() {
        assert_eq!(question("delete 1 session"), "Delete 1 session?");
        let error = unconfirmed("delete 1 session");
        assert_eq!(error.message, "refusing to delete 1 session without confirmation; pass --yes");
        assert_eq!(error.kind.exit().code(), 2);
    }
}
