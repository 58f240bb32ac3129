//! The writer: takes turns with other processes and commits batches.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::ahead::Room;
use super::batch::{Batch, Cause, Ready};
use super::checkpoint::Checkpointer;
use super::connection::{Link, Role};
use super::failure::{certainly_not_committed, described};
use super::files::Files;
use super::ledger::{Settled, WriterName, settle};
use super::queue::{Queue, Ticket};
use super::readers::Readers;
use super::turnstile::Turnstile;
use super::wake::Wake;
use crate::clock::Clock;
use crate::location::Journal;
use crate::lock::lock;
use crate::schema::Schema;
use crate::store::{Limits, Outlasts};
use crate::tx::Job;
use crate::{Error, Result};

/// Above this many frames (10 MiB) the writer itself makes the write-ahead log start over.
const RESTART_FRAMES: u32 = 2500;

/// How long writers wait for readers when the log should start over. Reads are short; a backup is
/// not, and the log grows while one runs.
const PATIENCE_WITH_READERS: Duration = Duration::from_millis(250);

/// How long they then do not wait again.
const STUCK_MILLIS: i64 = 1000;

pub(super) struct Writer {
    queue: Queue,
    core: Mutex<Core>,
}

/// What only the leader touches.
struct Core {
    files: Files,
    schema: Schema,
    clock: Arc<dyn Clock>,
    limits: Limits,
    turnstile: Arc<Turnstile>,
    checkpointer: Arc<Checkpointer>,
    readers: Arc<Readers>,
    wake: Arc<Wake>,
    name: WriterName,
    number: i64,
    open: Option<Open>,
    /// The files are not the ones that were opened; nothing is written any more.
    replaced: bool,
    /// Until this uptime the log is not made to start over: the last attempt was in vain.
    stuck_until: i64,
}

/// The writing connection and what it was opened on.
struct Open {
    link: Link,
    /// Whether the file has a write-ahead log.
    has_log: bool,
    frames: Arc<AtomicU32>,
    room: Room,
    /// The changes of others with which the schema was last looked at.
    checked: Cell<Option<i64>>,
    wal: Option<(u64, u64)>,
    /// When the log's identity was last looked at, by uptime.
    looked_at: i64,
    fresh: bool,
}

/// How often the identity of the log is looked at. Not before every batch: reading the times of a
/// file that is being written makes the kernel write them with the next sync, which then takes
/// half as long again. That the log is still there is asked every time.
const LOOK_EVERY_MILLIS: i64 = 1000;

/// What a writer works with.
pub(super) struct Setting {
    pub(super) files: Files,
    pub(super) schema: Schema,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) limits: Limits,
    pub(super) turnstile: Arc<Turnstile>,
    pub(super) checkpointer: Arc<Checkpointer>,
    pub(super) readers: Arc<Readers>,
    pub(super) wake: Arc<Wake>,
}

impl Writer {
    pub(super) fn new(setting: Setting) -> Self {
        let Setting { files, schema, clock, limits, turnstile, checkpointer, readers, wake } =
            setting;
        let core = Core {
            files,
            schema,
            clock,
            limits,
            turnstile,
            checkpointer,
            readers,
            wake,
            name: WriterName::new(),
            number: 0,
            open: None,
            replaced: false,
            stuck_until: i64::MIN,
        };
        Self { queue: Queue::default(), core: Mutex::new(core) }
    }

    pub(super) fn write(&self, job: &mut Job<'_>, outlasts: Outlasts) -> Result<()> {
        self.queue.submit(job, outlasts, |tickets| lock(&self.core).commit(tickets))
    }

    /// Closes the connection; the next batch opens a new one.
    pub(super) fn close(&self) {
        lock(&self.core).open = None;
    }
}

impl Core {
    /// Commits what waits and answers every ticket of it. Answers an error when the turn cannot be
    /// had, which goes for whoever waits behind too.
    fn commit(&mut self, tickets: &[Arc<Ticket>]) -> Option<Error> {
        let turnstile = self.turnstile.clone();
        let mut turn = match turnstile.enter(self.limits.write) {
            Ok(turn) => Some(turn),
            Err(error) => {
                answer_all(tickets, &error);
                return Some(error);
            }
        };
        let mut left = tickets.to_vec();
        let mut topics = BTreeSet::new();
        let mut look = Look::First;
        while !left.is_empty() {
            match self.attempt(&left, look) {
                Attempt::Done(ready) => {
                    topics.extend(ready.topics);
                    let done: Vec<Arc<Ticket>> = left.drain(..ready.answers.len()).collect();
                    let frames = self.frames();
                    // The callers need not wait for what is only upkeep, nor others for the callers.
                    if left.is_empty() && frames < RESTART_FRAMES {
                        drop(turn.take());
                    }
                    answer(&done, ready.answers);
                    if frames < RESTART_FRAMES {
                        self.checkpointer.note(frames);
                    } else {
                        self.start_over();
                    }
                }
                Attempt::Misread => look = Look::Second,
                Attempt::Without(index, outcome) => left.remove(index).answer(outcome),
                Attempt::Failed(error) => {
                    answer_all(&left, &error);
                    left.clear();
                }
            }
        }
        drop(turn);
        if !topics.is_empty() {
            self.wake.send(&topics);
        }
        None
    }

    fn attempt(&mut self, tickets: &[Arc<Ticket>], look: Look) -> Attempt {
        let open = match self.opened() {
            Ok(open) => open,
            Err(error) => return Attempt::Failed(error),
        };
        // Only with a write-ahead log is the file whole without a sync.
        let synced =
            !open.has_log || tickets.iter().any(|ticket| ticket.outlasts == Outlasts::PowerLoss);
        if !synced && let Err(error) = open.link.sync_commits(false) {
            return Attempt::Failed(described(&self.files.database, &error, self.limits.write));
        }
        let attempt = self.attempt_on(open, tickets, look);
        // One that cannot be told to sync again is not used again.
        if !synced && self.open.as_ref().is_some_and(|open| open.link.sync_commits(true).is_err()) {
            self.open = None;
        }
        attempt
    }

    fn attempt_on(&mut self, mut open: Open, tickets: &[Arc<Ticket>], look: Look) -> Attempt {
        self.number += 1;
        let batch = Batch {
            link: &open.link,
            path: &self.files.database,
            schema: &self.schema,
            writer: self.name.as_str(),
            number: self.number,
            first: open.fresh,
            frames: open.frames.load(Ordering::Relaxed),
            room: &open.room,
            checked: &open.checked,
            now: self.clock.wall_millis(),
            limit: self.limits.write,
        };
        let ready = match batch.prepare(tickets) {
            Ok(ready) => ready,
            Err(fallen) => {
                let reusable = !fallen.spoilt && batch.roll_back().is_ok();
                if reusable {
                    self.open = Some(open);
                } else {
                    drop(open);
                    self.make_room(fallen.full);
                }
                if fallen.misread && look == Look::First {
                    return Attempt::Misread;
                }
                return match fallen.cause {
                    Cause::Store(error) => Attempt::Failed(error),
                    Cause::Ticket(index, outcome) => Attempt::Without(index, outcome),
                };
            }
        };
        let ended = if ready.keeps { batch.commit() } else { batch.roll_back() };
        match ended {
            Ok(()) => {
                open.fresh = false;
                self.open = Some(open);
                Attempt::Done(ready)
            }
            Err(error) => {
                drop(open);
                self.settled(ready, &error)
            }
        }
    }

    /// The truth after a COMMIT that failed with `error`.
    fn settled(&mut self, ready: Ready, error: &rusqlite::Error) -> Attempt {
        let reason = described(&self.files.database, error, self.limits.write);
        if certainly_not_committed(error) {
            self.make_room(matches!(reason, Error::Full(_)));
            return Attempt::Failed(reason);
        }
        tracing::warn!(%error, "a commit failed; asking the store what became of it");
        // Locks that a failed call left behind go only with the last connection.
        self.readers.close();
        self.checkpointer.close();
        let number = self.number;
        self.number += 1;
        let settled = match self.files.refuse_replaced() {
            Ok(()) => settle(&self.files.database, self.name.as_str(), number),
            Err(error) => Settled::Unknown(error.to_string()),
        };
        match settled {
            Settled::Committed => Attempt::Done(ready),
            Settled::NotCommitted => Attempt::Failed(reason),
            Settled::Unknown(detail) => {
                Attempt::Failed(Error::OutcomeUnknown(format!("{reason}; {detail}")))
            }
        }
    }

    /// On a full disk the log may be most of what there is: it is emptied for the next attempt.
    fn make_room(&self, full: bool) {
        if full && let Ok(link) = Link::open(&self.files.database, Role::Writer) {
            // The caller is told that the disk is full in any case.
            let _ = link.checkpoint("TRUNCATE", PATIENCE_WITH_READERS);
        }
    }

    /// The writing connection, taken out; checked to be still on the files it was opened on. Once
    /// they were replaced, this store takes no more writes: it would lay its log over another's.
    fn opened(&mut self) -> Result<Open> {
        let mut taken = self.open.take();
        let same = !self.replaced
            && self.files.refuse_replaced().is_ok()
            && taken.as_mut().is_none_or(|open| self.has_its_log(open));
        if !same {
            self.replaced = true;
            return Err(Error::Replaced { path: self.files.database.clone() });
        }
        if let Some(open) = taken {
            return Ok(open);
        }
        let mut link = Link::open(&self.files.database, Role::Writer)?;
        let frames = Arc::new(AtomicU32::new(0));
        let seen = frames.clone();
        link.connection
            .wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages: i32| {
                seen.store(pages.cast_unsigned(), Ordering::Relaxed);
                Ok(())
            }))
            .map_err(|error| described(&self.files.database, &error, Duration::ZERO))?;
        let has_log = link.journal(&self.files.database)? == Journal::Wal;
        Ok(Open {
            link,
            has_log,
            frames,
            room: Room::default(),
            checked: Cell::default(),
            wal: None,
            looked_at: i64::MIN / 2,
            fresh: true,
        })
    }

    /// Whether the write-ahead log is the one this connection writes to.
    fn has_its_log(&self, open: &mut Open) -> bool {
        let wal = self.files.wal();
        let now = self.clock.uptime_millis();
        if now < open.looked_at + LOOK_EVERY_MILLIS {
            return open.wal.is_none()
                || rustix::fs::access(&wal, rustix::fs::Access::EXISTS).is_ok();
        }
        let found = Files::new(&wal).identity();
        let same = open.wal.is_none() || open.wal == found;
        open.wal = found;
        open.looked_at = now;
        same
    }

    fn frames(&self) -> u32 {
        self.open.as_ref().map_or(0, |open| open.frames.load(Ordering::Relaxed))
    }

    /// Makes the write-ahead log start over, waiting a moment for readers to let go of it.
    fn start_over(&mut self) {
        let now = self.clock.uptime_millis();
        if now < self.stuck_until {
            return;
        }
        let Some(open) = &self.open else { return };
        open.link.limit(None);
        match open.link.checkpoint("RESTART", PATIENCE_WITH_READERS) {
            Ok(true) => open.frames.store(0, Ordering::Relaxed),
            Ok(false) => {
                self.stuck_until = now + STUCK_MILLIS;
                tracing::warn!("a long read keeps the write-ahead log from starting over");
            }
            Err(error) => {
                tracing::error!(%error, "the write-ahead log could not be written out");
                self.open = None;
            }
        }
    }
}

/// How often a batch was begun: damage is believed at the second look.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    First,
    Second,
}

enum Attempt {
    Done(Ready),
    /// A page could not be read, or is broken; the batch goes again on a new connection.
    Misread,
    /// One ticket brought the batch down; the others go again.
    Without(usize, Result<()>),
    Failed(Error),
}

fn answer(tickets: &[Arc<Ticket>], answers: Vec<Result<()>>) {
    for (ticket, outcome) in tickets.iter().zip(answers) {
        ticket.answer(outcome);
    }
}

fn answer_all(tickets: &[Arc<Ticket>], error: &Error) {
    for ticket in tickets {
        ticket.answer(Err(error.clone()));
    }
}
