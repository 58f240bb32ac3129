//! The hooks: from `config.toml`, and from `hooks.json` in the shape that other programs have.

use std::path::Path;

use mainstay_agent::Hooks;
use serde_json::Value;

use super::text_of;
use crate::error::Error;
use crate::output::Output;

/// Its settings in a new file.
pub(super) const TEMPLATE: &str = r#"
# Hooks: your commands, run at fixed points of a turn; they read JSON and may answer JSON. They can
# also be in hooks.json beside this file, in the format of other agents.
# for example: [[hooks.PreToolUse]]
# for example: matcher = "Bash|Edit"
# for example: command = "~/bin/check-call"
"#;

/// A file of hooks only, for blocks that are copied from elsewhere.
const FILE: &str = "hooks.json";

/// Reads the hooks of a home. What nobody knows is a warning; a hook that cannot be understood is an
/// error, because it may be meant to prevent something.
pub(super) fn read(home: &Path, configured: &Value, output: Output) -> Result<Hooks, Error> {
    let mut hooks = Hooks::default();
    if !configured.is_null() {
        add(&mut hooks, configured, &home.join("config.toml"), output)?;
    }
    let path = home.join(FILE);
    if let Some(text) = text_of(&path)? {
        let value: Value =
            serde_json::from_str(&text).map_err(|error| wrong(&path, &error.to_string()))?;
        // Whole settings of another program may be copied too.
        add(&mut hooks, value.get("hooks").unwrap_or(&value), &path, output)?;
    }
    Ok(hooks)
}

/// Whether what the configuration says of hooks can be understood.
pub(super) fn check(configured: &Value) -> Result<(), Error> {
    if !configured.is_null() {
        Hooks::default().add(configured).map_err(Error::usage)?;
    }
    Ok(())
}

fn add(hooks: &mut Hooks, said: &Value, path: &Path, output: Output) -> Result<(), Error> {
    for warning in hooks.add(said).map_err(|detail| wrong(path, &detail))? {
        output.warning(format!("{}: {warning}", path.display()));
    }
    Ok(())
}

fn wrong(path: &Path, detail: &str) -> Error {
    Error::configuration(format!("could not use {}: {detail}", path.display()))
        .hint(format!("Fix or rename it: {}", crate::wording::path(path)))
}
