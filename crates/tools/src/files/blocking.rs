//! Work on blocking threads that ends when the call's future is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::AbortHandle;

use crate::Outcome;

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

/// Runs `work` on a blocking thread. When the future is dropped, `work` is told to stop, and is not
/// started if it was still waiting for a thread.
///
/// A change of a file that has begun by then is finished, whole.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> Result<T, Outcome> {
    let stop = Stop::default();
    let task = tokio::task::spawn_blocking({
        let stop = stop.clone();
        move || work(&stop)
    });
    let _ends = Ends { stop, task: task.abort_handle() };
    task.await.map_err(|error| {
        tracing::error!(%error, "a file tool broke off");
        Outcome::failed(format!(
            "The tool broke off because of a fault in Mainstay ({error}). Look at what it was to do before trying again."
        ))
    })
}

/// Like [`blocking`], for work whose failures are outcomes too.
pub(super) async fn outcome(
    work: impl FnOnce(&Stop) -> Result<Outcome, Outcome> + Send + 'static,
) -> Outcome {
    match blocking(work).await {
        Ok(Ok(outcome) | Err(outcome)) | Err(outcome) => outcome,
    }
}

struct Ends {
    stop: Stop,
    task: AbortHandle,
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.stop.set();
        self.task.abort();
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
        let future = blocking(move |stop| {
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
        let broken = outcome(|_| panic!("on purpose")).await;
        assert!(broken.failed);
    }
}
