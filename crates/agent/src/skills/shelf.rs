//! The skills of the home as files: each change is one rename, so that whoever looks finds the old
//! skill or the new one, whole.
//!
//! A folder is written beside the others under a name that nobody looks at (`.staged.…`), gets a name
//! that says that it is whole (`.ready.…`), and is exchanged with the one that it replaces, which goes
//! to the trash. What a crash leaves is cleared away by whoever changes something next.

use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use mainstay_store::{Id, fsatomic};
use mainstay_tools::beneath::{self, LinkMet, Status};

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
    /// The directory, locked: all changes are made in it, whatever its path leads to by now. The lock is
    /// let go with the process at the latest.
    directory: File,
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
        match self.open()? {
            Some(directory) => self.read_in(&directory, OsStr::new(name)),
            None => Ok(None),
        }
    }

    /// Opens the directory, to which the user's own links may lead. Everything else happens in it.
    fn open(&self) -> Result<Option<File>, SkillError> {
        match File::open(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some).map_err(|error| SkillError::file(&self.directory, error)),
        }
    }

    fn read_in(&self, directory: &File, name: &OsStr) -> Result<Option<SkillFiles>, SkillError> {
        let folder = self.directory.join(name);
        match beneath::directory_in(directory, name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if LinkMet::is(&error) || error.kind() == io::ErrorKind::NotADirectory => {
                let what = "it is a link or not a folder, and Mainstay does not change it";
                Err(SkillError::Invalid { path: folder, what: what.to_owned() })
            }
            Err(error) => Err(SkillError::file(&folder, error)),
            Ok(opened) => SkillFiles::read_opened(&opened, &folder).map(Some),
        }
    }

    /// What was taken away or replaced, the last first.
    pub fn trash(&self) -> Result<Vec<Trashed>, SkillError> {
        let path = self.directory.join(TRASH);
        let trouble = |error| SkillError::file(&path, error);
        let Some(directory) = self.open()? else { return Ok(Vec::new()) };
        let trash = match beneath::directory_in(&directory, TRASH) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened.map_err(trouble)?,
        };
        let mut found = Vec::new();
        for (file, _) in beneath::entries(&trash).map_err(trouble)? {
            let file = file.to_string_lossy().into_owned();
            let Some((name, id)) = file.rsplit_once('.') else { continue };
            let Ok(id) = id.parse::<Id>() else { continue };
            let name = name.to_owned();
            let at = id.created_millis();
            found.push(Trashed { name, at, path: path.join(&file), id });
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
        let locked = Locked { shelf: self, directory: lock };
        locked.clear()?;
        Ok(locked)
    }

    /// Clears away what a crash left, unless somebody is at work.
    pub fn clear_up(&self) {
        let left = |(name, _): &(OsString, io::Result<Status>)| {
            let name = name.to_string_lossy();
            name.starts_with(STAGED) || name.starts_with(READY)
        };
        if let Ok(Some(directory)) = self.open()
            && beneath::entries(&directory).is_ok_and(|entries| entries.iter().any(left))
            && directory.try_lock().is_ok()
        {
            // What stays is met by the next one.
            let _ = Locked { shelf: self, directory }.clear();
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
        let now = self.shelf.read_in(&self.directory, OsStr::new(name))?.map(|now| now.hash());
        if now.as_deref() != before {
            return Err(SkillError::Changed(name.to_owned()));
        }
        let id = Id::new();
        let staged = OsString::from(format!("{STAGED}{id}"));
        let ready = OsString::from(format!("{READY}{name}.{id}"));
        let name_in_shelf = OsStr::new(name);
        tree.write(&self.directory, &staged)?;
        self.rename(&staged, &ready)?;
        if before.is_none() {
            return self.rename(&ready, name_in_shelf);
        }
        let exchange = || {
            beneath::exchange(&self.directory, &ready, name_in_shelf)
                .map_err(|error| SkillError::file(&target, error))
        };
        exchange()?;
        // An editor does not take the lock. If it changed the skill meanwhile, that change comes back.
        let out = self.shelf.read_in(&self.directory, &ready);
        if out.ok().flatten().map(|old| old.hash()).as_deref() != before {
            exchange()?;
            return Err(SkillError::Changed(name.to_owned()));
        }
        self.discard(&ready, name, id)
    }

    /// Takes a skill away. It goes to the trash.
    pub fn remove(&self, name: &str) -> Result<PathBuf, SkillError> {
        let missing = || SkillError::Missing(name.to_owned());
        check_name(name).map_err(|_| missing())?;
        if !self.has(OsStr::new(name)) {
            return Err(missing());
        }
        let id = Id::new();
        self.discard(OsStr::new(name), name, id)?;
        Ok(self.shelf.directory.join(TRASH).join(format!("{name}.{id}")))
    }

    /// Brings back what was last taken away under a name.
    pub fn restore(&self, name: &str) -> Result<(), SkillError> {
        let found = self.shelf.trash()?.into_iter().find(|trashed| trashed.name == name);
        let trashed = found.ok_or_else(|| SkillError::NotInTrash(name.to_owned()))?;
        if self.has(OsStr::new(name)) {
            return Err(SkillError::Exists(name.to_owned()));
        }
        let from = trashed.path.file_name().unwrap_or_default();
        beneath::rename((&self.trash()?, from), (&self.directory, OsStr::new(name)))
            .map_err(|error| SkillError::file(&self.shelf.folder(name), error))
    }

    /// Deletes what is in the trash, for good.
    pub fn empty_trash(&self) -> Result<usize, SkillError> {
        let all = self.shelf.trash()?;
        for trashed in &all {
            let name = trashed.path.file_name().unwrap_or_default();
            beneath::remove_tree(self.trash()?, name)
                .map_err(|error| SkillError::file(&trashed.path, error))?;
        }
        Ok(all.len())
    }

    fn has(&self, name: &OsStr) -> bool {
        Status::at(&self.directory, name).is_ok()
    }

    fn rename(&self, from: &OsStr, to: &OsStr) -> Result<(), SkillError> {
        beneath::rename((&self.directory, from), (&self.directory, to))
            .map_err(|error| SkillError::file(&self.shelf.directory.join(to), error))
    }

    /// The directory of what was taken away.
    fn trash(&self) -> Result<File, SkillError> {
        beneath::make_directory(&self.directory, OsStr::new(TRASH), fsatomic::PRIVATE_DIR)
            .map_err(|error| SkillError::file(&self.shelf.directory.join(TRASH), error))
    }

    fn discard(&self, folder: &OsStr, name: &str, id: Id) -> Result<(), SkillError> {
        let to = OsString::from(format!("{name}.{id}"));
        beneath::rename((&self.directory, folder), (&self.trash()?, &to))
            .map_err(|error| SkillError::file(&self.shelf.directory.join(TRASH), error))
    }

    /// Clears away what a crash left: what is not whole goes, and so does what was to be a new skill; what
    /// may be the one that was replaced goes to the trash.
    fn clear(&self) -> Result<(), SkillError> {
        let trouble = |error| SkillError::file(&self.shelf.directory, error);
        for (entry, _) in beneath::entries(&self.directory).map_err(trouble)? {
            let file = entry.to_string_lossy().into_owned();
            let delete = || beneath::remove_tree(&self.directory, &entry).map_err(trouble);
            if file.starts_with(STAGED) {
                delete()?;
            } else if let Some(rest) = file.strip_prefix(READY)
                && let Some((name, id)) = rest.rsplit_once('.')
                && let Ok(id) = id.parse::<Id>()
            {
                if self.has(OsStr::new(name)) {
                    self.discard(&entry, name, id)?;
                } else {
                    delete()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn tree(words: &str) -> SkillFiles {
        let mut tree = SkillFiles::default();
        tree.change("SKILL.md", Some("---\nname: one\ndescription: x\n---\n"));
        tree.change("references/notes.md", Some(words));
        tree
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
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
        let write = |words: &str, name: String| {
            tree(words).write(&File::open(directory.path()).unwrap(), name.as_ref()).unwrap();
        };
        write("half", format!("{STAGED}{half}"));
        write("old", format!("{READY}one.{whole}"));
        write("new", format!("{READY}two.{}", Id::new()));
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
