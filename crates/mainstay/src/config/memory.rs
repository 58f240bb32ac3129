//! What is remembered, from what the home's file says. A workspace has no say in it.

use mainstay_agent::memory::Settings;

use super::Config;
use super::build::time;
use crate::error::Error;

/// The most memories that a turn may begin with, and the most characters of notes.
const MOST: usize = 50;
const MOST_CHARACTERS: usize = 20_000;

/// What the engine is told of memory.
pub(crate) fn memory_settings(config: &Config) -> Result<Settings, Error> {
    let said = &config.file.memory;
    let mut settings = Settings::default();
    if let Some(recall) = said.recall {
        settings.recall = recall;
    }
    let numbers = [
        ("limit", said.limit, 1..=MOST, &mut settings.limit),
        ("user_limit", said.user_limit, 0..=MOST_CHARACTERS, &mut settings.user_limit),
        (
            "workspace_limit",
            said.workspace_limit,
            0..=MOST_CHARACTERS,
            &mut settings.workspace_limit,
        ),
    ];
    for (name, said, range, setting) in numbers {
        match said {
            None => {}
            Some(number) if range.contains(&number) => *setting = number,
            Some(number) => {
                return Err(config.wrong(format!("memory.{name} is {number}")).hint(format!(
                    "Write a number from {} to {}.",
                    range.start(),
                    range.end()
                )));
            }
        }
    }
    match said.least_score {
        None => {}
        Some(score) if (0.0..=1.0).contains(&score) => settings.least_score = score,
        Some(score) => {
            return Err(config
                .wrong(format!("memory.least_score is {score}"))
                .hint("Write a score from 0 (all) to 1 (none), such as 0.2."));
        }
    }
    if let Some(said) = &said.half_life {
        let half_life = time(config, "memory.half_life", said)?;
        // No time at all means that facts do not age.
        settings.half_life = Some(half_life).filter(|time| !time.is_zero());
    }
    Ok(settings)
}
