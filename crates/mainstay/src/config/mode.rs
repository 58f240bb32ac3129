//! `mode`: what is done without asking, and what holds it.

use mainstay_journal::turn::Mode;
use mainstay_tools::sandbox::{self, Wishes};

use super::Config;
use super::build::Overrides;
use crate::error::Error;

/// The mode that holds: what was asked for, or `auto` where the kernel can hold it.
pub(super) fn mode(config: &Config, over: &Overrides, wishes: &Wishes) -> Result<Mode, Error> {
    let wanted = match (over.mode, config.file.mode.as_deref()) {
        (Some(mode), _) => Some(mode),
        (None, Some(name)) => Some(named(name).map_err(|error| {
            config.wrong(format!("mode: {}", error.message)).hint(error.hints.concat())
        })?),
        (None, None) => None,
    };
    Ok(match wanted.unwrap_or(Mode::Auto) {
        Mode::Auto if unheld(wishes).is_some() => Mode::Ask,
        mode => mode,
    })
}

/// What is said where `auto` was asked for and cannot be had.
pub(crate) fn warning(config: &Config, over: &Overrides, now: Mode) -> Option<String> {
    let wanted = over.mode.or_else(|| config.file.mode.as_deref().and_then(Mode::named));
    if wanted != Some(Mode::Auto) || now == Mode::Auto {
        return None;
    }
    let wishes = super::sandbox::wishes(config).ok()?;
    let why = unheld(&wishes)?;
    Some(format!("the mode auto cannot be had, so running code is asked about (mode {now}): {why}"))
}

/// The mode with a name that was typed.
pub(crate) fn named(name: &str) -> Result<Mode, Error> {
    Mode::named(name).ok_or_else(|| {
        Error::usage(format!("{name:?} is not a mode")).hint("Write plan, auto, ask or yes.")
    })
}

/// Why the kernel does not hold commands in a box here, as a clause. Returns `None` if it does.
pub(crate) fn unheld(wishes: &Wishes) -> Option<String> {
    if wishes.mode == sandbox::Mode::Off {
        return Some("the sandbox is off ([sandbox] mode = \"off\")".to_owned());
    }
    sandbox::unheld()
}
