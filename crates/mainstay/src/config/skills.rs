//! `[skills]`: where skills are looked for besides the workspace.

use std::path::PathBuf;

use mainstay_agent::skills::Places;
use serde::Deserialize;

use super::Config;
use crate::env;
use crate::error::Error;

/// Its settings in a new file.
pub(super) const TEMPLATE: &str = "
# Skills besides those in the home (skills/) and in the workspace (.agents/skills, .claude/skills):
# folders that are a skill or contain some, as absolute paths or with ~/.
[skills]
#paths = []
";

/// Where skills are looked for besides the home and the workspace.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Skills {
    pub(super) paths: Vec<String>,
}

impl Config {
    /// The home's skills, and the paths that the file names.
    pub(crate) fn skills(&self) -> Result<Places, Error> {
        let user = env::HOME.get().map(PathBuf::from);
        let mut given = Vec::new();
        for said in &self.file.skills.paths {
            let path = match (said.strip_prefix("~/"), &user) {
                (Some(below), Some(user)) => user.join(below),
                _ => PathBuf::from(said),
            };
            if !path.is_absolute() {
                return Err(self
                    .wrong(format!("skills.paths has {said:?}, which is not an absolute path"))
                    .hint("Write paths that begin with / or ~/."));
            }
            given.push(path);
        }
        Ok(Places { home: Some(self.home.join("skills")), given })
    }
}
