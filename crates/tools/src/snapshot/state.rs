//! What is at a path.

use serde::{Deserialize, Serialize};

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing.
    Absent,
    /// A regular file.
    File {
        /// Its permissions.
        mode: u32,
        /// The objects that hold its bytes, joined by `+`.
        objects: String,
        /// How many bytes it has.
        size: u64,
    },
    /// A symbolic link.
    Link {
        /// Where it points to, escaped.
        target: String,
    },
    /// A directory; what is in it stands for itself.
    Directory {
        /// Its permissions.
        mode: u32,
    },
    /// Something that is not kept.
    Left(Omission),
}

/// Why something is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Omission {
    /// Git's own files: half of them put back would be worse than none.
    Git,
    /// Git ignores it, or it is a cache, and it is large.
    Ignored,
    /// The file is huge.
    Large,
    /// It is a pipe, a socket or a device.
    Special,
    /// It is on another file system.
    Mounted,
    /// It cannot be read.
    Unreadable,
    /// It contains a key that must not be stored.
    Secret,
    /// The snapshot would have become too large, or would have taken too long.
    Limit,
    /// It belongs to Mainstay's own state.
    Closed,
    /// A link is where one of its directories was.
    Behind,
}

impl Omission {
    const ALL: [Self; 10] = [
        Self::Git,
        Self::Ignored,
        Self::Large,
        Self::Special,
        Self::Mounted,
        Self::Unreadable,
        Self::Secret,
        Self::Limit,
        Self::Closed,
        Self::Behind,
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Git => "git",
            Self::Ignored => "ignored",
            Self::Large => "large",
            Self::Special => "special",
            Self::Mounted => "mounted",
            Self::Unreadable => "unreadable",
            Self::Secret => "secret",
            Self::Limit => "limit",
            Self::Closed => "closed",
            Self::Behind => "behind",
        }
    }

    pub(super) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|why| why.as_str() == word)
    }

    /// Why it is not kept, in words that follow its name.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Git => "git's own files",
            Self::Ignored => "ignored by git or a cache, and large",
            Self::Large => "a very large file",
            Self::Special => "a pipe, a socket or a device",
            Self::Mounted => "on another file system",
            Self::Unreadable => "unreadable",
            Self::Secret => "contains a key, and keys are not stored",
            Self::Limit => "beyond the limits of a snapshot",
            Self::Closed => "Mainstay's own state",
            Self::Behind => "its directory is a link now; left alone",
        }
    }
}

impl State {
    /// The objects that hold its bytes.
    pub fn objects(&self) -> impl Iterator<Item = &str> {
        let objects = match self {
            Self::File { objects, .. } => objects.as_str(),
            _ => "",
        };
        objects.split('+').filter(|object| !object.is_empty())
    }

    /// Whether it can be put back.
    pub fn is_kept(&self) -> bool {
        !matches!(self, Self::Left(_))
    }

    /// What it is, in a word or two.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::Absent => "nothing",
            Self::File { .. } => "a file",
            Self::Link { .. } => "a symbolic link",
            Self::Directory { .. } => "a directory",
            Self::Left(why) => why.reason(),
        }
    }
}
