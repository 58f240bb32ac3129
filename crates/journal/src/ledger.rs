//! What the harness remembers of a session without a model: the goal, decisions, files, commands, and
//! what is open.
//!
//! This crate owns the shape, the bounds and the words of a ledger. What a result means is known to
//! tools and to whoever asked people, and the journal knows neither: [`ledger`] is given a function
//! that reads a result, and the decisions that are kept elsewhere.

use std::collections::HashMap;
use std::fmt::Write as _;

use mainstay_message::{AssistantPart, Call, CallResult, Content};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::TurnId;
use crate::entry::{Body, Entry};
use crate::turn::Outcome;

/// What is remembered, the newest first. It is bounded: what a model reads of it is some KiB, at most
/// [`MOST`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ledger {
    /// The session's first instruction, clipped.
    pub first: String,
    /// The instruction that is being worked on, clipped.
    pub current: String,
    /// What people decided: answers, approvals and denials, what else the user said.
    pub decisions: Listed<String>,
    /// Files that were changed.
    pub changed: Listed<File>,
    /// Files that were read and not changed.
    pub read: Listed<File>,
    /// Commands that ran.
    pub commands: Listed<Ran>,
    /// The list of steps, in its own order and as it was written; where it is too long, steps that
    /// are done are left out first.
    pub steps: Listed<Item>,
}

/// Things of one kind, and how many there were that are not listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed<T> {
    /// What is listed.
    pub items: Vec<T>,
    /// How many are not.
    #[serde(default)]
    pub left_out: u64,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self { items: Vec::new(), left_out: 0 }
    }
}

/// A file, as it was last seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// Its path.
    pub path: String,
    /// The hash of its bytes then, in hexadecimal.
    pub hash: String,
}

/// A command, as it last ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    /// The line, clipped.
    pub command: String,
    /// Its exit code.
    pub code: i32,
    /// How often it ran.
    pub times: u32,
}

/// A step of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// What is to be done.
    pub text: String,
    /// A word for how far it is.
    pub status: String,
    /// Whether it is done.
    #[serde(default)]
    pub done: bool,
}

/// What a result means to the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Noted {
    /// A file was read, and had this hash.
    Read(File),
    /// A file was changed, and has this hash since.
    Changed(File),
    /// A command ended with this code.
    Ran {
        /// The line.
        command: String,
        /// Its exit code.
        code: i32,
    },
    /// A person decided something.
    Decided(String),
    /// This list of steps is in force.
    Steps(Vec<Item>),
}

/// The most bytes of a ledger as a model reads it, where letters are of one byte.
pub const MOST: usize = 12 * 1024;

/// The most letters of an instruction, a decision, a path, a command and a step.
const INSTRUCTION: usize = 400;
const DECISION: usize = 240;
const PATH: usize = 240;
const COMMAND: usize = 200;
const STEP: usize = 500;
/// The most bytes of a list, and of the list of steps, which is to stay as it was written.
const LIST: usize = 1200;
const STEPS: usize = 4000;
/// So much of a hash tells two files apart.
const HASH: usize = 12;

/// The ledger of a journal. `read` says what a result means, given its call, where that is known, and
/// the facts that were recorded with it; `decided` are decisions that no entry tells of, with their
/// times.
pub fn ledger(
    entries: &[Entry],
    mut read: impl FnMut(Option<&Call>, &CallResult, &[Value]) -> Vec<Noted>,
    decided: Vec<(i64, String)>,
) -> Ledger {
    let mut notes = Notes { decisions: decided, ..Notes::default() };
    let mut calls: HashMap<&str, &Call> = HashMap::new();
    let mut said: Vec<(TurnId, i64, String)> = Vec::new();
    for entry in entries {
        match &entry.body {
            Body::User { content } => {
                said.push((entry.turn, entry.at, clip(&text_of(content), INSTRUCTION)));
            }
            Body::Assistant { parts, .. } => {
                calls.extend(parts.iter().filter_map(|part| match part {
                    AssistantPart::Call(call) => Some((call.id.as_str(), call)),
                    AssistantPart::Text(_) | AssistantPart::Reasoning(_) => None,
                }));
            }
            Body::Result { result, facts, .. } => {
                let call = calls.get(result.call.as_str()).copied();
                for noted in read(call, result, facts) {
                    notes.take(noted, entry);
                }
            }
            Body::End { outcome: Outcome::Cancelled, reason: None } => {
                notes.decisions.push((entry.at, "the user stopped a turn".to_owned()));
            }
            Body::Notice { .. }
            | Body::End { .. }
            | Body::Compaction(_)
            | Body::Restored { .. } => {}
        }
    }
    let last_turn = said.last().map(|(turn, ..)| *turn);
    let current = said.iter().find(|(turn, ..)| Some(*turn) == last_turn);
    let current = current.map(|(_, _, text)| text.clone()).unwrap_or_default();
    let first = said.first().map(|(_, _, text)| text.clone()).unwrap_or_default();
    // What was said in the last turn stays in the view itself.
    let between = said.iter().skip(1).filter(|(turn, ..)| Some(*turn) != last_turn);
    notes.decisions.extend(between.map(|(_, at, text)| (*at, format!("the user said: {text}"))));
    notes.ledger(first, current)
}

/// All there is, before it is bounded.
#[derive(Default)]
struct Notes {
    decisions: Vec<(i64, String)>,
    /// By path: when it was last seen, its hash then, whether it was ever changed.
    files: HashMap<String, (i64, String, bool)>,
    /// By line: when it last ended, its code then, how often it ran.
    commands: HashMap<String, (i64, i32, u32)>,
    steps: Vec<Item>,
}

impl Notes {
    fn take(&mut self, noted: Noted, entry: &Entry) {
        let seq = entry.seq;
        match noted {
            Noted::Read(File { path, hash }) => {
                let file = self.files.entry(path).or_default();
                (file.0, file.1) = (seq, hash);
            }
            Noted::Changed(File { path, hash }) => {
                self.files.insert(path, (seq, hash, true));
            }
            Noted::Ran { command, code } => {
                let ran = self.commands.entry(clip(&command, COMMAND)).or_default();
                *ran = (seq, code, ran.2.saturating_add(1));
            }
            Noted::Decided(text) => self.decisions.push((entry.at, text)),
            Noted::Steps(steps) => self.steps = steps,
        }
    }

    fn ledger(mut self, first: String, current: String) -> Ledger {
        self.decisions.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        let decisions = self.decisions.iter().map(|(_, text)| clip(text, DECISION)).collect();
        let mut files: Vec<_> = self.files.into_iter().collect();
        files.sort_by(|(path, (seq, ..)), (other, (later, ..))| {
            later.cmp(seq).then_with(|| path.cmp(other))
        });
        let listed = |wanted: bool| {
            let files = files.iter().filter(|(_, (_, _, changed))| *changed == wanted);
            let files = files
                .map(|(path, (_, hash, _))| File { path: clip(path, PATH), hash: hash.clone() });
            Listed::bounded(files.collect(), |file: &File| file.path.len() + HASH + 12)
        };
        let mut commands: Vec<_> = self.commands.into_iter().collect();
        commands.sort_by(|(line, (seq, ..)), (other, (later, ..))| {
            later.cmp(seq).then_with(|| line.cmp(other))
        });
        let commands = commands
            .into_iter()
            .map(|(command, (_, code, times))| Ran { command, code, times })
            .collect();
        let steps = self.steps.into_iter().map(|step| Item {
            text: clip(&step.text, STEP),
            status: clip(&step.status, 20),
            done: step.done,
        });
        Ledger {
            first,
            current,
            decisions: Listed::bounded(decisions, |text: &String| text.len()),
            changed: listed(true),
            read: listed(false),
            commands: Listed::bounded(commands, |ran: &Ran| ran.command.len() + 20),
            steps: bounded_steps(steps.collect()),
        }
    }
}

/// The steps that there is room for, in their order; those that are done go first.
fn bounded_steps(mut steps: Vec<Item>) -> Listed<Item> {
    let size = |steps: &[Item]| -> usize {
        steps.iter().map(|step| step.text.len() + step.status.len() + 6).sum()
    };
    let all = steps.len();
    while size(&steps) > STEPS {
        let done = steps.iter().position(|step| step.done);
        drop(steps.remove(done.unwrap_or(steps.len() - 1)));
    }
    let left_out = u64::try_from(all - steps.len()).unwrap_or(u64::MAX);
    Listed { items: steps, left_out }
}

impl<T> Listed<T> {
    /// As many as there is room for, the first first.
    fn bounded(mut items: Vec<T>, size: impl Fn(&T) -> usize) -> Self {
        let mut room = LIST;
        let mut fit = 0;
        for item in &items {
            let Some(rest) = room.checked_sub(size(item) + 4) else { break };
            (room, fit) = (rest, fit + 1);
        }
        let left_out = u64::try_from(items.len() - fit).unwrap_or(u64::MAX);
        items.truncate(fit);
        Self { items, left_out }
    }

    /// Leaves out the last of those that `may` go. False where there is none.
    fn drop_last(&mut self, may: impl Fn(&T) -> bool) -> bool {
        let Some(place) = self.items.iter().rposition(may) else { return false };
        self.items.remove(place);
        self.left_out += 1;
        true
    }

    fn render(&self, text: &mut String, labels: Labels, line: impl Fn(&T) -> String) {
        if self.items.is_empty() && self.left_out == 0 {
            return;
        }
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}:", labels.head);
        for item in &self.items {
            let _ = writeln!(text, "- {}", line(item));
        }
        if self.left_out > 0 {
            let _ = writeln!(text, "- {} more, {}", self.left_out, labels.left_out);
        }
    }
}

impl Ledger {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// As much of it as there is room for in so many bytes of what a model reads: of the longest list
    /// the last goes first, and steps that are open go last. The instructions stay.
    #[must_use]
    pub fn within(mut self, most: usize) -> Self {
        while self.rendered().len() > most {
            let Self { decisions, changed, read, commands, steps, .. } = &mut self;
            let size = |file: &File| file.path.len() + HASH + 12;
            let lists = [
                decisions.items.iter().map(String::len).sum::<usize>(),
                changed.items.iter().map(size).sum(),
                read.items.iter().map(size).sum(),
                commands.items.iter().map(|ran| ran.command.len() + 20).sum(),
                steps.items.iter().filter(|step| step.done).map(|step| step.text.len()).sum(),
            ];
            let longest = (0..lists.len()).max_by_key(|list| lists.get(*list)).unwrap_or_default();
            let gone = match longest {
                _ if lists.iter().all(|bytes| *bytes == 0) => steps.drop_last(|_| true),
                0 => decisions.drop_last(|_| true),
                1 => changed.drop_last(|_| true),
                2 => read.drop_last(|_| true),
                3 => commands.drop_last(|_| true),
                _ => steps.drop_last(|step| step.done),
            };
            if !gone {
                break;
            }
        }
        self
    }

    /// All its texts, for whoever takes secrets out of them.
    pub fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        let Self { first, current, decisions, changed, read, commands, steps } = self;
        let files = changed.items.iter_mut().chain(&mut read.items).map(|file| &mut file.path);
        [first, current]
            .into_iter()
            .chain(&mut decisions.items)
            .chain(files)
            .chain(commands.items.iter_mut().map(|ran| &mut ran.command))
            .chain(steps.items.iter_mut().map(|item| &mut item.text))
    }

    /// The words that a model reads.
    pub fn rendered(&self) -> String {
        let mut text = String::new();
        if !self.first.is_empty() {
            let _ = writeln!(text, "The user's first instruction: {}", self.first);
        }
        if !self.current.is_empty() && self.current != self.first {
            let _ = writeln!(text, "The user's instruction at that time: {}", self.current);
        }
        let older = |head| Labels { head, left_out: "older" };
        self.decisions.render(&mut text, older("Decisions, newest first"), String::clone);
        let file = |file: &File| {
            let hash: String = file.hash.chars().take(HASH).collect();
            format!("{} (sha256 {hash})", file.path)
        };
        self.changed.render(&mut text, older("Files changed, newest first"), file);
        self.read.render(&mut text, older("Files read, newest first"), file);
        self.commands.render(&mut text, older("Commands, newest first"), |ran| {
            let times =
                if ran.times > 1 { format!(", {} times", ran.times) } else { String::new() };
            format!("exit code {}{times}: {}", ran.code, ran.command)
        });
        let steps = Labels { head: "Steps, as the list says", left_out: "done or later" };
        self.steps.render(&mut text, steps, |item| format!("[{}] {}", item.status, item.text));
        text
    }
}

/// What stands above a list and what is said of those that were left out of it.
#[derive(Clone, Copy)]
struct Labels {
    head: &'static str,
    left_out: &'static str,
}

fn text_of(content: &[Content]) -> String {
    content.iter().filter_map(Content::text).collect::<Vec<_>>().join("\n")
}

/// The text in one line, cut where it is longer than so many letters.
pub(crate) fn clip(text: &str, most: usize) -> String {
    let mut clipped = String::new();
    let mut letters = 0;
    for word in text.split_whitespace() {
        let gap = usize::from(!clipped.is_empty());
        let room = most.saturating_sub(letters + gap);
        if room == 0 {
            clipped.push('…');
            return clipped;
        }
        if gap == 1 {
            clipped.push(' ');
        }
        let length = word.chars().count();
        clipped.extend(word.chars().take(room));
        letters += gap + length.min(room);
        if length > room {
            clipped.push('…');
            return clipped;
        }
    }
    clipped
}
