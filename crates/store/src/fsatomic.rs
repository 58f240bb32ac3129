//! The one place that writes files: a crash leaves the old content or the new one, whole.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The mode of files under the home.
pub const PRIVATE_FILE: u32 = 0o600;
/// The mode of directories under the home.
pub const PRIVATE_DIR: u32 = 0o700;

/// Replaces the content of `path` atomically and durably.
///
/// A symbolic link is followed, an existing file keeps its mode, a new one gets `mode`.
pub fn write(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let target = resolved(path)?;
    let mode = match fs::metadata(&target) {
        Ok(existing) => existing.permissions().mode() & 0o7777,
        Err(error) if error.kind() == io::ErrorKind::NotFound => mode,
        Err(error) => return Err(error),
    };
    let temporary = temporary_beside(&target, "write")?;
    let written = (|| {
        let mut file = create_new(&temporary, PRIVATE_FILE)?;
        file.write_all(content)?;
        // After the content, so that a reader-only mode does not stop the write itself; and by
        // chmod, which the umask does not touch.
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()?;
        rename(&temporary, &target)
    })();
    if written.is_err() {
        // The first error is the one to report; the temporary file goes if it can.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Puts a file with this content and mode at `path`, in place of a file or a symbolic link: the
/// link itself is replaced. `temporary` is a name in the same directory that is the caller's own;
/// what an interrupted call left there is replaced. The caller syncs the directory.
#[expect(clippy::disallowed_methods, reason = "this module renames files")]
pub fn put(path: &Path, temporary: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    remove_leftover(temporary)?;
    let written = (|| {
        let mut file = create_new(temporary, PRIVATE_FILE)?;
        file.write_all(content)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()?;
        fs::rename(temporary, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(temporary);
    }
    written
}

/// Puts a symbolic link at `path`, in place of a file or a link; see [`put`].
#[expect(clippy::disallowed_methods, reason = "this module renames files")]
pub fn put_link(path: &Path, temporary: &Path, target: &Path) -> io::Result<()> {
    remove_leftover(temporary)?;
    std::os::unix::fs::symlink(target, temporary)?;
    fs::rename(temporary, path).inspect_err(|_| {
        let _ = fs::remove_file(temporary);
    })
}

fn remove_leftover(temporary: &Path) -> io::Result<()> {
    match fs::remove_file(temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Creates a file that must not exist yet.
#[expect(clippy::disallowed_methods, reason = "this module writes files")]
pub fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

/// Opens a side file for locking, and creates it if need be. Never for a database file.
#[expect(clippy::disallowed_methods, reason = "this module writes files")]
pub(crate) fn open_side_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(PRIVATE_FILE);
    options.open(path)
}

/// Renames durably: the directory is synced before this returns.
#[expect(clippy::disallowed_methods, reason = "this module renames files")]
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_directory_of(to)?;
    if from.parent() != to.parent() {
        sync_directory_of(from)?;
    }
    Ok(())
}

/// Exchanges two files or directories of one directory durably: whoever looks finds one or the
/// other at each name.
pub fn exchange(left: &Path, right: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, left, CWD, right, RenameFlags::EXCHANGE)?;
    sync_directory_of(right)
}

/// Puts `from` at `to` durably, unless something is there already.
pub(crate) fn rename_into_vacancy(from: &Path, to: &Path) -> io::Result<()> {
    // A hard link fails when the name is taken, on every Unix; a rename would replace it.
    fs::hard_link(from, to)?;
    fs::remove_file(from)?;
    sync_directory_of(to)
}

/// Removes a file durably; one that is not there is no error.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Ok(()) => sync_directory_of(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes a directory, and its parents, for the owner's eyes only. An existing one is left alone.
pub fn private_directory(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        private_directory(parent)?;
    }
    match DirBuilder::new().mode(PRIVATE_DIR).create(path) {
        Ok(()) => sync_directory_of(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes the entry of `path` in its directory durable.
pub fn sync_directory_of(path: &Path) -> io::Result<()> {
    File::open(directory_of(path))?.sync_all()
}

/// The directory that holds `path`.
pub(crate) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Fails, naming the directory, when `path` is to be made in one that is not there.
pub(crate) fn refuse_missing_directory(path: &Path) -> crate::Result<()> {
    let directory = directory_of(path);
    match fs::metadata(directory) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(io::Error::from(io::ErrorKind::NotADirectory)),
        Err(error) => Err(error),
    }
    .map_err(|error| crate::Error::file(directory, &error))
}

/// A fresh name in the directory of `path`, hidden and easily recognised as a leftover.
/// `purpose` is part of the name, so that leftovers of one kind are told from those of another.
pub(crate) fn temporary_beside(path: &Path, purpose: &str) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} is not the name of a file", path.display()),
        )
    })?;
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{purpose}-{}.tmp", crate::Id::new()));
    Ok(path.with_file_name(temporary))
}

/// Whether a temporary file or directory was last written so long ago that whoever made it is gone.
pub(crate) fn is_abandoned(path: &Path) -> bool {
    const HOUR_MILLIS: i128 = 60 * 60 * 1000;
    let written = fs::symlink_metadata(path)
        .and_then(|found| found.modified())
        .ok()
        .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    written.is_some_and(|written| {
        let age = i128::from(crate::clock::wall_millis())
            - i128::try_from(written.as_millis()).unwrap_or(i128::MAX);
        age > HOUR_MILLIS
    })
}

/// Follows symbolic links, also to a file that does not exist yet.
pub(crate) fn resolved(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    // As many as the kernel follows.
    for _ in 0..40 {
        match fs::read_link(&target) {
            Ok(next) => target = directory_of(&target).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::other(format!("{} has too many levels of symbolic links", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_new_file_has_the_mode_asked_for_and_nothing_is_left_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.toml");
        write(&path, b"one", PRIVATE_FILE).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert_eq!(mode(&path), 0o600);
        assert_eq!(names(directory.path()), ["config.toml"]);
    }

    #[test]
    fn an_existing_file_keeps_its_mode() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("script");
        write(&path, b"one", 0o600).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o4555)).unwrap();
        write(&path, b"two", 0o600).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(mode(&path), 0o4555);
    }

    #[test]
    fn links_are_followed_also_when_they_dangle() {
        let directory = tempfile::tempdir().unwrap();
        let (link, target) = (directory.path().join("link"), directory.path().join("target"));
        symlink("target", &link).unwrap();
        write(&link, b"one", 0o600).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"one");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        symlink("round", directory.path().join("round")).unwrap();
        assert!(write(&directory.path().join("round"), b"", 0o600).is_err());
    }

    #[test]
    fn a_failed_write_leaves_the_old_content_and_no_temporary_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("taken");
        fs::create_dir(&path).unwrap();
        assert!(write(&path, b"x", 0o600).is_err());
        assert_eq!(names(directory.path()), ["taken"]);
    }

    #[test]
    fn a_vacancy_is_never_taken_from_somebody() {
        let directory = tempfile::tempdir().unwrap();
        let (new, old) = (directory.path().join("new"), directory.path().join("old"));
        write(&new, b"new", 0o600).unwrap();
        write(&old, b"old", 0o600).unwrap();
        assert!(rename_into_vacancy(&new, &old).is_err());
        assert_eq!(fs::read(&old).unwrap(), b"old");
        fs::remove_file(&old).unwrap();
        rename_into_vacancy(&new, &old).unwrap();
        assert_eq!(names(directory.path()), ["old"]);
    }

    #[test]
    fn an_exchange_leaves_both_each_at_the_others_name() {
        let directory = tempfile::tempdir().unwrap();
        let (left, right) = (directory.path().join("left"), directory.path().join("right"));
        fs::create_dir(&left).unwrap();
        write(&left.join("a"), b"a", 0o600).unwrap();
        fs::create_dir(&right).unwrap();
        exchange(&left, &right).unwrap();
        assert_eq!((names(&left), names(&right)), (vec![], vec!["a".to_owned()]));
        assert!(exchange(&left, &directory.path().join("absent")).is_err());
    }

    #[test]
    fn directories_are_private_from_the_first_one_made() {
        let directory = tempfile::tempdir().unwrap();
        private_directory(&directory.path().join("a/b")).unwrap();
        assert_eq!(mode(&directory.path().join("a")), 0o700);
        assert_eq!(mode(&directory.path().join("a/b")), 0o700);
    }
}
