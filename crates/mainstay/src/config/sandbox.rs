//! `[sandbox]`: what commands and file tools are confined to.

use mainstay_tools::sandbox::{Mode, Network, Wishes};

use super::Config;
use crate::error::Error;

/// What the file says about the sandbox.
pub(super) fn wishes(config: &Config) -> Result<Wishes, Error> {
    let said = &config.file.sandbox;
    let mode = match said.mode.as_deref() {
        None | Some("on") => Mode::On,
        Some("require") => Mode::Require,
        Some("off") => Mode::Off,
        Some(other) => {
            return Err(config
                .wrong(format!("sandbox.mode is {other:?}"))
                .hint("Write on, require or off."));
        }
    };
    for (name, paths) in [("write", &said.write), ("hide", &said.hide), ("show", &said.show)] {
        let odd = paths.iter().find(|path| !path.starts_with('/') && !path.starts_with("~/"));
        if let Some(odd) = odd {
            return Err(config
                .wrong(format!("sandbox.{name} has {odd:?}, which is not an absolute path"))
                .hint("Write paths that begin with / or ~/."));
        }
    }
    let network = if said.network == Some(false) { Network::Closed } else { Network::Open };
    Ok(Wishes {
        mode,
        write: said.write.clone(),
        hide: said.hide.clone(),
        show: said.show.clone(),
        network,
    })
}
