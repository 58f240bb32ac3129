//! `[sandbox]`: what commands and file tools are confined to.

use mainstay_tools::sandbox::{Mode, Network, Wishes};
use serde::Deserialize;

use super::Config;
use crate::error::Error;
use crate::leftovers;

/// Its settings in a new file.
pub(super) const TEMPLATE: &str = r#"
# How the kernel confines commands and file tools.
[sandbox]
# on, require (nothing runs if the kernel cannot confine it) or off.
#mode = "on"
# Additional paths that may be written, paths to hide, and hidden paths to show after all.
#write = []
#hide = []
#show = []
#network = true
"#;

/// What commands and file tools are confined to.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Sandbox {
    /// `on`, `require` or `off`.
    pub(super) mode: Option<String>,
    pub(super) write: Vec<String>,
    pub(super) hide: Vec<String>,
    pub(super) show: Vec<String>,
    pub(super) network: Option<bool>,
}

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
        made_caches: Some(leftovers::made_caches(config.home())),
    })
}
