//! Where a call goes: the path behind a descriptor or a path argument, with links resolved.

use std::ffi::CStr;
use std::io::{Cursor, Write};

use libc::{c_char, c_int};

const LONGEST: usize = libc::PATH_MAX as usize;

/// An absolute path, kept on the stack: allocating inside a signal handler's `write` could deadlock.
pub(crate) struct Location {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Location {
    /// The file behind a descriptor; nothing for a closed one, or a path too long to name.
    pub(crate) fn of_descriptor(descriptor: c_int) -> Option<Self> {
        let mut name = [0_u8; 32];
        write!(Cursor::new(&mut name[..31]), "/proc/self/fd/{descriptor}").ok()?;
        Self::read_link(CStr::from_bytes_until_nul(&name).ok()?)
    }

    /// The directory entry that a path argument names. The parent is resolved, the last part is
    /// not: calls that change names act on the entry itself.
    pub(crate) fn of_path(directory: c_int, path: &CStr) -> Option<Self> {
        let bytes = path.to_bytes();
        let trimmed = bytes.strip_suffix(b"/").unwrap_or(bytes);
        let (parent, name) = match trimmed.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&trimmed[..=slash], &trimmed[slash + 1..]),
            None => (&b"."[..], trimmed),
        };
        let mut parent_path = [0_u8; LONGEST];
        parent_path.get_mut(..parent.len())?.copy_from_slice(parent);
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
        // SAFETY: the buffer is a C string (its last byte stays zero: PATH_MAX counts it). The raw
        // call is used because `openat` is ours, and O_PATH because closing such a descriptor
        // drops no POSIX lock of the program.
        let opened = unsafe {
            libc::syscall(libc::SYS_openat, directory, parent_path.as_ptr(), flags, 0) as c_int
        };
        if opened < 0 {
            return None;
        }
        let found = Self::of_descriptor(opened);
        // SAFETY: closing the descriptor opened above.
        unsafe { libc::syscall(libc::SYS_close, opened) };
        found?.joined(name)
    }

    /// The whole path.
    pub(crate) fn path(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// The path below a directory, without a leading slash. Returns `None` if it lies elsewhere.
    pub(crate) fn below(&self, directory: &[u8]) -> Option<&[u8]> {
        match self.path().strip_prefix(directory)? {
            [] => Some(&[]),
            [b'/', rest @ ..] => Some(rest),
            _ => None,
        }
    }

    fn joined(mut self, name: &[u8]) -> Option<Self> {
        let start = if self.path() == b"/" { 1 } else { self.length + 1 };
        self.bytes[start - 1] = b'/';
        self.bytes.get_mut(start..start + name.len())?.copy_from_slice(name);
        self.length = start + name.len();
        Some(self)
    }

    fn read_link(link: &CStr) -> Option<Self> {
        let mut bytes = [0_u8; LONGEST];
        // SAFETY: the buffer is as long as said. `readlink` is not interposed.
        let length = unsafe {
            libc::readlink(link.as_ptr(), bytes.as_mut_ptr().cast::<c_char>(), LONGEST - 1)
        };
        Some(Self { length: usize::try_from(length).ok()?, bytes })
    }
}
