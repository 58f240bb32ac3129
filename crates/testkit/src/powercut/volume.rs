//! The disk of the model: files and directories with what is durable and what is only seen.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::choice::Choice;
use super::content::{Change, Content};
use super::snapshot::Snapshot;
use super::state::{Item, State};
use super::{Disk, Variant};
use crate::oplog::Op;

const ROOT: usize = 0;

/// The entries of all directories: directory, then name, to what it leads to.
type Names = BTreeMap<(usize, OsString), usize>;

/// A file or directory. Its number stays the same under all its names, and is never used again,
/// as an inode's is.
struct Node {
    mode: u32,
    /// Nothing for a directory, whose content is its entries.
    content: Option<Content>,
}

/// One change of directory entries, which happens as a whole or not at all.
struct NameChange {
    /// The directory whose sync makes it durable.
    settled_by: usize,
    edits: Vec<Edit>,
}

/// What a name leads to from now on, or `None` if it is gone.
struct Edit {
    name: (usize, OsString),
    to: Option<usize>,
}

pub(super) struct Volume {
    nodes: Vec<Node>,
    /// Which node an inode of the recorded run is now.
    inodes: HashMap<u64, usize>,
    durable: Names,
    live: Names,
    pending: Vec<NameChange>,
    acked: Vec<u8>,
}

impl Volume {
    /// A disk on which the snapshot is durable.
    pub(super) fn new(initial: &Snapshot) -> Self {
        let mut volume = Self {
            nodes: vec![Node { mode: 0o700, content: None }],
            inodes: HashMap::new(),
            durable: Names::new(),
            live: Names::new(),
            pending: Vec::new(),
            acked: Vec::new(),
        };
        for item in &initial.items {
            let known = volume.inodes.get(&item.inode).copied().filter(|_| item.bytes.is_some());
            let node = known.unwrap_or_else(|| {
                volume.add(item.inode, item.mode, item.bytes.clone().map(Content::durable))
            });
            let name = volume.entry(&item.path).expect("parents come before their children");
            volume.durable.insert(name.clone(), node);
            volume.live.insert(name, node);
        }
        volume
    }

    /// Does what the recorded run did.
    pub(super) fn apply(&mut self, op: &Op, disk: Disk) {
        let honest = disk == Disk::Honest;
        match op {
            Op::Write { inode, path, offset, data } => {
                let data = Arc::from(data.as_slice());
                self.content(*inode, path).change(Change::Write { offset: *offset, data });
            }
            Op::Truncate { inode, path, size } => {
                self.content(*inode, path).change(Change::Resize(*size));
            }
            Op::SyncFile { inode, path } if honest => self.content(*inode, path).sync(),
            Op::SyncDirectory { path } if honest => self.sync_directory(path),
            Op::SyncFile { .. } | Op::SyncDirectory { .. } => {}
            Op::Create { inode, path, mode } => self.create(*inode, path, *mode),
            Op::MakeDirectory { path, mode } => {
                self.nodes.push(Node { mode: *mode, content: None });
                self.name(path, Some(self.nodes.len() - 1));
            }
            Op::Rename { from, to } => self.rename(from, to),
            Op::Link { inode, from, to } => {
                let node = self.inodes.get(inode).copied().or_else(|| self.find(from));
                self.name(to, node);
            }
            Op::Unlink { path } | Op::RemoveDirectory { path } => self.name(path, None),
            Op::Acknowledge { data } => self.acked.extend(data),
        }
    }

    /// The disk after a power cut, as the lots fall.
    pub(super) fn state(
        &self,
        at: usize,
        variant: Variant,
        mut choice: Choice,
        skip: &dyn Fn(&Path) -> bool,
    ) -> State {
        let names = self.names_after(&mut choice);
        let mut items = Vec::new();
        let mut contents = HashMap::new();
        let mut open = vec![(ROOT, PathBuf::new())];
        let mut seen = HashSet::from([ROOT]);
        while let Some((directory, path)) = open.pop() {
            let first = (directory, OsString::new());
            let entries = names.range(first..).take_while(|((parent, _), _)| *parent == directory);
            for ((_, name), &number) in entries {
                let path = path.join(name);
                if skip(&path) {
                    continue;
                }
                let node = &self.nodes[number];
                // All names of one file show the same bytes.
                let bytes = node.content.as_ref().map(|content| {
                    let bytes = contents.entry(number);
                    Arc::clone(bytes.or_insert_with(|| content.after(&mut choice)))
                });
                // A moved directory whose old name came back is shown under one name only.
                if bytes.is_none() && !seen.insert(number) {
                    continue;
                }
                if bytes.is_none() {
                    open.push((number, path.clone()));
                }
                items.push((path, Item { mode: node.mode, node: number, bytes }));
            }
        }
        State { at, variant, acked: self.acked.clone(), items }
    }

    fn names_after(&self, choice: &mut Choice) -> Names {
        if choice.is_everything() {
            return self.live.clone();
        }
        let mut names = self.durable.clone();
        for change in &self.pending {
            if choice.happened() {
                change.edits.iter().for_each(|edit| edit.apply(&mut names));
            }
        }
        names
    }

    fn create(&mut self, inode: u64, path: &Path, mode: u32) {
        let found = self.find(path);
        // Two threads that created the file at once are both logged, with the same inode.
        if found.is_some() && found == self.inodes.get(&inode).copied() {
            return;
        }
        let node = self.add(inode, mode, Some(Content::durable(Vec::new())));
        self.name(path, Some(node));
    }

    fn rename(&mut self, from: &Path, to: &Path) {
        assert!(
            from.is_relative(),
            "{} is renamed into the recorded directory: its content was not recorded.",
            from.display()
        );
        // Sockets and symbolic links are no part of the model; a file renamed to itself stays.
        let Some(node) = self.find(from) else { return };
        if self.find(to) == Some(node) {
            return;
        }
        let gone = Edit { name: self.entry(from).expect("it was found"), to: None };
        match self.entry(to).filter(|_| to.is_relative()) {
            Some(name) => {
                let settled_by = name.0;
                self.change(settled_by, vec![gone, Edit { name, to: Some(node) }]);
            }
            // It left the directory.
            None => self.change(gone.name.0, vec![gone]),
        }
    }

    /// Makes a name lead to a node, or to nothing.
    fn name(&mut self, path: &Path, to: Option<usize>) {
        if to.is_none() && self.find(path).is_none() {
            return;
        }
        if let Some(name) = self.entry(path) {
            self.change(name.0, vec![Edit { name, to }]);
        }
    }

    fn change(&mut self, settled_by: usize, edits: Vec<Edit>) {
        edits.iter().for_each(|edit| edit.apply(&mut self.live));
        self.pending.push(NameChange { settled_by, edits });
    }

    fn sync_directory(&mut self, path: &Path) {
        let directory = if path == Path::new("") { Some(ROOT) } else { self.find(path) };
        let mut waiting: Vec<NameChange> = Vec::new();
        for change in self.pending.drain(..) {
            if Some(change.settled_by) != directory {
                waiting.push(change);
                continue;
            }
            for edit in &change.edits {
                edit.apply(&mut self.durable);
                // What an older change said about this name is overtaken for good.
                for older in &mut waiting {
                    older.edits.retain(|old| old.name != edit.name);
                }
            }
        }
        self.pending = waiting;
    }

    fn add(&mut self, inode: u64, mode: u32, content: Option<Content>) -> usize {
        self.nodes.push(Node { mode, content });
        self.inodes.insert(inode, self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    /// The content of a file that is open in the recorded run.
    fn content(&mut self, inode: u64, path: &Path) -> &mut Content {
        let known = self.inodes.get(&inode).copied();
        let node = known.unwrap_or_else(|| {
            // A file without a name (O_TMPFILE) is met first when it is written.
            assert!(
                path.as_os_str().as_encoded_bytes().ends_with(b" (deleted)"),
                "{} was there before the recording: take a Snapshot and start from it.",
                path.display()
            );
            self.add(inode, 0o600, Some(Content::durable(Vec::new())))
        });
        self.nodes[node].content.as_mut().expect("bytes are written to files")
    }

    fn find(&self, path: &Path) -> Option<usize> {
        self.live.get(&self.entry(path)?).copied()
    }

    /// The directory and the name in it. Returns `None` if the directory is not known.
    fn entry(&self, path: &Path) -> Option<(usize, OsString)> {
        let name: &OsStr = path.file_name()?;
        let parent = path.parent()?;
        let directory = if parent == Path::new("") { ROOT } else { self.find(parent)? };
        Some((directory, name.to_owned()))
    }
}

impl Edit {
    fn apply(&self, names: &mut Names) {
        match self.to {
            Some(node) => _ = names.insert(self.name.clone(), node),
            None => _ = names.remove(&self.name),
        }
    }
}
