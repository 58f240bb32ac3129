//! The queue before the writer: who waits, who leads, and the hand-over between them.
//!
//! A caller that finds nobody committing leads: it takes everything that waits, its own
//! transaction included, and commits it as one batch. The others sleep until they are answered,
//! or until they are asked to lead the next batch. There is no writer thread, so a lone caller
//! pays for no hand-over at all.

#![allow(unsafe_code, reason = "a leader runs closures that borrow from their callers' stacks")]

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};
use std::time::Duration;

use crate::clock::uptime;
use crate::lock::lock;
use crate::store::Outlasts;
use crate::tx::{Job, WriteTx};
use crate::{Error, Result};

/// The most transactions one commit carries.
const BATCH: usize = 256;

/// How many more batches a leader commits for others after its own, before it hands over: a
/// hand-over wakes a thread, which costs as much as a commit.
const EXTRA_BATCHES: usize = 4;

/// After a batch that took this long the leader's own caller has waited enough.
const SLOW: Duration = Duration::from_millis(20);

#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Arc<Ticket>>,
    led: bool,
}

/// A caller's place in the queue.
pub(super) struct Ticket {
    job: Mutex<Erased>,
    /// What its commit must outlast.
    pub(super) outlasts: Outlasts,
    caller: Thread,
    stage: AtomicU8,
    outcome: Mutex<Option<Result<()>>>,
}

const WAITING: u8 = 0;
const LEADING: u8 = 1;
const ANSWERED: u8 = 2;

struct Erased(*mut Job<'static>);

// SAFETY: the closure is `Send`, and only the thread that holds the ticket's lock runs it.
unsafe impl Send for Erased {}

impl Queue {
    /// Queues `job` and returns when it is answered. `commit` runs one batch and answers every
    /// ticket of it; it is called by whichever caller leads. It answers an error that goes for
    /// everybody who waits.
    pub(super) fn submit(
        &self,
        job: &mut Job<'_>,
        outlasts: Outlasts,
        commit: impl Fn(&[Arc<Ticket>]) -> Option<Error>,
    ) -> Result<()> {
        // SAFETY: only the lifetime changes. This function returns after the ticket is answered,
        // and an answered ticket's job is never run again; so the closure outlives its last run.
        let job: *mut Job<'static> = unsafe { mem::transmute(std::ptr::from_mut(job)) };
        let ticket = Arc::new(Ticket {
            job: Mutex::new(Erased(job)),
            outlasts,
            caller: thread::current(),
            stage: AtomicU8::new(WAITING),
            outcome: Mutex::new(None),
        });
        let leads = {
            let mut state = lock(&self.state);
            state.waiting.push_back(ticket.clone());
            !mem::replace(&mut state.led, true)
        };
        if leads || ticket.wait() == LEADING {
            self.lead(&ticket, commit);
        }
        lock(&ticket.outcome).take().unwrap_or_else(|| {
            Err(Error::OutcomeUnknown("the writer went away without an answer".to_owned()))
        })
    }

    fn lead(&self, own: &Arc<Ticket>, commit: impl Fn(&[Arc<Ticket>]) -> Option<Error>) {
        let _abdication = Abdication(self);
        let mut extra = 0;
        loop {
            let batch: Vec<Arc<Ticket>> = {
                let mut state = lock(&self.state);
                let taken = state.waiting.len().min(BATCH);
                state.waiting.drain(..taken).collect()
            };
            let began = uptime();
            let answers = Answers(&batch);
            let refused = commit(&batch);
            drop(answers);
            let mut state = lock(&self.state);
            if let Some(error) = refused {
                // Who waits behind would wait in vain as long again.
                for ticket in state.waiting.drain(..) {
                    ticket.answer(Err(error.clone()));
                }
            }
            let slow = uptime().saturating_sub(began) > SLOW;
            if state.waiting.is_empty() || (own.is_answered() && (slow || extra >= EXTRA_BATCHES)) {
                // The abdication hands over to whoever waits.
                return;
            }
            extra += usize::from(own.is_answered());
        }
    }
}

/// Gives the lead away, also when the leader unwinds.
struct Abdication<'a>(&'a Queue);

impl Drop for Abdication<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        match state.waiting.front() {
            Some(heir) => heir.move_to(LEADING),
            None => state.led = false,
        }
    }
}

/// Answers whoever of a batch was left without an answer by a panic of the writer itself.
struct Answers<'a>(&'a [Arc<Ticket>]);

impl Drop for Answers<'_> {
    fn drop(&mut self) {
        for ticket in self.0.iter().filter(|ticket| !ticket.is_answered()) {
            ticket.answer(Err(Error::OutcomeUnknown("the writer failed".to_owned())));
        }
    }
}

impl Ticket {
    /// Runs the job. Only for the leader, and only before the ticket is answered.
    pub(super) fn run(&self, tx: &mut WriteTx<'_>) -> bool {
        let guard = lock(&self.job);
        let job = guard.0;
        // SAFETY: the caller is still inside `submit`, because the ticket is not answered, so the
        // closure is alive; the lock makes this the only reference to it.
        unsafe { (*job)(tx) }
    }

    /// Lets the caller go on. Its closure must not be touched after this.
    pub(super) fn answer(&self, outcome: Result<()>) {
        *lock(&self.outcome) = Some(outcome);
        self.move_to(ANSWERED);
    }

    fn is_answered(&self) -> bool {
        self.stage.load(Ordering::Acquire) == ANSWERED
    }

    fn move_to(&self, stage: u8) {
        self.stage.store(stage, Ordering::Release);
        // A leader that answers itself need not be woken.
        if self.caller.id() != thread::current().id() {
            self.caller.unpark();
        }
    }

    fn wait(&self) -> u8 {
        loop {
            match self.stage.load(Ordering::Acquire) {
                WAITING => thread::park(),
                stage => return stage,
            }
        }
    }
}
