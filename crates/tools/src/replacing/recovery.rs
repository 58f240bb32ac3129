//! Finishes a replacement whose process is gone.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::AtFlags;

use super::Identity;
use super::exchange::{
    DirectoryTurn, LOOK, hash_at, identity, identity_at, kept_name, move_without_replacing,
    open_at, open_to_read, swap,
};
use super::record::{KnownFile, Record};
use super::writers::Quiet;
use crate::beneath::{self, LinkMet};
use crate::files::{LARGE, Stop, hash, whole};
use crate::snapshot::unescaped;

/// Finishes a replacement: its temporary name is gone then, and what was somebody else's is back in its
/// place, or beside it where somebody has saved since. Returns the path of what is beside it.
pub(super) fn recover(record: &Record) -> io::Result<Option<PathBuf>> {
    let Some(directory) = directory(record)? else { return Ok(None) };
    let _turn = DirectoryTurn::take(&directory);
    let (name, temporary) = (unescaped(&record.name), unescaped(&record.temporary));
    let (name, temporary) = (name.as_os_str(), temporary.as_os_str());
    let held = match identity_at(&directory, temporary) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        held => held?,
    };
    // Not exchanged, or already put back; or exchanged as it was meant.
    let ours = match record.placed.first() {
        None => !record.removes,
        Some(ours) => is_known(&directory, temporary, held, ours)?,
    };
    if ours || is_expected(&directory, temporary, held, record.expected.as_ref())? {
        remove(&directory, temporary)?;
        return Ok(None);
    }
    let kept = match open_at(&directory, name, LOOK) {
        Ok(now) if is_placed(&directory, name, identity(&now.metadata()?), record)? => {
            // What is there is what we put there, and what we hold is newer.
            swap(&directory, temporary, name)?;
            if identity_at(&directory, temporary)? == identity(&now.metadata()?) {
                remove(&directory, temporary)?;
                None
            } else {
                Some(keep_beside(&directory, temporary, name)?)
            }
        }
        Ok(_) => Some(keep_beside(&directory, temporary, name)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            move_without_replacing(&directory, temporary, name)?;
            None
        }
        Err(error) => return Err(error),
    };
    directory.sync_all()?;
    Ok(kept.map(|name| unescaped(&record.directory).join(name)))
}

/// The directory, if it is still there and the same: what was moved away took its files along.
fn directory(record: &Record) -> io::Result<Option<File>> {
    let path = unescaped(&record.directory);
    let directory = match beneath::directory(&path) {
        Ok(directory) => directory,
        Err(error) if LinkMet::is(&error) => return Ok(None),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => return Ok(None),
            _ => return Err(error),
        },
    };
    let same = identity(&directory.metadata()?) == record.directory_identity;
    Ok(same.then_some(directory))
}

/// Whether what has a name is one of the things that were put at the name of the file.
fn is_placed(
    directory: &File,
    name: &OsStr,
    identity: Identity,
    record: &Record,
) -> io::Result<bool> {
    for known in &record.placed {
        if is_known(directory, name, identity, known)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_known(
    directory: &File,
    name: &OsStr,
    identity: Identity,
    known: &KnownFile,
) -> io::Result<bool> {
    if identity != known.identity {
        return Ok(false);
    }
    Ok(known.hash.is_none() || hash_at(directory, name)? == known.hash)
}

fn is_expected(
    directory: &File,
    name: &OsStr,
    held: Identity,
    expected: Option<&KnownFile>,
) -> io::Result<bool> {
    let Some(expected) = expected.filter(|expected| expected.identity == held) else {
        return Ok(false);
    };
    let Some(wanted) = &expected.hash else { return Ok(true) };
    let Ok(quiet) = Quiet::watch(open_to_read(directory, name)?) else { return Ok(false) };
    let content = whole(quiet.file().try_clone()?, LARGE, &Stop::default())?;
    Ok(content.is_some_and(|content| hash(&content) == *wanted) && quiet.is_still())
}

fn remove(directory: &File, name: &OsStr) -> io::Result<()> {
    rustix::fs::unlinkat(directory, name, AtFlags::empty())?;
    directory.sync_all()
}

/// Gives what somebody saved, and somebody else saved over since, a name that people see.
fn keep_beside(directory: &File, temporary: &OsStr, name: &OsStr) -> io::Result<OsString> {
    let kept = kept_name(name);
    tracing::warn!(name = %Path::new(&kept).display(), "kept what an interrupted edit had in hand");
    move_without_replacing(directory, temporary, &kept)?;
    Ok(kept)
}
