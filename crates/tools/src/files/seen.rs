//! Which files were read, and how they looked then.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use mainstay_store::lock;

use crate::Fact;

/// Which files a session read or wrote, and how they looked then. Clones share it.
///
/// It is rebuilt after a restart from the facts that the outcomes left: see [`Seen::note`].
#[derive(Clone, Debug, Default)]
pub struct Seen {
    files: Arc<Mutex<HashMap<String, Glimpse>>>,
}

/// How a file looked when the session last dealt with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Glimpse {
    /// SHA-256 of its bytes, in hexadecimal.
    pub(super) hash: String,
    /// Whether the session itself wrote what is in it.
    pub(super) own: bool,
}

impl Seen {
    /// Takes note of a fact. Facts of a session are noted in the order in which they happened.
    pub fn note(&self, fact: &Fact) {
        let Fact::File { path, hash, changed } = fact else { return };
        let mut files = self.files();
        // To read what one wrote does not make it somebody else's.
        let own = *changed || files.get(path).is_some_and(|last| last.own && last.hash == *hash);
        files.insert(path.clone(), Glimpse { hash: hash.clone(), own });
    }

    /// How `path`, links followed, looked last.
    pub(super) fn last(&self, path: &Path) -> Option<Glimpse> {
        self.files().get(path.to_string_lossy().as_ref()).cloned()
    }

    fn files(&self) -> MutexGuard<'_, HashMap<String, Glimpse>> {
        // Nothing panics while it holds the lock, and a map is whole after any of its methods.
        lock(&self.files)
    }
}

/// The fact that `path`, links followed, had this hash.
pub(super) fn fact(path: &Path, hash: String, changed: bool) -> Fact {
    Fact::File { path: path.to_string_lossy().into_owned(), hash, changed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_session_wrote_stays_its_own_until_somebody_else_changes_it() {
        let seen = Seen::default();
        let path = Path::new("/a");
        assert_eq!(seen.last(path), None);
        let own = |hash: &str, changed: bool| {
            seen.note(&fact(path, hash.to_owned(), changed));
            seen.clone().last(path).unwrap().own
        };
        assert!(!own("1", false));
        assert!(own("2", true));
        assert!(own("2", false));
        assert!(!own("3", false));
    }

    #[test]
    fn facts_of_other_kinds_are_none_of_its_business() {
        let seen = Seen::default();
        seen.note(&Fact::Exit { command: "true".to_owned(), code: 0 });
        assert!(seen.files().is_empty());
    }
}
