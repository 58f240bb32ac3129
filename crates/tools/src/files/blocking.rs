//! Work on blocking threads that ends when the call's future is dropped.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;

use crate::Outcome;
use crate::aside::aside;
use crate::sandbox::Room;

/// Tells work on a blocking thread that nobody waits for it any more. Every loop asks it.
#[derive(Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Fails once the call was cancelled. Nobody reads the outcome then.
    pub(super) fn check(&self) -> Result<(), Outcome> {
        if self.is_set() { Err(Outcome::failed("The call was cancelled.")) } else { Ok(()) }
    }
}

/// Runs `work` on a blocking thread, inside the sandbox where there is one. When the future is
/// dropped, `work` is told to stop, and is not started if it was still waiting for a thread.
///
/// A change of a file that has begun by then is finished, whole. `work` must not use the store nor
/// the runtime: inside the sandbox the store is out of reach, for threads that are started there too.
pub(super) async fn blocking<T: Send + 'static>(
    room: Room,
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> Result<T, Outcome> {
    let stop = Stop::default();
    let (done, result) = oneshot::channel();
    let _ends = Ends(stop.clone());
    let work = Box::new(move || {
        if !stop.is_set() {
            let _ = done.send(catch_unwind(AssertUnwindSafe(|| work(&stop))));
        }
    });
    let sent = match room {
        Room::Open => {
            // Its outcome comes by its own way.
            drop(aside("file-tool", work));
            Ok(())
        }
        Room::Inside(confinement) => confinement.send(work),
        Room::Alone(confinement, directory) => confinement.send_alone(&directory, work),
    };
    sent.map_err(|error| not_begun(&error))?;
    match result.await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(_)) | Err(_) => {
            tracing::error!("a file tool panicked");
            Err(Outcome::failed(
                "The tool crashed because of a bug in Mainstay. Check what it did before you try \
                 again.",
            ))
        }
    }
}

fn not_begun(error: &io::Error) -> Outcome {
    match error.raw_os_error() {
        // Words of the sandbox itself.
        None => Outcome::failed(error.to_string()),
        Some(_) => Outcome::failed(format!(
            "Nothing was done: could not set up the sandbox for file tools: {error}."
        )),
    }
}

/// Like [`blocking`], for work whose failures are outcomes too.
pub(super) async fn outcome(
    room: Room,
    work: impl FnOnce(&Stop) -> Result<Outcome, Outcome> + Send + 'static,
) -> Outcome {
    match blocking(room, work).await {
        Ok(Ok(outcome) | Err(outcome)) | Err(outcome) => outcome,
    }
}

/// Tells the work to stop when nobody waits for it any more.
struct Ends(Stop);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.set();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn work_is_told_to_stop_when_its_future_is_dropped() {
        let (started, has_started) = tokio::sync::oneshot::channel();
        let (ended, has_ended) = mpsc::channel();
        let future = blocking(Room::Open, move |stop| {
            started.send(()).unwrap();
            while !stop.is_set() {
                std::thread::yield_now();
            }
            ended.send(()).unwrap();
        });
        tokio::select! {
            _ = future => panic!("it ended by itself"),
            _ = has_started => {}
        }
        has_ended.recv_timeout(Duration::from_secs(10)).unwrap();
    }

    #[tokio::test]
    async fn a_panic_inside_is_an_outcome() {
        let broken = outcome(Room::Open, |_| panic!("on purpose")).await;
        assert!(broken.failed);
    }
}
