//! PostgreSQL: one store for many hosts.
//!
//! Every closure is a SERIALIZABLE transaction on a connection of its own and runs again when it
//! loses against another. One that keeps losing waits for its turn instead. The server groups
//! commits itself.

mod copy;
mod create;
mod doubt;
mod failure;
mod listen;
mod pool;
mod server;
mod session;
mod sql;
mod swap;
mod wire;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use url::Url;

pub(crate) use copy::PostgresCopy;
pub(crate) use swap::Swap;

use doubt::{Doubt, Fate, forget_old_tokens, resolve};
use failure::Fault;
use listen::notification;
use pool::{Loan, Pool};
use server::Server;
use session::{PostgresSession, Setback, Turn};
use wire::{Wire, answer};

use crate::clock::{Clock, Deadline};
use crate::hub::Hub;
use crate::lock::lock;
use crate::means::{refuse_without_descriptors, refuse_without_thread};
use crate::panic_text::panic_text;
use crate::schema::Schema;
use crate::store::{Limits, Options};
use crate::tx::{Job, ReadTx, WriteTx};
use crate::{Error, Id, Result};

/// After so many losses a transaction takes the turn, which serialises it with its like.
const LOSSES_BEFORE_TURN: u32 = 3;

/// How many commits there are between two removals of old tokens.
const COMMITS_BETWEEN_SWEEPS: u64 = 1000;

/// What upkeep may take.
const UNLIMITED: Duration = Duration::from_secs(3600);

/// A store on a server.
pub(crate) struct Postgres {
    pool: Pool,
    schema: Schema,
    limits: Limits,
    clock: Arc<dyn Clock>,
    hub: Arc<Hub>,
    hears: Mutex<bool>,
    commits: AtomicU64,
    /// Last, so that connections are closed before it goes; given up in `drop`.
    runtime: Option<Runtime>,
}

/// How one attempt at a transaction ended.
enum Attempt {
    /// It is over; this is the answer.
    Over(Result<()>),
    /// Run it again.
    Again(Setback),
    /// Run it again in its turn, as it asked.
    OutOfTurn,
    /// It may be committed.
    InDoubt(Doubt),
}

impl Postgres {
    pub(crate) fn open(url: &Url, schema: &str, options: &Options, hub: Arc<Hub>) -> Result<Self> {
        let runtime = runtime()?;
        let server = Server::new(url, schema, options.limits, runtime.handle().clone())?;
        let postgres = Self {
            pool: Pool::new(server),
            schema: options.schema.clone(),
            limits: options.limits,
            clock: options.clock.clone(),
            hub,
            hears: Mutex::new(false),
            commits: AtomicU64::new(0),
            runtime: Some(runtime),
        };
        let place = format!("{} (schema {schema})", postgres.pool.server.address);
        create::ensure(&postgres.pool.server, &place, options)?;
        Ok(postgres)
    }

    /// Writes. A server that cannot be reached is waited for as long as `outage`.
    pub(crate) fn write(&self, job: &mut Job<'_>, outage: Duration) -> Result<()> {
        let outage = Deadline::after(outage);
        let mut deadline = Deadline::after(self.limits.write);
        let mut losses = 0;
        loop {
            let mut loan = self.pool.take(outage)?;
            let setback = match self.attempt(loan.wire()?, job, losses >= LOSSES_BEFORE_TURN) {
                Attempt::Over(answer) => {
                    self.sometimes_forget_tokens(loan);
                    return answer;
                }
                Attempt::Again(Setback::Lost) => {
                    loan.give_back();
                    Setback::Lost
                }
                Attempt::Again(broken) => broken,
                Attempt::OutOfTurn => {
                    loan.give_back();
                    losses = losses.max(LOSSES_BEFORE_TURN);
                    continue;
                }
                Attempt::InDoubt(doubt) => {
                    drop(loan);
                    match resolve(&self.pool, &doubt, outage)? {
                        Fate::Committed => return Ok(()),
                        Fate::Aborted => Setback::Broken(doubt.reason),
                    }
                }
            };
            losses += 1;
            deadline = self.pause(setback, losses, deadline, outage)?;
        }
    }

    /// Reads. A server that cannot be reached is waited for as long as `outage`.
    pub(crate) fn read(
        &self,
        now: i64,
        job: &mut dyn FnMut(&mut ReadTx<'_>),
        outage: Duration,
    ) -> Result<()> {
        let outage = Deadline::after(outage);
        let mut deadline = Deadline::after(self.limits.write);
        let mut losses = 0;
        loop {
            let mut loan = self.pool.take(outage)?;
            match self.attempt_read(loan.wire()?, self.limits.read, now, job) {
                Ok(answer) => {
                    loan.give_back();
                    return answer;
                }
                Err(setback) => {
                    if matches!(setback, Setback::Lost) {
                        loan.give_back();
                    }
                    losses += 1;
                    deadline = self.pause(setback, losses, deadline, outage)?;
                }
            }
        }
    }

    pub(crate) fn read_unlimited(
        &self,
        now: i64,
        job: &mut dyn FnMut(&mut ReadTx<'_>),
    ) -> Result<()> {
        let mut wire = self.pool.server.connect(Deadline::after(self.limits.connect))?;
        match self.attempt_read(&mut wire, UNLIMITED, now, job) {
            Ok(answer) => answer,
            Err(Setback::Lost) => Err(Error::Statement("the read lost against a write".to_owned())),
            Err(Setback::Broken(detail)) => {
                Err(Error::Unreachable { server: self.pool.server.address.to_string(), detail })
            }
        }
    }

    /// Makes the room of deleted rows usable again, and gives back what is at the end of a table. Others
    /// go on meanwhile.
    pub(crate) fn vacuum(&self) -> Result<()> {
        let server = &self.pool.server;
        let wire = server.connect(Deadline::after(self.limits.connect))?;
        let run = |sql: &str| {
            wire.simple(UNLIMITED, sql).map_err(|fault| match fault {
                Fault::Refused(error) => error,
                Fault::Broken(detail) => {
                    Error::Unreachable { server: server.address.to_string(), detail }
                }
                Fault::Lost => Error::Statement(format!("the server broke this off: {sql}")),
            })
        };
        run("SET statement_timeout = 0")?;
        let tables = run("SELECT quote_ident(relname) FROM pg_catalog.pg_class
             WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace")?;
        for table in tables.into_iter().flatten().flatten() {
            run(&format!("VACUUM {table}"))?;
        }
        Ok(())
    }

    /// Who else has the store open.
    pub(crate) fn others(&self) -> Result<Vec<String>> {
        let server = &self.pool.server;
        server.others(&server.connect(Deadline::after(self.limits.connect))?)
    }

    /// Starts to hear of other processes' commits; returns when it does.
    pub(crate) fn hear(&self) -> Result<()> {
        let mut hears = lock(&self.hears);
        if *hears {
            return Ok(());
        }
        let Some(runtime) = &self.runtime else { return Ok(()) };
        let (say, heard) = oneshot::channel();
        runtime.spawn(listen::hear(self.pool.server.clone(), self.hub.clone(), say));
        *hears = true;
        if answer(runtime.handle(), self.limits.connect, heard).is_none() {
            // It goes on trying; meanwhile the slow poll stands in.
            tracing::warn!("no wake-ups from the database server yet");
        }
        Ok(())
    }

    fn attempt(&self, wire: &mut Wire, job: &mut Job<'_>, in_turn: bool) -> Attempt {
        let limit = self.limits.write;
        let turn = if in_turn { "LOCK TABLE engine_turn IN EXCLUSIVE MODE;" } else { "" };
        let token = Id::new().to_string();
        let begin = format!(
            "BEGIN ISOLATION LEVEL SERIALIZABLE; {turn}
             SELECT '', pg_current_xact_id()::text UNION ALL
             SELECT component, version::text FROM schema_versions;
             INSERT INTO engine_commits (token, at)
             VALUES ('{token}', CAST(extract(epoch FROM now()) AS BIGINT))"
        );
        let rows = match wire.simple(limit, &begin) {
            Ok(rows) => rows,
            Err(fault) => return stopped(wire, limit, fault),
        };
        let (transaction, versions) = begun(rows);
        if let Err(error) = self.schema.check(&versions) {
            return rolled_back(wire, limit, Err(error));
        }
        let turn = if in_turn { Turn::Taken } else { Turn::No };
        let mut session = PostgresSession { wire, limit, setback: None, turn };
        let mut tx = WriteTx::new(&mut session, self.clock.wall_millis());
        let verdict = catch_unwind(AssertUnwindSafe(|| job(&mut tx)));
        let failure = tx.failure().map(str::to_owned);
        let topics = tx.take_topics();
        match session.setback.take() {
            Some(Setback::Lost) => {
                return match rolled_back(wire, limit, Ok(())) {
                    Attempt::Over(_) => Attempt::Again(Setback::Lost),
                    again => again,
                };
            }
            Some(broken) => return Attempt::Again(broken),
            None => {}
        }
        if session.turn == Turn::Wanted {
            return match rolled_back(wire, limit, Ok(())) {
                Attempt::Over(_) => Attempt::OutOfTurn,
                again => again,
            };
        }
        match (verdict, failure) {
            (Err(panic), _) => {
                let text = panic_text(panic.as_ref());
                return rolled_back(wire, limit, Err(Error::Panicked(text)));
            }
            // The closure's own error is its caller's answer.
            (Ok(false), _) => return rolled_back(wire, limit, Ok(())),
            (Ok(true), Some(failure)) => {
                return rolled_back(wire, limit, Err(Error::Statement(failure)));
            }
            (Ok(true), None) => {}
        }
        let notify = if topics.is_empty() {
            String::new()
        } else {
            notification(self.pool.server.schema(), &topics)
        };
        match wire.simple(limit, &format!("{notify} COMMIT")) {
            Ok(_) => Attempt::Over(Ok(())),
            Err(Fault::Broken(reason)) => Attempt::InDoubt(Doubt {
                transaction,
                token,
                backend: wire.backend,
                name: wire.name.clone(),
                reason,
            }),
            Err(fault) => stopped(wire, limit, fault),
        }
    }

    fn attempt_read(
        &self,
        wire: &mut Wire,
        limit: Duration,
        now: i64,
        job: &mut dyn FnMut(&mut ReadTx<'_>),
    ) -> Result<Result<()>, Setback> {
        let begin = format!(
            "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY; SET LOCAL statement_timeout = {0};
             SET LOCAL idle_in_transaction_session_timeout = {0}",
            limit.as_millis()
        );
        let over = |attempt| match attempt {
            Attempt::Over(answer) => Ok(answer),
            Attempt::Again(setback) => Err(setback),
            // Only a write asks for its turn.
            Attempt::OutOfTurn => Err(Setback::Lost),
            Attempt::InDoubt(doubt) => Err(Setback::Broken(doubt.reason)),
        };
        if let Err(fault) = wire.simple(limit, &begin) {
            return over(stopped(wire, limit, fault));
        }
        let mut session = PostgresSession { wire, limit, setback: None, turn: Turn::No };
        let mut tx = ReadTx::new(&mut session, now);
        let verdict = catch_unwind(AssertUnwindSafe(|| job(&mut tx)));
        match session.setback.take() {
            Some(Setback::Lost) => {
                over(rolled_back(wire, limit, Ok(())))?.ok();
                return Err(Setback::Lost);
            }
            Some(broken) => return Err(broken),
            None => {}
        }
        let answer = verdict.map_err(|panic| Error::Panicked(panic_text(panic.as_ref())));
        over(rolled_back(wire, limit, answer))
    }

    /// Gives the connection back; after every so many commits it removes old tokens first.
    fn sometimes_forget_tokens(&self, mut loan: Loan<'_>) {
        let due =
            self.commits.fetch_add(1, Ordering::Relaxed).is_multiple_of(COMMITS_BETWEEN_SWEEPS);
        let swept = if due { loan.wire().and_then(|wire| forget_old_tokens(wire)) } else { Ok(()) };
        match swept {
            Ok(()) => loan.give_back(),
            Err(error) => tracing::warn!(%error, "old commit tokens were not removed"),
        }
    }

    /// Waits a little before the next attempt, or gives up. Answers until when attempts may lose against
    /// others, a time that begins anew once the server is there again.
    fn pause(
        &self,
        setback: Setback,
        losses: u32,
        deadline: Deadline,
        outage: Deadline,
    ) -> Result<Deadline> {
        let pause = Duration::from_millis(1 << losses.min(6)).mul_f64(fastrand::f64());
        let (until, next) = match setback {
            Setback::Lost => (deadline, deadline),
            Setback::Broken(_) => (outage, Deadline::after(self.limits.write)),
        };
        if until.left() > pause {
            std::thread::sleep(pause);
            return Ok(next);
        }
        Err(match setback {
            Setback::Lost => Error::TooSlow {
                what: "a transaction that kept losing against others".to_owned(),
                limit: self.limits.write,
            },
            Setback::Broken(detail) => {
                Error::Unreachable { server: self.pool.server.address.to_string(), detail }
            }
        })
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Never blocks, so a store may be dropped anywhere.
            runtime.shutdown_background();
        }
    }
}

/// The thread that drives connections.
fn runtime() -> Result<Runtime> {
    refuse_without_thread()
        .and_then(|()| refuse_without_descriptors())
        .and_then(|()| {
            tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .thread_name("postgres")
                .enable_all()
                .build()
        })
        .map_err(|error| Error::Io(format!("no thread for the database driver: {error}")))
}

/// Ends a transaction that was not begun or not committed.
fn stopped(wire: &Wire, limit: Duration, fault: Fault) -> Attempt {
    match fault {
        Fault::Broken(detail) => Attempt::Again(Setback::Broken(detail)),
        Fault::Refused(error) => rolled_back(wire, limit, Err(error)),
        Fault::Lost => match rolled_back(wire, limit, Ok(())) {
            Attempt::Over(_) => Attempt::Again(Setback::Lost),
            again => again,
        },
    }
}

fn rolled_back(wire: &Wire, limit: Duration, answer: Result<()>) -> Attempt {
    match wire.simple(limit, "ROLLBACK") {
        Ok(_) => Attempt::Over(answer),
        Err(Fault::Broken(detail)) => Attempt::Again(Setback::Broken(detail)),
        Err(_) => Attempt::Again(Setback::Broken("the transaction could not be ended".to_owned())),
    }
}

/// The transaction's number, and the versions of the schema's components.
fn begun(rows: Vec<Vec<Option<String>>>) -> (String, Vec<(String, i64)>) {
    let mut transaction = String::new();
    let mut versions = Vec::new();
    for row in rows {
        if let [Some(component), Some(value)] = row.as_slice() {
            if component.is_empty() {
                transaction.clone_from(value);
            } else if let Ok(version) = value.parse() {
                versions.push((component.clone(), version));
            }
        }
    }
    (transaction, versions)
}
