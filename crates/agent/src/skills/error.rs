//! What can go wrong when skills are changed, by what a person can do about it.

use std::io;
use std::path::{Path, PathBuf};

/// Why a skill was not changed.
#[derive(Debug, thiserror::Error)]
pub enum SkillError {
    /// A folder is no skill.
    #[error("{} is not a valid skill: {what}", path.display())]
    Invalid {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it, in a clause.
        what: String,
    },
    /// There is none of this name in the home.
    #[error("the home has no skill {0:?}")]
    Missing(String),
    /// There is one of this name in the home.
    #[error("the home already has a skill {0:?}")]
    Exists(String),
    /// None of this name was removed.
    #[error("the trash has no skill {0:?}")]
    NotInTrash(String),
    /// It is not any more what the proposal would change.
    #[error("the skill {0:?} has changed since the proposal was made; nothing was done")]
    Changed(String),
    /// Somebody decided about the proposal before.
    #[error("proposal {id} was already {state}")]
    Decided {
        /// The proposal.
        id: mainstay_store::Id,
        /// How.
        state: &'static str,
    },
    /// Another process changes skills.
    #[error("another process is changing the skills in {}", .0.display())]
    Busy(PathBuf),
    /// A file or directory cannot be used.
    #[error("{}: {error}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl SkillError {
    pub(super) fn file(path: &Path, error: io::Error) -> Self {
        Self::File { path: path.to_owned(), error }
    }

    /// The next step.
    pub fn hint(&self) -> String {
        match self {
            Self::Invalid { .. } => {
                "A skill is a folder with a SKILL.md that begins with its name and description."
                    .to_owned()
            }
            Self::Missing(_) => "List the skills: `mainstay skills list`".to_owned(),
            Self::Exists(_) => {
                "Replace it with --replace; the old one goes to the trash.".to_owned()
            }
            Self::NotInTrash(_) => "List the trash: `mainstay skills trash`".to_owned(),
            Self::Changed(_) => {
                "Reject the proposal (`mainstay skills reject ID`) and ask for a new one."
                    .to_owned()
            }
            Self::Decided { .. } => {
                "List all proposals: `mainstay skills proposals --all`".to_owned()
            }
            Self::Busy(_) => "Try again in a moment.".to_owned(),
            Self::File { .. } => "Check the permissions of this path.".to_owned(),
        }
    }
}
