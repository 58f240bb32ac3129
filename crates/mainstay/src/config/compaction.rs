//! How conversations are compacted, from what the home's file says.

use std::sync::Arc;

use mainstay_agent::{Compacting, OnFailure};

use super::{Config, Overrides, build};
use crate::error::Error;

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
