//! The skills of the home as files: each change is one rename, so that whoever looks finds the old
//! skill or the new one, whole.
//!
//! A folder is written beside the others under a name that nobody looks at (`.staged.…`), gets a name
//! that says that it is whole (`.ready.…`), and is exchanged with the one that it replaces, which goes
//! to the trash. What a crash leaves is cleared away by whoever changes something next.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mainstay_store::{Id, fsatomic};

use super::front_matter::check_name;
use super::{SkillError, SkillFiles};

const STAGED: &str = ".staged.";
const READY: &str = ".ready.";
const TRASH: &str = ".trash";
/// How long another process is waited for that changes skills.
const PATIENCE: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(20);

/// The directory of the home's skills.
#[derive(Clone, Debug)]
pub struct Shelf {
    directory: PathBuf,
}

/// The shelf, while nobody else changes it.
#[derive(Debug)]
pub struct Locked<'a> {
    shelf: &'a Shelf,
    /// Let go with the process at the latest.
    _lock: File,
}

/// A skill that was taken away or replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trashed {
    /// Its name.
    pub name: String,
    /// When it was, in milliseconds since 1970.
    pub at: i64,
    /// Where it is.
    pub path: PathBuf,
    id: Id,
}

impl Shelf {
    /// The skills in this directory, which need not be there.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Whether there is such a directory.
    pub fn is_there(&self) -> bool {
        self.directory.is_dir()
    }

    /// The files of a skill. Returns `None` if there is no skill of this name.
    pub fn read(&self, name: &str) -> Result<Option<SkillFiles>, SkillError> {
        let folder = self.folder(name);
        match fs::symlink_metadata(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(SkillError::file(&folder, error)),
            Ok(looked) if !looked.is_dir() => Err(SkillError::Invalid {
                path: folder,
                what: "it is a link or not a folder, and Mainstay does not change it".to_owned(),
            }),
            Ok(_) => SkillFiles::read(&folder).map(Some),
        }
    }

    /// What was taken away or replaced, the last first.
    pub fn trash(&self) -> Result<Vec<Trashed>, SkillError> {
        let directory = self.directory.join(TRASH);
        let mut found = Vec::new();
        for entry in entries(&directory)? {
            let file = entry.file_name().to_string_lossy().into_owned();
            let Some((name, id)) = file.rsplit_once('.') else { continue };
            let Ok(id) = id.parse::<Id>() else { continue };
            let name = name.to_owned();
            let at = id.created_millis();
            found.push(Trashed { name, at, path: entry.path(), id });
        }
        found.sort_by_key(|trashed| std::cmp::Reverse(trashed.id));
        Ok(found)
    }

    /// Waits until nobody else changes the skills, and clears away what a crash left.
    pub fn lock(&self) -> Result<Locked<'_>, SkillError> {
        let directory = &self.directory;
        let trouble = |error| SkillError::file(directory, error);
        fsatomic::private_directory(directory).map_err(trouble)?;
        let lock = File::open(directory).map_err(trouble)?;
        let mut waited = Duration::ZERO;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(trouble(error)),
                Err(TryLockError::WouldBlock) if waited >= PATIENCE => {
                    return Err(SkillError::Busy(directory.clone()));
                }
                Err(TryLockError::WouldBlock) => {
                    std::thread::sleep(STEP);
                    waited += STEP;
                }
            }
        }
        let locked = Locked { shelf: self, _lock: lock };
        locked.clear()?;
        Ok(locked)
    }

    /// Clears away what a crash left, unless somebody is at work.
    pub fn clear_up(&self) {
        let left = |entry: &fs::DirEntry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with(STAGED) || name.starts_with(READY)
        };
        let entries = entries(&self.directory).unwrap_or_default();
        if entries.iter().any(left)
            && let Ok(lock) = File::open(&self.directory)
            && lock.try_lock().is_ok()
        {
            // What stays is met by the next one.
            let _ = Locked { shelf: self, _lock: lock }.clear();
        }
    }

    pub(super) fn folder(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

impl Locked<'_> {
    /// Puts a skill in. `before` is the hash of the skill it replaces, which goes to the trash; `None`
    /// means that there must be no skill of this name.
    pub fn put(
        &self,
        name: &str,
        tree: &SkillFiles,
        before: Option<&str>,
    ) -> Result<(), SkillError> {
        let target = self.shelf.folder(name);
        tree.front(name).map_err(|what| SkillError::Invalid { path: target.clone(), what })?;
        let now = self.shelf.read(name)?.map(|now| now.hash());
        if now.as_deref() != before {
            return Err(SkillError::Changed(name.to_owned()));
        }
        let id = Id::new();
        let directory = &self.shelf.directory;
        let (staged, ready) = (
            directory.join(format!("{STAGED}{id}")),
            directory.join(format!("{READY}{name}.{id}")),
        );
        tree.write(&staged)?;
        rename(&staged, &ready)?;
        if before.is_none() {
            return rename(&ready, &target);
        }
        let exchange = || {
            fsatomic::exchange(&ready, &target).map_err(|error| SkillError::file(&target, error))
        };
        exchange()?;
        // An editor does not take the lock. If it changed the skill meanwhile, that change comes back.
        if SkillFiles::read(&ready).map(|old| old.hash()).ok().as_deref() != before {
            exchange()?;
            return Err(SkillError::Changed(name.to_owned()));
        }
        self.discard(&ready, name, id)
    }

    /// Takes a skill away. It goes to the trash.
    pub fn remove(&self, name: &str) -> Result<PathBuf, SkillError> {
        let folder = self.shelf.folder(name);
        let missing = || SkillError::Missing(name.to_owned());
        check_name(name).map_err(|_| missing())?;
        if fs::symlink_metadata(&folder).is_err() {
            return Err(missing());
        }
        let id = Id::new();
        self.discard(&folder, name, id)?;
        Ok(self.shelf.directory.join(TRASH).join(format!("{name}.{id}")))
    }

    /// Brings back what was last taken away under a name.
    pub fn restore(&self, name: &str) -> Result<(), SkillError> {
        let found = self.shelf.trash()?.into_iter().find(|trashed| trashed.name == name);
        let trashed = found.ok_or_else(|| SkillError::NotInTrash(name.to_owned()))?;
        let folder = self.shelf.folder(name);
        if fs::symlink_metadata(&folder).is_ok() {
            return Err(SkillError::Exists(name.to_owned()));
        }
        rename(&trashed.path, &folder)
    }

    /// Deletes what is in the trash, for good.
    pub fn empty_trash(&self) -> Result<usize, SkillError> {
        let all = self.shelf.trash()?;
        for trashed in &all {
            delete(&trashed.path)?;
        }
        Ok(all.len())
    }

    fn discard(&self, folder: &Path, name: &str, id: Id) -> Result<(), SkillError> {
        let trash = self.shelf.directory.join(TRASH);
        fsatomic::private_directory(&trash).map_err(|error| SkillError::file(&trash, error))?;
        rename(folder, &trash.join(format!("{name}.{id}")))
    }

    /// Clears away what a crash left: what is not whole goes, and so does what was to be a new skill; what
    /// may be the one that was replaced goes to the trash.
    fn clear(&self) -> Result<(), SkillError> {
        for entry in entries(&self.shelf.directory)? {
            let file = entry.file_name().to_string_lossy().into_owned();
            if file.starts_with(STAGED) {
                delete(&entry.path())?;
            } else if let Some(rest) = file.strip_prefix(READY)
                && let Some((name, id)) = rest.rsplit_once('.')
                && let Ok(id) = id.parse::<Id>()
            {
                match fs::symlink_metadata(self.shelf.folder(name)) {
                    Ok(_) => self.discard(&entry.path(), name, id)?,
                    Err(_) => delete(&entry.path())?,
                }
            }
        }
        Ok(())
    }
}

/// The entries of a directory. Returns none if the directory does not exist.
fn entries(directory: &Path) -> Result<Vec<fs::DirEntry>, SkillError> {
    let trouble = |error| SkillError::file(directory, error);
    match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(trouble(error)),
        Ok(entries) => entries.collect::<io::Result<_>>().map_err(trouble),
    }
}

fn rename(from: &Path, to: &Path) -> Result<(), SkillError> {
    fsatomic::rename(from, to).map_err(|error| SkillError::file(to, error))
}

fn delete(path: &Path) -> Result<(), SkillError> {
    let deleted = match fs::symlink_metadata(path) {
        Ok(looked) if looked.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    deleted.map_err(|error| SkillError::file(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(words: &str) -> SkillFiles {
        let mut tree = SkillFiles::default();
        tree.change("SKILL.md", Some("---\nname: one\ndescription: x\n---\n"));
        tree.change("references/notes.md", Some(words));
        tree
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = entries(directory)
            .unwrap()
            .iter()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_skill_is_put_replaced_removed_and_brought_back() {
        let directory = tempfile::tempdir().unwrap();
        let shelf = Shelf::at(directory.path().join("skills"));
        assert_eq!(shelf.read("one").unwrap(), None);
        let locked = shelf.lock().unwrap();
        locked.put("one", &tree("old"), None).unwrap();
        assert_eq!(shelf.read("one").unwrap(), Some(tree("old")));
        let trouble = locked.put("one", &tree("new"), None).unwrap_err();
        assert!(matches!(trouble, SkillError::Changed(_)), "{trouble}");
        locked.put("one", &tree("new"), Some(&tree("old").hash())).unwrap();
        assert_eq!(shelf.read("one").unwrap(), Some(tree("new")));
        assert_eq!(SkillFiles::read(&shelf.trash().unwrap()[0].path).unwrap(), tree("old"));
        locked.remove("one").unwrap();
        assert!(matches!(locked.remove("one"), Err(SkillError::Missing(_))));
        assert!(matches!(locked.remove("../x"), Err(SkillError::Missing(_))));
        locked.restore("one").unwrap();
        assert_eq!(shelf.read("one").unwrap(), Some(tree("new")), "the last one that was there");
        assert!(matches!(locked.restore("one"), Err(SkillError::Exists(_))));
        assert_eq!(locked.empty_trash().unwrap(), 1);
        assert!(matches!(locked.restore("two"), Err(SkillError::NotInTrash(_))));
        assert_eq!(names(&shelf.directory), [".trash", "one"]);
    }

    #[test]
    fn what_a_crash_leaves_goes_and_nothing_whole_is_lost() {
        let directory = tempfile::tempdir().unwrap();
        let shelf = Shelf::at(directory.path());
        shelf.lock().unwrap().put("one", &tree("new"), None).unwrap();
        let (half, whole) = (Id::new(), Id::new());
        tree("half").write(&directory.path().join(format!("{STAGED}{half}"))).unwrap();
        tree("old").write(&directory.path().join(format!("{READY}one.{whole}"))).unwrap();
        tree("new").write(&directory.path().join(format!("{READY}two.{}", Id::new()))).unwrap();
        drop(shelf.lock().unwrap());
        assert_eq!(names(directory.path()), [".trash", "one"]);
        let trash = shelf.trash().unwrap();
        assert_eq!(trash.len(), 1);
        assert_eq!(SkillFiles::read(&trash[0].path).unwrap(), tree("old"));
    }

    #[test]
    fn nothing_that_is_no_skill_is_put_and_no_link_is_followed() {
        let directory = tempfile::tempdir().unwrap();
        let shelf = Shelf::at(directory.path().join("skills"));
        let locked = shelf.lock().unwrap();
        for name in ["two", "../one", ".trash", ""] {
            let trouble = locked.put(name, &tree("x"), None).unwrap_err();
            assert!(matches!(trouble, SkillError::Invalid { .. }), "{name}: {trouble}");
        }
        std::os::unix::fs::symlink("/etc", shelf.folder("one")).unwrap();
        assert!(matches!(shelf.read("one"), Err(SkillError::Invalid { .. })));
        assert!(locked.put("one", &tree("x"), None).is_err());
    }
}
