//! What is known of a replacement while it is made, for whoever finds it unfinished.

use serde::{Deserialize, Serialize};

use super::Identity;

/// A replacement that was begun. A slot has a line for each of its steps; the last one counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// Where it happens, escaped, and which directory that was.
    pub(super) directory: String,
    pub(super) directory_identity: Identity,
    /// The name of the file that is replaced, escaped.
    pub(super) name: String,
    /// The name of the other file of the exchange, escaped. Nobody else uses it.
    pub(super) temporary: String,
    /// What was put at the name of the file so far, or is just being put there: first the new file, then
    /// what was put back.
    pub(super) placed: Vec<KnownFile>,
    /// Whether nothing is to be at the name.
    #[serde(default)]
    pub(super) removes: bool,
    /// What is to come out.
    pub(super) expected: Option<KnownFile>,
}

/// A file that a replacement has to do with. An inode that is free is given to the next new file, so
/// after a while the identity alone says nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KnownFile {
    pub(super) identity: Identity,
    /// SHA-256 of its bytes, in hexadecimal; none for a link, or a file that is too large to be compared.
    pub(super) hash: Option<String>,
}

impl Record {
    /// The records in the text of a slot, each as its last whole line has it.
    pub(super) fn all_in(text: &[u8]) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            // Whoever was killed while writing a line had not done what it says.
            let Ok(record) = serde_json::from_slice::<Self>(line) else { continue };
            match found.iter_mut().find(|other| other.temporary == record.temporary) {
                Some(other) => *other = record,
                None => found.push(record),
            }
        }
        found
    }

    pub(super) fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(temporary: &str, placed: &[Identity]) -> Record {
        Record {
            directory: "/w".to_owned(),
            directory_identity: (1, 2),
            name: "a".to_owned(),
            temporary: temporary.to_owned(),
            placed: placed.iter().map(|&identity| KnownFile { identity, hash: None }).collect(),
            removes: false,
            expected: None,
        }
    }

    #[test]
    fn the_last_whole_line_of_each_counts() {
        let lines = [record("x", &[]), record("y", &[]), record("x", &[(1, 5)])];
        let mut text: Vec<u8> = lines.iter().flat_map(Record::line).collect();
        let torn = record("x", &[(1, 5), (1, 6)]).line();
        text.extend(&torn[..torn.len() / 2]);
        assert_eq!(Record::all_in(&text), [record("x", &[(1, 5)]), record("y", &[])]);
    }
}
