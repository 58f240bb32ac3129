//! Caches that were made for tools and not by them: the last one who needs them removes what no tool
//! has put anything into.
//!
//! Which were made is written to a record before they are, and everybody who may need them
//! [occupies](mainstay_store::occupancy) it. So what a killed process made is found again too.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use mainstay_store::fsatomic::{PRIVATE_FILE, append_to, create_new};
use mainstay_store::occupancy::{occupy, vacated};

/// How often it is tried again where whoever clears up was faster.
const TRIES: u32 = 100;

/// Caches that this process or another one has made, and that are needed as long as this is there.
#[derive(Debug)]
pub struct MadeCaches {
    record: PathBuf,
    occupied: Option<File>,
}

/// Something that a tool would make on its first day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    Directory(PathBuf),
    /// An empty file.
    File(PathBuf),
}

impl Missing {
    fn path(&self) -> &Path {
        match self {
            Self::Directory(path) | Self::File(path) => path,
        }
    }

    /// Makes it. Where it cannot be made, its tool says so when it is run.
    pub(super) fn make(&self) {
        let _ = match self {
            Self::Directory(path) => fs::create_dir(path),
            Self::File(path) => create_new(path, 0o644).map(drop),
        };
    }
}

impl MadeCaches {
    /// Makes what is missing, after it was written to the record. Returns `None` if nothing was made, now
    /// or by somebody who may be gone before this process.
    pub(super) fn make(record: &Path, missing: &[Missing]) -> Option<Self> {
        if missing.is_empty() && !record.exists() {
            return None;
        }
        let occupied = (0..TRIES).find_map(|_| match write_down(record, missing) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            written => Some(written),
        });
        // Nothing is made that nobody would find again.
        let occupied = occupied?.ok()?;
        missing.iter().for_each(Missing::make);
        Some(Self { record: record.to_owned(), occupied: Some(occupied) })
    }
}

impl Drop for MadeCaches {
    fn drop(&mut self) {
        drop(self.occupied.take());
        clear_up(&self.record);
    }
}

/// Adds to the record, and occupies it.
fn write_down(record: &Path, missing: &[Missing]) -> io::Result<File> {
    let mut file = append_to(record, PRIVATE_FILE)?;
    let occupied = occupy(record)?;
    for missing in missing {
        file.write_all(&[missing.path().as_os_str().as_bytes(), b"\0"].concat())?;
    }
    Ok(occupied)
}

/// Removes caches that nobody needs any more and that no tool has put anything into.
pub fn clear_up(record: &Path) {
    let Some(_taken) = vacated(record) else { return };
    let Ok(content) = fs::read(record) else { return };
    let made =
        content.split_inclusive(|byte| *byte == 0).filter_map(|path| path.strip_suffix(b"\0"));
    let mut made: Vec<&Path> = made.map(|path| Path::new(OsStr::from_bytes(path))).collect();
    // What was made last is in what was made before.
    made.reverse();
    let remove_directories = || made.iter().for_each(|path| drop(fs::remove_dir(path)));
    remove_directories();
    for path in &made {
        // A lock of a tool is empty also when it was used; then what it guards is not.
        let is_used = path.parent().is_none_or(|beside| {
            let entries = fs::read_dir(beside).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).any(|path| !made.contains(&path.as_path()))
                || made.iter().any(|path| path.parent() == Some(beside) && path.is_dir())
        });
        let is_empty =
            fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() == 0);
        if is_empty && !is_used {
            let _ = fs::remove_file(path);
        }
    }
    remove_directories();
    let _ = fs::remove_file(record);
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests stand outside the product's seams")]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn missing(home: &Path) -> Vec<Missing> {
        let directories = [".m2", ".m2/repository", ".npm", ".cargo", ".cargo/registry"];
        let mut missing: Vec<_> =
            directories.iter().map(|name| Missing::Directory(home.join(name))).collect();
        missing.push(Missing::File(home.join(".cargo/.package-cache")));
        missing
    }

    #[test]
    fn what_no_tool_used_goes_with_the_last_who_needed_it() {
        let directory = tempfile::tempdir().unwrap();
        let (home, record) = (directory.path().join("home"), directory.path().join("record"));
        fs::create_dir(&home).unwrap();
        let one = MadeCaches::make(&record, &missing(&home)).unwrap();
        let two = MadeCaches::make(&record, &[]).unwrap();
        drop(one);
        assert_eq!(names(&home), [".cargo", ".m2", ".npm"]);
        fs::write(home.join(".npm/package"), "x").unwrap();
        drop(two);
        assert_eq!(names(&home), [".npm"]);
        assert!(!record.exists());
        assert!(MadeCaches::make(&record, &[]).is_none());
    }

    #[test]
    fn a_used_cache_keeps_its_lock_and_a_killed_process_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let (home, record) = (directory.path().join("home"), directory.path().join("record"));
        fs::create_dir(&home).unwrap();
        let mut killed = MadeCaches::make(&record, &missing(&home)).unwrap();
        drop(killed.occupied.take());
        std::mem::forget(killed);
        fs::write(home.join(".cargo/registry/crate"), "x").unwrap();
        clear_up(&record);
        assert_eq!(names(&home), [".cargo"]);
        assert_eq!(names(&home.join(".cargo")), [".package-cache", "registry"]);
        assert!(!record.exists());
    }
}
