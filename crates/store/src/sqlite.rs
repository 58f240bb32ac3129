//! SQLite: embedded, one host, the default.

mod ahead;
mod backup;
mod batch;
mod checkpoint;
mod connection;
mod copy;
mod create;
mod examine;
mod failure;
mod files;
mod gate;
mod ledger;
mod queue;
mod readers;
mod replace;
mod session;
mod turnstile;
mod users;
mod wake;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use backup::pour;
pub(crate) use copy::SqliteCopy;
pub(crate) use examine::refuse_unfit;
pub(crate) use replace::replace;

use checkpoint::Checkpointer;
use connection::{Link, Role};
use files::{Files, Presence};
use readers::Readers;
use turnstile::Turnstile;
use users::Users;
use wake::Wake;
use writer::{Setting, Writer};

use crate::filesystem::FileSystem;
use crate::fsatomic::refuse_missing_directory;
use crate::hub::Hub;
use crate::location::Journal;
use crate::schema::Schema;
use crate::store::Options;
use crate::tx::{Job, ReadTx};
use crate::{Error, Result};

/// A store in a file.
pub(crate) struct Sqlite {
    // Dropped in this order: connections first, then the thread that has one, then the locks.
    writer: Writer,
    readers: Arc<Readers>,
    checkpointer: Arc<Checkpointer>,
    wake: Arc<Wake>,
    files: Files,
    _users: Users,
}

impl Sqlite {
    pub(crate) fn open(
        path: &Path,
        journal: Journal,
        options: &Options,
        hub: Arc<Hub>,
    ) -> Result<Self> {
        failure::refuse_old_library()?;
        let files = Files::new(path);
        let path = files.database.as_path();
        match files.look()? {
            Presence::Absent if !options.create => {
                return Err(Error::Absent { place: path.display().to_string() });
            }
            Presence::Absent => {
                refuse_missing_directory(path)?;
                refuse_network(path, journal)?;
            }
            // Before any side file is made beside what may not be ours.
            Presence::Present => refuse_newer(path, &options.schema)?,
        }
        let turnstile = Arc::new(Turnstile::open(&files)?);
        let users = Users::join(&files)?;
        create::ensure(&files, &turnstile, &options.schema, journal, options.limits.write)?;
        create::migrate(&files, &turnstile, &options.schema, options.limits.write)?;
        let first = Link::open(path, Role::Reader)?;
        let files = files.claimed();
        let checkpointer = Arc::new(Checkpointer::new(files.clone(), turnstile.clone()));
        let wake = Arc::new(Wake::new(&files, hub));
        let readers = Arc::new(Readers::new(files.clone(), options.limits, first));
        let writer = Writer::new(Setting {
            files: files.clone(),
            schema: options.schema.clone(),
            clock: options.clock.clone(),
            limits: options.limits,
            turnstile,
            checkpointer: checkpointer.clone(),
            readers: readers.clone(),
            wake: wake.clone(),
        });
        Ok(Self { writer, readers, checkpointer, wake, files, _users: users })
    }

    pub(crate) fn write(&self, job: &mut Job<'_>) -> Result<()> {
        self.unlocked(|| self.writer.write(job))
    }

    pub(crate) fn read(&self, now: i64, job: &mut dyn FnMut(&mut ReadTx<'_>)) -> Result<()> {
        self.unlocked(|| self.readers.read(now, job))
    }

    /// Tries once more on new connections when SQLite's locks are in disorder. A failed unlock
    /// leaves a lock that this process holds against itself, until its last connection is closed.
    fn unlocked(&self, mut work: impl FnMut() -> Result<()>) -> Result<()> {
        match work() {
            Err(Error::Locked { detail, .. } | Error::LocksFail { detail, .. }) => {
                tracing::warn!(detail, "the store's locks are taken; opening it anew");
                self.writer.close();
                self.readers.close();
                self.checkpointer.close();
                work()
            }
            outcome => outcome,
        }
    }

    pub(crate) fn read_unlimited(
        &self,
        now: i64,
        job: &mut dyn FnMut(&mut ReadTx<'_>),
    ) -> Result<()> {
        Link::open(&self.files.database, Role::Reader)?.read(&self.files.database, now, job)
    }

    /// Starts to hear of other processes' commits.
    pub(crate) fn hear(&self) -> Result<()> {
        self.wake.hear()
    }
}

/// Refuses a store that this program is too old for, and leaves it as it is.
fn refuse_newer(path: &Path, schema: &Schema) -> Result<()> {
    let link = Link::open(path, Role::Examiner)?;
    let found = create::versions(&link.connection)
        .map_err(|error| failure::described(path, &error, Duration::ZERO))?;
    schema.pending(&found).map(drop)
}

fn refuse_network(path: &Path, journal: Journal) -> Result<()> {
    let system = FileSystem::of(path)?;
    if system.network && journal == Journal::Wal {
        return Err(Error::NetworkFileSystem { path: path.to_owned(), kind: system.kind });
    }
    Ok(())
}
