//! Skills: folders with instructions that a model loads when a task calls for them.
//!
//! A skill is a folder with a `SKILL.md`: a name and a description in front, instructions after them,
//! scripts and references beside it. A new session is told names and descriptions; the rest is read
//! when it is asked for. What a model wants to add or change is a [`Proposal`], and nothing uses it
//! before a person approves it.

mod approve;
mod catalogue;
mod diff;
mod discovery;
mod error;
mod files;
mod front_matter;
mod invoke;
mod load_tool;
mod proposal;
mod propose_tool;
mod shelf;

use std::path::{Path, PathBuf};

use serde::Serialize;

pub use approve::{approve, preview, reject, settle};
pub(crate) use catalogue::{HEADING, skills_prompt, unusable_skill_notices};
pub use diff::{diff, visible};
pub use discovery::{FoundSkills, Shadowed, Skill, Warning, find};
pub use error::SkillError;
pub use files::SkillFiles;
pub use front_matter::Front;
pub use invoke::{CALLED, InvokedSkill, invoked, is_invocation};
pub(crate) use load_tool::LoadSkill;
pub(crate) use proposal::delete_session;
pub use proposal::{
    NAME as PROPOSE, Proposal, ProposalFilter, ProposalState, SKILLS, find as find_proposal, list,
};
pub(crate) use propose_tool::ProposeSkill;
pub use shelf::{Locked, Shelf, Trashed};

use crate::Agent;

/// Where skills are looked for besides the workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The directory in the home, which may not be there.
    pub home: Option<PathBuf>,
    /// Folders that the configuration names, each a skill or a directory of skills.
    pub given: Vec<PathBuf>,
}

/// Where a skill comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The home: the user put it there, or approved it.
    Home,
    /// A path that the configuration names.
    Given,
    /// The workspace: whoever wrote the project wrote it.
    Workspace,
}

impl Origin {
    /// Its name, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Home => "home",
            Self::Given => "given",
            Self::Workspace => "workspace",
        }
    }
}

impl Agent {
    /// The skills that hold in a workspace.
    pub fn skills(&self, workspace: &Path) -> FoundSkills {
        find(&self.settings().skills, workspace)
    }

    /// The skill that a text calls for; see [`invoked`].
    pub fn invoked(&self, workspace: &Path, typed: &str) -> Option<Result<InvokedSkill, String>> {
        invoked(&self.settings().skills, workspace, typed)
    }
}
