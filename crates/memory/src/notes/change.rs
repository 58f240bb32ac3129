//! What a change makes of notes, before anything is written.

use super::{Note, size};

/// One change of several that are made together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A new note. One that is there already stays as it is.
    Add(String),
    /// Another text for the one note that has this in its text.
    Replace {
        /// What names it: all of its text, or a part that no other note has.
        old: String,
        /// What it says from then on.
        new: String,
    },
    /// No such note any more.
    Remove(String),
}

/// Why nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A text says nothing.
    #[error("a note needs text; nothing was changed")]
    Empty,
    /// The notes would be longer than is allowed.
    #[error(
        "that would be {size} characters of notes, over the limit of {limit}; nothing was changed. \
         Shorten, remove or merge some of these:{}",
        lines(notes)
    )]
    TooLong {
        /// How many characters there would be.
        size: usize,
        /// How many there may be.
        limit: usize,
        /// The notes that are there.
        notes: Vec<String>,
    },
    /// No note contains this text.
    #[error("no note contains {part:?}; nothing was changed. The notes are:{}", lines(notes))]
    Unknown {
        /// What was looked for.
        part: String,
        /// The notes that are there.
        notes: Vec<String>,
    },
    /// Several notes contain this text.
    #[error(
        "{} notes contain {part:?}; nothing was changed. Give more of the text to name one:{}",
        notes.len(), lines(notes)
    )]
    Ambiguous {
        /// What was looked for.
        part: String,
        /// The notes that have it.
        notes: Vec<String>,
    },
}

fn lines(notes: &[String]) -> String {
    if notes.is_empty() {
        return " (none)".to_owned();
    }
    notes.iter().map(|note| format!("\n- {note}")).collect()
}

/// A note as it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Planned {
    /// Its number; one that comes has none yet.
    pub(super) number: Option<i64>,
    pub(super) text: String,
    pub(super) changed: bool,
}

/// What the notes are to be after these changes, made in order.
pub(super) fn plan(
    notes: &[Note],
    changes: &[Change],
    limit: usize,
) -> Result<Vec<Planned>, Refused> {
    let mut planned: Vec<Planned> = notes
        .iter()
        .map(|note| Planned { number: Some(note.number), text: note.text.clone(), changed: false })
        .collect();
    for change in changes {
        match change {
            Change::Add(text) => {
                let text = worded(text)?;
                if !planned.iter().any(|other| other.text == text) {
                    planned.push(Planned { number: None, text, changed: true });
                }
            }
            Change::Replace { old, new } => {
                let text = worded(new)?;
                // What was replaced already is not there to be replaced; nothing is left to do.
                let at = match find(&planned, old) {
                    Err(Refused::Unknown { .. }) if has(&planned, &text) => continue,
                    found => found?,
                };
                if planned.iter().enumerate().any(|(other, note)| other != at && note.text == text)
                {
                    planned.remove(at);
                } else if planned[at].text != text {
                    planned[at].text = text;
                    planned[at].changed = true;
                }
            }
            Change::Remove(part) => {
                let at = find(&planned, part)?;
                planned.remove(at);
            }
        }
    }
    let texts = |notes: &[Note]| notes.iter().map(|note| note.text.clone()).collect();
    let before = size(notes.iter().map(|note| note.text.as_str()));
    let size = size(planned.iter().map(|note| note.text.as_str()));
    // Where the limit was lowered, what makes the notes shorter helps.
    if size > limit && size >= before && planned.iter().any(|note| note.changed) {
        return Err(Refused::TooLong { size, limit, notes: texts(notes) });
    }
    Ok(planned)
}

fn has(planned: &[Planned], text: &str) -> bool {
    planned.iter().any(|note| note.text == text)
}

/// The one note that these words name.
fn find(planned: &[Planned], part: &str) -> Result<usize, Refused> {
    let part = worded(part)?;
    if let Some(at) = planned.iter().position(|note| note.text == part) {
        return Ok(at);
    }
    let found: Vec<usize> =
        (0..planned.len()).filter(|at| planned[*at].text.contains(&part)).collect();
    let texts =
        |notes: &mut dyn Iterator<Item = &Planned>| notes.map(|note| note.text.clone()).collect();
    match found.as_slice() {
        [at] => Ok(*at),
        [] => Err(Refused::Unknown { part, notes: texts(&mut planned.iter()) }),
        several => {
            let notes = texts(&mut several.iter().map(|at| &planned[*at]));
            Err(Refused::Ambiguous { part, notes })
        }
    }
}

/// Text as it is kept: without white space around it, and without what no engine can hold.
fn worded(text: &str) -> Result<String, Refused> {
    let text: String = text.chars().filter(|character| *character != '\0').collect();
    match text.trim() {
        "" => Err(Refused::Empty),
        text => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(texts: &[&str]) -> Vec<Note> {
        let note = |(number, text): (i64, &&str)| Note {
            number,
            text: (*text).to_owned(),
            source: "user".to_owned(),
            created_at: 0,
            changed_at: 0,
        };
        (1..).zip(texts).map(note).collect()
    }

    fn after(texts: &[&str], changes: &[Change], limit: usize) -> Result<Vec<String>, Refused> {
        let planned = plan(&notes(texts), changes, limit)?;
        Ok(planned.into_iter().map(|note| note.text).collect())
    }

    fn add(text: &str) -> Change {
        Change::Add(text.to_owned())
    }

    fn replace(old: &str, new: &str) -> Change {
        Change::Replace { old: old.to_owned(), new: new.to_owned() }
    }

    fn remove(part: &str) -> Change {
        Change::Remove(part.to_owned())
    }

    #[test]
    fn a_note_is_named_by_all_of_its_text_or_by_a_part_that_is_unique() {
        let there = ["likes tabs", "likes tea", "likes"];
        assert_eq!(after(&there, &[remove("tea")], 100).unwrap(), ["likes tabs", "likes"]);
        assert_eq!(after(&there, &[remove("likes")], 100).unwrap(), ["likes tabs", "likes tea"]);
        let refused = after(&there, &[remove("likes t")], 100).unwrap_err();
        let words = refused.to_string();
        assert!(words.contains("2 notes contain") && words.contains("\n- likes tea"), "{words}");
        let refused = after(&there, &[replace("coffee", "x")], 100).unwrap_err();
        assert!(refused.to_string().contains("\n- likes\u{20}tabs\n- likes tea"), "{refused}");
        assert_eq!(after(&there, &[remove(" ")], 100).unwrap_err(), Refused::Empty);
        assert_eq!(after(&there, &[add("\0 ")], 100).unwrap_err(), Refused::Empty);
        let none = after(&[], &[remove("x")], 100).unwrap_err().to_string();
        assert!(none.ends_with("The notes are: (none)"), "{none}");
    }

    #[test]
    fn what_is_there_is_not_doubled_and_what_was_done_is_done() {
        assert_eq!(after(&["a b"], &[add(" a b\n")], 100).unwrap(), ["a b"]);
        assert_eq!(after(&["a"], &[add("b"), add("b")], 100).unwrap(), ["a", "b"]);
        // One that becomes like another is one with it.
        assert_eq!(after(&["a", "b"], &[replace("a", "b")], 100).unwrap(), ["b"]);
        assert_eq!(after(&["b"], &[replace("a", "b")], 100).unwrap(), ["b"]);
        assert_eq!(after(&["a"], &[replace("a", "a")], 100).unwrap(), ["a"]);
        // No text is two notes, whatever it holds.
        let odd = "one\n§\ntwo  three";
        assert_eq!(after(&[], &[add(odd)], 100).unwrap(), [odd]);
    }

    #[test]
    fn changes_are_judged_together_by_what_would_be_there() {
        let there = ["1234567890", "abcdefghij"];
        let refused = after(&there, &[add("x")], 22).unwrap_err();
        let Refused::TooLong { size, limit, notes } = &refused else { panic!("{refused}") };
        assert_eq!((*size, *limit, notes.len()), (23, 22, 2));
        assert!(refused.to_string().contains("\n- 1234567890\n- abcdefghij"), "{refused}");
        let makes_room = [add("x"), remove("123")];
        assert_eq!(after(&there, &makes_room, 22).unwrap(), ["abcdefghij", "x"]);
        let one_is_wrong = [remove("123"), remove("nothing")];
        assert!(after(&there, &one_is_wrong, 22).is_err());
        // Above a limit that was lowered, notes can get shorter and not longer.
        assert_eq!(after(&there, &[replace("123", "12")], 5).unwrap(), ["12", "abcdefghij"]);
        assert!(after(&there, &[replace("123", "12345678901")], 5).is_err());
        assert_eq!(after(&there, &[add("abcdefghij")], 5).unwrap().len(), 2);
        // Characters count, not bytes.
        assert_eq!(after(&[], &[add("日本語")], 3).unwrap().len(), 1);
    }
}
