//! Puts states back, so that it can be interrupted anywhere and done again.
//!
//! Each path is changed by one exchange, one removal or one change of its mode. So after a crash each
//! is as it was, or as it is to be, or there is nothing where one kind of thing makes way for
//! another; and doing it all again leads to the same end. What somebody saves meanwhile is not lost:
//! see [`crate::replacing`].

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::AtFlags;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::escape::{escaped, unescaped};
use super::look::{Looked, look};
use super::scan::Limits;
use super::state::State;
use crate::Workplace;
use crate::beneath::{self, Entry, LinkMet, Status, first_link, raw_mode};
use crate::files::{Stop, hash};
use crate::replacing::{
    Content, Expected, Former, GivenWay, New, Replacement, Site, SlotTurn, Version, create, remove,
    replace,
};

/// A path that is to be changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathChange {
    /// The path, escaped.
    pub path: String,
    /// What is there.
    pub from: State,
    /// What is to be there.
    pub to: State,
}

/// What became of the steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Paths that are as they are to be.
    pub done: usize,
    /// Paths that are not, and why, in words.
    pub left: Vec<(PathBuf, String)>,
}

/// Takes the steps. `fetch` answers the bytes of an object. A path that is neither as it was nor as it is
/// to be was changed by somebody else, and is left.
pub fn restore(
    workplace: &Workplace,
    steps: &[PathChange],
    fetch: &mut dyn FnMut(&str) -> Result<Vec<u8>, String>,
) -> Restored {
    workplace.edit_slots.recover();
    let limits = Limits { secret: None, ..Limits::default() };
    let mut restoring = Restoring {
        workplace,
        limits: &limits,
        fetch,
        restored: Restored::default(),
        touched: BTreeSet::new(),
    };
    let mut todo = Vec::new();
    let made: BTreeSet<PathBuf> = steps
        .iter()
        .filter(|step| is_directory(&step.to))
        .map(|step| unescaped(&step.path))
        .collect();
    for step in steps {
        let path = unescaped(&step.path);
        let Looked { state: now, behind, .. } = look(workplace, &path, &limits);
        if let Some(link) = behind.filter(|link| !made.contains(link)) {
            restoring.restored.left.push((path, left_behind(&link)));
            continue;
        }
        if now == step.from
            || now == step.to
            || (now == State::Absent && step.to.is_kept())
            || (is_directory(&now) && (is_directory(&step.to) || is_directory(&step.from)))
        {
            todo.push((path, now, &step.to));
        } else {
            restoring.restored.left.push((path, CHANGED.to_owned()));
        }
    }
    restoring.take(todo);
    restoring.restored
}

/// Adds the directories that must be made writable for these steps, so that the record knows which
/// mode they have to get back.
pub fn with_closed_directories(mut steps: Vec<PathChange>) -> Vec<PathChange> {
    let named: BTreeSet<PathBuf> = steps.iter().map(|step| unescaped(&step.path)).collect();
    let parents: BTreeSet<&Path> = named.iter().filter_map(|path| path.parent()).collect();
    for parent in parents.into_iter().filter(|parent| !named.contains(*parent)) {
        let Ok(found) = Entry::of(parent).and_then(|parent| parent.status()) else { continue };
        if forbids_changes(&found) {
            let state = State::Directory { mode: found.permissions() };
            steps.push(PathChange { path: escaped(parent), from: state.clone(), to: state });
        }
    }
    steps
}

const CHANGED: &str = "someone else changed it just now";

/// Why something is not put back whose way there goes through a link by now.
fn left_behind(link: &Path) -> String {
    format!("{} is a link now; left alone", escaped(link))
}

/// Why a step on a path failed, in words.
fn trouble(path: &Path, error: &io::Error) -> String {
    if LinkMet::is(error) {
        return left_behind(&first_link(path).unwrap_or_else(|| path.to_owned()));
    }
    error.to_string()
}

/// Whether names cannot be changed in a directory.
fn forbids_changes(found: &Status) -> bool {
    found.is_directory() && found.permissions() & 0o300 != 0o300
}

struct Restoring<'a> {
    workplace: &'a Workplace,
    limits: &'a Limits,
    fetch: &'a mut dyn FnMut(&str) -> Result<Vec<u8>, String>,
    restored: Restored,
    /// Directories whose names changed.
    touched: BTreeSet<PathBuf>,
}

impl Restoring<'_> {
    fn take(&mut self, mut todo: Vec<(PathBuf, State, &State)>) {
        // A directory comes before what is in it; on the way back it comes after.
        todo.sort_by(|one, other| one.0.cmp(&other.0));
        let mut failed: BTreeSet<PathBuf> = BTreeSet::new();
        for (path, now, to) in todo.iter_mut().rev() {
            if makes_way(now, to) {
                match self.remove(path, now) {
                    Ok(()) => *now = State::Absent,
                    Err(words) => {
                        failed.insert(path.clone());
                        self.restored.left.push((path.clone(), words));
                    }
                }
            }
        }
        for (path, now, to) in &todo {
            if failed.contains(path)
                || *to == now
                || matches!(to, State::Directory { .. }) && is_directory(now)
            {
                continue;
            }
            if let Err(words) = self.make(path, now, to) {
                failed.insert(path.clone());
                self.restored.left.push((path.clone(), words));
            }
        }
        // Modes of directories last: one of them may forbid what was done above.
        for (path, _, to) in todo.iter().rev() {
            if let State::Directory { mode } = to
                && !failed.contains(path)
                && let Err(error) = set_mode_of_directory(path, *mode)
            {
                failed.insert(path.clone());
                self.restored.left.push((path.clone(), trouble(path, &error)));
            }
        }
        for directory in &self.touched {
            // A directory that is gone needs no sync; its own parent is among these.
            if let Err(error) = beneath::directory(directory).and_then(|file| file.sync_all())
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(%error, directory = %directory.display(), "not synced");
            }
        }
        self.restored.done = todo.len() - failed.len();
    }

    fn remove(&mut self, path: &Path, now: &State) -> Result<(), String> {
        let failed = |error: io::Error| trouble(path, &error);
        self.open_parent(path).map_err(failed)?;
        if !is_directory(now) {
            return self.change(path, now, None);
        }
        let Entry { directory, name } = Entry::of(path).map_err(failed)?;
        match rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => {
                Err("it is not empty: it contains something that is not restored".to_owned())
            }
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// Puts something new, or nothing, in the place of a file or a link that is as it was looked at.
    fn change(&self, path: &Path, now: &State, new: Option<New<'_>>) -> Result<(), String> {
        let slot = self.workplace.edit_slots.open(path);
        let mut slot = slot.and_then(|slot| slot.take(&Stop::default()).ok().flatten());
        let replacement = self.replacement(path, now, new, slot.as_mut());
        match replacement.map_err(|error| trouble(path, &error))? {
            Replacement::Made(_) | Replacement::Unguarded => Ok(()),
            Replacement::Changed => Err(CHANGED.to_owned()),
            Replacement::Kept(name) => Err(format!("{CHANGED}; see {}", name.to_string_lossy())),
        }
    }

    fn replacement(
        &self,
        path: &Path,
        now: &State,
        new: Option<New<'_>>,
        mut slot: Option<&mut SlotTurn>,
    ) -> io::Result<Replacement> {
        let found = match Entry::of(path)?.status() {
            Ok(found) => Some(found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        // Since the steps began, much may have happened.
        let looked = look(self.workplace, path, self.limits);
        if looked.state != *now {
            return Ok(Replacement::Changed);
        }
        let site = Site::of(path)?;
        let pieces: Vec<&[u8]> = looked.objects.iter().map(|(_, bytes)| bytes.as_slice()).collect();
        let content = pieces.concat();
        let hash = hash(&content);
        let expected = found.map(|found| Expected {
            identity: found.identity,
            content: match now {
                State::File { .. } => Content::Bytes(&content, &hash),
                _ => Content::Version(Version::of(found)),
            },
        });
        let Some(expected) = expected else {
            return Ok(match new.map(|new| create(&site, new, slot)).transpose()? {
                None | Some(true) => Replacement::Made(Former::default()),
                Some(false) => Replacement::Changed,
            });
        };
        let replacement = match new {
            Some(new) => replace(&site, &expected, new, slot.as_deref_mut())?,
            None => remove(&site, &expected, slot.as_deref_mut())?,
        };
        let Replacement::Made(former) = replacement else { return Ok(replacement) };
        Ok(match former.give_way(&site, &expected, new, slot)? {
            GivenWay::NotNeeded => Replacement::Made(Former::default()),
            GivenWay::Yes => Replacement::Changed,
        })
    }

    fn make(&mut self, path: &Path, now: &State, to: &State) -> Result<(), String> {
        let failed = |error: io::Error| trouble(path, &error);
        match (now, to) {
            (_, State::Absent) => Ok(()),
            (_, State::Left(why)) => Err(format!("it was not kept: {}", why.reason())),
            (State::File { objects: same, .. }, State::File { mode, objects, .. })
                if same == objects =>
            {
                Entry::of(path).and_then(|entry| entry.set_mode(*mode)).map_err(failed)
            }
            (_, State::Directory { .. }) => {
                self.open_parent(path).map_err(failed)?;
                let Entry { directory, name } = Entry::of(path).map_err(failed)?;
                let made = rustix::fs::mkdirat(directory, name, raw_mode(0o700));
                made.map_err(|error| failed(error.into()))
            }
            (_, State::File { mode, size, .. }) => {
                let mut content = Vec::with_capacity(usize::try_from(*size).unwrap_or(0));
                for object in to.objects() {
                    content.extend((self.fetch)(object)?);
                }
                self.open_parent(path).map_err(failed)?;
                self.change(
                    path,
                    now,
                    Some(New::File { content: &content, hash: &hash(&content), mode: *mode }),
                )
            }
            (_, State::Link { target }) => {
                self.open_parent(path).map_err(failed)?;
                self.change(path, now, Some(New::Link { target: &unescaped(target) }))
            }
        }
    }

    /// Makes sure that names can be changed in the directory of `path`. Where its mode forbids that,
    /// it is among the steps, and gets its mode back at the end.
    fn open_parent(&mut self, path: &Path) -> io::Result<()> {
        let Some(parent) = path.parent() else { return Ok(()) };
        if parent.file_name().is_some() {
            let entry = Entry::of(parent)?;
            let found = entry.status()?;
            if forbids_changes(&found) {
                entry.set_mode(found.permissions() | 0o700)?;
            }
        }
        self.touched.insert(parent.to_owned());
        Ok(())
    }
}

fn set_mode_of_directory(path: &Path, mode: u32) -> io::Result<()> {
    let entry = match Entry::of(path) {
        // Where it is not, it has no mode either.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entry => entry?,
    };
    match entry.status() {
        Ok(found) if found.permissions() != mode => entry.set_mode(mode),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Whether what is there must go before anything else can be there.
fn makes_way(now: &State, to: &State) -> bool {
    match (now, to) {
        (State::Absent, _) => false,
        (_, State::Absent) => true,
        (State::Directory { .. }, State::Directory { .. }) => false,
        (State::Directory { .. }, to) => to.is_kept(),
        (_, State::Directory { .. }) => true,
        _ => false,
    }
}

fn is_directory(state: &State) -> bool {
    matches!(state, State::Directory { .. })
}
