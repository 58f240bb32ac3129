//! What a snapshot leaves out when it is large: what git ignores, and caches.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::beneath::Entry;
use crate::files::{Bounds, Stop, open, whole};

/// A file with rules that is longer is not believed to be one.
const RULES_LIMIT: u64 = 4 << 20;
/// Directories that are caches by their name.
const CACHES: [&str; 4] = ["node_modules", ".venv", "__pycache__", ".tox"];
/// The file by which a directory says that it is a cache.
const TAG: &str = "CACHEDIR.TAG";

/// The rules of the directories that were asked about.
#[derive(Clone, Default)]
pub(super) struct Rules {
    by_directory: HashMap<PathBuf, Option<Arc<Gitignore>>>,
    top: Option<PathBuf>,
}

impl Rules {
    /// Whether git ignores `path`, or it is a directory that says that it is a cache.
    pub(super) fn ignore(&mut self, bounds: &Bounds, path: &Path, is_directory: bool) -> bool {
        if is_directory {
            let named = path.file_name().and_then(|name| name.to_str());
            if named.is_some_and(|name| CACHES.contains(&name)) || says_cache(path) {
                return true;
            }
        }
        let top = self.top.get_or_insert_with(|| top_of(path)).clone();
        // The deepest rule that says something holds.
        for directory in
            path.ancestors().skip(1).take_while(|directory| directory.starts_with(&top))
        {
            let rules = self
                .by_directory
                .entry(directory.to_owned())
                .or_insert_with(|| rules_in(bounds, directory));
            match rules.as_ref().map(|rules| rules.matched(path, is_directory)) {
                Some(Match::Ignore(_)) => return true,
                Some(Match::Whitelist(_)) => return false,
                _ => {}
            }
        }
        false
    }
}

fn says_cache(directory: &Path) -> bool {
    Entry::of(&directory.join(TAG)).and_then(|tag| tag.status()).is_ok()
}

/// The root of the repository around a path; without one, its directory.
fn top_of(path: &Path) -> PathBuf {
    let above = || path.ancestors().skip(1);
    let top = above().find(|directory| directory.join(".git").exists()).or_else(|| above().next());
    top.unwrap_or(path).to_owned()
}

/// The rules in a directory. A link is not followed: it may lead to a pipe, or to the store.
fn rules_in(bounds: &Bounds, directory: &Path) -> Option<Arc<Gitignore>> {
    let (file, _) = open(bounds, &directory.join(".gitignore")).ok()?;
    let bytes = whole(file, RULES_LIMIT, &Stop::default()).ok()??;
    let text = String::from_utf8_lossy(&bytes);
    let mut builder = GitignoreBuilder::new(directory);
    for line in text.trim_start_matches('\u{FEFF}').lines() {
        // Rules that cannot be read ignore nothing, and the rest of them holds.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok().map(Arc::new)
}
