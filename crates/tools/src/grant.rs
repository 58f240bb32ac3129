//! What one call may do beyond the sandbox that it is in.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What one call may do beyond the sandbox that it is in. It is decided when the call is judged, a
/// person sees it where one is asked, and it holds for that call alone: nothing that is looked up later
/// adds to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Whether its commands reach the network though the sandbox has none.
    pub network: bool,
    /// Directories that it may write to with all below them, and files. The paths are real.
    pub write: Vec<PathBuf>,
}

impl Grant {
    /// Nothing beyond the sandbox.
    pub const NONE: &'static Self = &Self { network: false, write: Vec::new() };

    /// Whether it is nothing.
    pub fn is_none(&self) -> bool {
        !self.network && self.write.is_empty()
    }

    /// What it adds, in words that go on after an action: "with network, may write /srv". Returns `None`
    /// if it adds nothing.
    pub fn describe(&self) -> Option<String> {
        let network = self.network.then(|| "with network".to_owned());
        let write = self.write.iter().map(|path| format!("may write {}", path.display()));
        let parts: Vec<String> = network.into_iter().chain(write).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_adds_is_said_and_nothing_is_not() {
        assert_eq!(Grant::NONE.describe(), None);
        let grant = Grant { network: true, write: vec!["/srv".into(), "/a".into()] };
        assert_eq!(grant.describe().as_deref(), Some("with network, may write /srv, may write /a"));
        assert!(Grant::NONE.is_none() && !grant.is_none());
    }
}
