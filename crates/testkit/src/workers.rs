//! The same work on two threads, as many as the machines that run these tests have cores.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

/// Runs the work twice at the same time; a panic of either comes out as it went in.
pub(crate) fn run_twice(work: impl Fn() + Sync) {
    let results = thread::scope(|scope| {
        let other = scope.spawn(|| catch_unwind(AssertUnwindSafe(&work)));
        let mine = catch_unwind(AssertUnwindSafe(&work));
        [mine, other.join().unwrap_or_else(Err)]
    });
    for result in results {
        if let Err(panic) = result {
            resume_unwind(panic);
        }
    }
}
