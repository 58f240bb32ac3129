//! What far providers said of their models, kept for a day: `models.json` in the home.

use std::collections::BTreeMap;
use std::path::Path;

use mainstay_llm::Listed;
use mainstay_store::fsatomic::{self, PRIVATE_FILE};
use serde::{Deserialize, Serialize};

/// A day, in milliseconds.
const DAY: i64 = 24 * 60 * 60 * 1000;

/// What a provider said.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct List {
    /// Where it was asked.
    pub(super) place: String,
    /// When, in milliseconds since 1970.
    pub(super) at: i64,
    pub(super) models: Vec<Listed>,
}

impl List {
    /// Whether it is young enough, and of that place.
    pub(super) fn holds(&self, place: &str, now: i64) -> bool {
        self.place == place && (0..DAY).contains(&(now - self.at))
    }
}

/// All lists, by their providers. What cannot be read is asked for again.
pub(super) fn read(home: &Path) -> BTreeMap<String, List> {
    let bytes = std::fs::read(home.join("models.json")).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// Keeps the lists; where that cannot be done they are asked for again.
pub(super) fn write(home: &Path, lists: &BTreeMap<String, List>) {
    if let Ok(text) = serde_json::to_vec(lists)
        && home.is_dir()
    {
        let _ = fsatomic::write(&home.join("models.json"), &text, PRIVATE_FILE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_used_for_a_day_and_for_its_place_only() {
        let home = tempfile::tempdir().unwrap();
        let list =
            List { place: "http://a".to_owned(), at: 1_000, models: vec![Listed::default()] };
        write(home.path(), &BTreeMap::from([("x".to_owned(), list)]));
        let list = &read(home.path())["x"];
        assert!(list.holds("http://a", 2_000) && list.models.len() == 1);
        assert!(!list.holds("http://b", 2_000));
        assert!(!list.holds("http://a", 1_000 + DAY));
        assert!(!list.holds("http://a", 0), "a clock that went back proves nothing");
        fsatomic::write(&home.path().join("models.json"), b"{", PRIVATE_FILE).unwrap();
        assert!(read(home.path()).is_empty());
    }
}
