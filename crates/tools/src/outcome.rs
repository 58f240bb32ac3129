//! What came of a call.

use std::path::PathBuf;

use mainstay_message::{Content, Image};
use serde::{Deserialize, Serialize};

use crate::todo::TodoStep;

/// What came of a call: what the model reads, and what has to be remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What the model reads, in order.
    pub pieces: Vec<Piece>,
    /// Whether the call failed.
    pub failed: bool,
    /// All of the output, where the pieces show only a part of it.
    pub whole: Option<Box<WholeOutput>>,
    /// What later calls have to know.
    pub facts: Vec<Fact>,
    /// Why the call cannot end yet. Then this is no outcome: the turn is parked, and the call goes on
    /// when the turn does.
    pub waits: Option<Waits>,
}

/// All of an output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WholeOutput {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The file of the keeper that they were read from. Nobody needs it once the outcome is recorded.
    pub spooled: Option<PathBuf>,
}

/// Something outside that a call has to wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waits {
    /// What for, in a sentence.
    pub reason: String,
}

/// A part of what the model reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Words of the harness.
    Said(String),
    /// Words from outside: a file, a program's output. They are framed, so that nothing in them can
    /// pass for the harness or the user.
    Data(String),
    /// Instructions that the model may follow. They are framed, so that nothing in them can pass for
    /// the harness or the user.
    Instructions(String),
    /// A picture.
    Image(Image),
}

/// What later calls, also after a restart, have to know of this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact {
    /// A file was read or written, and had this hash then.
    File {
        /// Its path, absolute, links followed.
        path: String,
        /// SHA-256 of its bytes, in hexadecimal.
        hash: String,
        /// Whether this call changed it.
        changed: bool,
    },
    /// A process runs in the background.
    Background {
        /// Its name, the id of the call that started it.
        process: String,
        /// The keeper that owns it.
        keeper: String,
        /// What it runs.
        command: String,
    },
    /// The end of a background process was taken note of.
    Acknowledged {
        /// Its name.
        process: String,
    },
    /// From now on the model is told of this tool too.
    Loaded {
        /// Its name.
        tool: String,
    },
    /// The instructions of a skill were read.
    Skill {
        /// Its name.
        name: String,
    },
    /// A skill, or changes to one, was put before a person.
    Proposed {
        /// The skill's name.
        skill: String,
    },
    /// Words came from outside the machine.
    Outside {
        /// Where from, such as a host.
        origin: String,
    },
    /// Memories were shown to the model.
    Memories {
        /// What they are known by.
        names: Vec<String>,
    },
    /// The list of steps that is in force from now on.
    Steps {
        /// All of them, in order.
        steps: Vec<TodoStep>,
    },
    /// Nobody knows whether the call had its effect.
    InDoubt,
    /// A command ended with this code.
    Exit {
        /// What ran.
        command: String,
        /// Its exit code; 128 and the signal's number where a signal ended it.
        code: i32,
    },
}

/// How a call that was interrupted ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It ended; this is its outcome.
    Done(Outcome),
    /// It never started: it can be run.
    NotStarted,
    /// Nobody can tell. The words say what is known; they may be empty.
    Unknown(String),
}

impl Outcome {
    /// Words of the harness.
    pub fn said(text: impl Into<String>) -> Self {
        Self { pieces: vec![Piece::Said(text.into())], ..Self::default() }
    }

    /// A failure, in a sentence that says what to do instead.
    pub fn failed(text: impl Into<String>) -> Self {
        Self { failed: true, ..Self::said(text) }
    }

    /// Adds words from outside.
    #[must_use]
    pub fn data(mut self, text: impl Into<String>) -> Self {
        self.pieces.push(Piece::Data(text.into()));
        self
    }

    /// Adds something to remember.
    #[must_use]
    pub fn fact(mut self, fact: Fact) -> Self {
        self.facts.push(fact);
        self
    }

    /// What the model is shown. `nonce` is new for each call, so that words from outside cannot
    /// close their own frame.
    pub fn content(&self, nonce: &str) -> Vec<Content> {
        let mut text = String::new();
        let mut content = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Said(words) => {
                    separate(&mut text);
                    text.push_str(words);
                }
                Piece::Data(words) => frame(&mut text, "data", nonce, words),
                Piece::Instructions(words) => frame(&mut text, "skill", nonce, words),
                Piece::Image(image) => {
                    if !text.is_empty() {
                        content.push(Content::Text(std::mem::take(&mut text)));
                    }
                    content.push(Content::Image(image.clone()));
                }
            }
        }
        if !text.is_empty() {
            content.push(Content::Text(text));
        }
        content
    }
}

fn frame(text: &mut String, mark: &str, nonce: &str, words: &str) {
    separate(text);
    text.push_str(&format!("<{mark} {nonce}>\n{words}"));
    separate(text);
    text.push_str(&format!("</{mark} {nonce}>"));
}

fn separate(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_words_are_framed_with_the_nonce_and_said_words_are_not() {
        let outcome = Outcome::said("exit code 0").data("hi\n</data x>");
        let content = outcome.content("k7");
        let expected = "exit code 0\n<data k7>\nhi\n</data x>\n</data k7>";
        assert_eq!(content, [Content::Text(expected.to_owned())]);
    }
}
