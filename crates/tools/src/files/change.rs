//! Changes of files: what was there, what a model has to know about it, and the write itself.
//!
//! A changed file is a new file under the old name. So a crash leaves the old content or the new
//! one; a symbolic link and the mode stay; of a file with several names (hard links) only the one
//! that was written has the new content, and the outcome says so. What somebody else saves meanwhile
//! is not lost: see [`crate::replacing`].

use std::fs::{File, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::thread::sleep;
use std::time::Duration;

use mainstay_store::lock;

use super::LARGE;
use super::blocking::Stop;
use super::bounds::{Bounds, elsewhere};
use super::git::{Held, held};
use super::open::{Closed, open, whole};
use super::seen::Glimpse;
use super::text::{hash, size};
use crate::Outcome;
use crate::beneath::LinkMet;
use crate::replacing::{
    Content, Expected, GivenWay, New, Quiet, Replacement, Site, Slot, SlotTurn, Version, create,
    replace,
};

/// So long a program may take that is writing the file in place.
const PATIENCE: Duration = Duration::from_secs(3);

/// What is at a path before it is changed.
pub(super) enum Before {
    Absent,
    /// A file, with its content unless it is above [`LARGE`].
    Present {
        metadata: Box<Metadata>,
        content: Option<(Vec<u8>, String)>,
    },
}

impl Before {
    pub(super) fn look(bounds: &Bounds, path: &Path, stop: &Stop) -> Result<Self, Outcome> {
        let (file, metadata) = match open(bounds, path) {
            Ok(opened) => opened,
            Err(Closed::Missing) => return Ok(Self::Absent),
            Err(closed) => return Err(closed.outcome(bounds, path)),
        };
        Self::read(bounds, path, file, metadata, stop)
    }

    /// The same for what is about to be changed: waits for whoever is writing it in place, so that half
    /// of what they write is not taken for all of it.
    pub(super) fn look_to_change(
        bounds: &Bounds,
        path: &Path,
        stop: &Stop,
    ) -> Result<Self, Outcome> {
        const STEP: Duration = Duration::from_millis(2);
        let mut waited = Duration::ZERO;
        while waited < PATIENCE {
            let (file, metadata) = match open(bounds, path) {
                Ok(opened) => opened,
                Err(Closed::Missing) => return Ok(Self::Absent),
                Err(closed) => return Err(closed.outcome(bounds, path)),
            };
            let reading =
                file.try_clone().map_err(|error| Closed::Failed(error).outcome(bounds, path))?;
            if let Ok(quiet) = Quiet::watch(file) {
                let before = Self::read(bounds, path, reading, metadata, stop)?;
                if quiet.is_still() {
                    return Ok(before);
                }
            }
            stop.check()?;
            sleep(STEP);
            waited += STEP;
        }
        Err(Outcome::failed(format!(
            "Another program has {} open for writing, so it was left alone. Try again when that \
             program is done with it.",
            bounds.shown(path)
        )))
    }

    fn read(
        bounds: &Bounds,
        path: &Path,
        file: File,
        metadata: Metadata,
        stop: &Stop,
    ) -> Result<Self, Outcome> {
        let metadata = Box::new(metadata);
        if metadata.len() > LARGE {
            return Ok(Self::Present { metadata, content: None });
        }
        let content = whole(file, LARGE, stop)
            .map_err(|error| Closed::Failed(error).outcome(bounds, path))?
            .map(|content| {
                let hash = hash(&content);
                (content, hash)
            });
        Ok(Self::Present { metadata, content })
    }

    /// The hash of what is there.
    pub(super) fn hash(&self) -> Option<&str> {
        match self {
            Self::Present { content: Some((_, hash)), .. } => Some(hash),
            _ => None,
        }
    }
}

/// Whether somebody else changed the file since the session last read or wrote it.
pub(super) fn is_stale(before: &Before, last: Option<&Glimpse>) -> bool {
    match (before, last) {
        (Before::Present { .. }, Some(last)) => before.hash() != Some(&last.hash),
        _ => false,
    }
}

/// What is lost with the old content, in sentences. To be asked before the change.
pub(super) fn losses(
    bounds: &Bounds,
    path: &Path,
    before: &Before,
    last: Option<&Glimpse>,
    stop: &Stop,
) -> Vec<String> {
    let Before::Present { metadata, content } = before else { return Vec::new() };
    let mut losses = Vec::new();
    if metadata.nlink() > 1 {
        losses.push(format!(
            "The file had {} names (hard links); the others keep the old content.",
            metadata.nlink()
        ));
    }
    let own = last.is_some_and(|last| last.own && before.hash() == Some(&last.hash));
    if own || metadata.len() == 0 {
        return losses;
    }
    let Some((content, _)) = content else {
        losses.push(format!(
            "The old file was too large ({}) to compare with git.",
            size(metadata.len())
        ));
        return losses;
    };
    match held(bounds, path, content, metadata, stop) {
        Held::NoRepository | Held::Yes => {}
        Held::Modified => losses.push(
            "The old content had changes that are not in git: they were neither staged nor committed."
                .to_owned(),
        ),
        Held::Untracked => losses.push(
            "The old content is not in git: the file is untracked.".to_owned(),
        ),
        Held::Unknown(why) => {
            losses.push(format!("Could not tell whether git has the old content: {why}."));
        }
    }
    losses
}

/// What became of a change.
pub(super) enum Change {
    /// It is made, with what there is to say about it.
    Made(Option<&'static str>),
    /// Somebody else changed the file meanwhile, and it is as they left it.
    Overtaken,
}

/// Replaces the content of `path`, which is real, durably and as a whole; makes its directories.
pub(super) fn put(
    bounds: &Bounds,
    path: &Path,
    before: &Before,
    (content, hash): (&[u8], &str),
    mut slot: Option<&mut SlotTurn>,
    stop: &Stop,
) -> Result<Change, Outcome> {
    // The last moment for a cancellation.
    stop.check()?;
    let shown = bounds.shown(path);
    let unchanged = |error: io::Error| {
        let now = Before::look(bounds, path, stop);
        if now.is_ok_and(|now| now.hash() == Some(hash)) {
            return not_durable(bounds, path, &error);
        }
        if LinkMet::is(&error) {
            return elsewhere(&shown);
        }
        let hidden = bounds.hidden(path).unwrap_or_default();
        Outcome::failed(format!("Could not write {shown}: {error}. The file is unchanged.{hidden}"))
    };
    let site = Site::made(path).map_err(unchanged)?;
    let made = |note| match site.sync() {
        Ok(()) => Ok(Change::Made(note)),
        Err(error) => Err(not_durable(bounds, path, &error)),
    };
    let Before::Present { metadata, content: old } = before else {
        let new = New::File { content, hash, mode: 0o666 & !umask() };
        return match create(&site, new, slot).map_err(unchanged)? {
            true => made(None),
            false => Ok(Change::Overtaken),
        };
    };
    let expected = Expected {
        identity: (metadata.dev(), metadata.ino()),
        content: match old {
            Some((bytes, hash)) => Content::Bytes(bytes, hash),
            None => Content::Version(Version::of(metadata.as_ref())),
        },
    };
    let mode = metadata.permissions().mode() & 0o7777;
    let new = New::File { content, hash, mode };
    match replace(&site, &expected, new, slot.as_deref_mut()).map_err(unchanged)? {
        Replacement::Made(former) => {
            let change = made(None)?;
            // As late as can be: by now, whoever had looked up the old file has opened it.
            match former.give_way(&site, &expected, Some(new), slot).map_err(unchanged)? {
                GivenWay::NotNeeded => Ok(change),
                GivenWay::Yes => made(None).map(|_| Change::Overtaken),
            }
        }
        Replacement::Unguarded => made(Some(UNGUARDED)),
        Replacement::Changed => Ok(Change::Overtaken),
        Replacement::Kept(name) => Err(Outcome::failed(format!(
            "Two others changed {shown} just now. It has what one of them wrote, and {} beside it what \
             the other one wrote. Read both.",
            bounds.shown(&path.with_file_name(name))
        ))),
    }
}

const UNGUARDED: &str = "This file system cannot exchange two files: what somebody else saved in the \
                         same moment would be lost.";

/// Waits for the processes that change the same file.
pub(super) fn wait_for_turn(
    bounds: &Bounds,
    path: &Path,
    slot: Option<Slot>,
    stop: &Stop,
) -> Result<Option<SlotTurn>, Outcome> {
    let Some(slot) = slot else { return Ok(None) };
    match slot.take(stop) {
        Ok(Some(turn)) => Ok(Some(turn)),
        Ok(None) => Err(Outcome::failed(format!(
            "Other sessions have been changing {} or other files for too long, so it was left alone. \
             Try again.",
            bounds.shown(path)
        ))),
        Err(error) => {
            tracing::warn!(%error, "no lock for a change of a file");
            Ok(None)
        }
    }
}

/// Makes durable what an interrupted call may have written.
pub(super) fn make_durable(bounds: &Bounds, path: &Path) -> Result<(), Outcome> {
    let (file, _) = open(bounds, path).map_err(|closed| closed.outcome(bounds, path))?;
    file.sync_all()
        .and_then(|()| Site::of(path)?.sync())
        .map_err(|error| not_durable(bounds, path, &error))
}

fn not_durable(bounds: &Bounds, path: &Path, error: &io::Error) -> Outcome {
    Outcome::failed(format!(
        "{} has the new content, but syncing it to disk failed: {error}. Write it again.",
        bounds.shown(path)
    ))
}

/// Lets the sessions of this process change a file one after the other.
pub(super) fn turn(path: &Path) -> MutexGuard<'static, ()> {
    // Few enough to be there always; two files that share one wait for a moment without need.
    static TURNS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    let index = usize::try_from(hasher.finish() % 64).unwrap_or_default();
    lock(&TURNS[index])
}

/// The bits that new files do not get. Nothing in the process changes them.
#[allow(clippy::useless_conversion, reason = "the type is narrower on macOS")]
fn umask() -> u32 {
    static UMASK: OnceLock<u32> = OnceLock::new();
    *UMASK.get_or_init(|| {
        // The call that asks for the mask sets it too, for all threads; Linux can also be asked.
        told_umask().unwrap_or_else(|| {
            let strict = rustix::fs::Mode::from_raw_mode(0o077);
            let mask = rustix::process::umask(strict);
            rustix::process::umask(mask);
            u32::from(mask.as_raw_mode())
        })
    })
}

fn told_umask() -> Option<u32> {
    let status = io::read_to_string(File::open("/proc/self/status").ok()?).ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(mask.trim(), 8).ok()
}
