//! Keeps the write-ahead log small without holding up anybody.
//!
//! SQLite's automatic checkpoints are off: they run on the caller's time and swallow their
//! errors. Here a thread, started when the log first grows, copies it into the database beside
//! the writers (PASSIVE), and empties it when nobody has written for a while (TRUNCATE). Above a
//! cap the writer itself makes the log start over.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use super::connection::{Link, Role};
use super::files::Files;
use super::turnstile::Turnstile;
use crate::lock::lock;

/// Frames (4 MiB) after which the log is copied.
const PASSIVE_FRAMES: u32 = 1000;
/// How long nothing was written before the log is emptied.
const IDLE: Duration = Duration::from_secs(2);

/// How long emptying the log waits for readers; writers wait with it.
const PATIENCE: Duration = Duration::from_millis(50);

pub(super) struct Checkpointer {
    work: Arc<Work>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Work {
    files: Files,
    /// Knows how far some process has copied.
    turnstile: Arc<Turnstile>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Frames in the log after the last commit of this process.
    frames: u32,
    stop: bool,
    /// Asks the thread to open its connection anew.
    close: bool,
}

enum CheckpointTask {
    Close,
    Copy,
    Empty,
    Stop,
}

impl Checkpointer {
    pub(super) fn new(files: Files, turnstile: Arc<Turnstile>) -> Self {
        let work = Work { files, turnstile, state: Mutex::default(), changed: Condvar::new() };
        Self { work: Arc::new(work), thread: Mutex::new(None) }
    }

    /// Takes note of the log's length after a commit.
    pub(super) fn note(&self, frames: u32) {
        let mut state = lock(&self.work.state);
        state.frames = frames;
        if !self.work.is_due(frames) {
            return;
        }
        drop(state);
        self.work.changed.notify_one();
        let mut thread = lock(&self.thread);
        if thread.is_none() {
            let work = Arc::downgrade(&self.work);
            let spawned = std::thread::Builder::new()
                .name("checkpointer".to_owned())
                .spawn(move || keep_small(&work));
            match spawned {
                Ok(handle) => *thread = Some(handle),
                // The writer's own cap still bounds the log.
                Err(error) => tracing::error!(%error, "no thread for the checkpointer"),
            }
        }
    }
}

impl Checkpointer {
    /// Closes the connection; the next step opens a new one.
    pub(super) fn close(&self) {
        lock(&self.work.state).close = true;
        self.work.changed.notify_one();
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        lock(&self.work.state).stop = true;
        self.work.changed.notify_one();
        if let Some(thread) = lock(&self.thread).take() {
            // A panic there was reported when it happened.
            let _ = thread.join();
        }
    }
}

fn keep_small(work: &Weak<Work>) {
    let mut link = None;
    while let Some(work) = work.upgrade() {
        let mode = match work.next_task() {
            CheckpointTask::Close => {
                link = None;
                continue;
            }
            CheckpointTask::Copy => "PASSIVE",
            CheckpointTask::Empty => "TRUNCATE",
            CheckpointTask::Stop => return,
        };
        let outcome = match link.take() {
            Some(link) => Ok(link),
            None => work
                .files
                .refuse_replaced()
                .and_then(|()| Link::open(&work.files.database, Role::Writer)),
        };
        match outcome {
            Ok(open) => match open.checkpoint(mode, PATIENCE) {
                Ok(_) => link = Some(open),
                Err(error) => tracing::error!(%error, mode, "a checkpoint failed"),
            },
            Err(error) => tracing::error!(%error, mode, "a checkpoint could not begin"),
        }
    }
}

impl Work {
    /// Whether the log has grown enough since some process last copied it.
    fn is_due(&self, frames: u32) -> bool {
        let copied = self.turnstile.copied_frames();
        let before = copied.load(Ordering::Relaxed);
        if frames < before {
            // It has started over.
            copied.store(0, Ordering::Relaxed);
            return frames >= PASSIVE_FRAMES;
        }
        frames >= before.saturating_add(PASSIVE_FRAMES)
    }

    /// Waits until there is something to do.
    fn next_task(&self) -> CheckpointTask {
        let mut state = lock(&self.state);
        loop {
            if state.stop {
                return CheckpointTask::Stop;
            }
            if std::mem::take(&mut state.close) {
                return CheckpointTask::Close;
            }
            if self.is_due(state.frames) {
                self.turnstile.copied_frames().store(state.frames, Ordering::Relaxed);
                return CheckpointTask::Copy;
            }
            let before = state.frames;
            let waited = self.changed.wait_timeout(state, IDLE);
            let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = guard;
            if timeout.timed_out() && state.frames == before && before > 0 {
                state.frames = 0;
                return CheckpointTask::Empty;
            }
        }
    }
}
