//! Room in the write-ahead log before it is needed.
//!
//! A sync of bytes written over others takes about half the time of one that makes a file longer,
//! because the file's size need not be synced with them. A busy writer therefore fills the log with
//! zeros ahead of its commits. SQLite reads no frame that its checksums do not vouch for, so zeros
//! behind the last one mean nothing, also to a recovery.
#![allow(
    unsafe_code,
    reason = "only SQLite may hold the log open, so the zeros go through its handle"
)]

use std::cell::Cell;

use rusqlite::{Connection, ffi};

use super::connection::WAL_KEPT_BYTES;

/// Bytes of a frame: a page and its header.
const FRAME: i64 = 4096 + 24;
/// A log shorter than this is left alone: whoever writes now and then pays nothing.
const BUSY_FRAMES: u32 = 24;
/// How much room is made at a time, and how much is left when more is made.
const AHEAD: i64 = 256 * FRAME;
const LEFT: i64 = 32 * FRAME;

static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// What is known of the room in the log. Asking for the file's size makes the kernel write its times
/// with the next sync, so it is asked only when the room may be used up.
#[derive(Debug, Default)]
pub(super) struct Room {
    size: Cell<i64>,
    /// How many frames there were when it was last wanted.
    frames: Cell<u32>,
}

impl Room {
    /// Whether there is room for what follows so many frames. With fewer than before, the log has
    /// started over or was cut, and nothing is known.
    fn is_enough(&self, frames: u32) -> bool {
        let began_anew = frames < self.frames.replace(frames);
        !began_anew && leaves_room(self.size.get(), frames)
    }
}

/// Whether a log of this size has room after so many frames. At its full size it starts over, and its
/// bytes are there already.
fn leaves_room(size: i64, frames: u32) -> bool {
    size >= WAL_KEPT_BYTES || size - i64::from(frames) * FRAME > LEFT
}

/// Makes room behind the last frame. Called inside a write transaction, so nobody else writes to the
/// log or shortens it. A failure is none: the log grows as it always did.
pub(super) fn make_room(connection: &Connection, frames: u32, room: &Room) {
    if frames < BUSY_FRAMES {
        // It may be shortened before it is busy again.
        room.size.set(0);
        return;
    }
    if room.is_enough(frames) {
        return;
    }
    let mut file: *mut ffi::sqlite3_file = std::ptr::null_mut();
    // SAFETY: the handle lives as long as the connection, the name is a C string, and the operation
    // stores a pointer to the log's file, or null.
    let asked = unsafe {
        ffi::sqlite3_file_control(
            connection.handle(),
            c"main".as_ptr(),
            ffi::SQLITE_FCNTL_JOURNAL_POINTER,
            (&raw mut file).cast(),
        )
    };
    if asked != ffi::SQLITE_OK || file.is_null() {
        return;
    }
    // SAFETY: SQLite gave the pointer, and the file is open while its methods are set.
    let Some(methods) = (unsafe { (*file).pMethods.as_ref() }) else { return };
    let (Some(size_of), Some(write)) = (methods.xFileSize, methods.xWrite) else { return };
    let mut size = 0;
    // SAFETY: the file is open, and `size` is ours.
    if unsafe { size_of(file, &raw mut size) } != ffi::SQLITE_OK {
        return;
    }
    room.size.set(size);
    if leaves_room(size, frames) {
        return;
    }
    let end = (size + AHEAD).min(WAL_KEPT_BYTES);
    while size < end {
        let length = (end - size).min(64 * 1024);
        let bytes = i32::try_from(length).unwrap_or(0);
        // SAFETY: the file is open, and the zeros are longer than what is written of them.
        if unsafe { write(file, ZEROS.as_ptr().cast(), bytes, size) } != ffi::SQLITE_OK {
            return;
        }
        size += length;
    }
    room.size.set(size);
}

#[cfg(test)]
mod tests {
    use super::{AHEAD, FRAME, Room, WAL_KEPT_BYTES};
    use crate::{Component, Location, Migration, Options, Schema, Store, params};

    const NOTES: Component = Component {
        name: "notes",
        migrations: &[Migration::Both("CREATE TABLE notes (text TEXT NOT NULL) STRICT;")],
    };

    /// The size of the log after so many commits, and how many rows a store has that was killed then:
    /// its files, copied as they are.
    fn after(commits: usize) -> (u64, i64) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let open =
            |path| Store::open(&Location::file(path), Options::new(Schema::new(&[NOTES]))).unwrap();
        let store = open(path.clone());
        for number in 0..commits {
            let text = number.to_string();
            store
                .write(|tx| tx.execute("INSERT INTO notes (text) VALUES (?1)", params![text]))
                .unwrap();
        }
        let log = directory.path().join("store.db-wal");
        let size = log.metadata().unwrap().len();
        let killed = directory.path().join("killed.db");
        for (from, to) in [(&path, "killed.db"), (&log, "killed.db-wal")] {
            // Another program does it: a handle of this process would drop SQLite's locks.
            #[expect(clippy::disallowed_methods, reason = "a test stands outside the seams")]
            let copied = std::process::Command::new("cp")
                .args([from, &directory.path().join(to)])
                .status()
                .unwrap();
            assert!(copied.success());
        }
        let rows = open(killed)
            .read(|tx| tx.query_one("SELECT COUNT(*) FROM notes", params![], |row| row.get(0)))
            .unwrap();
        (size, rows)
    }

    #[test]
    fn the_size_is_asked_only_when_the_room_may_be_used_up() {
        let room = Room::default();
        assert!(!room.is_enough(30), "nothing is known yet");
        room.size.set(30 * FRAME + AHEAD);
        assert!((31..250).all(|frames| room.is_enough(frames)));
        assert!(!room.is_enough(260), "it is nearly used up");
        room.size.set(260 * FRAME + AHEAD);
        assert!(room.is_enough(261));
        assert!(!room.is_enough(30), "the log began anew");
        room.size.set(WAL_KEPT_BYTES);
        assert!(room.is_enough(3_000), "it is as long as it gets");
    }

    #[test]
    fn a_busy_writer_has_room_in_the_log_and_nothing_is_taken_for_a_commit_there() {
        let (few, rows) = after(3);
        assert_eq!(rows, 3);
        let (many, rows) = after(60);
        assert_eq!(rows, 60);
        // Sixty small commits fill some hundred kilobytes.
        assert!(few < 200_000 && many > 1_000_000, "{few} and {many} bytes");
    }
}
