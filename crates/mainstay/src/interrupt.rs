//! Ctrl-C while something is being done: what is half-made goes, and the exit code says so.
//!
//! A thread waits for the signal, so that nothing runs inside a signal handler, and so that it is heard
//! whatever the other threads wait for. The process ends at once, as if it were killed, which the store
//! survives at every instant; only files under a temporary name are removed first, because they may be
//! large. What can be cancelled is, and a second signal ends the process.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use mainstay_store::{Clock as _, SystemClock, lock};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::outlet;

/// How long the last words may take where nobody reads them.
const PARTING: Duration = Duration::from_secs(1);

/// Signals this close to the first are one with it: a key reaches the whole group, and a parent passes on
/// what it heard too.
const MOMENT_MILLIS: i64 = 300;

/// What a signal does.
enum Response {
    /// What it did when the program was started.
    Default,
    Cancel {
        cancel: CancellationToken,
        /// The uptime of the first signal.
        asked_at: Option<i64>,
    },
    Nothing,
    End,
}

static RESPONSE: Mutex<Response> = Mutex::new(Response::Default);

/// From now on the first signal cancels, and a second one ends the process at once.
pub(crate) fn cancel_at_signal(cancel: &CancellationToken) -> io::Result<()> {
    let mut response = lock(&RESPONSE);
    if matches!(*response, Response::Default) {
        listen()?;
    }
    *response = Response::Cancel { cancel: cancel.clone(), asked_at: None };
    Ok(())
}

/// From now on the first signal ends the process: there is nothing left that it could interrupt.
pub(crate) fn end_at_signal() {
    let mut response = lock(&RESPONSE);
    if !matches!(*response, Response::Default) {
        *response = Response::End;
    }
}

/// The same where a signal would cancel until now, and nothing else was wanted meanwhile.
pub(crate) fn cancel_no_more() {
    let mut response = lock(&RESPONSE);
    if matches!(*response, Response::Cancel { .. }) {
        *response = Response::End;
    }
}

/// From now on a signal changes nothing here: somebody else hears it, or what is left takes a moment.
pub(crate) fn ignore_signals() {
    let mut response = lock(&RESPONSE);
    if !matches!(*response, Response::Default) {
        *response = Response::Nothing;
    }
}

/// Hears signals on a thread with a runtime of its own: that of the work may be held up.
fn listen() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let mut heard = Vec::new();
    {
        let _entered = runtime.enter();
        for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
            // Whoever started us with a signal ignored (nohup) wants it to stay so.
            if !is_ignored(kind.as_raw_value()) {
                heard.push(signal(kind)?);
            }
        }
    }
    let hear = move || {
        runtime.block_on(async {
            let hear = heard.into_iter().map(|mut signal| async move {
                while signal.recv().await.is_some() {
                    respond();
                }
            });
            futures_util::future::join_all(hear).await;
        });
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(hear).map(drop)
}

fn respond() {
    let now = SystemClock.uptime_millis();
    match &mut *lock(&RESPONSE) {
        Response::Cancel { cancel, asked_at: asked_at @ None } => {
            cancel.cancel();
            *asked_at = Some(now);
        }
        Response::Cancel { asked_at: Some(at), .. } if now - *at < MOMENT_MILLIS => {}
        Response::Nothing => {}
        Response::Cancel { .. } | Response::End | Response::Default => {
            std::process::exit(Exit::Interrupted.code().into())
        }
    }
}

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
        // A terminal that takes nothing must not hold the end up.
        let over = || {
            std::thread::sleep(2 * PARTING);
            std::process::exit(Exit::Interrupted.code().into());
        };
        let _ = std::thread::Builder::new().name("parting".to_owned()).spawn(over);
        before_end();
        outlet::stderr().put_always(b"interrupted\n", |_| Vec::new());
        outlet::stderr().drained(Some(PARTING));
        // Last, because the work goes on until the process ends.
        for path in target.as_deref().map(leftovers).unwrap_or_default() {
            if !earlier.contains(&path) {
                // One that stays is hidden and harmless.
                let _ = fs::remove_file(path);
            }
        }
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
