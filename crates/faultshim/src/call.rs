//! One intercepted call: whether it is a point, and what becomes of it.

use std::ffi::CStr;
use std::sync::atomic::Ordering;

use libc::c_int;

use crate::errno::Returned;
use crate::location::Location;
use crate::log::Turn;
use crate::settings::{Kind, Mode, Settings, settings};

/// A call that touches a file under the directory.
pub(crate) struct Call {
    settings: &'static Settings,
    location: Location,
}

/// What becomes of a point.
pub(crate) enum Fate {
    /// The call is done.
    Proceed,
    /// The call is done and logged while the turn is held.
    Record(Turn),
    /// The call is not done and fails with this `errno`.
    Fail(c_int),
    /// The first half of the write is done, then the process dies.
    Tear,
    /// The call is done while two names are exchanged.
    Blink(Exchanged),
}

/// Two names are exchanged until this is dropped.
pub(crate) struct Exchanged(&'static Settings);

impl Exchanged {
    fn begin(settings: &'static Settings) -> Self {
        exchange(settings);
        Self(settings)
    }
}

impl Drop for Exchanged {
    fn drop(&mut self) {
        let errno = crate::errno::get();
        exchange(self.0);
        crate::errno::set(errno);
    }
}

fn exchange(settings: &Settings) {
    let Some((one, other)) = &settings.pair else { return };
    let (at, how) = (libc::AT_FDCWD, libc::RENAME_EXCHANGE);
    // SAFETY: two C strings; by the raw call, because `renameat2` is ours.
    unsafe { libc::syscall(libc::SYS_renameat2, at, one.as_ptr(), at, other.as_ptr(), how) };
}

impl Call {
    /// A call on a descriptor. Returns `None` if its file is none of ours.
    pub(crate) fn on_descriptor(descriptor: c_int) -> Option<Self> {
        let settings = settings()?;
        Self::at(settings, Location::of_descriptor(descriptor)?)
    }

    /// A call on a path. Returns `None` if it lies elsewhere, or its parent does not exist.
    pub(crate) fn on_path(directory: c_int, path: &CStr) -> Option<Self> {
        let settings = settings()?;
        Self::at(settings, Location::of_path(directory, path)?)
    }

    fn at(settings: &'static Settings, location: Location) -> Option<Self> {
        location.below(&settings.under)?;
        Some(Self { settings, location })
    }

    /// The path as the log names it.
    pub(crate) fn path(&self) -> &[u8] {
        self.location.below(&self.settings.under).unwrap_or_default()
    }

    /// Says whether the call is to be logged.
    pub(crate) fn is_recorded(&self) -> bool {
        self.settings.mode == Mode::Record
    }

    /// Counts the point and says what becomes of it; does not return where the process dies of it.
    pub(crate) fn fate(&self, kind: Kind) -> Fate {
        let settings = self.settings;
        if settings.mode == Mode::Record {
            // Locks leave nothing on the disk, and waiting for one with the turn held would
            // keep its holder from ever releasing it.
            return match kind {
                Kind::Lock | Kind::Read | Kind::Look => Fate::Proceed,
                _ => Fate::Record(Turn::take(settings.log)),
            };
        }
        if !settings.counts(kind) {
            return Fate::Proceed;
        }
        let number = settings.counter.fetch_add(1, Ordering::SeqCst) + 1;
        let struck = number == settings.at || (settings.forever && number > settings.at);
        if !struck || settings.until.as_deref().is_some_and(exists) {
            return Fate::Proceed;
        }
        match settings.mode {
            Mode::Count | Mode::Record => Fate::Proceed,
            Mode::Torn if kind == Kind::Write => Fate::Tear,
            Mode::Kill | Mode::Torn => die(),
            Mode::Eio => Fate::Fail(libc::EIO),
            Mode::Enospc => Fate::Fail(libc::ENOSPC),
            Mode::Exchange => {
                exchange(settings);
                Fate::Proceed
            }
            Mode::Blink => Fate::Blink(Exchanged::begin(settings)),
        }
    }

    /// Does a call that is all or nothing, according to its fate.
    pub(crate) fn run<R: Returned>(
        &self,
        kind: Kind,
        act: impl FnOnce() -> R,
        record: impl FnOnce(&Turn, R),
    ) -> R {
        match self.fate(kind) {
            Fate::Proceed => act(),
            Fate::Fail(number) => R::failed(number),
            Fate::Tear => die(),
            Fate::Blink(_exchanged) => act(),
            Fate::Record(turn) => {
                let returned = act();
                if returned.succeeded() {
                    record(&turn, returned);
                }
                returned
            }
        }
    }
}

/// The turn in which to log an acknowledgement, if the descriptor is that of the file for them.
pub(crate) fn acknowledgement(descriptor: c_int) -> Option<Turn> {
    let settings = settings().filter(|settings| settings.mode == Mode::Record)?;
    let acks = settings.acks.as_deref()?;
    (Location::of_descriptor(descriptor)?.path() == acks).then(|| Turn::take(settings.log))
}

/// The path of a call's second argument as the log names it: relative, or absolute outside.
pub(crate) fn logged_path(directory: c_int, path: &CStr) -> Vec<u8> {
    let Some(settings) = settings() else { return Vec::new() };
    let Some(location) = Location::of_path(directory, path) else { return Vec::new() };
    location.below(&settings.under).unwrap_or(location.path()).to_vec()
}

/// Kills this process with the signal that cannot be caught.
pub(crate) fn die() -> ! {
    // SAFETY: signalling ourselves; the loop covers the moment before the signal arrives.
    unsafe {
        libc::kill(libc::getpid(), libc::SIGKILL);
        loop {
            libc::pause();
        }
    }
}

fn exists(path: &CStr) -> bool {
    // SAFETY: the path is a C string; `access` is not interposed.
    unsafe { libc::access(path.as_ptr(), libc::F_OK) == 0 }
}
