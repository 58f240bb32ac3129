//! Taking snapshots in a turn.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use mainstay_journal::{CallId, SessionId, TurnRef};
use mainstay_store::{Store, WriteTx};
use mainstay_tools::aside::aside;
use mainstay_tools::snapshot::{
    Limits, Listing, Manifest, Scan, State, escaped, is_closed, look, unescaped,
};
use mainstay_tools::{Action, Workplace, beneath};

use super::mark::{self, Mark, WorkspaceTree};
use super::objects::{self, BATCH, Object};
use crate::agent::blocking;
use crate::policy::Act;
use crate::policy::command::Class;
use crate::{Error, Result};
use mainstay_store::lock;

/// What a session knows for its snapshots. It can be thrown away at any time.
#[derive(Default)]
pub(crate) struct Snapshots {
    shared: Arc<Mutex<SharedScan>>,
    /// The number of the session's last mark, and the segment that is open, once they are known.
    segment: Option<OpenSegment>,
    /// Marks that the next commit writes.
    marks: Vec<(Option<CallId>, Mark)>,
    /// Whether a person was told what is not kept.
    told: bool,
    /// Whether any was written by this process.
    taken: bool,
    /// Whether an undo was begun that did not come to its end.
    pub(crate) interrupted_undo: bool,
}

#[derive(Default)]
struct SharedScan {
    manifest: Manifest,
    /// Objects that the next commit writes.
    unwritten: Vec<Object>,
    /// The time of sweeps for which the manifest knows what is kept.
    generation: Option<i64>,
}

/// The marks since the turn began or went on.
#[derive(Clone, Debug, Default)]
struct OpenSegment {
    last: i64,
    has_tree: bool,
    files: BTreeSet<String>,
}

/// So many listings are read at once.
const LISTINGS: usize = 200;

/// A call that is about to change something.
#[derive(Clone, Copy)]
pub(crate) struct UpcomingChange<'a> {
    pub(crate) store: &'a Store,
    pub(crate) session: SessionId,
    pub(crate) call: CallId,
    pub(crate) act: &'a Act,
    /// Whether a hook runs after it, which may change anything.
    pub(crate) hooked: bool,
    pub(crate) workplace: &'a Arc<Workplace>,
    pub(crate) limits: &'a Limits,
}

/// What is to be saved before an action.
enum Coverage {
    Nothing,
    File(PathBuf),
    Tree,
}

impl Snapshots {
    /// For a session that has no marks.
    pub(crate) fn fresh() -> Self {
        Self { segment: Some(OpenSegment::default()), ..Self::default() }
    }

    /// Begins anew with what is in the store, which is read when it is needed. That this process took
    /// some is still known.
    pub(crate) fn forget(&mut self, interrupted_undo: bool) {
        *self = Self { interrupted_undo, taken: self.taken, ..Self::default() };
    }

    /// Looks at what a call is about to change. Returns what a person should be told, if anything. To
    /// cancel it, drop it.
    pub(crate) async fn before(&mut self, change: UpcomingChange<'_>) -> Result<Option<String>> {
        let has_tree = self.segment.as_ref().is_some_and(|segment| segment.has_tree);
        if has_tree
            && matches!(
                change.act.action(),
                Action::Execute(_) | Action::Input { .. } | Action::Delegate(_)
            )
        {
            return Ok(None);
        }
        match coverage(change.act) {
            Coverage::Nothing => Ok(None),
            Coverage::File(path) => {
                self.load(change.store, change.session)?;
                blocking(|| self.save_file(&change, &path))?;
                if change.hooked { self.save_tree(change).await } else { Ok(None) }
            }
            Coverage::Tree => self.save_tree(change).await,
        }
    }

    /// Looks at the whole workspace, unless that was done in this segment.
    async fn save_tree(&mut self, change: UpcomingChange<'_>) -> Result<Option<String>> {
        let UpcomingChange { store, session, call, workplace, limits, .. } = change;
        self.load(store, session)?;
        if self.segment.as_ref().is_some_and(|segment| segment.has_tree) {
            return Ok(None);
        }
        let scanned = {
            let store = store.clone();
            let workplace = workplace.clone();
            let limits = limits.clone();
            let shared = self.shared.clone();
            aside("snapshot", move || scan(&store, &shared, &workplace, &limits)).await
        };
        match scanned {
            Ok(Ok(tree)) => {
                let words = self.telling(&tree);
                self.marks.push((Some(call), Mark::Tree(tree)));
                if let Some(segment) = &mut self.segment {
                    segment.has_tree = true;
                }
                Ok(words)
            }
            Ok(Err(ScanError::Store(error))) => Err(error),
            Ok(Err(ScanError::Files(words))) => Ok(Some(uncovered(&words))),
            Err(error) => Ok(Some(uncovered(&error.to_string()))),
        }
    }

    /// Looks at how it all is now that the turn ends or is parked.
    pub(crate) fn after(
        &mut self,
        store: &Store,
        session: SessionId,
        workplace: &Workplace,
        limits: &Limits,
    ) -> Result<()> {
        self.load(store, session)?;
        let Some(segment) = self.segment.clone() else { return Ok(()) };
        if !segment.has_tree && segment.files.is_empty() {
            return Ok(());
        }
        let mut files = BTreeMap::new();
        for path in &segment.files {
            let looked = blocking(|| look(workplace, &unescaped(path), limits));
            files.insert(path.clone(), looked.state);
        }
        let tree = if segment.has_tree {
            match blocking(|| scan(store, &self.shared, workplace, limits)) {
                Ok(tree) => Some(tree),
                Err(ScanError::Store(error)) => return Err(error),
                // Without it, whatever is there when it is undone is taken for the turn's.
                Err(ScanError::Files(_)) => None,
            }
        } else {
            None
        };
        self.marks.push((None, Mark::After { tree, files }));
        self.segment = Some(OpenSegment { last: segment.last, ..OpenSegment::default() });
        Ok(())
    }

    /// What the next commit has to write. Returns `None` if there is nothing.
    pub(crate) fn pending(&self) -> Option<UnwrittenSnapshot> {
        if self.marks.is_empty() {
            return None;
        }
        let shared = lock(&self.shared);
        Some(UnwrittenSnapshot {
            first: self.segment.as_ref().map_or(0, |segment| segment.last) + 1,
            marks: self.marks.clone(),
            objects: shared.unwritten.clone(),
            generation: shared.generation,
        })
    }

    /// Notes that it was written.
    pub(crate) fn written(&mut self, pending: &UnwrittenSnapshot) {
        let count = i64::try_from(pending.marks.len()).unwrap_or(0);
        if let Some(segment) = &mut self.segment {
            segment.last += count;
        }
        self.marks.clear();
        self.taken = true;
        let mut shared = lock(&self.shared);
        shared.unwritten.clear();
        shared.manifest.keep(pending.objects.iter().map(|(hash, _)| hash.clone()));
    }

    /// Whether this process wrote any.
    pub(crate) fn were_taken(&self) -> bool {
        self.taken
    }

    /// Forgets what is kept: objects were swept away. What was to be marked is looked at again.
    pub(crate) fn doubt(&mut self) {
        self.marks.clear();
        self.segment = None;
        let mut shared = lock(&self.shared);
        shared.manifest.doubt();
        shared.generation = None;
    }

    /// Finds out how far the marks of the session are.
    fn load(&mut self, store: &Store, session: SessionId) -> Result<()> {
        if self.segment.is_some() {
            return Ok(());
        }
        let segment = blocking(|| {
            store.read(|tx| -> Result<OpenSegment> {
                let mut segment =
                    OpenSegment { last: mark::last(tx, session)?, ..OpenSegment::default() };
                if segment.last == 0 {
                    return Ok(segment);
                }
                for marked in mark::all(tx, session)? {
                    match marked.mark {
                        Mark::Tree(_) => segment.has_tree = true,
                        Mark::Files(files) => segment.files.extend(files.into_keys()),
                        Mark::After { .. } => {
                            segment = OpenSegment { last: segment.last, ..OpenSegment::default() };
                        }
                    }
                }
                Ok(segment)
            })
        })?;
        self.segment = Some(segment);
        Ok(())
    }

    /// Saves one file, and notes which directories above it are missing.
    fn save_file(&mut self, change: &UpcomingChange<'_>, path: &Path) -> Result<()> {
        let UpcomingChange { store, call, workplace, limits, .. } = change;
        // It was made real when the call was judged; what no tool opens is not changed either.
        if is_closed(workplace, path) {
            return Ok(());
        }
        let name = escaped(path);
        if self.segment.as_ref().is_some_and(|segment| segment.files.contains(&name)) {
            return Ok(());
        }
        let mut files = BTreeMap::new();
        let looked = look(workplace, path, limits);
        if looked.state == State::Absent {
            for above in path.ancestors().skip(1).take_while(|above| beneath::is_missing(above)) {
                files.insert(escaped(above), State::Absent);
            }
        }
        files.insert(name, looked.state);
        let mut shared = lock(&self.shared);
        know_generation(store, &mut shared)?;
        for (hash, bytes) in looked.objects {
            take_in(store, &mut shared, hash, bytes)?;
        }
        drop(shared);
        if let Some(segment) = &mut self.segment {
            segment.files.extend(files.keys().cloned());
        }
        self.marks.push((Some(*call), Mark::Files(files)));
        Ok(())
    }

    /// What a person should know about what is not kept; told once.
    fn telling(&mut self, tree: &WorkspaceTree) -> Option<String> {
        use mainstay_tools::snapshot::Omission;
        let worth =
            |why: Omission| matches!(why, Omission::Limit | Omission::Large | Omission::Secret);
        let worth: Vec<_> = tree.left.iter().filter(|(_, why)| worth(*why)).collect();
        let (path, why) = worth.first()?;
        if std::mem::replace(&mut self.told, true) {
            return None;
        }
        let more = if tree.left_count > 1 { " and others" } else { "" };
        Some(format!("`mainstay undo` will not bring back {path} ({}){more}", why.reason()))
    }
}

/// What a commit has to write.
#[derive(Clone, Debug)]
pub(crate) struct UnwrittenSnapshot {
    first: i64,
    marks: Vec<(Option<CallId>, Mark)>,
    objects: Vec<Object>,
    generation: Option<i64>,
}

impl UnwrittenSnapshot {
    /// Writes it, unless objects were swept away meanwhile.
    pub(crate) fn write(&self, tx: &mut WriteTx<'_>, place: TurnRef) -> Result<()> {
        if self.generation.is_some() && self.generation != Some(objects::generation(tx)?) {
            return Err(Error::SnapshotsSwept);
        }
        objects::put(tx, &self.objects)?;
        for (number, (call, mark)) in (self.first..).zip(&self.marks) {
            mark::write(tx, place, number, *call, mark)?;
        }
        Ok(())
    }
}

enum ScanError {
    Files(String),
    Store(Error),
}

/// What is to be saved before an action. A command line that only looks changes nothing; of any
/// other nobody knows what it will touch.
fn coverage(act: &Act) -> Coverage {
    match act.action() {
        Action::Read
        | Action::Network(_)
        | Action::Persist(_)
        | Action::Propose(_)
        | Action::Ask { .. } => Coverage::Nothing,
        Action::Write(path) => Coverage::File(path.clone()),
        Action::Execute(_) | Action::Input { .. } => match act.line().class() {
            Class::Read => Coverage::Nothing,
            _ => Coverage::Tree,
        },
        // What a child changes is undone with the turn that it works for.
        Action::Delegate(_) => Coverage::Tree,
    }
}

/// Looks at the workspace; objects that are many are kept at once, the last of them with the next
/// commit.
fn scan(
    store: &Store,
    shared: &Mutex<SharedScan>,
    workplace: &Workplace,
    limits: &Limits,
) -> std::result::Result<WorkspaceTree, ScanError> {
    let mut shared = lock(shared);
    know_generation(store, &mut shared).map_err(ScanError::Store)?;
    if shared.manifest.is_empty() {
        learn(store, &mut shared, workplace).map_err(ScanError::Store)?;
    }
    let SharedScan { manifest, unwritten, .. } = &mut *shared;
    let mut flushed = Vec::new();
    let mut broken = None;
    let mut bytes = 0;
    let scanned = Scan::run(workplace, manifest, limits, &mut |hash, body| {
        bytes += body.len();
        unwritten.push((hash, body));
        if bytes > BATCH {
            bytes = 0;
            flushed.extend(objects::flush(store, unwritten).map_err(|error| {
                let words = error.to_string();
                broken = Some(error);
                words
            })?);
        }
        Ok(())
    });
    // Small rests ride with the next commit, without what is kept already. What a look that was
    // given up handed over comes twice.
    let mut named = BTreeSet::new();
    unwritten.retain(|(hash, _)| named.insert(hash.clone()));
    let hashes: Vec<String> = unwritten.iter().map(|(hash, _)| hash.clone()).collect();
    if broken.is_none() && !hashes.is_empty() {
        match store.read(|tx| objects::kept(tx, &hashes)) {
            Ok(kept) => {
                unwritten.retain(|(hash, _)| !kept.contains(hash));
                flushed.extend(kept);
            }
            Err(error) => broken = Some(error),
        }
    }
    manifest.keep(flushed);
    match (broken, scanned) {
        (Some(error), _) => Err(ScanError::Store(error)),
        (None, scanned) => scanned.map(WorkspaceTree::from).map_err(ScanError::Files),
    }
}

/// Learns from the last look at the workspace, whoever took it, so that only what changed since is
/// read.
fn learn(store: &Store, shared: &mut SharedScan, workplace: &Workplace) -> Result<()> {
    let Ok(workspace) = workplace.workspace.canonicalize() else { return Ok(()) };
    let root = store.read(|tx| mark::last_root(tx, &escaped(&workspace)))?;
    let mut left: Vec<(PathBuf, String)> =
        root.into_iter().map(|root| (PathBuf::new(), root)).collect();
    while !left.is_empty() {
        // Each read is short; a listing that is swept away between is as good as none.
        let part = left.split_off(left.len().saturating_sub(LISTINGS));
        let listings = store.read(|tx| -> Result<Vec<Option<Listing>>> {
            part.iter().map(|(_, hash)| objects::find_listing(tx, hash)).collect()
        })?;
        for ((inside, hash), listing) in part.into_iter().zip(listings) {
            let Some(listing) = listing else { continue };
            shared.manifest.take_in(&inside, &listing);
            shared.manifest.keep([hash]);
            let below = listing.0.into_iter().filter(|item| !item.listing.is_empty());
            left.extend(
                below.map(|item| (inside.join(OsStr::from_bytes(&item.name)), item.listing)),
            );
        }
    }
    Ok(())
}

fn take_in(store: &Store, shared: &mut SharedScan, hash: String, bytes: Vec<u8>) -> Result<()> {
    if shared.manifest.keeps(&hash) {
        return Ok(());
    }
    shared.unwritten.push((hash, bytes));
    if shared.unwritten.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() > BATCH {
        let flushed = objects::flush(store, &mut shared.unwritten)?;
        shared.manifest.keep(flushed);
    }
    Ok(())
}

fn know_generation(store: &Store, shared: &mut SharedScan) -> Result<()> {
    if shared.generation.is_none() {
        shared.generation = Some(store.read(objects::generation)?);
    }
    Ok(())
}

fn uncovered(words: &str) -> String {
    format!("no snapshot was taken, so `mainstay undo` cannot undo this turn: {words}")
}
