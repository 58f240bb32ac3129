//! The files of a skill, in memory: read whole, hashed, changed, and written to a folder.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Component, Path, PathBuf};

use mainstay_store::fsatomic;
use mainstay_tools::beneath;
use sha2::{Digest as _, Sha256};

use super::SkillError;
use super::discovery::FILE;
use super::front_matter::{Front, check_name};

/// A skill has so many files and bytes at most.
const MOST_FILES: usize = 1_000;
const MOST_BYTES: u64 = 16 << 20;

/// The files of a skill, by their paths below its folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillFiles {
    pub(super) files: BTreeMap<String, SkillFile>,
}

/// A file of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SkillFile {
    pub(super) bytes: Vec<u8>,
    pub(super) executable: bool,
}

impl SkillFiles {
    /// Reads a folder, to which links may lead. What git keeps in it is no part of the skill.
    pub fn read(folder: &Path) -> Result<Self, SkillError> {
        let trouble = |error| SkillError::file(folder, error);
        let real = folder.canonicalize().map_err(trouble)?;
        Self::read_opened(&beneath::directory(&real).map_err(trouble)?, folder)
    }

    /// Reads a folder that is open; links in it are no part of a skill, and not followed.
    pub(super) fn read_opened(top: &File, folder: &Path) -> Result<Self, SkillError> {
        let mut tree = Self::default();
        let mut room = MOST_BYTES;
        let invalid = |what: String| SkillError::Invalid { path: folder.to_owned(), what };
        let mut left = vec![PathBuf::new()];
        while let Some(directory) = left.pop() {
            let trouble = |error| SkillError::file(&folder.join(&directory), error);
            let opened = beneath::directory_in(top, &directory).map_err(trouble)?;
            for (entry, looked) in beneath::entries(&opened).map_err(trouble)? {
                let inner = directory.join(&entry);
                let path = folder.join(&inner);
                let looked = looked.map_err(|error| SkillError::file(&path, error))?;
                let name = inner.to_str().ok_or_else(|| {
                    invalid(format!("the name of {} is not valid UTF-8", inner.to_string_lossy()))
                })?;
                if looked.is_directory() {
                    if entry != ".git" {
                        left.push(inner);
                    }
                    continue;
                }
                if !looked.is_file() {
                    return Err(invalid(format!("{name} is a link or not a regular file")));
                }
                if looked.size > room || tree.files.len() == MOST_FILES {
                    return Err(invalid("it has more than 1000 files or 16 MiB".to_owned()));
                }
                let mut bytes = Vec::new();
                let read = beneath::file_in(&opened, &entry)
                    .and_then(|file| file.take(room + 1).read_to_end(&mut bytes));
                read.map_err(|error| SkillError::file(&path, error))?;
                room = room
                    .checked_sub(bytes.len() as u64)
                    .ok_or_else(|| invalid("it grew while it was read".to_owned()))?;
                let executable = looked.permissions() & 0o111 != 0;
                tree.files.insert(name.to_owned(), SkillFile { bytes, executable });
            }
        }
        Ok(tree)
    }

    /// What its `SKILL.md` says, which has to be in a folder of this name. An error is a clause.
    pub(super) fn front(&self, name: &str) -> Result<Front, String> {
        check_name(name)?;
        let file = self.files.get(FILE).ok_or("it has no SKILL.md")?;
        let text = std::str::from_utf8(&file.bytes).map_err(|_| "its SKILL.md is not UTF-8")?;
        let (front, _) = Front::of(text)?;
        if front.name != name {
            let said = &front.name;
            return Err(format!("its name is {said:?}, but its folder is {name:?}"));
        }
        Ok(front)
    }

    /// Puts a text in, or takes a file out.
    pub(super) fn change(&mut self, path: &str, content: Option<&str>) {
        let Some(text) = content else {
            self.files.remove(path);
            return;
        };
        let was = self.files.get(path).is_some_and(|before| before.executable);
        let executable = was || text.starts_with("#!");
        let bytes = text.as_bytes().to_vec();
        self.files.insert(path.to_owned(), SkillFile { bytes, executable });
    }

    /// A path that is one of a file and one of a folder, so that nobody could write both.
    pub(super) fn clash(&self) -> Option<&str> {
        let above = self.files.keys().flat_map(|path| Path::new(path).ancestors().skip(1));
        above.filter_map(Path::to_str).find(|path| self.files.contains_key(*path))
    }

    /// A hash over all names, contents and whether they can be run.
    pub fn hash(&self) -> String {
        let mut all = Sha256::new();
        for (path, content) in &self.files {
            all.update((path.len() as u64).to_le_bytes());
            all.update(path.as_bytes());
            all.update([u8::from(content.executable)]);
            all.update(Sha256::digest(&content.bytes));
        }
        all.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Writes it to a folder that is not there yet, in a directory that is open. It is durable when this
    /// returns, but for the folder's own name.
    pub(super) fn write(&self, place: &File, folder: &OsStr) -> Result<(), SkillError> {
        let trouble = |error| SkillError::file(Path::new(folder), error);
        let mode = fsatomic::PRIVATE_DIR;
        let top = beneath::make_directory(place, folder, mode).map_err(trouble)?;
        for (name, content) in &self.files {
            let trouble = |error| SkillError::file(&Path::new(folder).join(name), error);
            let mut directory = top.try_clone().map_err(trouble)?;
            let mut parts: Vec<&OsStr> = Path::new(name).iter().collect();
            let file = parts.pop().unwrap_or_default();
            for part in parts {
                directory = beneath::make_directory(&directory, part, mode).map_err(trouble)?;
            }
            let mode = if content.executable { 0o700 } else { 0o600 };
            let mut file = beneath::new_file(&directory, file, mode).map_err(trouble)?;
            file.write_all(&content.bytes)
                .and_then(|()| file.sync_all())
                .and_then(|()| directory.sync_all())
                .map_err(trouble)?;
        }
        top.sync_all().map_err(trouble)
    }
}

/// Whether a path can be that of a file in a skill; an error says why not, in a clause.
pub(super) fn check_path(path: &str) -> Result<(), String> {
    let parts: Vec<Component<'_>> = Path::new(path).components().collect();
    let normal = |part: &Component<'_>| match part {
        Component::Normal(name) => !name.as_encoded_bytes().starts_with(b"."),
        _ => false,
    };
    let whole = parts.iter().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>();
    let fits = !parts.is_empty()
        && parts.len() <= 6
        && path.len() <= 200
        && !path.chars().any(char::is_control)
        && parts.iter().all(normal)
        && whole.join("/") == path;
    if fits { Ok(()) } else { Err(format!("{path:?} is not a valid path inside a skill's folder")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> SkillFiles {
        let mut tree = SkillFiles::default();
        tree.change("SKILL.md", Some("---\nname: one\ndescription: x\n---\nDo it.\n"));
        tree.change("scripts/a/run.sh", Some("#!/bin/sh\necho hi\n"));
        tree.change("references/notes.md", Some("notes"));
        tree
    }

    /// Writes the tree to a folder of a directory.
    fn write(directory: &Path) -> Result<PathBuf, SkillError> {
        tree().write(&File::open(directory).unwrap(), OsStr::new("one"))?;
        Ok(directory.join("one"))
    }

    #[test]
    fn what_is_written_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let folder = write(directory.path()).unwrap();
        std::fs::create_dir_all(folder.join(".git")).unwrap();
        let read = SkillFiles::read(&folder).unwrap();
        assert_eq!(read, tree());
        assert_eq!(read.hash(), tree().hash());
        assert!(read.files["scripts/a/run.sh"].executable);
        assert_eq!(read.front("one").unwrap().description, "x");
        assert!(read.front("two").unwrap_err().contains("\"two\""));
        assert!(write(directory.path()).is_err(), "nothing is written over");
    }

    #[test]
    fn every_change_changes_the_hash() {
        let mut hashes = vec![tree().hash()];
        for (path, content) in [
            ("SKILL.md", Some("y")),
            ("references/notes.md", None),
            ("references/notes.md", Some("note")),
            ("references/other.md", Some("notes")),
        ] {
            let mut changed = tree();
            changed.change(path, content);
            hashes.push(changed.hash());
        }
        let mut run = tree();
        run.files.get_mut("references/notes.md").unwrap().executable = true;
        hashes.push(run.hash());
        let count = hashes.len();
        hashes.sort();
        hashes.dedup();
        assert_eq!(hashes.len(), count);
    }

    #[test]
    fn links_are_no_part_of_a_skill() {
        let directory = tempfile::tempdir().unwrap();
        let folder = write(directory.path()).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.join("x")).unwrap();
        assert!(SkillFiles::read(&folder).unwrap_err().to_string().contains("x is a link"));
    }

    #[test]
    fn only_paths_below_the_folder_are_paths() {
        for path in ["SKILL.md", "scripts/run.sh", "references/a b.md", "assets/ä.txt"] {
            check_path(path).unwrap();
        }
        for path in ["", "/etc/x", "../x", "a/../b", "a//b", "./a", ".git/x", "a/.x", "a\nb", "a/"]
        {
            assert!(check_path(path).is_err(), "{path:?}");
        }
    }
}
