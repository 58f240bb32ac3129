//! A program for the power-cut tests: it does everything to files that the operation log knows.
//!
//! `file_juggler <directory>`, in which `old/one` must hold at least 12 bytes.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "test-only code stands outside the product's seams"
)]

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, IoSlice, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt};

use rustix::fs::{FallocateFlags, fallocate};

fn main() -> io::Result<()> {
    std::env::set_current_dir(std::env::args().nth(1).unwrap())?;
    DirBuilder::new().mode(0o750).create("new")?;

    let file = OpenOptions::new().write(true).open("old/one")?;
    file.write_all_at(b"CONTENT and more", 6)?;
    file.set_len(18)?;
    let mut appended = OpenOptions::new().append(true).open("old/one")?;
    appended.write_all(b"+appended")?;
    let written = appended.write_vectored(&[IoSlice::new(b"+vec"), IoSlice::new(b"tor")])?;
    assert_eq!(written, 7);
    fs::rename("old", "new/moved")?;
    appended.write_all(b"+after the move")?;

    fs::hard_link("new/moved/one", "linked")?;
    fs::copy("linked", "copied")?;
    File::create("gone")?;
    fs::remove_file("gone")?;
    DirBuilder::new().create("gone too")?;
    fs::remove_dir("gone too")?;

    let reused = File::create("reused")?;
    fallocate(&reused, FallocateFlags::empty(), 0, 700)?;
    reused.write_all_at(b"at 600", 600)?;
    fs::rename("reused", "copied")?;
    fs::write("emptied", "something")?;
    File::create("emptied").map(drop)
}
