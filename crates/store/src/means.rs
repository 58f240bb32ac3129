//! Whether the system gives this process what it needs. Tokio panics where a runtime gets no thread, or
//! no descriptors for its signals, so whoever builds one asks here first.

use std::fs::File;
use std::io;
use std::thread::Builder;

/// What a runtime opens: the poller, its wake-up, and three ends of a socket for signals.
const OF_A_RUNTIME: usize = 6;

/// Fails where a runtime cannot be built now.
pub fn refuse_without_descriptors() -> io::Result<()> {
    let opened: io::Result<Vec<File>> =
        (0..OF_A_RUNTIME).map(|_| File::open("/dev/null")).collect();
    opened.map(drop)
}

/// Fails where no thread can be begun now.
pub fn refuse_without_thread() -> io::Result<()> {
    let begun = Builder::new().name("trial".to_owned()).spawn(|| ())?;
    // It does nothing, so it cannot have panicked.
    let _ = begun.join();
    Ok(())
}
