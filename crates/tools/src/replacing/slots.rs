//! The locks by which processes of one home change a file one after the other.
//!
//! There are a few lock files in the home, out of reach of commands and of file tools; a file to be
//! changed belongs to one of them by its directory and name. Two files that share one wait for each
//! other for a moment without need. The kernel frees a lock when its holder dies; what the holder wrote
//! into the lock file says what it was about.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use mainstay_store::fsatomic;
use sha2::{Digest, Sha256};

use super::record::Record;
use super::recovery::recover;
use crate::files::Stop;

/// How many lock files there are at most.
const SLOTS: u64 = 16;
/// So long a call waits for others that change the same file.
const PATIENCE: Duration = Duration::from_secs(20);
const STEP: Duration = Duration::from_millis(2);
/// More is no record of ours.
const LONGEST: u64 = 1 << 20;

/// Where the lock files are; without a directory there are none. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct EditSlots {
    directory: Option<Arc<Path>>,
}

impl EditSlots {
    /// Lock files in a directory, which is made when the first one is needed.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self { directory: Some(Arc::from(directory.into())) }
    }

    /// Opens the slot of a file, whose path is real. To be called outside the sandbox: inside, it can
    /// be locked and written, and not be opened.
    pub(crate) fn open(&self, path: &Path) -> Option<Slot> {
        let directory = self.directory.as_deref()?;
        let opened = fsatomic::private_directory(directory)
            .and_then(|()| open(&directory.join(slot_name(path))));
        match opened {
            Ok(file) => Some(Slot { file }),
            Err(error) => {
                tracing::warn!(%error, "no lock for a change of a file");
                None
            }
        }
    }

    /// Finishes what processes that are gone have begun, where there is something to finish, and does not
    /// wait for it: it may be on a disk that hangs.
    pub fn recover_in_background(&self) {
        if !self.dirty().is_empty() {
            let slots = self.clone();
            let begun = std::thread::Builder::new()
                .name("edit-recovery".to_owned())
                .spawn(move || slots.recover());
            if let Err(error) = begun {
                tracing::warn!(%error, "unfinished changes of files stay until the next one");
            }
        }
    }

    /// Finishes what processes that are gone have begun. To be called outside the sandbox, and before
    /// anybody judges by the files what became of a call. Returns the paths of what somebody had saved
    /// and could not be put back, because somebody saved again since.
    pub fn recover(&self) -> Vec<PathBuf> {
        let mut kept = Vec::new();
        for path in self.dirty() {
            let recovered = open(&path).and_then(|file| match file.try_lock() {
                Ok(()) => recover_slot(&file, &mut kept),
                // Its holder is alive.
                Err(TryLockError::WouldBlock) => Ok(()),
                Err(TryLockError::Error(error)) => Err(error),
            });
            if let Err(error) = recovered {
                tracing::warn!(%error, slot = %path.display(), "an unfinished change of a file stays");
            }
        }
        kept
    }
}

impl EditSlots {
    /// The lock files that have something in them: of processes that change a file just now, or that
    /// are gone.
    fn dirty(&self) -> Vec<PathBuf> {
        let Some(directory) = self.directory.as_deref() else { return Vec::new() };
        let slots = (0..SLOTS).map(|number| directory.join(format!("{number:02}")));
        slots.filter(|path| std::fs::metadata(path).is_ok_and(|found| found.len() > 0)).collect()
    }
}

#[expect(clippy::disallowed_methods, reason = "a lock file, which has no content to lose")]
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(fsatomic::PRIVATE_FILE);
    options.open(path)
}

/// The same for all names by which a file's directory can be reached.
fn slot_name(path: &Path) -> String {
    let mut hasher = Sha256::new();
    match path.parent().and_then(|parent| std::fs::metadata(parent).ok()) {
        Some(parent) => {
            hasher.update(parent.dev().to_le_bytes());
            hasher.update(parent.ino().to_le_bytes());
            hasher.update(path.file_name().unwrap_or_default().as_bytes());
        }
        // Nothing can be lost there yet.
        None => hasher.update(path.as_os_str().as_bytes()),
    }
    format!("{:02}", u64::from(hasher.finalize()[0]) % SLOTS)
}

/// Finishes what the records of a slot tell of, whose lock is held; what cannot be finished stays.
fn recover_slot(file: &File, kept: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut text =
        vec![0; usize::try_from(file.metadata()?.len().min(LONGEST)).unwrap_or_default()];
    file.read_exact_at(&mut text, 0)?;
    let mut failed = Ok(());
    let mut left = Vec::new();
    for record in Record::all_in(&text) {
        match recover(&record) {
            Ok(beside) => kept.extend(beside),
            Err(error) => {
                failed = Err(error);
                left.extend(record.line());
            }
        }
    }
    file.set_len(0)?;
    file.write_all_at(&left, 0)?;
    failed
}

/// A lock file that is open.
pub(crate) struct Slot {
    file: File,
}

impl Slot {
    /// Waits until the slot is free. Returns `None` if others do not let go of it, or nobody waits for
    /// this call any more.
    pub(crate) fn take(self, stop: &Stop) -> io::Result<Option<SlotTurn>> {
        let mut waited = Duration::ZERO;
        loop {
            match self.file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if waited >= PATIENCE || stop.is_set() => {
                    return Ok(None);
                }
                Err(TryLockError::WouldBlock) => sleep(STEP),
            }
            waited += STEP;
        }
        if self.file.metadata()?.len() > 0 {
            // Its holder died just now. Where the sandbox does not let us, the record stays.
            if let Err(error) = recover_slot(&self.file, &mut Vec::new()) {
                tracing::debug!(%error, "left for whoever is outside the sandbox");
            }
        }
        let length = self.file.metadata()?.len();
        Ok(Some(SlotTurn { file: self.file, start: length, length }))
    }
}

/// The right to change the files of a slot, until it is dropped.
pub(crate) struct SlotTurn {
    file: File,
    /// Where our own records begin: after those that nobody could finish yet.
    start: u64,
    length: u64,
}

impl SlotTurn {
    pub(super) fn note(&mut self, record: &Record) -> io::Result<()> {
        let line = record.line();
        self.file.write_all_at(&line, self.length)?;
        self.length += line.len() as u64;
        Ok(())
    }

    /// Forgets what was noted: nothing is left of it.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.file.set_len(self.start)?;
        self.length = self.start;
        Ok(())
    }
}
