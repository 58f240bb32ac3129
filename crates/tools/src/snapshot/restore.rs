//! Puts states back, so that it can be interrupted anywhere and done again.
//!
//! Each path is changed by one exchange, one removal or one change of its mode. So after a crash each
//! is as it was, or as it is to be, or there is nothing where one kind of thing makes way for
//! another; and doing it all again leads to the same end. What somebody saves meanwhile is not lost:
//! see [`crate::replacing`].

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::escape::{escaped, unescaped};
use super::look::{look, mode};
use super::scan::Limits;
use super::state::State;
use crate::Workplace;
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
    for step in steps {
        let path = unescaped(&step.path);
        let now = look(workplace, &path, &limits).state;
        let is_directory = |state: &State| matches!(state, State::Directory { .. });
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
        let Ok(found) = fs::symlink_metadata(parent) else { continue };
        if found.is_dir() && mode(&found) & 0o300 != 0o300 {
            let state = State::Directory { mode: mode(&found) };
            steps.push(PathChange { path: escaped(parent), from: state.clone(), to: state });
        }
    }
    steps
}

const CHANGED: &str = "someone else changed it just now";

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
            if let State::Directory { mode: wanted } = to
                && !failed.contains(path)
                && fs::symlink_metadata(path).is_ok_and(|found| mode(&found) != *wanted)
                && let Err(error) = fs::set_permissions(path, Permissions::from_mode(*wanted))
            {
                failed.insert(path.clone());
                self.restored.left.push((path.clone(), error.to_string()));
            }
        }
        for directory in &self.touched {
            // A directory that is gone needs no sync; its own parent is among these.
            if let Err(error) = fs::File::open(directory).and_then(|file| file.sync_all())
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(%error, directory = %directory.display(), "not synced");
            }
        }
        self.restored.done = todo.len() - failed.len();
    }

    fn remove(&mut self, path: &Path, now: &State) -> Result<(), String> {
        self.open_parent(path).map_err(|error| error.to_string())?;
        if !is_directory(now) {
            return self.change(path, now, None);
        }
        match fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                Err("it is not empty: it contains something that is not restored".to_owned())
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.to_string()),
            _ => Ok(()),
        }
    }

    /// Puts something new, or nothing, in the place of a file or a link that is as it was looked at.
    fn change(&self, path: &Path, now: &State, new: Option<New<'_>>) -> Result<(), String> {
        let slot = self.workplace.edit_slots.open(path);
        let mut slot = slot.and_then(|slot| slot.take(&Stop::default()).ok().flatten());
        let replacement = self.replacement(path, now, new, slot.as_mut());
        match replacement.map_err(|error| error.to_string())? {
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
        let found = match fs::symlink_metadata(path) {
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
            identity: (found.dev(), found.ino()),
            content: match now {
                State::File { .. } => Content::Bytes(&content, &hash),
                _ => Content::Version(Version::of(&found)),
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
        let failed = |error: io::Error| error.to_string();
        match (now, to) {
            (_, State::Absent) => Ok(()),
            (_, State::Left(why)) => Err(format!("it was not kept: {}", why.reason())),
            (State::File { objects: same, .. }, State::File { mode, objects, .. })
                if same == objects =>
            {
                fs::set_permissions(path, Permissions::from_mode(*mode)).map_err(failed)
            }
            (_, State::Directory { .. }) => {
                self.open_parent(path).map_err(failed)?;
                DirBuilder::new().mode(0o700).create(path).map_err(failed)
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
        let found = fs::symlink_metadata(parent)?;
        if found.is_dir() && mode(&found) & 0o300 != 0o300 {
            fs::set_permissions(parent, Permissions::from_mode(mode(&found) | 0o700))?;
        }
        self.touched.insert(parent.to_owned());
        Ok(())
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
