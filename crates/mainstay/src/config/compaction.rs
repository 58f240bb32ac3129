//! `[compaction]`: how conversations are compacted.

use std::sync::Arc;

use mainstay_agent::{Compacting, OnFailure};
use serde::Deserialize;

use super::shape::Time;
use super::{Config, Overrides, build};
use crate::error::Error;

/// Its settings in a new file.
pub(super) const TEMPLATE: &str = r#"
# Compaction of a conversation that fills the window: at which share of it, what to do if no model
# writes a summary (abort: change nothing; local: summarise without a model), which model writes it
# (by default that of the turn), and how long it may take.
[compaction]
#at = 0.75
#on_failure = "abort"
# for example: model = "ollama/qwen3"
#timeout = "120s"
"#;

/// How conversations are compacted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Compaction {
    /// A share of the window.
    pub(super) at: Option<f64>,
    /// `abort` or `local`.
    pub(super) on_failure: Option<String>,
    pub(super) model: Option<String>,
    pub(super) timeout: Option<Time>,
}

/// What the engine is told of compaction.
pub(super) fn compacting(config: &Config, over: &Overrides) -> Result<Compacting, Error> {
    let said = &config.file.compaction;
    let mut compacting = Compacting::default();
    if let Some(at) = said.at {
        if !(0.1..=0.9).contains(&at) {
            return Err(config
                .wrong(format!("compaction.at is {at}"))
                .hint("Write the share of the window, from 0.1 to 0.9, such as 0.75."));
        }
        compacting.at = at;
    }
    compacting.on_failure = match said.on_failure.as_deref() {
        None => compacting.on_failure,
        Some("abort") => OnFailure::Abort,
        Some("local") => OnFailure::Local,
        Some(other) => {
            return Err(config
                .wrong(format!("compaction.on_failure is {other:?}"))
                .hint("Write abort (nothing changes) or local (a summary without a model)."));
        }
    };
    if let Some(model) = over.summaries.as_ref().or(said.model.as_ref()) {
        compacting.model = Some(Arc::new(build::candidate(config, model)?));
    }
    if let Some(timeout) = &said.timeout {
        compacting.timeout = build::time(config, "compaction.timeout", timeout)?;
    }
    Ok(compacting)
}
