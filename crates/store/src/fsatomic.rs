//! The one place that writes files: a crash leaves the old content or the new one, whole.

mod draft;

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

pub use draft::Draft;

/// The mode of files under the home.
pub const PRIVATE_FILE: u32 = 0o600;
/// The mode of directories under the home.
pub const PRIVATE_DIR: u32 = 0o700;

/// Replaces the content of `path` atomically and durably.
///
/// A symbolic link is followed, an existing file keeps its mode, a new one gets `mode`.
pub fn write(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let target = resolved(path)?;
    let existing = match fs::metadata(&target) {
        Ok(existing) => Some(existing.permissions().mode() & 0o7777),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let name = file_name(&target)?;
    let temporary = temporary_name(name, "write");
    let directory = File::open(directory_of(&target))?;
    let mut draft = Draft::begin(directory.as_fd(), &temporary)?;
    draft.finish(content, existing.unwrap_or(mode))?;
    let placed = match existing {
        // A new file needs no other name, not even for a moment.
        None => match draft.place(name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            placed => placed.map(|()| true)?,
        },
        Some(_) => false,
    };
    if !placed {
        draft.replace(name, &temporary)?;
    }
    directory.sync_all()
}

/// Creates a file that must not exist yet.
#[expect(clippy::disallowed_methods, reason = "this module writes files")]
pub fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

/// Opens a file to write at its end, and creates it if need be.
#[expect(clippy::disallowed_methods, reason = "this module writes files")]
pub fn append_to(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(mode).open(path)
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
pub fn rename_into_vacancy(from: &Path, to: &Path) -> io::Result<()> {
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

/// A fresh name in the directory of `path`; see [`temporary_name`].
pub(crate) fn temporary_beside(path: &Path, purpose: &str) -> io::Result<PathBuf> {
    Ok(path.with_file_name(temporary_name(file_name(path)?, purpose)))
}

/// A fresh name beside the file `name`, hidden and easily recognised as a leftover. `purpose` is part
/// of it, so that leftovers of one kind are told from those of another.
pub fn temporary_name(name: &OsStr, purpose: &str) -> OsString {
    // The rest has to fit into the 255 bytes of a name too.
    let clipped = &name.as_bytes()[..name.len().min(150)];
    let mut temporary = OsString::from(".");
    temporary.push(OsStr::from_bytes(clipped));
    temporary.push(format!(".{purpose}-{}.tmp", crate::Id::new()));
    temporary
}

fn file_name(path: &Path) -> io::Result<&OsStr> {
    path.file_name().ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} is not the name of a file", path.display()),
        )
    })
}

/// Removes what processes left in a directory that were killed between writing a file and giving it its
/// name.
pub fn clear_up(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix('.')?.strip_suffix(".tmp"));
        let id = rest.and_then(|rest| Some(rest.rsplit_once(".write-")?.1));
        if id.is_some_and(|id| id.parse::<crate::Id>().is_ok())
            && let Some(_taken) = crate::occupancy::vacated(&entry.path())
        {
            let _ = fs::remove_file(entry.path());
        }
    }
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
    use std::fs::Permissions;
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
    fn a_name_that_has_all_the_bytes_there_are_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("n".repeat(255));
        write(&path, b"one", 0o600).unwrap();
        write(&path, b"two", 0o600).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
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
    fn a_draft_that_a_killed_process_named_goes_and_one_that_is_being_written_stays() {
        let directory = tempfile::tempdir().unwrap();
        let opened = File::open(directory.path()).unwrap();
        let name = || temporary_name(OsStr::new("keys.toml"), "write");
        let mut draft = Draft::begin(opened.as_fd(), OsStr::new("unused")).unwrap();
        draft.lend_name(&name()).unwrap();
        create_new(&directory.path().join(name()), PRIVATE_FILE).unwrap();
        create_new(&directory.path().join(".mine.tmp"), PRIVATE_FILE).unwrap();
        assert_eq!(names(directory.path()).len(), 3);
        clear_up(directory.path());
        assert_eq!(names(directory.path()).len(), 2);
        drop(draft);
        assert_eq!(names(directory.path()), [".mine.tmp"]);
    }

    #[test]
    fn directories_are_private_from_the_first_one_made() {
        let directory = tempfile::tempdir().unwrap();
        private_directory(&directory.path().join("a/b")).unwrap();
        assert_eq!(mode(&directory.path().join("a")), 0o700);
        assert_eq!(mode(&directory.path().join("a/b")), 0o700);
    }
}
