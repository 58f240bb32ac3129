//! What only a person does, and nobody on a person's behalf.

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
