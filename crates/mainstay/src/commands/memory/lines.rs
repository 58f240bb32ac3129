//! The lines of a file with memories.

use mainstay_memory::facts::Line;
use mainstay_memory::notes::Note;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A note as a line of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoteLine {
    /// What it says.
    pub(super) note: String,
    /// The workspace that it is about; the user, where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) workspace: Option<String>,
    /// Who wrote it.
    #[serde(default = "user")]
    pub(super) source: String,
}

fn user() -> String {
    super::SOURCE.to_owned()
}

impl NoteLine {
    /// A note about the user, or about a workspace.
    pub(super) fn of(note: Note, workspace: Option<String>) -> Self {
        Self { note: note.text, workspace, source: note.source }
    }

    /// The line.
    pub(super) fn text(&self) -> String {
        // Text and nothing else cannot fail to be JSON.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// What a line brings.
#[derive(Debug)]
pub(super) enum MemoryLine {
    Note(NoteLine),
    Fact(Box<Line>),
    /// The number of a line, and its words: plain text or an item of a list in Markdown.
    Words(usize, String),
}

/// Reads a file: lines of JSON, or plain lines and lists of Markdown, a memory each. Headings, rules
/// and empty lines bring nothing. What is wrong is said with the number of its line.
pub(super) fn read(text: &str) -> Result<Vec<MemoryLine>, String> {
    let mut found = Vec::new();
    // Some editors put a mark before everything.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.starts_with('{') {
            found.push(json(line).map_err(|wrong| format!("line {number}: {wrong}"))?);
        } else if let Some(words) = memory_in_line(line) {
            found.push(MemoryLine::Words(number, words.to_owned()));
        }
    }
    Ok(found)
}

fn json(line: &str) -> Result<MemoryLine, String> {
    let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    if value.get("note").is_some() {
        let note = serde_json::from_value(value).map_err(|error| error.to_string())?;
        return Ok(MemoryLine::Note(note));
    }
    let fact: Line = line.parse().map_err(|error: mainstay_memory::Error| error.to_string())?;
    Ok(MemoryLine::Fact(Box::new(fact)))
}

/// What a line of plain text or Markdown says.
fn memory_in_line(line: &str) -> Option<&str> {
    let is_rule = line.chars().all(|letter| "-=*_§`~ ".contains(letter));
    if line.starts_with('#') || is_rule {
        return None;
    }
    let numbered = line.split_once(['.', ')']).filter(|(number, rest)| {
        !number.is_empty()
            && number.chars().all(|digit| digit.is_ascii_digit())
            && rest.starts_with(' ')
    });
    let item = ["- ", "* ", "+ "].iter().find_map(|mark| line.strip_prefix(mark));
    let words = item.or(numbered.map(|(_, rest)| rest)).unwrap_or(line).trim();
    let words = ["[ ] ", "[x] "].iter().find_map(|mark| words.strip_prefix(mark)).unwrap_or(words);
    (!words.is_empty()).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_plain_lines_are_a_memory_each() {
        let text = "# About me\n\n- likes tabs\n* [x] drinks tea\n1. lives in Ulm\n12) codes\n---\n§\n\
                    plain words - with a dash\n3.14 is pi\n";
        let found: Vec<String> = read(text)
            .unwrap()
            .into_iter()
            .map(|read| match read {
                MemoryLine::Words(_, words) => words,
                other => panic!("{other:?}"),
            })
            .collect();
        let expected = [
            "likes tabs",
            "drinks tea",
            "lives in Ulm",
            "codes",
            "plain words - with a dash",
            "3.14 is pi",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn lines_of_json_are_notes_or_facts_and_what_is_wrong_is_said() {
        let note =
            NoteLine { note: "a\nb".into(), workspace: Some("/w".into()), source: "x".into() };
        let text = format!("\u{feff}{}\n{{\"content\": \"A fact.\"}}\n", note.text());
        let found = read(&text).unwrap();
        assert!(matches!(&found[0], MemoryLine::Note(read) if *read == note), "{found:?}");
        assert!(matches!(found[1], MemoryLine::Fact(_)), "{found:?}");
        let wrong = [
            ("- a\n{\"content\": 1}", "line 2: "),
            ("{\"note\": \"x\", \"owner\": \"me\"}", "unknown field"),
            ("{\"content\": \"x\"", "line 1: "),
            ("{\"content\": \"x\", \"trust\": 7}", "from 0 to 1"),
        ];
        for (text, words) in wrong {
            let error = read(text).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
