//! Opens what a real path names, and follows no link on the way.
//!
//! A path is made real once, when it is judged: links followed, no `..` left. From then on it has no
//! links in it, so one that is met was put there since, and leads to a place that nobody judged. The
//! kernel refuses it while it looks the path up (`openat2`), or each part is opened in the one before;
//! either way there is no moment between the look and the opening.

mod status;
mod tree;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

pub use status::Status;
pub use tree::{exchange, make_directory, new_file, remove_tree, rename};

/// Opens a directory for reading, syncing and locking.
const LIST: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Opens something without its content: no permission on itself is needed, and nothing waits.
#[cfg(target_os = "linux")]
const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Opens a directory on the way to something.
#[cfg(target_os = "linux")]
const PASS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const PASS: OFlags = LIST;

/// A link was met where none was when the path was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a link leads somewhere else now")]
pub struct LinkMet;

impl LinkMet {
    /// Whether this is why something failed.
    pub fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Self>())
    }
}

impl From<LinkMet> for io::Error {
    fn from(met: LinkMet) -> Self {
        Self::other(met)
    }
}

/// A name in a directory that is open.
#[derive(Debug)]
pub struct Entry {
    /// The directory. It may be open for nothing but finding what is in it.
    pub directory: OwnedFd,
    /// The name.
    pub name: OsString,
}

impl Entry {
    /// What a path, which is real, names. Nothing need be there, but its directory.
    pub fn of(path: &Path) -> io::Result<Self> {
        let (parent, name) = split(path)?;
        Ok(Self { directory: open(CWD, parent, PASS)?, name: name.to_owned() })
    }

    /// What is there; a link is not followed.
    pub fn status(&self) -> io::Result<Status> {
        Status::at(&self.directory, &self.name)
    }

    /// Sets the mode of what is there, unless it is a link.
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        set_mode(self.directory.as_fd(), &self.name, mode)
    }

    /// Where the link leads that is there.
    pub fn target(&self) -> io::Result<PathBuf> {
        target(&self.directory, &self.name)
    }
}

/// Opens a directory by its path, which is real.
pub fn directory(path: &Path) -> io::Result<File> {
    open(CWD, path, LIST).map(File::from)
}

/// Opens a directory below one that is open, by a name or a path without `..`; an empty path is the
/// directory itself.
pub fn directory_in(directory: impl AsFd, path: impl AsRef<Path>) -> io::Result<File> {
    let path = path.as_ref();
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    open(directory, path, LIST).map(File::from)
}

/// Opens a regular file for reading by its path, which is real.
pub fn file(path: &Path) -> io::Result<File> {
    let (parent, name) = split(path)?;
    file_in(open(CWD, parent, PASS)?, name)
}

/// Opens a regular file for reading in a directory that is open.
pub fn file_in(directory: impl AsFd, name: &OsStr) -> io::Result<File> {
    // What is no file is not opened: that can wait, or do something.
    if !Status::at(&directory, name)?.is_file() {
        return Err(io::Error::other("it is a link or not a regular file"));
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(directory, name, flags, Mode::empty()) {
        Err(Errno::LOOP) => Err(LinkMet.into()),
        opened => Ok(File::from(opened?)),
    }
}

/// Opens the directory of a path, which is real, and makes those that are missing. Each is durable
/// before something is in it.
pub fn made_parent(path: &Path, mode: u32) -> io::Result<File> {
    let (parent, _) = split(path)?;
    made(parent, mode)
}

fn made(path: &Path, mode: u32) -> io::Result<File> {
    match directory(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return opened,
    }
    let above = made_parent(path, mode)?;
    let (_, name) = split(path)?;
    match rustix::fs::mkdirat(&above, name, raw_mode(mode)) {
        Err(Errno::EXIST) => {}
        made => made?,
    }
    above.sync_all()?;
    directory_in(&above, name)
}

/// The names in a directory that is open, and what each of them is.
pub fn entries(directory: impl AsFd) -> io::Result<Vec<(OsString, io::Result<Status>)>> {
    let mut found = Vec::new();
    for entry in rustix::fs::Dir::read_from(&directory)? {
        let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
        if name != "." && name != ".." {
            let status = Status::at(&directory, &name);
            found.push((name, status));
        }
    }
    Ok(found)
}

/// Whether nothing has a path, which is real.
pub fn is_missing(path: &Path) -> bool {
    let found = Entry::of(path).and_then(|entry| entry.status());
    found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// The first link in a path, for words about it.
pub fn first_link(path: &Path) -> Option<PathBuf> {
    let parts: Vec<&Path> = path.ancestors().collect();
    let is_link = |part: &&Path| part.symlink_metadata().is_ok_and(|found| found.is_symlink());
    parts.into_iter().rev().find(is_link).map(Path::to_owned)
}

/// Opens what a path names, which is real, without its content.
#[cfg(target_os = "linux")]
pub(crate) fn look(path: &Path) -> io::Result<File> {
    open(CWD, path, LOOK).map(File::from)
}

/// Opens what has a name in a directory without its content.
#[cfg(target_os = "linux")]
pub(crate) fn look_in(directory: impl AsFd, name: &OsStr) -> io::Result<File> {
    Ok(File::from(rustix::fs::openat(directory, name, LOOK, Mode::empty())?))
}

/// Where a link leads that has a name in a directory.
pub(crate) fn target(directory: impl AsFd, name: &OsStr) -> io::Result<PathBuf> {
    let target = rustix::fs::readlinkat(directory, name, Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
}

/// Sets the mode of a file or directory that is open in any way.
#[cfg(target_os = "linux")]
fn set_mode(directory: impl AsFd, name: &OsStr, mode: u32) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::PermissionsExt;
    let file = look_in(directory, name)?;
    if file.metadata()?.is_symlink() {
        return Err(LinkMet.into());
    }
    // What is open without its content has a mode that can be set by this name of it alone.
    let itself = format!("/proc/self/fd/{}", file.as_raw_fd());
    std::fs::set_permissions(itself, std::fs::Permissions::from_mode(mode))
}

#[cfg(not(target_os = "linux"))]
fn set_mode(directory: impl AsFd, name: &OsStr, mode: u32) -> io::Result<()> {
    if Status::at(&directory, name)?.is_link() {
        return Err(LinkMet.into());
    }
    Ok(rustix::fs::chmodat(directory, name, raw_mode(mode), rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Permissions as the system takes them.
#[allow(clippy::useless_conversion, reason = "the type is narrower on macOS")]
pub(crate) fn raw_mode(mode: u32) -> Mode {
    Mode::from_raw_mode(mode.try_into().unwrap_or_default())
}

/// The directory and the name in it.
fn split(path: &Path) -> io::Result<(&Path, &OsStr)> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok((parent, name)),
        _ => Err(io::Error::from(io::ErrorKind::InvalidInput)),
    }
}

fn open(from: impl AsFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    match at_once(from.as_fd(), path, flags) {
        Some(opened) => opened,
        None => part_by_part(from.as_fd(), path, flags),
    }
}

/// Lets the kernel look a path up. Returns `None` where it, or a filter before it, cannot.
#[cfg(target_os = "linux")]
fn at_once(from: impl AsFd, path: &Path, flags: OFlags) -> Option<io::Result<OwnedFd>> {
    use rustix::fs::ResolveFlags;
    static MISSING: AtomicBool = AtomicBool::new(false);
    if MISSING.load(Ordering::Relaxed) {
        return None;
    }
    let mut resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    if path.is_relative() {
        resolve |= ResolveFlags::BENEATH;
    }
    match rustix::fs::openat2(from, path, flags, Mode::empty(), resolve) {
        Err(Errno::LOOP | Errno::XDEV) => Some(Err(LinkMet.into())),
        Err(Errno::NOSYS) => {
            MISSING.store(true, Ordering::Relaxed);
            None
        }
        // What older filters of containers say to what they do not know.
        Err(Errno::PERM) => None,
        opened => Some(opened.map_err(io::Error::from)),
    }
}

#[cfg(not(target_os = "linux"))]
fn at_once(_from: impl AsFd, _path: &Path, _flags: OFlags) -> Option<io::Result<OwnedFd>> {
    None
}

/// Opens each part of a path in the one before.
fn part_by_part(from: impl AsFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let mut names = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => names.push(name),
            Component::RootDir | Component::CurDir => {}
            // A real path has none of these.
            Component::ParentDir | Component::Prefix(_) => return Err(LinkMet.into()),
        }
    }
    let start = if path.is_absolute() { Path::new("/") } else { Path::new(".") };
    let Some(last) = names.pop() else {
        return Ok(rustix::fs::openat(from, start, flags, Mode::empty())?);
    };
    let mut at = rustix::fs::openat(from, start, PASS, Mode::empty())?;
    for name in names {
        at = opened_in(&at, name, PASS)?;
    }
    opened_in(&at, last, flags)
}

fn opened_in(directory: &OwnedFd, name: &OsStr, flags: OFlags) -> io::Result<OwnedFd> {
    match rustix::fs::openat(directory, name, flags | OFlags::NOFOLLOW, Mode::empty()) {
        Err(Errno::LOOP) => Err(LinkMet.into()),
        // A link is no directory either, but nobody calls it missing.
        Err(Errno::NOTDIR) if Status::at(directory, name)?.is_link() => Err(LinkMet.into()),
        opened => Ok(opened?),
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests stand outside the product's seams")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Both ways to look a path up.
    const WAYS: [fn(&Path, OFlags) -> io::Result<OwnedFd>; 2] =
        [|path, flags| open(CWD, path, flags), |path, flags| part_by_part(CWD, path, flags)];

    #[test]
    fn a_link_anywhere_on_the_way_is_met_and_nothing_else_is_called_one() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/file"), "x").unwrap();
        symlink("a", root.join("link")).unwrap();
        symlink("nowhere", root.join("dangling")).unwrap();
        for way in WAYS {
            way(&root.join("a/b"), PASS).unwrap();
            way(Path::new("/"), LIST).unwrap();
            for met in ["link", "link/b", "dangling", "dangling/x"] {
                let error = way(&root.join(met), PASS).unwrap_err();
                assert!(LinkMet::is(&error), "{met}: {error}");
            }
            for (path, kind) in [
                ("none", io::ErrorKind::NotFound),
                ("none/x", io::ErrorKind::NotFound),
                ("a/file", io::ErrorKind::NotADirectory),
                ("a/file/x", io::ErrorKind::NotADirectory),
            ] {
                assert_eq!(way(&root.join(path), PASS).unwrap_err().kind(), kind, "{path}");
            }
        }
    }

    #[test]
    fn missing_directories_are_made_and_never_behind_a_link() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        made_parent(&root.join("x/y/z/file"), 0o700).unwrap();
        assert!(root.join("x/y/z").is_dir() && !root.join("x/y/z/file").exists());
        fs::create_dir(root.join("elsewhere")).unwrap();
        symlink("elsewhere", root.join("link")).unwrap();
        let error = made_parent(&root.join("link/y/file"), 0o700).unwrap_err();
        assert!(LinkMet::is(&error), "{error}");
        assert_eq!(fs::read_dir(root.join("elsewhere")).unwrap().count(), 0);
    }

    #[test]
    fn a_mode_is_set_on_what_has_the_name_and_never_on_where_a_link_leads() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::write(root.join("file"), "x").unwrap();
        symlink("file", root.join("link")).unwrap();
        let mode = || fs::metadata(root.join("file")).unwrap().permissions().mode() & 0o7777;
        Entry::of(&root.join("file")).unwrap().set_mode(0o200).unwrap();
        assert_eq!(mode(), 0o200);
        let error = Entry::of(&root.join("link")).unwrap().set_mode(0o777).unwrap_err();
        assert!(LinkMet::is(&error), "{error}");
        assert_eq!(mode(), 0o200);
    }

    #[test]
    fn both_ways_to_know_a_file_say_the_same() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().canonicalize().unwrap().join("file");
        fs::write(&path, "x").unwrap();
        let status = Entry::of(&path).unwrap().status().unwrap();
        assert_eq!(status, Status::from(&fs::metadata(&path).unwrap()));
        assert!(status.is_file() && !status.is_link() && !status.is_directory());
    }
}
