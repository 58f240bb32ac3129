//! The store's face.

use std::cell::Cell;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::clock::{self, Clock};
use crate::hub::{Hub, Listener};
use crate::lease::Observations;
use crate::lease_keeper::LeaseKeeper;
use crate::location::Location;
use crate::postgres::Postgres;
use crate::schema::Schema;
use crate::sqlite::Sqlite;
use crate::tx::{ReadTx, WriteTx};
use crate::{Error, Result};

/// A store. Clones share it; when the last one goes, its connections close.
///
/// Calls block the calling thread until they are done, within [`Limits`]. Asynchronous code calls
/// them from a thread that may block.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) engine: Engine,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) location: Location,
    pub(crate) options: Options,
    pub(crate) observations: Observations,
    pub(crate) lease_keeper: OnceLock<LeaseKeeper>,
}

/// What a commit outlasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outlasts {
    /// The process that makes it, however it ends.
    Process,
    /// Also a machine that loses its power.
    PowerLoss,
}

pub(crate) enum Engine {
    Sqlite(Box<Sqlite>),
    Postgres(Box<Postgres>),
}

/// How a store is opened.
#[derive(Clone)]
pub struct Options {
    pub(crate) schema: Schema,
    pub(crate) create: bool,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Limits,
    /// Where files that are being made are written down.
    pub(crate) records: Option<PathBuf>,
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The statements of a read, which are interrupted then. While a read runs the write-ahead log
    /// cannot start over.
    pub read: Duration,
    /// The wait for a write's turn while nobody else's write ends, and then its statements.
    pub write: Duration,
    /// Reaching a database server, when the store is opened.
    pub connect: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            read: Duration::from_secs(2),
            write: Duration::from_secs(10),
            connect: Duration::from_secs(5),
        }
    }
}

impl Options {
    /// Opens with this schema, and creates the store if there is none.
    pub fn new(schema: Schema) -> Self {
        let (clock, limits) = (clock::system(), Limits::default());
        Self { schema, create: true, clock, limits, records: None }
    }

    /// Opens only a store that exists.
    #[must_use]
    pub fn existing(self) -> Self {
        Self { create: false, ..self }
    }

    /// Uses other limits.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Writes down in this directory what is being made, for [`unfinished::clear_up`].
    ///
    /// [`unfinished::clear_up`]: crate::unfinished::clear_up
    #[must_use]
    pub fn records(self, directory: impl Into<PathBuf>) -> Self {
        Self { records: Some(directory.into()), ..self }
    }

    /// Uses another clock.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }
}

impl Store {
    /// Opens the store at `location`; see [`Options`] for what may be created.
    pub fn open(location: &Location, options: Options) -> Result<Self> {
        let hub = Arc::new(Hub::default());
        let engine = match location {
            Location::Sqlite { path, journal } => {
                Engine::Sqlite(Box::new(Sqlite::open(path, *journal, &options, &hub)?))
            }
            Location::Postgres { url, schema } => {
                Engine::Postgres(Box::new(Postgres::open(url, schema, &options, hub.clone())?))
            }
        };
        let inner = Inner {
            engine,
            clock: options.clock.clone(),
            hub,
            location: location.clone(),
            options,
            observations: Observations::default(),
            lease_keeper: OnceLock::new(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Runs `closure` as one serialisable transaction. When this returns `Ok`, everything it wrote
    /// is durable; when it returns an error, nothing was written (but see
    /// [`Error::OutcomeUnknown`]).
    ///
    /// The closure may run more than once and on another thread: it touches nothing but its
    /// transaction. If it answers an error or panics, its changes are rolled back.
    pub fn write<T, E>(
        &self,
        closure: impl FnMut(&mut WriteTx<'_>) -> Result<T, E> + Send,
    ) -> Result<T, E>
    where
        T: Send,
        E: From<Error> + Send,
    {
        self.write_to_outlast(Outlasts::PowerLoss, closure)
    }

    /// Like [`write`](Self::write), for a note that must outlast this process however it ends, and
    /// may be lost when the machine loses its power: a file is not synced for it. A later write that
    /// is durable makes it durable too. On a server it is an ordinary write.
    pub fn note<T, E>(
        &self,
        closure: impl FnMut(&mut WriteTx<'_>) -> Result<T, E> + Send,
    ) -> Result<T, E>
    where
        T: Send,
        E: From<Error> + Send,
    {
        self.write_to_outlast(Outlasts::Process, closure)
    }

    fn write_to_outlast<T, E>(
        &self,
        outlasts: Outlasts,
        mut closure: impl FnMut(&mut WriteTx<'_>) -> Result<T, E> + Send,
    ) -> Result<T, E>
    where
        T: Send,
        E: From<Error> + Send,
    {
        if INSIDE.get() {
            return Err(Error::Nested.into());
        }
        let mut result = None;
        let mut job = |tx: &mut WriteTx<'_>| {
            let _inside = Inside::enter();
            let outcome = closure(tx);
            let keep = outcome.is_ok();
            result = Some(outcome);
            keep
        };
        match &self.inner.engine {
            Engine::Sqlite(sqlite) => sqlite.write(&mut job, outlasts)?,
            Engine::Postgres(postgres) => postgres.write(&mut job, self.outage())?,
        }
        result.unwrap_or_else(|| Err(never_ran().into()))
    }

    /// How long a server that cannot be reached is waited for: as long as this process has a lease, since
    /// nobody else can go on with its work before that. Without one, as long as a write may take.
    fn outage(&self) -> Duration {
        let uptime = self.inner.clock.uptime_millis();
        let lease = self.inner.lease_keeper.get().and_then(|keeper| keeper.longest(uptime));
        lease.unwrap_or_default().max(self.inner.options.limits.write)
    }

    /// Runs `closure` on one consistent moment of the store. It may run more than once.
    pub fn read<T, E: From<Error>>(
        &self,
        closure: impl FnMut(&mut ReadTx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.read_by(closure, |now, job| match &self.inner.engine {
            Engine::Sqlite(sqlite) => sqlite.read(now, job),
            Engine::Postgres(postgres) => postgres.read(now, job, self.outage()),
        })
    }

    /// Like [`read`](Self::read), on a connection of its own and without a time limit, for upkeep.
    pub fn read_unlimited<T, E: From<Error>>(
        &self,
        closure: impl FnMut(&mut ReadTx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.read_by(closure, |now, job| match &self.inner.engine {
            Engine::Sqlite(sqlite) => sqlite.read_unlimited(now, job),
            Engine::Postgres(postgres) => postgres.read_unlimited(now, job),
        })
    }

    fn read_by<T, E: From<Error>>(
        &self,
        mut closure: impl FnMut(&mut ReadTx<'_>) -> Result<T, E>,
        run: impl FnOnce(i64, &mut dyn FnMut(&mut ReadTx<'_>)) -> Result<()>,
    ) -> Result<T, E> {
        let mut result = None;
        run(self.inner.clock.wall_millis(), &mut |tx| result = Some(closure(tx)))?;
        result.unwrap_or_else(|| Err(never_ran().into()))
    }

    /// Listens to `topics` from now on: commits of any process that name one of them wake the
    /// listener. Listen first, then look at the store, then wait.
    pub fn listen<'a>(&self, topics: impl IntoIterator<Item = &'a str>) -> Result<Listener> {
        match &self.inner.engine {
            Engine::Sqlite(sqlite) => sqlite.hear()?,
            Engine::Postgres(postgres) => postgres.hear()?,
        }
        Ok(self.inner.hub.listen(topics.into_iter().map(str::to_owned)))
    }

    /// Whether the store can be looked at and not changed, because its disk is read-only or its files
    /// are not this user's to write. Only a store that is opened as an existing one can be.
    pub fn is_read_only(&self) -> bool {
        match &self.inner.engine {
            Engine::Sqlite(sqlite) => sqlite.is_read_only(),
            Engine::Postgres(_) => false,
        }
    }

    /// Where the store is.
    pub fn location(&self) -> &Location {
        &self.inner.location
    }
}

thread_local! {
    /// Whether this thread is running the closure of a write. One that began another write would
    /// wait for itself.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Marks this thread while a closure runs, also when it panics.
struct Inside;

impl Inside {
    fn enter() -> Self {
        INSIDE.set(true);
        Self
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

fn never_ran() -> Error {
    Error::Statement("the transaction was never run".to_owned())
}

impl fmt::Debug for Store {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Store({})", self.inner.location)
    }
}

impl Engine {
    /// Whether all users of the store are on this host.
    pub(crate) fn is_one_host(&self) -> bool {
        match self {
            Engine::Sqlite(_) => true,
            Engine::Postgres(_) => false,
        }
    }
}
