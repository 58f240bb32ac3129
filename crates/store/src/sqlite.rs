//! SQLite: embedded, one host, the default.

mod ahead;
mod backup;
mod batch;
mod checkpoint;
mod compact;
mod connection;
mod copy;
mod create;
mod examine;
mod failure;
mod files;
mod gate;
mod ledger;
mod line;
mod objects;
mod queue;
mod read_only;
mod readers;
mod replace;
mod reread;
mod session;
mod turnstile;
mod users;
mod wake;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(crate) use backup::pour;
pub(crate) use compact::compact;
pub(crate) use copy::SqliteCopy;
pub(crate) use create::discard;
pub(crate) use examine::refuse_unfit;
pub(crate) use replace::replace;

use checkpoint::Checkpointer;
use connection::{Fitness, Link, Role};
use files::{Files, Presence};
use read_only::{Copy, is_read_only};
use readers::Readers;
use reread::reread;
use turnstile::Turnstile;
use users::Users;
use wake::Wake;
use writer::{Setting, Writer};

use crate::filesystem::FileSystem;
use crate::fsatomic::refuse_missing_directory;
use crate::hub::Hub;
use crate::location::Journal;
use crate::schema::Schema;
use crate::store::{Options, Outlasts};
use crate::tx::{Job, ReadTx};
use crate::{Error, Result};

/// A store in a file.
pub(crate) struct Sqlite {
    // Dropped in this order: connections first, then the thread that has one, then the locks.
    writing: Option<Writing>,
    readers: Arc<Readers>,
    /// What is read: the store itself, or a copy of one that is read-only.
    files: Files,
    /// What the store is called.
    path: PathBuf,
    _users: Option<Users>,
    _copy: Option<Copy>,
}

/// What only a store that can be written has.
struct Writing {
    writer: Writer,
    checkpointer: Arc<Checkpointer>,
    wake: Arc<Wake>,
}

impl Sqlite {
    pub(crate) fn open(
        path: &Path,
        journal: Journal,
        options: &Options,
        hub: &Arc<Hub>,
    ) -> Result<Self> {
        failure::refuse_old_library()?;
        reread(|| Self::attempt(path, journal, options, hub))
    }

    fn attempt(path: &Path, journal: Journal, options: &Options, hub: &Arc<Hub>) -> Result<Self> {
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
            Presence::Present if !options.create && is_read_only(&files) => {
                return Self::looked_at(&files, options);
            }
            // Before any side file is made beside what may not be ours.
            Presence::Present => refuse_newer(path, &options.schema)?,
        }
        let turnstile = Arc::new(Turnstile::open(&files)?);
        let users = Users::join(&files)?;
        create::ensure(&files, &turnstile, journal, options)?;
        create::migrate(&files, &turnstile, &options.schema, options.limits.write)?;
        let first = Link::open(path, Role::Reader)?;
        let files = files.claimed();
        let checkpointer = Arc::new(Checkpointer::new(files.clone(), turnstile.clone()));
        let wake = Arc::new(Wake::new(&files, hub.clone()));
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
        let writing = Some(Writing { writer, checkpointer, wake });
        let path = files.database.clone();
        Ok(Self { writing, readers, files, path, _users: Some(users), _copy: None })
    }

    /// Opens a store that can only be looked at.
    fn looked_at(named: &Files, options: &Options) -> Result<Self> {
        let copy = Copy::if_needed(named)?;
        let files = copy.as_ref().map_or(named, |copy| &copy.files).clone();
        let first = Link::open(&files.database, Role::Reader)?;
        let found = create::versions(&first.connection)
            .map_err(|error| failure::described(&files.database, &error, Duration::ZERO))?;
        if !options.schema.pending(&found)?.is_empty() {
            let detail = "it is of an older version, and cannot be brought up to date because it \
                          or its directory is read-only";
            let path = named.database.clone();
            return Err(Error::Unreadable { path, detail: detail.to_owned() });
        }
        let readers = Arc::new(Readers::new(files.clone(), options.limits, first));
        let path = named.database.clone();
        Ok(Self { writing: None, readers, files, path, _users: None, _copy: copy })
    }

    /// Whether the store can be looked at and not changed.
    pub(crate) fn is_read_only(&self) -> bool {
        self.writing.is_none()
    }

    fn writing(&self) -> Result<&Writing> {
        self.writing.as_ref().ok_or_else(|| read_only::refusal(&Files::new(&self.path)))
    }

    pub(crate) fn write(&self, job: &mut Job<'_>, outlasts: Outlasts) -> Result<()> {
        let writing = self.writing()?;
        self.unlocked(|| writing.writer.write(job, outlasts))
    }

    pub(crate) fn read(&self, now: i64, job: &mut dyn FnMut(&mut ReadTx<'_>)) -> Result<()> {
        self.unlocked(|| self.readers.read(now, job))
    }

    /// Tries once more on new connections when SQLite's locks are in disorder. A failed unlock
    /// leaves a lock that this process holds against itself, until its last connection is closed.
    fn unlocked(&self, mut work: impl FnMut() -> Result<()>) -> Result<()> {
        match work() {
            Err(Error::Locked { detail, .. } | Error::LocksFail { detail, .. }) => {
                tracing::warn!(detail, "the store's locks are taken; reopening it");
                self.readers.close();
                if let Some(writing) = &self.writing {
                    writing.writer.close();
                    writing.checkpointer.close();
                }
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
        let path = &self.files.database;
        // A job that met damage has it in its own answer: it is run again like one that failed here.
        match Link::open(path, Role::Reader)?.read(path, now, job)? {
            Fitness::Fit => Ok(()),
            Fitness::Spoilt => Link::open(path, Role::Reader)?.read(path, now, job).map(drop),
        }
    }

    /// Starts to hear of other processes' commits. A store that cannot be written has none.
    pub(crate) fn hear(&self) -> Result<()> {
        self.writing.as_ref().map_or(Ok(()), |writing| writing.wake.hear())
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
