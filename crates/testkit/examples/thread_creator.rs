//! A program for the fault tests: eight threads create fifty files each in `<directory>`.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "test-only code stands outside the product's seams"
)]

use std::fs::File;
use std::path::PathBuf;
use std::thread;

fn main() {
    let directory = PathBuf::from(std::env::args_os().nth(1).unwrap());
    thread::scope(|scope| {
        for thread in 0..8 {
            let directory = &directory;
            scope.spawn(move || {
                for number in 0..50 {
                    File::create(directory.join(format!("{thread}-{number}"))).unwrap();
                }
            });
        }
    });
}
