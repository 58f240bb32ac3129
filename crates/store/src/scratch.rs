//! Directories for a time, in the directory for temporary files.
//!
//! All are in one directory of the user's, so that what a killed process left is found without looking
//! at anything else, and that directory goes when it is empty. Whoever made one
//! [occupies](crate::occupancy) it.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::Id;
use crate::fsatomic::PRIVATE_DIR;
use crate::occupancy::{occupy, vacated};

/// How often another name is tried where whoever clears up was faster.
const NAMES: u32 = 100;

/// A private directory that goes when it is dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    _occupied: File,
}

impl Scratch {
    /// Makes one. `purpose` begins its name.
    pub fn new(purpose: &str) -> io::Result<Self> {
        Self::within(&place(), purpose)
    }

    fn within(place: &Path, purpose: &str) -> io::Result<Self> {
        for _ in 0..NAMES {
            let path = place.join(format!("{purpose}-{}", Id::new()));
            let made = own_directory(place).and_then(|()| private(&path));
            match made.and_then(|()| occupy(&path)) {
                Ok(occupied) => return Ok(Self { path, _occupied: occupied }),
                // Whoever clears up took it, or the directory that it is in.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("it is removed as soon as it is made"))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it now, and says what was in the way.
    pub fn remove(&self) -> io::Result<()> {
        let removed = match fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        };
        if let Some(place) = self.path.parent() {
            // Others may have something there.
            let _ = fs::remove_dir(place);
        }
        removed
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays is found by the next one.
        let _ = self.remove();
    }
}

/// Removes what killed processes left.
pub fn clear_up() {
    clear_up_in(&place());
}

fn clear_up_in(place: &Path) {
    if !is_own(place) {
        return;
    }
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        if let Some(_taken) = vacated(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let _ = fs::remove_dir(place);
}

/// The user's directory.
fn place() -> PathBuf {
    std::env::temp_dir().join(format!("mainstay-{}", rustix::process::geteuid().as_raw()))
}

fn private(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(PRIVATE_DIR).create(path)
}

/// Makes the user's directory, unless it is there. One of somebody else's is not used: what is in it
/// could be exchanged.
fn own_directory(place: &Path) -> io::Result<()> {
    match private(place) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Err(_) if !is_own(place) && fs::symlink_metadata(place).is_ok() => {
            Err(io::Error::other(format!("{} belongs to somebody else", place.display())))
        }
        _ => Ok(()),
    }
}

fn is_own(place: &Path) -> bool {
    fs::symlink_metadata(place).is_ok_and(|found| {
        found.is_dir()
            && found.uid() == rustix::process::geteuid().as_raw()
            && found.mode() & 0o077 == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_goes_and_what_is_in_use_stays() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("place");
        let used = Scratch::within(&place, "demo").unwrap();
        let left = place.join("demo-left");
        private(&left).unwrap();
        private(&left.join("below")).unwrap();
        clear_up_in(&place);
        assert!(used.path().is_dir() && !left.exists());
        drop(used);
        assert!(!place.exists());
    }

    #[test]
    fn the_directory_of_somebody_else_is_neither_used_nor_cleared() {
        let directory = tempfile::tempdir().unwrap();
        let (place, other) = (directory.path().join("place"), directory.path().join("other"));
        private(&other).unwrap();
        private(&other.join("theirs")).unwrap();
        std::os::unix::fs::symlink(&other, &place).unwrap();
        clear_up_in(&place);
        assert!(other.join("theirs").is_dir());
        assert!(Scratch::within(&place, "demo").is_err());
    }
}
