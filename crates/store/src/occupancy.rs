//! Whether whoever made a temporary file or directory is still at it.
//!
//! A lock on the thing itself says so, which the kernel drops when its holder dies, however that
//! comes about. So what is left behind is told from what is in use at once and without doubt: neither
//! by its age, nor by the number of a process.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Occupies a file or a directory until the handle is closed. Many may; it fails with `NotFound`
/// when whoever clears up was faster, also where the name is there again.
pub fn occupy(path: &Path) -> io::Result<File> {
    let handle = File::open(path)?;
    match handle.try_lock_shared() {
        Ok(()) if is_at(&handle, path) => Ok(handle),
        Ok(()) | Err(TryLockError::WouldBlock) => Err(io::ErrorKind::NotFound.into()),
        // A file system without locks: then nobody ever finds it vacated.
        Err(TryLockError::Error(_)) => Ok(handle),
    }
}

/// Takes what nobody occupies any more, to remove it. As long as the handle is open nobody can occupy
/// it. Returns `None` where somebody does, or it cannot be told.
pub fn vacated(path: &Path) -> Option<File> {
    let kind = fs::symlink_metadata(path).ok()?.file_type();
    // Opening anything else may wait, or do something.
    if !kind.is_file() && !kind.is_dir() {
        return None;
    }
    let handle = File::open(path).ok()?;
    handle.try_lock().ok()?;
    is_at(&handle, path).then_some(handle)
}

/// Whether the name still stands for what was opened.
fn is_at(handle: &File, path: &Path) -> bool {
    match (handle.metadata(), fs::symlink_metadata(path)) {
        (Ok(opened), Ok(named)) => (opened.dev(), opened.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_occupies_is_not_vacated_and_what_is_taken_is_not_occupied() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("place");
        fs::create_dir(&place).unwrap();
        let (one, two) = (occupy(&place).unwrap(), occupy(&place).unwrap());
        drop(one);
        assert!(vacated(&place).is_none());
        drop(two);
        let taken = vacated(&place).unwrap();
        assert_eq!(occupy(&place).unwrap_err().kind(), io::ErrorKind::NotFound);
        drop(taken);
        occupy(&place).unwrap();
        assert!(vacated(&directory.path().join("absent")).is_none());
    }

    #[test]
    fn a_name_that_came_to_stand_for_another_thing_is_neither() {
        let directory = tempfile::tempdir().unwrap();
        let (place, other) = (directory.path().join("place"), directory.path().join("other"));
        fs::create_dir(&place).unwrap();
        let handle = File::open(&place).unwrap();
        assert!(is_at(&handle, &place));
        crate::fsatomic::rename(&place, &other).unwrap();
        fs::create_dir(&place).unwrap();
        assert!(!is_at(&handle, &place));
        std::os::unix::fs::symlink(&other, directory.path().join("link")).unwrap();
        assert!(vacated(&directory.path().join("link")).is_none());
    }
}
