//! The terminal: taken over while the chat goes on, given back however it ends.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once};
use std::thread::{self, ThreadId};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use tokio::sync::mpsc::UnboundedSender;

use crate::env;
use crate::exit::Exit;
use crate::{outlet, printing};
use mainstay_store::lock;

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
            lock(&PANICS).push(panic.to_string());
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
    std::mem::take(&mut *lock(&PANICS))
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
        // One that is stalled, or gone, must not hold the end up.
        outlet::stdout().drained(Some(STALLED));
        outlet::stdout().give_up();
        let _ = crossterm::terminal::disable_raw_mode();
    }
}

/// How long a terminal that takes nothing is waited for at the end.
const STALLED: Duration = Duration::from_secs(1);

/// How long a chat may take to leave once its terminal is gone.
const PARTING: Duration = Duration::from_secs(10);

/// Tells when the terminal is gone. Its reader does not: it goes in circles at the end of the input, so
/// a chat that is still there after a while is ended as if it were killed, which everything survives.
pub(crate) fn watch(gone: UnboundedSender<()>) {
    let wait = move || {
        let input = io::stdin();
        // Without a wish for anything, only the end of the terminal is told.
        let mut waits = [PollFd::new(&input, PollFlags::empty())];
        while poll(&mut waits, None) != Ok(1) {
            if gone.is_closed() {
                return;
            }
        }
        let _ = gone.send(());
        thread::sleep(PARTING);
        std::process::exit(Exit::Interrupted.code().into());
    };
    // Without the thread, the signal and the next picture still tell.
    let _ = thread::Builder::new().name("terminal".to_owned()).spawn(wait);
}

/// Makes the reader look for keys again. When a key and a new size come in the same moment, it tells of
/// one and forgets that the other was there; to set modes, even the same ones, wakes who waits for keys.
pub(crate) fn look_again() {
    let input = io::stdin();
    if let Ok(modes) = tcgetattr(&input) {
        // Without it the key comes with the next one.
        let _ = tcsetattr(&input, OptionalActions::Now, &modes);
    }
}

/// Writes to the terminal, as soon as it takes something.
pub(crate) fn write(bytes: &str) -> io::Result<()> {
    if outlet::stdout().is_over() {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    outlet::stdout().put_always(bytes.as_bytes(), |_| Vec::new());
    Ok(())
}

/// Says something to whoever comes back to the terminal, once it is given back.
pub(crate) fn say(line: &str) {
    let output = outlet::stderr();
    output.put_always(format!("{}\n", printing::shown(line)).as_bytes(), |_| Vec::new());
    if !output.drained(Some(STALLED)) {
        output.give_up();
    }
}

/// Whether the terminal has not taken what was written before: it is stalled, or slow.
pub(crate) fn is_behind() -> bool {
    !outlet::stdout().is_idle()
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
