//! Ctrl-C while something is being done: what is half-made goes, and the exit code says so.
//!
//! A thread waits for the signal, so that nothing runs inside a signal handler. The process ends
//! at once, as if it were killed, which the store survives at every instant; only files under a
//! temporary name are removed first, because they may be large.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::exit::Exit;

/// Ends the process with its own exit code when it is interrupted from now on, after `before_end`.
/// New leftovers of a file that is being made at `target` are removed.
///
/// Call it before any other thread is started: a signal goes to a thread that does not block it.
pub(crate) fn watch(target: Option<&Path>, before_end: impl FnOnce() + Send + 'static) {
    let Some(signals) = Signals::block() else { return };
    let target = target.map(Path::to_owned);
    let earlier = target.as_deref().map(leftovers).unwrap_or_default();
    let end = move || {
        signals.wait();
        before_end();
        for path in target.as_deref().map(leftovers).unwrap_or_default() {
            if !earlier.contains(&path) {
                // One that stays is hidden and harmless.
                let _ = fs::remove_file(path);
            }
        }
        // The terminal may be gone.
        let _ = writeln!(io::stderr(), "interrupted");
        std::process::exit(Exit::Interrupted.code().into());
    };
    // Without the thread the signals would be blocked for nothing.
    if std::thread::Builder::new().name("signals".to_owned()).spawn(end).is_err() {
        signals.unblock();
    }
}

/// Files under temporary names beside `target`, as `mainstay_store::fsatomic` names them.
fn leftovers(target: &Path) -> BTreeSet<PathBuf> {
    let Some(name) = target.file_name() else { return BTreeSet::new() };
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(".");
    let prefix = prefix.to_string_lossy().into_owned();
    let directory = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let Ok(entries) = fs::read_dir(directory) else { return BTreeSet::new() };
    let temporary = |name: &str| {
        name.starts_with(&prefix)
            && [".tmp", ".tmp-wal", ".tmp-shm", ".tmp-journal"]
                .iter()
                .any(|ending| name.ends_with(ending))
    };
    entries
        .flatten()
        .filter(|entry| temporary(&entry.file_name().to_string_lossy()))
        .map(|entry| entry.path())
        .collect()
}

/// The signals that ask the process to end.
#[derive(Clone, Copy)]
struct Signals(libc::sigset_t);

#[expect(unsafe_code, reason = "the standard library has no signals")]
impl Signals {
    /// Blocks them in this thread and those it starts. Returns `None` if all of them are ignored.
    fn block() -> Option<Self> {
        // SAFETY: an all-zero set is a valid place for sigemptyset to fill.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: `set` is ours and lives.
        unsafe { libc::sigemptyset(&raw mut set) };
        let mut any = false;
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            // Whoever started us with a signal ignored (nohup) wants it to stay so.
            if !is_ignored(signal) {
                any = true;
                // SAFETY: `set` was initialised above and the number is a signal's.
                unsafe { libc::sigaddset(&raw mut set, signal) };
            }
        }
        // SAFETY: both pointers are valid or null, as the call allows.
        let blocked = any
            && unsafe {
                libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut())
            } == 0;
        blocked.then_some(Self(set))
    }

    /// Lets them act as they did before.
    fn unblock(self) {
        // SAFETY: both pointers are valid or null, as the call allows.
        unsafe {
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const self.0, std::ptr::null_mut());
        }
    }

    /// Waits until one of them comes.
    fn wait(self) {
        let mut signal = 0;
        // SAFETY: the set is initialised and blocked, and `signal` is ours.
        while unsafe { libc::sigwait(&raw const self.0, &raw mut signal) } != 0 {}
    }
}

/// Whether whoever started the program wants a signal ignored.
#[expect(unsafe_code, reason = "the standard library has no signals")]
pub(crate) fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: an all-zero action is a valid place for the call to fill; nothing is changed.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: a null new action only asks; `action` is ours and lives.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_temporary_files_of_the_target_are_leftovers() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("store.db");
        for name in ["store.db", ".store.db.1a.tmp", ".store.db.1a.tmp-journal", ".other.db.1a.tmp"]
        {
            mainstay_store::fsatomic::write(&directory.path().join(name), b"x", 0o600).unwrap();
        }
        let found: Vec<_> = leftovers(&target)
            .into_iter()
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(found, [".store.db.1a.tmp", ".store.db.1a.tmp-journal"]);
    }
}
