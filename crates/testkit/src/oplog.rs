//! The fault shim's operation log, read back.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// One thing that was done to the watched directory, or one acknowledgement. Paths are relative to
/// the directory, or absolute where they leave it. Operations on content name the inode, because a
/// file keeps its content under every name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are what their names say")]
pub enum Op {
    /// Bytes written at an offset.
    Write { inode: u64, path: PathBuf, offset: u64, data: Vec<u8> },
    /// A size set.
    Truncate { inode: u64, path: PathBuf, size: u64 },
    /// A file's content made durable.
    SyncFile { inode: u64, path: PathBuf },
    /// A directory's entries made durable.
    SyncDirectory { path: PathBuf },
    /// A file made by opening it.
    Create { inode: u64, path: PathBuf, mode: u32 },
    /// A directory made.
    MakeDirectory { path: PathBuf, mode: u32 },
    /// A name moved.
    Rename { from: PathBuf, to: PathBuf },
    /// A second name given to a file.
    Link { inode: u64, from: PathBuf, to: PathBuf },
    /// A file's name removed.
    Unlink { path: PathBuf },
    /// A directory removed.
    RemoveDirectory { path: PathBuf },
    /// Bytes told to a client, which must hold from here on.
    Acknowledge { data: Vec<u8> },
}

/// Reads a log; one that does not exist is empty.
pub fn read(path: &Path) -> Vec<Op> {
    match std::fs::read(path) {
        Ok(bytes) => parse(&bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => panic!("Could not read the operation log: {error}."),
    }
}

/// Parses a log. A last entry that was cut by a kill is left out.
pub fn parse(bytes: &[u8]) -> Vec<Op> {
    let mut rest = bytes;
    std::iter::from_fn(|| next(&mut rest)).collect()
}

fn next(rest: &mut &[u8]) -> Option<Op> {
    let mut ahead = *rest;
    let tag = take(&mut ahead, 1)?[0];
    let inode = u64::from_le_bytes(take(&mut ahead, 8)?.try_into().ok()?);
    let number = u64::from_le_bytes(take(&mut ahead, 8)?.try_into().ok()?);
    let path = part(&mut ahead).map(path_from)?;
    let target = part(&mut ahead).map(path_from)?;
    let data = part(&mut ahead)?.to_vec();
    *rest = ahead;
    Some(match tag {
        1 => Op::Write { inode, path, offset: number, data },
        2 => Op::Truncate { inode, path, size: number },
        3 => Op::SyncFile { inode, path },
        4 => Op::SyncDirectory { path },
        5 => Op::Create { inode, path, mode: number as u32 },
        6 => Op::MakeDirectory { path, mode: number as u32 },
        7 => Op::Rename { from: path, to: target },
        8 => Op::Link { inode, from: path, to: target },
        9 => Op::Unlink { path },
        10 => Op::RemoveDirectory { path },
        11 => Op::Acknowledge { data },
        _ => panic!("The operation log has an entry of unknown tag {tag}."),
    })
}

fn part<'log>(rest: &mut &'log [u8]) -> Option<&'log [u8]> {
    let length = u32::from_le_bytes(take(rest, 4)?.try_into().ok()?);
    take(rest, length as usize)
}

fn take<'log>(rest: &mut &'log [u8], count: usize) -> Option<&'log [u8]> {
    let (taken, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(taken)
}

fn path_from(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}
