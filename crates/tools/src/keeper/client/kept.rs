//! Whether this process is one that a keeper keeps.
//!
//! What an agent runs must not decide about the agent. A process can change its environment, its
//! group and its name; it cannot change who its ancestors are, because keepers are subreapers, though
//! it may not see them. What it cannot remove is its [stamp](crate::keeper::shared::stamp), and it
//! seldom thinks of its [brand](crate::keeper::shared::brand). Any one sign is enough.

use std::fs;
use std::path::{Path, PathBuf};

use mainstay_store::Id;

use crate::keeper::shared::brand::is_branded;
use crate::keeper::shared::marks::{JOB_MARK, KEEPER_MARK};
use crate::keeper::shared::processes::{Process, mark, own_pid};
use crate::keeper::shared::stamp::is_stamped;

/// How far up is looked: more than any real tree is deep.
const HIGHEST: usize = 4096;

/// Whether this process was started, however far down, by a command that an agent runs.
pub fn is_kept() -> bool {
    let own = own_pid();
    let mut pid = own;
    for _ in 0..HIGHEST {
        if keeper_directory(pid).is_some()
            || [KEEPER_MARK, JOB_MARK].iter().any(|name| mark(pid, name).is_some())
        {
            return true;
        }
        match Process::of(pid) {
            Some(process) if process.parent > 0 => pid = process.parent,
            _ => break,
        }
    }
    is_stamped() || is_branded(own)
}

/// The directory of a keeper, if a process is one: its last words name its directory and a time.
pub(super) fn keeper_directory(pid: i32) -> Option<PathBuf> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<&[u8]> =
        line.strip_suffix(b"\0").unwrap_or(&line).split(|byte| *byte == 0).collect();
    let [_, .., directory, grace] = words.as_slice() else { return None };
    let timed = !grace.is_empty() && grace.iter().all(u8::is_ascii_digit);
    let path = Path::new(std::str::from_utf8(directory).ok()?);
    let named = path.file_name()?.to_str()?.parse::<Id>().is_ok();
    (path.is_absolute() && named && timed).then(|| path.to_owned())
}
