//! Files that are written before they have a name.
//!
//! A file without a name goes with the process that was writing it, whatever becomes of that: there is
//! nothing to find and to remove. It is given a name when it is whole. Everything here happens in a
//! directory that is open, so that nobody can put another one in its place between.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};

use super::PRIVATE_FILE;

/// A file that is being written in a directory. It goes when it is dropped without a name.
#[derive(Debug)]
pub struct Draft {
    directory: OwnedFd,
    /// Nothing for a symbolic link.
    file: Option<File>,
    /// Its name so far, where it has one: to be removed if it gets no other.
    temporary: Option<OsString>,
}

impl Draft {
    /// Begins a file in a directory, readable for its owner alone until [`Draft::finish`].
    ///
    /// Where the file system has no files without a name, it is called `fallback` from the start.
    pub fn begin(directory: BorrowedFd<'_>, fallback: &OsStr) -> io::Result<Self> {
        let begun = match unnamed(directory)? {
            Some(file) => (file, None),
            None => (named(directory, fallback)?, Some(fallback.to_owned())),
        };
        // So that a name it has for a time is not taken for one that was left. Where there are no locks,
        // none is ever taken for that.
        let _ = begun.0.try_lock_shared();
        let (file, temporary) = (Some(begun.0), begun.1);
        Ok(Self { directory: directory.try_clone_to_owned()?, file, temporary })
    }

    /// A symbolic link, which has a name from the start.
    pub fn link(directory: BorrowedFd<'_>, target: &Path, temporary: &OsStr) -> io::Result<Self> {
        let owned = directory.try_clone_to_owned()?;
        rustix::fs::symlinkat(target, directory, temporary)?;
        Ok(Self { directory: owned, file: None, temporary: Some(temporary.to_owned()) })
    }

    /// Writes the content, sets the mode and makes both durable.
    pub fn finish(&mut self, content: &[u8], mode: u32) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Err(no_file()) };
        file.write_all(content)?;
        // After the content, so that a reader-only mode does not stop the write itself; and by
        // chmod, which the umask does not touch.
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()
    }

    /// The file itself. Returns `None` if it is a link.
    pub fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }

    /// Calls it `name`, for whoever has to exchange it or move it; dropped, it goes all the same.
    pub fn lend_name(&mut self, name: &OsStr) -> io::Result<()> {
        match (&self.temporary, &self.file) {
            (Some(temporary), _) if temporary == name => return Ok(()),
            (Some(temporary), _) => renameat(&self.directory, temporary, &self.directory, name)?,
            (None, Some(file)) => link(file, self.directory.as_fd(), name)?,
            (None, None) => return Err(no_file()),
        }
        self.temporary = Some(name.to_owned());
        Ok(())
    }

    /// Calls it `name` for good, unless something has that name. The caller syncs the directory.
    pub fn place(&mut self, name: &OsStr) -> io::Result<()> {
        match (&self.temporary, &self.file) {
            // A hard link fails when the name is taken, on every Unix; a rename would replace it.
            (Some(temporary), _) => {
                let [from, to] = [self.directory.as_fd(); 2];
                rustix::fs::linkat(from, temporary, to, name, AtFlags::empty())?;
                self.remove_name()
            }
            (None, Some(file)) => Ok(link(file, self.directory.as_fd(), name)?),
            (None, None) => Err(no_file()),
        }
    }

    /// Calls it `name` for good, in place of what has that name; `temporary` is its name for a
    /// moment. The caller syncs the directory.
    pub fn replace(mut self, name: &OsStr, temporary: &OsStr) -> io::Result<()> {
        self.lend_name(temporary)?;
        renameat(&self.directory, temporary, &self.directory, name)?;
        self.keep();
        Ok(())
    }

    /// What has the lent name is no longer the draft: somebody else decides about it.
    pub fn keep(mut self) {
        self.temporary = None;
    }

    fn remove_name(&mut self) -> io::Result<()> {
        match self.temporary.take() {
            Some(temporary) => Ok(unlinkat(&self.directory, &temporary, AtFlags::empty())?),
            None => Ok(()),
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // What failed before is what to report.
        let _ = self.remove_name();
    }
}

fn no_file() -> io::Error {
    io::Error::from(io::ErrorKind::InvalidInput)
}

/// A file without a name. Returns `None` if there is no such thing here, or no way to name it later.
#[cfg(target_os = "linux")]
fn unnamed(directory: BorrowedFd<'_>) -> io::Result<Option<File>> {
    use rustix::io::Errno;
    use std::sync::OnceLock;

    static NAMEABLE: OnceLock<bool> = OnceLock::new();
    if !*NAMEABLE.get_or_init(|| Path::new("/proc/self/fd").is_dir()) {
        return Ok(None);
    }
    // For writing alone: a sandbox may not let what is new be read.
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match openat(directory, ".", flags, Mode::from_raw_mode(PRIVATE_FILE)) {
        Ok(file) => Ok(Some(File::from(file))),
        // File systems say it in these ways; kernels that do not know the flag see a directory.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_directory: BorrowedFd<'_>) -> io::Result<Option<File>> {
    Ok(None)
}

#[allow(clippy::useless_conversion, reason = "the type is narrower on macOS")]
fn named(directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<File> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(PRIVATE_FILE.try_into().unwrap_or_default());
    Ok(File::from(openat(directory, name, flags, mode)?))
}

/// Names a file that has no name. Fails when the name is taken.
fn link(file: &File, directory: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<()> {
    use std::os::fd::AsRawFd;
    // By the descriptor itself it would need a privilege.
    let itself = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(rustix::fs::CWD, itself, directory, name, AtFlags::SYMLINK_FOLLOW)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn open(directory: &Path) -> File {
        File::open(directory).unwrap()
    }

    /// A draft without a name, and one that has one from the start.
    fn both(directory: &Path) -> [Draft; 2] {
        let opened = open(directory);
        let nameless = Draft::begin(opened.as_fd(), OsStr::new("unused")).unwrap();
        let temporary = OsString::from("draft");
        let file = named(opened.as_fd(), &temporary).unwrap();
        let temporary = Some(temporary);
        [nameless, Draft { directory: opened.into(), file: Some(file), temporary }]
    }

    #[test]
    fn a_draft_has_no_name_until_it_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let mut draft = Draft::begin(open(directory.path()).as_fd(), OsStr::new("unused")).unwrap();
        draft.finish(b"new", 0o640).unwrap();
        assert_eq!(names(directory.path()), [""; 0]);
        draft.place(OsStr::new("a")).unwrap();
        let path = directory.path().join("a");
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o640);
        assert_eq!(names(directory.path()), ["a"]);
    }

    #[test]
    fn a_name_that_is_taken_is_left_alone_and_nothing_stays_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        crate::fsatomic::write(&directory.path().join("a"), b"theirs", 0o600).unwrap();
        for mut draft in both(directory.path()) {
            draft.finish(b"new", 0o600).unwrap();
            let refused = draft.place(OsStr::new("a")).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        }
        assert_eq!(fs::read(directory.path().join("a")).unwrap(), b"theirs");
        assert_eq!(names(directory.path()), ["a"]);
    }

    #[test]
    fn a_draft_takes_the_place_of_what_is_there() {
        let directory = tempfile::tempdir().unwrap();
        for (mut draft, content) in both(directory.path()).into_iter().zip([b"one", b"two"]) {
            draft.finish(content, 0o600).unwrap();
            draft.replace(OsStr::new("a"), OsStr::new("moment")).unwrap();
            assert_eq!(fs::read(directory.path().join("a")).unwrap(), content);
        }
        assert_eq!(names(directory.path()), ["a"]);
    }

    #[test]
    fn a_link_takes_the_place_of_what_is_there_or_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let begin = || {
            let opened = open(directory.path());
            Draft::link(opened.as_fd(), Path::new("target"), OsStr::new("moment")).unwrap()
        };
        begin().place(OsStr::new("a")).unwrap();
        assert!(begin().place(OsStr::new("a")).is_err());
        begin().replace(OsStr::new("a"), OsStr::new("moment")).unwrap();
        assert_eq!(names(directory.path()), ["a"]);
        assert_eq!(fs::read_link(directory.path().join("a")).unwrap(), Path::new("target"));
    }

    #[test]
    fn a_draft_that_is_dropped_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        for mut draft in both(directory.path()) {
            draft.lend_name(OsStr::new("moment")).unwrap();
            assert!(names(directory.path()).contains(&"moment".to_owned()));
        }
        assert_eq!(names(directory.path()), [""; 0]);
    }
}
