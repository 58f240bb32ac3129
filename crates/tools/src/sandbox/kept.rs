//! Whether what is kept is still what was kept.
//!
//! Outside of the sandbox a file is often changed by putting another one into its place. Then the mount
//! that kept it is gone with it, and the view is made again.

use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

use super::spread::Split;
use super::{Sandbox, repositories};

/// The places that are kept, by the directory that they are in.
pub(super) struct Kept(Vec<Group>);

struct Group {
    /// As long as nothing in the directory was replaced, the places need not be looked at.
    directory: Split,
    places: Vec<(PathBuf, Option<Identity>)>,
}

type Identity = (u64, u64);

impl Kept {
    /// As they are now.
    pub(super) fn of(sandbox: &Sandbox) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        for place in &sandbox.keep {
            let Some(above) = place.parent() else { continue };
            let known = groups.iter().position(|group| group.directory.is_of(above));
            let at = known.unwrap_or_else(|| {
                // Before what is in it is looked at, so that a change meanwhile is noticed.
                groups.push(Group { directory: Split::of(above), places: Vec::new() });
                groups.len() - 1
            });
            groups[at].places.push((place.clone(), identity(place)));
        }
        Self(groups)
    }

    /// Whether one of them is another by now.
    pub(super) fn is_stale(&mut self) -> bool {
        self.0.iter_mut().any(|group| {
            let Some(now) = group.directory.changed() else { return false };
            group.directory = now;
            group.places.iter().any(|(place, was)| identity(place) != *was)
        })
    }
}

fn identity(path: &Path) -> Option<Identity> {
    let found = rustix::fs::lstat(path).ok()?;
    Some((found.st_dev as u64, found.st_ino as u64))
}

/// Makes the directories that would be kept and are not there, empty, as git makes them: else a command
/// could. Links are not followed.
pub(super) fn make_missing(sandbox: &Sandbox) {
    for place in &sandbox.keep {
        let (Some(above), Some(name)) = (place.parent(), place.file_name()) else { continue };
        if !repositories::MADE.iter().any(|made| name == *made) || place.exists() {
            continue;
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let links = ResolveFlags::NO_SYMLINKS;
        if let Ok(above) = rustix::fs::openat2(CWD, above, flags, Mode::empty(), links) {
            let _ = rustix::fs::mkdirat(above, name, Mode::from_raw_mode(0o755));
        }
    }
}
