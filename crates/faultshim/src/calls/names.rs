//! Changing directory entries: creating, renaming, linking and removing.

use std::ffi::CStr;

use libc::{AT_FDCWD, c_char, c_int, c_uint, mode_t};

use crate::call::{Call, logged_path};
use crate::calls::looks::look;
use crate::errno::Returned;
use crate::log::{Entry, Tag, status_of_descriptor, status_of_path};
use crate::real;
use crate::settings::Kind;

const PERMISSIONS: mode_t = 0o7777;

/// A path argument; an empty path, which every call refuses, for a null pointer.
///
/// # Safety
/// The pointer must be null or that of a C string.
unsafe fn text<'a>(path: *const c_char) -> &'a CStr {
    if path.is_null() {
        return c"";
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(path) }
}

/// Opens a file; a point where that creates it or empties it.
fn open_at(directory: c_int, path: &CStr, flags: c_int, act: impl FnOnce() -> c_int) -> c_int {
    let changes = flags & (libc::O_CREAT | libc::O_TRUNC) != 0;
    if !changes || flags & libc::O_TMPFILE == libc::O_TMPFILE {
        return look(directory, path, act);
    }
    let Some(call) = Call::on_path(directory, path) else { return act() };
    // SAFETY: the path is a C string; `faccessat` is not interposed.
    let exists = unsafe { libc::faccessat(directory, path.as_ptr(), libc::F_OK, 0) == 0 };
    let (kind, tag) = match exists {
        true if flags & libc::O_TRUNC != 0 && flags & libc::O_EXCL == 0 => {
            (Kind::Truncate, Tag::Truncate)
        }
        false if flags & libc::O_CREAT != 0 => (Kind::Create, Tag::Create),
        // Opened as it is, or the call fails by itself.
        _ => return act(),
    };
    call.run(kind, act, |turn, file| {
        let status = status_of_descriptor(file);
        let number = match kind {
            Kind::Create => u64::from(status.st_mode & PERMISSIONS),
            _ => 0,
        };
        turn.append(&Entry { inode: status.st_ino, number, ..Entry::new(tag, call.path()) });
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the program's own call, passed on; see `calls` for the fixed argument.
    unsafe { open_at(AT_FDCWD, text(path), flags, || real::open()(path, flags, mode)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: on 64-bit targets O_LARGEFILE is always on, so the two are the same.
    unsafe { open(path, flags, mode) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn openat(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    mode: mode_t,
) -> c_int {
    // SAFETY: the program's own call, passed on; see `calls` for the fixed argument.
    unsafe {
        open_at(directory, text(path), flags, || real::openat()(directory, path, flags, mode))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn openat64(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    mode: mode_t,
) -> c_int {
    // SAFETY: as `open64`.
    unsafe { openat(directory, path, flags, mode) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn creat(path: *const c_char, mode: mode_t) -> c_int {
    // SAFETY: what `creat` is defined to do.
    unsafe { open(path, libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, mode) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn creat64(path: *const c_char, mode: mode_t) -> c_int {
    // SAFETY: as `open64`.
    unsafe { creat(path, mode) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mkdir(path: *const c_char, mode: mode_t) -> c_int {
    // SAFETY: what `mkdir` is defined to do.
    unsafe { mkdirat(AT_FDCWD, path, mode) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mkdirat(directory: c_int, path: *const c_char, mode: mode_t) -> c_int {
    // SAFETY: the program's own call, passed on.
    let act = || unsafe { real::mkdirat()(directory, path, mode) };
    // SAFETY: the program promises libc a C string.
    let Some(call) = Call::on_path(directory, unsafe { text(path) }) else { return act() };
    call.run(Kind::Create, act, |turn, _| {
        let number = u64::from(status_of_path(directory, path).st_mode & PERMISSIONS);
        turn.append(&Entry { number, ..Entry::new(Tag::MakeDirectory, call.path()) });
    })
}

/// A path as the `…at` calls name it: below a directory that is open.
#[derive(Clone, Copy)]
struct At<'a> {
    directory: c_int,
    path: &'a CStr,
}

/// Does a call with two paths; a point where either lies in our directory.
fn two_paths(kind: Kind, tag: Tag, from: At<'_>, to: At<'_>, act: impl FnOnce() -> c_int) -> c_int {
    let ours = |at: At<'_>| Call::on_path(at.directory, at.path);
    let Some(call) = ours(from).or_else(|| ours(to)) else { return act() };
    let path = logged_path(from.directory, from.path);
    let target = logged_path(to.directory, to.path);
    call.run(kind, act, |turn, _| {
        let inode = status_of_path(to.directory, to.path.as_ptr()).st_ino;
        turn.append(&Entry { inode, target: &target, ..Entry::new(tag, &path) });
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: what `rename` is defined to do.
    unsafe { renameat(AT_FDCWD, from, AT_FDCWD, to) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn renameat(
    from_directory: c_int,
    from: *const c_char,
    to_directory: c_int,
    to: *const c_char,
) -> c_int {
    // SAFETY: the program's own call, passed on.
    let act = || unsafe { real::renameat()(from_directory, from, to_directory, to) };
    // SAFETY: the program promises libc two C strings.
    let (from, to) = unsafe { (text(from), text(to)) };
    let from = At { directory: from_directory, path: from };
    let to = At { directory: to_directory, path: to };
    two_paths(Kind::Rename, Tag::Rename, from, to, act)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn renameat2(
    from_directory: c_int,
    from: *const c_char,
    to_directory: c_int,
    to: *const c_char,
    flags: c_uint,
) -> c_int {
    // SAFETY: the program's own call, passed on.
    let act = || unsafe { real::renameat2()(from_directory, from, to_directory, to, flags) };
    // SAFETY: the program promises libc two C strings.
    let (from, to) = unsafe { (text(from), text(to)) };
    // Exchanging is not in the log's vocabulary; filesystems may refuse it, so does a recording.
    let unusual = flags & !libc::RENAME_NOREPLACE != 0;
    if unusual && Call::on_path(to_directory, to).is_some_and(|call| call.is_recorded()) {
        return c_int::failed(libc::EINVAL);
    }
    let from = At { directory: from_directory, path: from };
    let to = At { directory: to_directory, path: to };
    two_paths(Kind::Rename, Tag::Rename, from, to, act)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn link(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: what `link` is defined to do.
    unsafe { linkat(AT_FDCWD, from, AT_FDCWD, to, 0) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn linkat(
    from_directory: c_int,
    from: *const c_char,
    to_directory: c_int,
    to: *const c_char,
    flags: c_int,
) -> c_int {
    // SAFETY: the program's own call, passed on.
    let act = || unsafe { real::linkat()(from_directory, from, to_directory, to, flags) };
    // SAFETY: the program promises libc two C strings.
    let (from, to) = unsafe { (text(from), text(to)) };
    let from = At { directory: from_directory, path: from };
    let to = At { directory: to_directory, path: to };
    two_paths(Kind::Create, Tag::Link, from, to, act)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: what `unlink` is defined to do.
    unsafe { unlinkat(AT_FDCWD, path, 0) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rmdir(path: *const c_char) -> c_int {
    // SAFETY: what `rmdir` is defined to do.
    unsafe { unlinkat(AT_FDCWD, path, libc::AT_REMOVEDIR) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unlinkat(directory: c_int, path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the program's own call, passed on.
    let act = || unsafe { real::unlinkat()(directory, path, flags) };
    // SAFETY: the program promises libc a C string.
    let Some(call) = Call::on_path(directory, unsafe { text(path) }) else { return act() };
    let removes_directory = flags & libc::AT_REMOVEDIR != 0;
    let tag = if removes_directory { Tag::RemoveDirectory } else { Tag::Unlink };
    call.run(Kind::Unlink, act, |turn, _| turn.append(&Entry::new(tag, call.path())))
}
