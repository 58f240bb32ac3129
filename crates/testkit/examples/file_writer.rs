//! A program for the fault tests: it saves items one after the other and acknowledges each.
//!
//! `file_writer <directory> <acks> <careful|careless>`. The careful manner is temporary file, sync,
//! rename, sync of the directory; the careless one leaves the syncs out.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "test-only code stands outside the product's seams"
)]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

const ITEMS: u8 = 4;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().unwrap();
    let acks = arguments.next().unwrap();
    let careful = arguments.next().unwrap() == "careful";
    let directory = Path::new(&directory);
    let mut acks = OpenOptions::new().create(true).append(true).open(acks)?;

    let lock = OpenOptions::new().create(true).append(true).open(directory.join("lock"))?;
    lock.lock()?;
    for number in 0..ITEMS {
        save(directory, number, careful)?;
        acks.write_all(&[number])?;
    }
    lock.unlock()
}

fn save(directory: &Path, number: u8, careful: bool) -> io::Result<()> {
    let temporary = directory.join("temporary");
    let mut file = File::create(&temporary)?;
    file.write_all(&[number; 3000])?;
    file.write_all(b"end")?;
    if careful {
        file.sync_data()?;
    }
    fs::rename(&temporary, directory.join(format!("item-{number}")))?;
    if careful {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}
