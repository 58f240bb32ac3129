//! The terminal: taken over while the chat goes on, given back however it ends.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::thread::{self, ThreadId};

use crate::env;

/// The terminal while it is ours.
pub(crate) struct Terminal(());

/// Whether the terminal is ours, for whoever has to give it back.
static OURS: AtomicBool = AtomicBool::new(false);

/// Pastes come as pastes.
const TAKE: &str = "\x1b[?2004h";
/// Ends a picture that was begun, pastes come as keys, words look plain, the cursor is seen.
const GIVE_BACK: &str = "\x1b[?2026l\x1b[?2004l\x1b[0m\x1b[?25h";

impl Terminal {
    /// Whether a chat can be drawn: both ends are a terminal that can move its cursor.
    pub(crate) fn is_here() -> bool {
        let dumb = env::TERM.text().is_none_or(|kind| kind == "dumb");
        io::stdin().is_terminal() && io::stdout().is_terminal() && !dumb
    }

    /// Takes the terminal over. A panic of this thread gives it back before it is told; one of
    /// another thread ends what that did, and the chat tells it.
    pub(crate) fn take() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        let ours = thread::current().id();
        HOOK.call_once(|| heed_panics(ours));
        crossterm::terminal::enable_raw_mode()?;
        OURS.store(true, Ordering::SeqCst);
        let terminal = Self(());
        write(TAKE)?;
        Ok(terminal)
    }

    /// Columns and rows.
    pub(crate) fn size() -> (usize, usize) {
        match crossterm::terminal::size() {
            Ok((columns, rows)) if columns > 0 && rows > 0 => (columns.into(), rows.into()),
            _ => (80, 24),
        }
    }
}

fn heed_panics(ours: ThreadId) {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let elsewhere = thread::current().id() != ours;
        if elsewhere && OURS.load(Ordering::SeqCst) {
            PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(panic.to_string());
            return;
        }
        give_back();
        told(panic);
    }));
}

/// What other threads panicked with while the terminal was ours.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The panics of other threads since the last time.
pub(crate) fn panics() -> Vec<String> {
    std::mem::take(&mut *PANICS.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// Gives the terminal back, once.
pub(crate) fn give_back() {
    if OURS.swap(false, Ordering::SeqCst) {
        let _ = write(GIVE_BACK);
        let _ = crossterm::terminal::disable_raw_mode();
    }
}

/// Writes to the terminal, at once.
pub(crate) fn write(bytes: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(bytes.as_bytes())?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_elsewhere_is_kept_for_the_chat_to_tell() {
        heed_panics(thread::current().id());
        OURS.store(true, Ordering::SeqCst);
        let ended = thread::spawn(|| panic!("something broke")).join();
        OURS.store(false, Ordering::SeqCst);
        assert!(ended.is_err());
        let told = panics();
        assert!(told.iter().any(|panic| panic.contains("something broke")), "{told:?}");
        assert!(panics().is_empty(), "told once");
    }
}
