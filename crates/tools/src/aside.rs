//! Work that blocks, on a thread of its own.
//!
//! A runtime's pool for such work panics when the system gives no further thread, and may run the
//! work later all the same. Here it is then done on the thread that asks: slower for others, and done.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use mainstay_store::lock;
use tokio::sync::oneshot;

/// The work panicked.
#[derive(Debug, thiserror::Error)]
#[error("it crashed because of a bug in Mainstay")]
pub struct Crashed;

/// Begins `work`, and answers with what waits for it. It goes on to its end, also when nobody does.
pub fn aside<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, Crashed>> {
    let (done, result) = oneshot::channel();
    let work = move || {
        if let Ok(value) = catch_unwind(AssertUnwindSafe(work)) {
            // Nobody may want it any more.
            let _ = done.send(value);
        }
    };
    // Where no thread is begun, the closure for it is lost and the work is not.
    let mine = Arc::new(Mutex::new(Some(work)));
    let theirs = mine.clone();
    let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        if let Some(work) = take(&theirs) {
            work();
        }
    });
    if let Err(error) = spawned {
        tracing::warn!(%error, name, "no thread; working here");
        if let Some(work) = take(&mine) {
            work();
        }
    }
    async { result.await.map_err(|_| Crashed) }
}

/// Takes the work out, so that it is not run under the lock.
fn take<F>(work: &Mutex<Option<F>>) -> Option<F> {
    lock(work).take()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_is_done_elsewhere_and_a_panic_is_no_answer() {
        let here = std::thread::current().id();
        let there = aside("test", || std::thread::current().id()).await.unwrap();
        assert_ne!(here, there);
        assert!(aside("test", || -> i32 { panic!("on purpose") }).await.is_err());
    }
}
