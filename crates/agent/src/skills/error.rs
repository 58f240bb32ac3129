//! What can go wrong when skills are changed, by what a person can do about it.

use std::io;
use std::path::{Path, PathBuf};

/// Why a skill was not changed.
#[derive(Debug, thiserror::Error)]
pub enum SkillError {
    /// A folder is no skill.
    #[error("{} is no skill: {what}", path.display())]
    Invalid {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it, in a clause.
        what: String,
    },
    /// There is none of this name in the home.
    #[error("there is no skill {0:?} in the home")]
    Missing(String),
    /// There is one of this name in the home.
    #[error("there is a skill {0:?} in the home already")]
    Exists(String),
    /// None of this name was removed.
    #[error("no skill {0:?} is in the trash")]
    NotInTrash(String),
    /// It is not any more what the proposal would change.
    #[error("the skill {0:?} was changed since the proposal was made; nothing was done")]
    Changed(String),
    /// Somebody decided about the proposal before.
    #[error("proposal {id} cannot be decided: it was {state} already")]
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
            Self::Missing(_) => "See which there are: `mainstay skills list`".to_owned(),
            Self::Exists(_) => {
                "Put the new one in its place with --replace; the old one goes to the trash."
                    .to_owned()
            }
            Self::NotInTrash(_) => "See what is there: `mainstay skills trash`".to_owned(),
            Self::Changed(_) => {
                "Reject the proposal (`mainstay skills reject ID`) and have it made anew."
                    .to_owned()
            }
            Self::Decided { .. } => "See all: `mainstay skills proposals --all`".to_owned(),
            Self::Busy(_) => "Try again in a moment.".to_owned(),
            Self::File { .. } => "Look at who may read and write there.".to_owned(),
        }
    }
}
