//! What processes of Mainstay that were killed left behind: found and removed by whoever comes next.
//!
//! Whether somebody is still at work on a thing is told by a lock that the kernel drops at the death of
//! its holder, never by age. So this is done at the start of every ordinary command, and at its end: what
//! a turn was taken up with is needed until then.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use mainstay_agent::background::keepers_in_use;
use mainstay_agent::skills::Shelf;
use mainstay_store::{fsatomic, scratch, unfinished};
use mainstay_tools::{keeper, sandbox};

use crate::context::{Context, open_existing};
use crate::paths::Paths;

/// Where keepers have their directories.
pub(crate) fn spool(paths: &Paths) -> PathBuf {
    paths.home.join("keepers")
}

/// Where files that are being made elsewhere are written down.
pub(crate) fn records(paths: &Paths) -> PathBuf {
    paths.home.join("unfinished")
}

/// Where it is written down which caches were made for tools.
pub(crate) fn made_caches(home: &Path) -> PathBuf {
    home.join("caches")
}

/// Clears up. What cannot be removed now is left to the next one.
pub(crate) fn clear_up(context: &Context) {
    scratch::clear_up();
    let Ok(paths) = context.paths() else { return };
    fsatomic::clear_up(&paths.home);
    unfinished::clear_up(&records(&paths));
    Shelf::at(paths.home.join("skills")).clear_up();
    sandbox::clear_up_caches(&made_caches(&paths.home));
    let in_use = OnceCell::new();
    keeper::clear_up(&spool(&paths), |name| {
        let in_use = in_use.get_or_init(|| in_use_by_store(&paths));
        // Without the store nobody knows what may be asked for.
        in_use.as_ref().is_none_or(|in_use| in_use.contains(name))
    });
}

/// The keepers that may be asked what became of something.
fn in_use_by_store(paths: &Paths) -> Option<BTreeSet<String>> {
    match open_existing(paths) {
        Ok(store) => keepers_in_use(&store).ok(),
        Err(mainstay_store::Error::Absent { .. }) => Some(BTreeSet::new()),
        Err(_) => None,
    }
}
