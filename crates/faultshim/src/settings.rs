//! What the environment asks for, read once when the library is loaded.

use std::ffi::{CStr, CString};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use libc::c_int;

/// What happens at a point.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Points are counted and nothing is struck.
    Count,
    /// SIGKILL before the call.
    Kill,
    /// Half of the write, then SIGKILL.
    Torn,
    /// The call is not done and fails with EIO.
    Eio,
    /// The call is not done and fails with ENOSPC.
    Enospc,
    /// The call is done and logged.
    Record,
    /// Two names are exchanged before the call, and stay so.
    Exchange,
    /// Two names are exchanged for this call alone.
    Blink,
}

/// The kinds of call that can be points; the value is its bit in a set of kinds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Write = 1,
    Sync = 2,
    Rename = 4,
    Lock = 8,
    Create = 16,
    Truncate = 32,
    Unlink = 64,
    Read = 128,
    Look = 256,
}

/// All but reading and looking, which change nothing: whoever wants to fail those says so.
const USUAL_KINDS: u16 = 127;
const FULL_DISK_KINDS: u16 =
    Kind::Write as u16 | Kind::Create as u16 | Kind::Truncate as u16 | Kind::Rename as u16;

/// The settings of this process.
pub(crate) struct Settings {
    pub(crate) under: Vec<u8>,
    pub(crate) mode: Mode,
    pub(crate) at: u64,
    pub(crate) forever: bool,
    pub(crate) until: Option<CString>,
    pub(crate) acks: Option<Vec<u8>>,
    /// The operation log, open for appending; only in `record` mode.
    pub(crate) log: c_int,
    /// Counts points: in the mapped file, or in this process where no file was named.
    pub(crate) counter: &'static AtomicU64,
    /// The names that are exchanged; only in the modes that do.
    pub(crate) pair: Option<(CString, CString)>,
    kinds: u16,
}

impl Settings {
    /// Says whether calls of this kind are points.
    pub(crate) fn counts(&self, kind: Kind) -> bool {
        self.kinds & kind as u16 != 0
    }
}

/// The settings. Returns `None` if `FAULTSHIM_UNDER` is not set.
pub(crate) fn settings() -> Option<&'static Settings> {
    static SETTINGS: OnceLock<Option<Settings>> = OnceLock::new();
    SETTINGS.get_or_init(read).as_ref()
}

fn read() -> Option<Settings> {
    static OWN: AtomicU64 = AtomicU64::new(0);

    let under = variable(c"FAULTSHIM_UNDER")?.to_bytes();
    let mode = match variable(c"FAULTSHIM_MODE").map(CStr::to_bytes) {
        Some(b"count") => Mode::Count,
        Some(b"kill") => Mode::Kill,
        Some(b"torn") => Mode::Torn,
        Some(b"eio") => Mode::Eio,
        Some(b"enospc") => Mode::Enospc,
        Some(b"record") => Mode::Record,
        Some(b"exchange") => Mode::Exchange,
        Some(b"blink") => Mode::Blink,
        _ => refuse(
            "FAULTSHIM_MODE must be count, kill, torn, eio, enospc, record, exchange or blink",
        ),
    };
    let at = match variable(c"FAULTSHIM_AT") {
        None => u64::MAX,
        Some(text) => match text.to_str().ok().and_then(|digits| digits.parse().ok()) {
            Some(at) => at,
            None => refuse("FAULTSHIM_AT must be a number"),
        },
    };
    let mut kinds = variable(c"FAULTSHIM_KINDS").map_or(USUAL_KINDS, |list| {
        list.to_bytes().split(|byte| *byte == b',').fold(0, |set, name| set | kind_bit(name))
    });
    if mode == Mode::Enospc {
        kinds &= FULL_DISK_KINDS;
    }
    let pair = match (variable(c"FAULTSHIM_ONE"), variable(c"FAULTSHIM_OTHER")) {
        (Some(one), Some(other)) => Some((one.to_owned(), other.to_owned())),
        _ if matches!(mode, Mode::Exchange | Mode::Blink) => {
            refuse("FAULTSHIM_MODE=exchange needs FAULTSHIM_ONE and FAULTSHIM_OTHER")
        }
        _ => None,
    };
    let out = variable(c"FAULTSHIM_OUT");
    let (log, counter) = match (mode, out) {
        (Mode::Record, Some(path)) => (open_log(path), &OWN),
        (Mode::Record, None) => refuse("FAULTSHIM_MODE=record needs FAULTSHIM_OUT"),
        (_, Some(path)) => (-1, map_counter(path)),
        (_, None) => (-1, &OWN),
    };
    Some(Settings {
        under: under.strip_suffix(b"/").unwrap_or(under).to_vec(),
        mode,
        at,
        forever: variable(c"FAULTSHIM_FOREVER").is_some_and(|value| value.to_bytes() == b"1"),
        until: variable(c"FAULTSHIM_UNTIL_FILE").map(CStr::to_owned),
        acks: variable(c"FAULTSHIM_ACKS").map(|path| path.to_bytes().to_vec()),
        log,
        counter,
        pair,
        kinds,
    })
}

fn kind_bit(name: &[u8]) -> u16 {
    let kind = match name {
        b"write" => Kind::Write,
        b"sync" => Kind::Sync,
        b"rename" => Kind::Rename,
        b"lock" => Kind::Lock,
        b"create" => Kind::Create,
        b"truncate" => Kind::Truncate,
        b"unlink" => Kind::Unlink,
        b"read" => Kind::Read,
        b"look" => Kind::Look,
        _ => refuse(
            "FAULTSHIM_KINDS lists write, sync, rename, lock, create, truncate, unlink, read, look",
        ),
    };
    kind as u16
}

/// Reads a variable through libc, because `std::env` takes a lock that a forked child may find held.
fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: the name is a C string; this runs while the program has one thread.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: getenv returned a C string, which lives as long as nobody changes the variable;
    // everything kept from it is copied before `main` can do that.
    Some(unsafe { CStr::from_ptr(value) })
}

/// Opens a file by the raw system call: the `open` of this library would come back here.
fn open_raw(path: &CStr, flags: c_int) -> c_int {
    let flags = flags | libc::O_CREAT | libc::O_CLOEXEC;
    // SAFETY: the path is a C string and the flags ask for no pointer.
    let opened =
        unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0o644) };
    if opened < 0 {
        refuse("FAULTSHIM_OUT cannot be opened");
    }
    opened as c_int
}

fn open_log(path: &CStr) -> c_int {
    open_raw(path, libc::O_WRONLY | libc::O_APPEND)
}

fn map_counter(path: &CStr) -> &'static AtomicU64 {
    let file = open_raw(path, libc::O_RDWR);
    // SAFETY: raw calls on a descriptor that is ours. Growing a file to 8 bytes keeps what another
    // process counted in it.
    let address = unsafe {
        libc::syscall(libc::SYS_ftruncate, file, 8_i64);
        libc::mmap(null_mut(), 8, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, file, 0)
    };
    if address == libc::MAP_FAILED {
        refuse("FAULTSHIM_OUT cannot be mapped");
    }
    // SAFETY: closing our own descriptor; the mapping stays.
    unsafe { libc::syscall(libc::SYS_close, file) };
    // SAFETY: the mapping is page-aligned, 8 bytes long, never unmapped, and only used atomically.
    unsafe { &*address.cast::<AtomicU64>() }
}

/// Ends the program, because a test that runs with half its settings proves nothing.
fn refuse(sentence: &str) -> ! {
    let line = format!("faultshim: {sentence}\n");
    // SAFETY: a live buffer, written by the raw call because `write` is ours and would wait for
    // the settings that are being read; `_exit` runs no handlers.
    unsafe {
        libc::syscall(libc::SYS_write, 2, line.as_ptr(), line.len());
        libc::_exit(97)
    }
}
