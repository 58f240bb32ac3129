//! Making changes durable: `fsync`, `fdatasync`.

use libc::c_int;

use crate::call::Call;
use crate::log::{Entry, Tag, status_of_descriptor};
use crate::real;
use crate::settings::Kind;

fn sync(file: c_int, act: impl FnOnce() -> c_int) -> c_int {
    let Some(call) = Call::on_descriptor(file) else { return act() };
    call.run(Kind::Sync, act, |turn, _| {
        let status = status_of_descriptor(file);
        let directory = status.st_mode & libc::S_IFMT == libc::S_IFDIR;
        let tag = if directory { Tag::SyncDirectory } else { Tag::SyncFile };
        turn.append(&Entry { inode: status.st_ino, ..Entry::new(tag, call.path()) });
    })
}

#[unsafe(no_mangle)]
extern "C" fn fsync(file: c_int) -> c_int {
    // SAFETY: the program's own call, passed on.
    sync(file, || unsafe { real::fsync()(file) })
}

#[unsafe(no_mangle)]
extern "C" fn fdatasync(file: c_int) -> c_int {
    // SAFETY: the program's own call, passed on.
    sync(file, || unsafe { real::fdatasync()(file) })
}
