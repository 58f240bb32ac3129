//! Changes in directories that are open.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, OFlags, RenameFlags};
use rustix::io::Errno;

use super::{Status, directory_in, entries, raw_mode};

/// Makes a directory, unless it is there, durably. Opens it.
pub fn make_directory(directory: &File, name: &OsStr, mode: u32) -> io::Result<File> {
    match rustix::fs::mkdirat(directory, name, raw_mode(mode)) {
        Err(Errno::EXIST) => {}
        made => {
            made?;
            directory.sync_all()?;
        }
    }
    directory_in(directory, name)
}

/// Makes a file that must not be there yet.
pub fn new_file(directory: impl AsFd, name: &OsStr, mode: u32) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::openat(directory, name, flags, raw_mode(mode))?))
}

/// Renames durably, from one directory that is open to another.
pub fn rename(from: (&File, &OsStr), to: (&File, &OsStr)) -> io::Result<()> {
    rustix::fs::renameat(from.0, from.1, to.0, to.1)?;
    to.0.sync_all()?;
    from.0.sync_all()
}

/// Exchanges two names of a directory durably.
pub fn exchange(directory: &File, one: &OsStr, other: &OsStr) -> io::Result<()> {
    rustix::fs::renameat_with(directory, one, directory, other, RenameFlags::EXCHANGE)?;
    directory.sync_all()
}

/// Removes what has a name, with all that is in it. A link goes, and not what it leads to.
pub fn remove_tree(directory: impl AsFd, name: &OsStr) -> io::Result<()> {
    if !Status::at(&directory, name)?.is_directory() {
        return Ok(rustix::fs::unlinkat(&directory, name, AtFlags::empty())?);
    }
    let inside = directory_in(&directory, name)?;
    for (name, _) in entries(&inside)? {
        remove_tree(&inside, &name)?;
    }
    drop(inside);
    Ok(rustix::fs::unlinkat(&directory, name, AtFlags::REMOVEDIR)?)
}
