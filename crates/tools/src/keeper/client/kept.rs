//! Whether this process is one that a keeper keeps.
//!
//! What an agent runs must not decide about the agent. A process can change its environment, its
//! group and its name; it cannot change who its ancestors are, because keepers are subreapers, and it
//! seldom thinks of its [brand](crate::keeper::shared::brand). Any one sign is enough.

use std::fs;
use std::path::Path;

use mainstay_store::Id;

use crate::keeper::shared::brand::is_branded;
use crate::keeper::shared::marks::{JOB_MARK, KEEPER_MARK};
use crate::keeper::shared::processes::{Process, mark, own_pid};

/// How far up is looked: more than any real tree is deep.
const HIGHEST: usize = 4096;

/// Whether this process was started, however far down, by a command that an agent runs.
pub fn is_kept() -> bool {
    let own = own_pid();
    let mut pid = own;
    for _ in 0..HIGHEST {
        if is_keeper(pid) || [KEEPER_MARK, JOB_MARK].iter().any(|name| mark(pid, name).is_some()) {
            return true;
        }
        match Process::of(pid) {
            Some(process) if process.parent > 0 => pid = process.parent,
            _ => break,
        }
    }
    is_branded(own)
}

/// Whether a process is a keeper: its last words name its directory and a time.
fn is_keeper(pid: i32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<&[u8]> =
        line.strip_suffix(b"\0").unwrap_or(&line).split(|byte| *byte == 0).collect();
    let [_, .., directory, grace] = words.as_slice() else { return false };
    let name = std::str::from_utf8(directory).ok().map(Path::new).and_then(Path::file_name);
    directory.starts_with(b"/")
        && name.and_then(|name| name.to_str()).is_some_and(|name| name.parse::<Id>().is_ok())
        && !grace.is_empty()
        && grace.iter().all(u8::is_ascii_digit)
}
