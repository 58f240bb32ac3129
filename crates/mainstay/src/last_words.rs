//! What is said when the program cannot go on: a bug of its own, no memory, a file that may not grow.
//!
//! A panic anywhere is told in a sentence, with its details in a file of the home that is written over
//! by the next one. Where it reaches the end of the program, the exit code says that it failed. The
//! signals by which a process ends for want of memory are told in a sentence too. A file that reaches the
//! limit of its size is an error of whoever writes it, and not the end of the process.

use std::any::Any;
use std::backtrace::Backtrace;
use std::ffi::OsStr;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::panic::{AssertUnwindSafe, PanicHookInfo, UnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use mainstay_store::fsatomic::{Draft, PRIVATE_FILE};

use crate::error::Error;
use crate::exit::Exit;
use crate::{redaction, wording};

/// The name of the file with the details of the last panic.
pub(crate) const FILE: &str = "last-panic.txt";

/// The most that the file holds.
const FILE_BYTES: usize = 64 << 10;

/// Where to report it, if this build names a place.
const REPORTS: &str = env!("CARGO_PKG_REPOSITORY");

/// The home in which the details are kept, once it is known.
static HOME: OnceLock<PathBuf> = OnceLock::new();

/// Whether the details of a panic were kept already.
static TOLD: AtomicBool = AtomicBool::new(false);

/// Lets panics and aborts be told in the program's own words from now on.
pub(crate) fn install() {
    std::panic::set_hook(Box::new(tell));
    signals::install();
}

/// Keeps the details of panics in this home from now on.
pub(crate) fn keep_in(home: &Path) {
    // The first home is the one.
    let _ = HOME.set(home.to_owned());
}

/// Runs the program. A panic that reaches its end is an error like others, told by `tell_end`.
pub(crate) fn guarded(
    run: impl FnOnce() -> Exit + UnwindSafe,
    tell_end: impl FnOnce(&Error),
) -> Exit {
    match catch_unwind(run) {
        Ok(exit) => exit,
        Err(_) => {
            // What is broken may be what telling needs; then it was told where it happened.
            let _ = catch_unwind(AssertUnwindSafe(|| tell_end(&end())));
            Exit::Failed
        }
    }
}

/// The error of a program that ended with a panic.
fn end() -> Error {
    let report = if REPORTS.is_empty() {
        "Please report it, with those details, to whoever maintains Mainstay for you.".to_owned()
    } else {
        format!("Please report it, with those details: {REPORTS}/issues")
    };
    Error::failed("Mainstay had to stop because of a bug of its own; its details are above")
        .hint(
            "Nothing that was acknowledged is lost. Check with `mainstay doctor`, then try again.",
        )
        .hint(report)
}

/// Tells of a panic, wherever it happens. First the sentence: what follows needs more of a system that
/// may be in trouble.
fn tell(panic: &PanicHookInfo<'_>) {
    let words = shown(words(panic.payload()));
    let place = panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    // With standard error gone there is nobody to tell.
    let mut stderr = std::io::stderr();
    let _ = writeln!(stderr, "warning: Mainstay met a bug of its own: {words} ({place})");
    // Of several the first is the cause of the others.
    if TOLD.swap(true, Ordering::Relaxed) {
        return;
    }
    // A home that is not there yet is not made for this.
    let Some(home) = HOME.get().filter(|home| home.is_dir()) else { return };
    let details = details(&words, &place, &Backtrace::force_capture());
    if write_details(home, details.as_bytes()).is_ok() {
        let path = home.join(FILE);
        let _ = writeln!(stderr, "note: the details are in {}", path.display());
    }
}

/// Writes the details, in place of those of the last panic. The name that the file may have for a moment
/// is always the same: there may be no randomness left to make one of.
fn write_details(home: &Path, details: &[u8]) -> std::io::Result<()> {
    let (name, temporary) = (OsStr::new(FILE), format!(".{FILE}.tmp"));
    let directory = std::fs::File::open(home)?;
    let mut draft = Draft::begin(directory.as_fd(), temporary.as_ref())?;
    draft.finish(details, PRIVATE_FILE)?;
    draft.replace(name, temporary.as_ref())
}

/// What a panic says.
fn words(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("it does not say what")
}

/// One line without known secrets: a panic may quote anything.
fn shown(words: &str) -> String {
    let text = redaction::shared().text(words);
    let control = |letter: char| letter.is_control() && letter != '\n';
    wording::line(&text.replace(control, " "))
}

fn details(words: &str, place: &str, trace: &Backtrace) -> String {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("without a name");
    let version = env!("CARGO_PKG_VERSION");
    // Names of functions and of source files: nothing of a session is in a trace.
    let mut text = format!("Mainstay {version}, thread {name}\n{words}\n{place}\n\n{trace}");
    if let Some((end, _)) = text.char_indices().find(|(at, _)| *at >= FILE_BYTES) {
        text.truncate(end);
    }
    text
}

/// Signals by which a process would end without a word.
#[expect(unsafe_code, reason = "the standard library has no signals")]
mod signals {
    use crate::exit::Exit;

    const ABORTED: &[u8] =
        b"error: Mainstay had to stop: there was not enough memory, or it met a \
        bug of its own\nhint: Nothing that was acknowledged is lost. Check with `mainstay doctor`, \
        then try again.\n";

    /// Says it with what may be called in a signal handler, and ends.
    extern "C" fn aborted(_: libc::c_int) {
        // SAFETY: a live buffer; both calls are safe in a handler.
        unsafe {
            libc::write(libc::STDERR_FILENO, ABORTED.as_ptr().cast(), ABORTED.len());
            libc::_exit(Exit::Failed.code().into());
        }
    }

    /// The write that went too far answers with an error.
    extern "C" fn too_long(_: libc::c_int) {}

    pub(super) fn install() {
        // Handlers and not "ignore", which the commands that are started would inherit.
        for signal in [libc::SIGABRT, libc::SIGSEGV, libc::SIGBUS] {
            set(signal, aborted);
        }
        set(libc::SIGXFSZ, too_long);
    }

    fn set(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
        // SAFETY: an all-zero action is a valid place to begin with.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handler as *const () as libc::sighandler_t;
        // A stack that cannot grow any more is no place for a handler.
        action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
        // SAFETY: the action is whole, and the handlers call only what may be called in one.
        unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_in_one_short_line() {
        assert_eq!(words(&"static"), "static");
        assert_eq!(words(&"owned".to_owned()), "owned");
        assert_eq!(words(&7), "it does not say what");
        let line = shown(&format!("first\nsecond \u{1b}[31m{}", "x".repeat(900)));
        assert!(line.starts_with("first; second  [31mx"), "{line}");
        assert!(line.len() < 500 && !line.contains('\u{1b}'), "{line}");
    }

    #[test]
    fn details_are_bounded() {
        let text = details(&"ä".repeat(FILE_BYTES), "here", &Backtrace::disabled());
        assert!(text.len() <= FILE_BYTES + 4, "{}", text.len());
    }

    #[test]
    fn a_program_that_panics_has_failed() {
        let mut told = None;
        let exit = guarded(|| panic!("on purpose"), |error| told = Some(error.message.clone()));
        assert_eq!(exit.code(), 1);
        assert!(told.unwrap().contains("a bug of its own"));
        assert_eq!(guarded(|| Exit::Parked, |_| panic!("nothing to tell")).code(), 3);
    }
}
