//! `[limits]`: how long models are waited for, and when repeats are a loop.

use mainstay_agent::Settings;
use serde::Deserialize;

use super::Config;
use super::build::time;
use super::shape::Time;
use crate::error::Error;

/// Its settings in a new file.
pub(super) const TEMPLATE: &str = r#"
# How long to wait for models, how many attempts to make, and after how many identical calls with
# identical results to step in.
[limits]
#connect = "10s"
#first_byte = "120s"
#idle = "60s"
#progress = "5m"
#chain = "15m"
#retry_after = "60s"
#attempts = 4
# for example: repeats = 3
"#;

/// How long models are waited for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Limits {
    pub(super) connect: Option<Time>,
    pub(super) first_byte: Option<Time>,
    pub(super) idle: Option<Time>,
    pub(super) progress: Option<Time>,
    pub(super) chain: Option<Time>,
    pub(super) retry_after: Option<Time>,
    pub(super) attempts: Option<u32>,
    pub(super) repeats: Option<u32>,
}

/// Sets what the file says.
pub(super) fn set_limits(config: &Config, settings: &mut Settings) -> Result<(), Error> {
    let said = &config.file.limits;
    let limits = &mut settings.asking;
    let times = [
        ("connect", &said.connect, &mut limits.connect),
        ("first_byte", &said.first_byte, &mut limits.first_byte),
        ("idle", &said.idle, &mut limits.idle),
        ("progress", &said.progress, &mut limits.progress),
        ("chain", &said.chain, &mut limits.chain),
        ("retry_after", &said.retry_after, &mut limits.retry_after),
    ];
    for (name, said, limit) in times {
        if let Some(said) = said {
            *limit = time(config, &format!("limits.{name}"), said)?;
        }
    }
    if let Some(attempts) = said.attempts {
        limits.attempts = attempts.max(1);
    }
    if let Some(repeats) = said.repeats {
        let acting = &mut settings.guards.acting;
        acting.nudge = repeats;
        acting.withhold = repeats.saturating_mul(3);
        acting.end = repeats.saturating_mul(4);
        settings.guards.looking = *acting;
    }
    Ok(())
}
