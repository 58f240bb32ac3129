//! What the turns of a session changed, computed from their marks.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use mainstay_journal::{SessionId, TurnId};
use mainstay_store::ReadTx;
use mainstay_tools::snapshot::{Item, Listing, Omission, State, escaped, unescaped};

use super::mark::{self, Mark, Tree};
use super::objects;
use crate::Result;

/// The marks of a turn from where it began or went on to where it ended or was parked.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) turn: TurnId,
    /// The first and the last of its marks.
    pub(crate) numbers: (i64, i64),
    /// When the last of them was taken.
    pub(crate) at: i64,
    marks: Vec<Mark>,
    after: Option<(Option<Tree>, BTreeMap<String, State>)>,
}

/// A path that a turn changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// Escaped.
    pub(crate) path: String,
    pub(crate) before: State,
    /// Nothing where nobody looked when the turn ended.
    pub(crate) after: Option<State>,
}

/// The segments of a session, in order.
pub(crate) fn segments(tx: &mut ReadTx<'_>, session: SessionId) -> Result<Vec<Segment>> {
    let mut segments: Vec<Segment> = Vec::new();
    for marked in mark::all(tx, session)? {
        let open = segments
            .last_mut()
            .filter(|segment| segment.after.is_none() && segment.turn == marked.turn);
        let segment = match open {
            Some(segment) => segment,
            None => {
                segments.push(Segment {
                    turn: marked.turn,
                    numbers: (marked.number, marked.number),
                    at: marked.at,
                    marks: Vec::new(),
                    after: None,
                });
                // One was pushed just now.
                let Some(segment) = segments.last_mut() else { continue };
                segment
            }
        };
        (segment.numbers.1, segment.at) = (marked.number, marked.at);
        match marked.mark {
            Mark::After { tree, files } => segment.after = Some((tree, files)),
            before => segment.marks.push(before),
        }
    }
    Ok(segments)
}

impl Segment {
    /// What was changed.
    pub(crate) fn changes(&self, tx: &mut ReadTx<'_>) -> Result<Vec<Change>> {
        let first = self.tree();
        let mut before: BTreeMap<String, State> = BTreeMap::new();
        let mut tree_taken = false;
        for mark in &self.marks {
            match mark {
                Mark::Tree(_) => tree_taken = true,
                Mark::Files(files) => {
                    for (path, state) in files {
                        // What the tree holds was saved before.
                        let held = match first.filter(|_| tree_taken) {
                            Some(tree) => find(tx, tree, path)?,
                            None => None,
                        };
                        if held.is_none() {
                            before.entry(path.clone()).or_insert_with(|| state.clone());
                        }
                    }
                }
                Mark::After { .. } => {}
            }
        }
        let mut changes = Vec::new();
        let (after_tree, after_files) = match &self.after {
            Some((tree, files)) => (tree.as_ref(), Some(files)),
            None => (None, None),
        };
        for (path, before) in &before {
            let held = match after_tree {
                Some(tree) => find(tx, tree, path)?,
                None => None,
            };
            let after = held.or_else(|| after_files.and_then(|files| files.get(path)).cloned());
            changes.push(Change { path: path.clone(), before: before.clone(), after });
        }
        if let Some(tree) = first {
            let workspace = unescaped(&tree.workspace);
            let mut found = Vec::new();
            match after_tree {
                Some(after) => {
                    let roots = (tree.root.as_str(), after.root.as_str());
                    compare(tx, &workspace, roots, &mut found)?;
                }
                // Nobody looked afterwards: everything may have been changed.
                None => gather(tx, &workspace, &tree.root, &mut |path, state| {
                    found.push(Change { path, before: state, after: None });
                })?,
            }
            changes.extend(found.into_iter().filter(|change| !before.contains_key(&change.path)));
        }
        changes.retain(|change| change.after.as_ref() != Some(&change.before));
        Ok(changes)
    }

    /// Whether it is known how everything was when the turn ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.after.as_ref().is_some_and(|(tree, _)| tree.is_some() || self.tree().is_none())
    }

    /// What is not kept of the workspace, the first of it.
    pub(crate) fn left(&self) -> &[(String, Omission)] {
        self.tree().map_or(&[], |tree| &tree.left)
    }

    /// The workspace before the first command, where there was one.
    pub(crate) fn tree(&self) -> Option<&Tree> {
        self.marks.iter().find_map(|mark| match mark {
            Mark::Tree(tree) => Some(tree),
            _ => None,
        })
    }

    /// The workspaces that its marks hold.
    pub(crate) fn roots(&self) -> impl Iterator<Item = &str> {
        let after = self.after.iter().filter_map(|(tree, _)| tree.as_ref());
        let before = self.marks.iter().filter_map(|mark| match mark {
            Mark::Tree(tree) => Some(tree),
            _ => None,
        });
        before.chain(after).map(|tree| tree.root.as_str())
    }

    /// The single files that its marks hold.
    pub(crate) fn states(&self) -> impl Iterator<Item = &State> {
        let files = self.marks.iter().filter_map(|mark| match mark {
            Mark::Files(files) => Some(files),
            _ => None,
        });
        files.flat_map(BTreeMap::values)
    }
}

/// What a tree holds at a path; nothing where it is not in the tree, or not kept.
fn find(tx: &mut ReadTx<'_>, tree: &Tree, path: &str) -> Result<Option<State>> {
    let (workspace, path) = (unescaped(&tree.workspace), unescaped(path));
    let Ok(inside) = path.strip_prefix(&workspace) else { return Ok(None) };
    let mut listing = objects::listing(tx, &tree.root)?;
    let mut names = inside.iter().peekable();
    while let Some(name) = names.next() {
        let Some(item) = listing.0.into_iter().find(|item| item.name == name.as_bytes()) else {
            return Ok(Some(State::Absent));
        };
        if !item.state.is_kept() {
            return Ok(None);
        }
        if names.peek().is_none() {
            return Ok(Some(item.state));
        }
        if item.listing.is_empty() {
            return Ok(Some(State::Absent));
        }
        listing = objects::listing(tx, &item.listing)?;
    }
    Ok(None)
}

/// Names what differs between two listings, and everything below.
fn compare(
    tx: &mut ReadTx<'_>,
    at: &Path,
    (before, after): (&str, &str),
    changes: &mut Vec<Change>,
) -> Result<()> {
    if before == after {
        return Ok(());
    }
    let (before, after) =
        (by_name(objects::listing(tx, before)?), by_name(objects::listing(tx, after)?));
    let names: BTreeSet<&Vec<u8>> = before.keys().chain(after.keys()).collect();
    for name in names {
        let path = at.join(OsStr::from_bytes(name));
        let (old, new) = (before.get(name), after.get(name));
        let state = |item: Option<&Item>| item.map_or(State::Absent, |item| item.state.clone());
        let listing =
            |item: Option<&Item>| item.map_or("", |item| item.listing.as_str()).to_owned();
        let (old_listing, new_listing) = (listing(old), listing(new));
        if state(old) != state(new) {
            let (before, after) = (state(old), Some(state(new)));
            changes.push(Change { path: escaped(&path), before, after });
        }
        match (old_listing.is_empty(), new_listing.is_empty()) {
            (true, true) => {}
            (false, false) => compare(tx, &path, (&old_listing, &new_listing), changes)?,
            // What is below something that is not kept is not known to be there or not.
            (false, true) if state(new).is_kept() => {
                gather(tx, &path, &old_listing, &mut |path, before| {
                    changes.push(Change { path, before, after: Some(State::Absent) });
                })?;
            }
            (true, false) if state(old).is_kept() => {
                gather(tx, &path, &new_listing, &mut |path, after| {
                    changes.push(Change { path, before: State::Absent, after: Some(after) });
                })?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Names everything below a listing.
fn gather(
    tx: &mut ReadTx<'_>,
    at: &Path,
    listing: &str,
    each: &mut dyn FnMut(String, State),
) -> Result<()> {
    for item in objects::listing(tx, listing)?.0 {
        let path = at.join(OsStr::from_bytes(&item.name));
        each(escaped(&path), item.state);
        if !item.listing.is_empty() {
            gather(tx, &path, &item.listing, each)?;
        }
    }
    Ok(())
}

fn by_name(listing: Listing) -> BTreeMap<Vec<u8>, Item> {
    listing.0.into_iter().map(|item| (item.name.clone(), item)).collect()
}
