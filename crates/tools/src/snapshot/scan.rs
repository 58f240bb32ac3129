//! Looks at a whole workspace, and reads only what changed since the last time.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mainstay_store::{BlobHash, wall_millis};
use tokio::time::Instant;

use super::ignored::Rules;
use super::listing::{Item, Listing, Signature};
use super::look;
use super::state::{Omission, State};
use crate::Workplace;
use crate::beneath::{self, Status};
use crate::files::{Bounds, Stop};

/// How much a snapshot may hold and take.
#[derive(Clone)]
pub struct Limits {
    /// Bytes of one file.
    pub file: u64,
    /// Bytes of all files together.
    pub bytes: u64,
    /// Files and directories.
    pub entries: usize,
    /// Time.
    pub time: Duration,
    /// Files and directories in a directory that is ignored.
    pub ignored_entries: usize,
    /// Bytes in a directory that is ignored, or of a file that is.
    pub ignored_bytes: u64,
    /// Whether bytes hold something that must not be stored.
    pub secret: Option<Secret>,
}

/// Tells whether bytes hold something that must not be stored.
pub type Secret = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

impl Default for Limits {
    fn default() -> Self {
        Self {
            file: 64 << 20,
            bytes: 512 << 20,
            entries: 50_000,
            time: Duration::from_secs(5),
            ignored_entries: 1_000,
            ignored_bytes: 16 << 20,
            secret: None,
        }
    }
}

/// A directory tree deeper than this is left.
const DEEPEST: usize = 200;
/// A file that was changed so shortly before it was read may be changed again without a trace.
const SETTLED: i64 = 50;

/// What is known of a workspace from the last time it was looked at.
#[derive(Default)]
pub struct Manifest {
    files: HashMap<PathBuf, Known>,
    /// What was left out once stays left out, so that what comes before and after can be compared.
    left: HashMap<PathBuf, Omission>,
    /// Whether directories that were asked about are ignored.
    ignored: HashMap<PathBuf, bool>,
    rules: Rules,
    /// Objects that are kept already.
    kept: HashSet<String>,
}

#[derive(Clone)]
struct Known {
    signature: Signature,
    state: State,
    /// Whether it was changed so shortly before that the signature proves nothing.
    fresh: bool,
}

/// What came of a look at a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scanned {
    /// The object of the workspace's own listing.
    pub root: String,
    /// Its directory, without links.
    pub workspace: PathBuf,
    /// What is not kept, the first of it.
    pub left: Vec<Left>,
    /// How much is not kept.
    pub left_count: usize,
}

/// Something that a snapshot does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Its path within the workspace.
    pub path: PathBuf,
    /// Why.
    pub why: Omission,
}

/// So many things that are not kept are named.
const NAMED: usize = 20;

impl Manifest {
    /// Notes that objects are kept.
    pub fn keep(&mut self, objects: impl IntoIterator<Item = String>) {
        self.kept.extend(objects);
    }

    /// Forgets which objects are kept; files whose objects are not are read again.
    pub fn doubt(&mut self) {
        self.kept.clear();
    }

    /// Whether nothing is known yet.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Takes in what an earlier look found in the directory `inside` the workspace. Its objects are
    /// kept.
    pub fn take_in(&mut self, inside: &Path, listing: &Listing) {
        for item in &listing.0 {
            self.kept.extend(item.state.objects().map(str::to_owned));
            if !item.listing.is_empty() {
                self.kept.insert(item.listing.clone());
            }
            if let Some(signature) = item.signature {
                let path = inside.join(std::ffi::OsStr::from_bytes(&item.name));
                let known = Known { signature, state: item.state.clone(), fresh: false };
                self.files.insert(path, known);
            }
        }
    }

    /// Whether an object is kept.
    pub fn keeps(&self, object: &str) -> bool {
        self.kept.contains(object)
    }
}

/// Takes in objects that are not kept yet.
type Sink<'a> = &'a mut dyn FnMut(String, Vec<u8>) -> Result<(), String>;

/// A look at a workspace.
pub struct Scan<'a> {
    bounds: Bounds,
    workspace: PathBuf,
    manifest: &'a mut Manifest,
    limits: &'a Limits,
    sink: Sink<'a>,
    stop: Stop,
    device: u64,
    end: Instant,
    entries: usize,
    bytes: u64,
    left: Vec<Left>,
    left_count: usize,
    /// The files of this time, to forget those that are gone.
    seen: HashMap<PathBuf, Known>,
    over: bool,
}

impl<'a> Scan<'a> {
    /// Looks at the workspace and hands every object that is not kept to `sink`. Fails, in words,
    /// where the workspace cannot be looked at or the sink fails.
    pub fn run(
        workplace: &Workplace,
        manifest: &'a mut Manifest,
        limits: &'a Limits,
        sink: Sink<'a>,
    ) -> Result<Scanned, String> {
        let workspace = fs::canonicalize(&workplace.workspace).map_err(|error| {
            format!("could not examine {}: {error}", workplace.workspace.display())
        })?;
        let opened = beneath::directory(&workspace).map_err(|error| error.to_string())?;
        let found = opened.metadata().map_err(|error| error.to_string())?;
        let mut scan = Scan {
            bounds: Bounds::of(workplace),
            workspace,
            manifest,
            limits,
            sink,
            stop: Stop::default(),
            device: found.dev(),
            end: Instant::now() + limits.time,
            entries: 0,
            bytes: 0,
            left: Vec::new(),
            left_count: 0,
            seen: HashMap::new(),
            over: false,
        };
        let top = scan.workspace.clone();
        let root = scan.directory(&opened, &top, Path::new(""), 0)?;
        let Some(root) = root else {
            return Err(format!("could not examine {}", top.display()));
        };
        let Scan { workspace, left, left_count, seen, manifest, .. } = scan;
        manifest.files = seen;
        Ok(Scanned { root, workspace, left, left_count })
    }

    /// Lists a directory; answers the object of its listing. Returns `None` if it cannot be read.
    fn directory(
        &mut self,
        opened: &File,
        path: &Path,
        inside: &Path,
        depth: usize,
    ) -> Result<Option<String>, String> {
        let Ok(mut found) = beneath::entries(opened) else { return Ok(None) };
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut listing = Listing(Vec::with_capacity(found.len()));
        for (name, status) in found {
            let (path, inside) = (path.join(&name), inside.join(&name));
            let (state, object) = match status {
                Ok(status) => self.entry(opened, &path, &inside, &status, depth)?,
                Err(error) => (look::missing(&error), String::new()),
            };
            if let State::Left(why) = state {
                self.leave(&inside, why);
            }
            if state != State::Absent {
                let known = self.seen.get(&inside).filter(|known| !known.fresh);
                let signature = known.map(|known| known.signature);
                let name = name.as_bytes().to_vec();
                listing.0.push(Item { name, state, listing: object, signature });
            }
        }
        let bytes = listing.encode();
        let object = BlobHash::of(&bytes).to_string();
        self.give(&object, bytes)?;
        Ok(Some(object))
    }

    /// What has a name in a directory that is open.
    fn entry(
        &mut self,
        directory: &File,
        path: &Path,
        inside: &Path,
        found: &Status,
        depth: usize,
    ) -> Result<(State, String), String> {
        let left = |why| Ok((State::Left(why), String::new()));
        let name = path.file_name().unwrap_or_default();
        if name == ".git" {
            return left(Omission::Git);
        }
        if self.bounds.closes(*found) {
            return left(Omission::Closed);
        }
        if let Some(why) = self.manifest.left.get(inside) {
            return left(*why);
        }
        self.entries += 1;
        if self.is_over() {
            self.manifest.left.insert(inside.to_owned(), Omission::Limit);
            return left(Omission::Limit);
        }
        if !found.is_directory() {
            return Ok((self.file(directory, path, inside, found)?, String::new()));
        }
        if found.identity.0 != self.device {
            return left(Omission::Mounted);
        }
        if depth >= DEEPEST {
            return left(Omission::Limit);
        }
        if self.is_ignored(path, inside) && self.is_large(path) {
            self.manifest.left.insert(inside.to_owned(), Omission::Ignored);
            return left(Omission::Ignored);
        }
        // By now it may be a link.
        let Ok(opened) = beneath::directory_in(directory, name) else {
            return left(Omission::Unreadable);
        };
        match self.directory(&opened, path, inside, depth + 1)? {
            Some(object) => Ok((State::Directory { mode: found.permissions() }, object)),
            None => left(Omission::Unreadable),
        }
    }

    fn file(
        &mut self,
        directory: &File,
        path: &Path,
        inside: &Path,
        found: &Status,
    ) -> Result<State, String> {
        let signature = signature(found);
        let size = if found.is_file() { found.size } else { 0 };
        if self.bytes.saturating_add(size) > self.limits.bytes {
            self.manifest.left.insert(inside.to_owned(), Omission::Limit);
            return Ok(State::Left(Omission::Limit));
        }
        if let Some(known) = self.manifest.files.get(inside)
            && known.signature == signature
            && !known.fresh
            && known.state.objects().all(|object| self.manifest.kept.contains(object))
        {
            let known = known.clone();
            let state = known.state.clone();
            self.seen.insert(inside.to_owned(), known);
            self.bytes += size;
            return Ok(state);
        }
        if size > self.limits.ignored_bytes && self.manifest.rules.ignore(&self.bounds, path, false)
        {
            self.manifest.left.insert(inside.to_owned(), Omission::Ignored);
            return Ok(State::Left(Omission::Ignored));
        }
        let before = wall_millis();
        let (directory, name) = (directory.as_fd(), path.file_name().unwrap_or_default());
        let looked = look::at(&self.bounds, directory, name, found, self.limits, &self.stop);
        for (object, bytes) in looked.objects {
            self.bytes += bytes.len() as u64;
            self.give(&object, bytes)?;
        }
        if looked.state.is_kept() && looked.state != State::Absent {
            let changed = found.changed.0 * 1000 + found.changed.1 / 1_000_000;
            let fresh = changed > before - SETTLED;
            let known = Known { signature, state: looked.state.clone(), fresh };
            self.seen.insert(inside.to_owned(), known);
        }
        Ok(looked.state)
    }

    /// Hands an object on, unless it is kept.
    fn give(&mut self, object: &str, bytes: Vec<u8>) -> Result<(), String> {
        if self.manifest.kept.contains(object) {
            return Ok(());
        }
        (self.sink)(object.to_owned(), bytes)
    }

    fn is_over(&mut self) -> bool {
        // The clock is not asked for every file.
        if !self.over
            && (self.entries > self.limits.entries
                || (self.entries.is_multiple_of(64) && Instant::now() > self.end))
        {
            self.over = true;
        }
        self.over
    }

    fn is_ignored(&mut self, path: &Path, inside: &Path) -> bool {
        if let Some(known) = self.manifest.ignored.get(inside) {
            return *known;
        }
        let ignored = self.manifest.rules.ignore(&self.bounds, path, true);
        self.manifest.ignored.insert(inside.to_owned(), ignored);
        ignored
    }

    /// Whether a directory holds more than is kept of what is ignored.
    fn is_large(&self, path: &Path) -> bool {
        let mut entries = 0;
        let mut bytes = 0;
        let mut left = vec![path.to_owned()];
        while let Some(directory) = left.pop() {
            let found = beneath::directory(&directory).and_then(beneath::entries);
            for (name, status) in found.unwrap_or_default() {
                let Ok(status) = status else { continue };
                entries += 1;
                if status.is_directory() {
                    left.push(directory.join(name));
                } else {
                    bytes += status.size;
                }
                if entries > self.limits.ignored_entries || bytes > self.limits.ignored_bytes {
                    return true;
                }
            }
        }
        false
    }

    fn leave(&mut self, inside: &Path, why: Omission) {
        self.left_count += 1;
        if self.left.len() < NAMED {
            self.left.push(Left { path: inside.to_owned(), why });
        }
    }
}

fn signature(found: &Status) -> Signature {
    [
        found.identity.0.cast_signed(),
        found.identity.1.cast_signed(),
        found.size.cast_signed(),
        found.modified.0,
        found.modified.1,
        found.changed.0,
        found.changed.1,
        i64::from(found.permissions()),
    ]
}
