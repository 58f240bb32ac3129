//! Writing bytes: the only calls that can be torn.

use libc::{c_int, c_void, iovec, off_t, size_t, ssize_t};

use crate::call::{Call, Fate, acknowledgement, die};
use crate::errno::Returned;
use crate::log::{Entry, Tag, status_of_descriptor};
use crate::real;
use crate::settings::Kind;

/// Where a write without an offset argument will land.
fn position(file: c_int) -> u64 {
    // SAFETY: raw queries of a descriptor's flags and position; `fcntl` is ours.
    let (flags, offset) = unsafe {
        (libc::syscall(libc::SYS_fcntl, file, libc::F_GETFL), libc::lseek(file, 0, libc::SEEK_CUR))
    };
    let appends = flags >= 0 && flags as c_int & libc::O_APPEND != 0;
    let found = if appends { status_of_descriptor(file).st_size } else { offset };
    u64::try_from(found).unwrap_or(0)
}

/// The part of a torn write that reaches the file: half, in whole sectors where there are any.
fn first_half(length: usize) -> usize {
    let half = length / 2;
    if half >= 512 { half - half % 512 } else { half }
}

/// Does a write according to its fate. `part` writes that many of the first bytes.
fn write_call(
    file: c_int,
    bytes: &[u8],
    offset: Option<off_t>,
    part: impl Fn(&[u8]) -> ssize_t,
) -> ssize_t {
    let record = |tag, path: &[u8], turn: &crate::log::Turn| {
        let number = offset.map_or_else(|| position(file), |given| given as u64);
        let written = part(bytes);
        if let Ok(length) = usize::try_from(written) {
            let inode = status_of_descriptor(file).st_ino;
            let data = &bytes[..length];
            turn.append(&Entry { inode, number, data, ..Entry::new(tag, path) });
        }
        written
    };
    if let Some(turn) = acknowledgement(file) {
        return record(Tag::Acknowledge, &[], &turn);
    }
    let Some(call) = Call::on_descriptor(file) else { return part(bytes) };
    match call.fate(Kind::Write) {
        Fate::Proceed | Fate::Blink(_) => part(bytes),
        Fate::Record(turn) => record(Tag::Write, call.path(), &turn),
        Fate::Fail(number) => ssize_t::failed(number),
        Fate::Tear => {
            part(&bytes[..first_half(bytes.len())]);
            die()
        }
    }
}

/// The bytes of a write; an empty slice for the null pointer that C allows with a length of 0.
///
/// # Safety
/// The pointer must be readable for the length, or either must be zero.
unsafe fn slice<'a>(data: *const c_void, length: size_t) -> &'a [u8] {
    if data.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(data.cast(), length) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn write(file: c_int, data: *const c_void, length: size_t) -> ssize_t {
    // SAFETY: the program promises libc a readable buffer.
    let bytes = unsafe { slice(data, length) };
    // SAFETY: a prefix of the program's own buffer.
    write_call(file, bytes, None, |part| unsafe {
        real::write()(file, part.as_ptr().cast(), part.len())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite(
    file: c_int,
    data: *const c_void,
    length: size_t,
    offset: off_t,
) -> ssize_t {
    // SAFETY: the program promises libc a readable buffer.
    let bytes = unsafe { slice(data, length) };
    // SAFETY: a prefix of the program's own buffer.
    write_call(file, bytes, Some(offset), |part| unsafe {
        real::pwrite()(file, part.as_ptr().cast(), part.len(), offset)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite64(
    file: c_int,
    data: *const c_void,
    length: size_t,
    offset: off_t,
) -> ssize_t {
    // SAFETY: `off_t` has 64 bits on the targets this library is for, so the two are the same.
    unsafe { pwrite(file, data, length, offset) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn writev(file: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the program's own call, passed on.
    let whole = || unsafe { real::writev()(file, parts, count) };
    // Not ours: no copy, and errors are the kernel's to find.
    if Call::on_descriptor(file).is_none() && acknowledgement(file).is_none() {
        return whole();
    }
    let Ok(count) = usize::try_from(count) else { return whole() };
    let mut bytes = Vec::new();
    for index in 0..count {
        // SAFETY: the program promises libc this many readable parts.
        let part = unsafe { *parts.add(index) };
        // SAFETY: and that each is readable.
        bytes.extend_from_slice(unsafe { slice(part.iov_base, part.iov_len) });
    }
    // SAFETY: a prefix of our own copy; one write is as atomic as the vector was.
    write_call(file, &bytes, None, |part| unsafe {
        real::write()(file, part.as_ptr().cast(), part.len())
    })
}
