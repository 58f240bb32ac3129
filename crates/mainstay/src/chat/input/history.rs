//! What was sent before, kept in a file of the home so that it can be sent again.

use std::fs;
use std::path::{Path, PathBuf};

use mainstay_store::fsatomic;

/// So many are kept.
const MOST: usize = 500;
/// A longer one is not kept: it was a paste.
const LONGEST: usize = 20_000;
/// A bigger file is not ours.
const BIGGEST: u64 = 16 << 20;

/// What was sent before, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct History {
    file: Option<PathBuf>,
    entries: Vec<String>,
    /// Which of them the editor shows, and what it showed before.
    shown: Option<(usize, String)>,
}

impl History {
    /// The history of a home.
    pub(crate) fn of(home: &Path) -> Self {
        let file = home.join("history");
        Self { entries: read(&file), file: Some(file), shown: None }
    }

    /// Adds what is about to be sent. It is on disk when this returns, if the disk lets it.
    pub(crate) fn add(&mut self, text: &str) {
        self.shown = None;
        if text.trim().is_empty() || text.len() > LONGEST {
            return;
        }
        if let Some(file) = &self.file {
            // Other chats of this home add to it too.
            self.entries = read(file);
        }
        self.entries.retain(|entry| entry != text);
        self.entries.push(text.to_owned());
        let surplus = self.entries.len().saturating_sub(MOST);
        self.entries.drain(..surplus);
        if let Some(file) = &self.file {
            let lines: Vec<String> =
                self.entries.iter().filter_map(|entry| serde_json::to_string(entry).ok()).collect();
            // A history that cannot be kept is no reason not to work.
            let _ = fsatomic::write(file, (lines.join("\n") + "\n").as_bytes(), 0o600);
        }
    }

    /// The one before what is shown; `now` is what the editor holds.
    pub(crate) fn older(&mut self, now: &str) -> Option<String> {
        let (place, kept) = match self.shown.take() {
            Some((place, kept)) => (place, kept),
            None => (self.entries.len(), now.to_owned()),
        };
        let Some(older) = place.checked_sub(1) else {
            self.shown = Some((place, kept));
            return None;
        };
        self.shown = Some((older, kept));
        self.entries.get(older).cloned()
    }

    /// The one after what is shown, in the end what the editor held at first.
    pub(crate) fn newer(&mut self) -> Option<String> {
        let (place, kept) = self.shown.take()?;
        match self.entries.get(place + 1) {
            Some(entry) => {
                self.shown = Some((place + 1, kept));
                Some(entry.clone())
            }
            None => Some(kept),
        }
    }

    /// The editor was changed: what it holds is new.
    pub(crate) fn edited(&mut self) {
        self.shown = None;
    }
}

fn read(file: &Path) -> Vec<String> {
    if fs::metadata(file).is_ok_and(|metadata| metadata.len() > BIGGEST) {
        return Vec::new();
    }
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_there_in_the_next_chat_and_beside_another() {
        let home = tempfile::tempdir().unwrap();
        let (mut one, mut other) = (History::of(home.path()), History::of(home.path()));
        one.add("first");
        other.add("second\nline");
        one.add("third");
        let mut next = History::of(home.path());
        assert_eq!(next.older("half").as_deref(), Some("third"));
        assert_eq!(next.older("third").as_deref(), Some("second\nline"));
        assert_eq!(next.older("").as_deref(), Some("first"));
        assert_eq!(next.older(""), None);
        assert_eq!(next.newer().as_deref(), Some("second\nline"));
        assert_eq!(next.newer().as_deref(), Some("third"));
        assert_eq!(next.newer().as_deref(), Some("half"));
        assert_eq!(next.newer(), None);
    }

    #[test]
    fn only_so_many_are_kept_and_garbage_is_passed_over() {
        let home = tempfile::tempdir().unwrap();
        fsatomic::write(&home.path().join("history"), b"\"a\"\n{garbage\n\xff\n", 0o600).unwrap();
        let mut history = History::of(home.path());
        for number in 0..MOST + 5 {
            history.entries.push(number.to_string());
        }
        history.file = None;
        history.add("last");
        assert_eq!(history.entries.len(), MOST);
        assert_eq!(history.entries.last().map(String::as_str), Some("last"));
    }
}
