//! `[memory]`: what is remembered. A workspace has no say in it.

use mainstay_agent::memory::Settings;
use serde::Deserialize;

use super::Config;
use super::build::time;
use super::memory_providers::MemoryProvider;
use super::shape::Time;
use crate::error::Error;

/// The most memories that a turn may begin with, and the most characters of notes.
const MOST: usize = 50;
const MOST_CHARACTERS: usize = 20_000;

/// Its settings in a new file.
pub(super) const TEMPLATE: &str = r#"
# Memory across sessions; `mainstay memory list` shows it.
[memory]
# Whether a turn begins with relevant memories, how many at most, and the least score of each (0 to
# 1). A fact counts half after its half-life.
#recall = true
#limit = 5
#least_score = 0.2
#half_life = "180d"
# Maximum characters of the notes that every new session gets.
#user_limit = 1375
#workspace_limit = 2200

# External memory providers: programs that read and write JSON, and MCP servers. Each is asked when a
# turn begins.
# for example: [[memory.providers]]
# for example: name = "team"
# for example: command = "~/bin/team-memory"
# for example: [[memory.providers]]
# for example: name = "graph"
# for example: command = "npx"
# for example: args = ["-y", "@modelcontextprotocol/server-memory"]
# for example: mcp = true
# for example: timeout = "8s"
# for example: write = false            (whether it gets new memories)
# for example: trusted = false          (whether its text is trusted like yours)
"#;

/// What is remembered.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Memory {
    /// Whether a turn begins with what bears on it.
    pub(super) recall: Option<bool>,
    /// How many memories that brings at most.
    pub(super) limit: Option<usize>,
    /// What a memory must score for it, from 0 to 1.
    pub(super) least_score: Option<f64>,
    /// After this time a fact counts half.
    pub(super) half_life: Option<Time>,
    /// Characters of notes about the user, and about a workspace.
    pub(super) user_limit: Option<usize>,
    pub(super) workspace_limit: Option<usize>,
    /// Who has memories besides the store.
    pub(super) providers: Vec<MemoryProvider>,
}

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
