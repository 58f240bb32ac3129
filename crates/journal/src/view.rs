//! The view: what a model is sent, computed from the entries.
//!
//! Whatever the entries are, the messages are well-formed: the first is the user's; every call is
//! followed at once by the results of all calls of its message, in their order; no two messages of
//! one side stand next to each other; no message is empty.
//!
//! Where there are compactions in force, what they replace is told as a record, in the harness's
//! name and not as a task; then come the user's current instruction and the entries that stay, those
//! that are to be shortened in few words. Entries that came while a summary was being made stay.

mod record;
mod shortened;

use mainstay_message::{AssistantPart, Call, CallResult, Content, Message};

use crate::compaction::{Compaction, Standing};
use crate::entry::{Body, Entry};
use crate::turn::Outcome;
pub use record::RECORD;
pub(crate) use shortened::Shortener;

/// The messages of a journal that grows.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    messages: Vec<Message>,
    /// The calls of the last assistant's message, with the results that came so far.
    open: Vec<(Call, Option<CallResult>)>,
    /// When those calls were asked for.
    asked_at: i64,
    /// What was said while calls were open; it comes after their results.
    meanwhile: Vec<Content>,
}

/// The messages that these entries, all from a session's first on, make.
pub fn transcript(entries: &[Entry]) -> Vec<Message> {
    Transcript::of(entries).into_messages()
}

/// The messages that these entries would make with a compaction after them: what it is worth can be
/// measured before it is made.
pub fn preview(entries: &[Entry], compaction: &Compaction) -> Vec<Message> {
    let seq = entries.last().map_or(1, |entry| entry.seq.saturating_add(1));
    let standing = Standing::of(entries).and(seq, compaction);
    Transcript::shown(entries, &standing, i64::MAX).into_messages()
}

/// The messages that entries up to `through` make as they are shown now: what the next summary is to
/// be made of, with the record of earlier ones.
pub fn shown_through(entries: &[Entry], through: i64) -> Vec<Message> {
    Transcript::shown(entries, &Standing::of(entries), through).into_messages()
}

impl Transcript {
    /// The messages of all entries of a session so far; what comes after them can be pushed.
    pub fn of(entries: &[Entry]) -> Self {
        Self::shown(entries, &Standing::of(entries), i64::MAX)
    }

    /// The messages of entries up to `to`, as compactions have them shown.
    fn shown(entries: &[Entry], standing: &Standing<'_>, to: i64) -> Self {
        let mut transcript = Self::default();
        if let Some(compaction) = standing.replacing() {
            transcript.say(record::render(entries, compaction, standing.through));
        }
        let shortener = Shortener::new(entries, standing);
        let live = |entry: &&Entry| entry.seq > standing.through && entry.seq <= to;
        for entry in entries.iter().filter(live) {
            transcript.push(&shortener.shown(entry), entry.at);
        }
        transcript
    }

    /// Takes the next entry in, and when it was written. A compaction, and one that is taken back,
    /// change what was before: then the messages are made anew with [`of`](Self::of).
    pub fn push(&mut self, body: &Body, at: i64) {
        match body {
            Body::User { content } => {
                self.close();
                self.say(content.iter().filter(|part| !is_blank(part)).cloned());
            }
            Body::Assistant { parts, .. } => self.answer(parts, at),
            Body::Result { result, .. } => self.result(result),
            Body::Notice { text, .. } => self.notice(text),
            Body::End { outcome, reason } => {
                self.close();
                if let Some(words) = ending(*outcome, reason.as_deref()) {
                    self.notice(&words);
                }
            }
            Body::Compaction(_) | Body::Restored { .. } => {}
        }
    }

    /// The messages so far. Every call has its results: the engine settles calls before it asks a
    /// model, and what it could not settle is closed here in words.
    pub fn messages(&mut self) -> &[Message] {
        self.close();
        &self.messages
    }

    /// The messages so far, without results of calls that others of their message are waited for.
    pub fn settled(&self) -> &[Message] {
        &self.messages
    }

    fn into_messages(mut self) -> Vec<Message> {
        self.close();
        self.messages
    }

    fn answer(&mut self, parts: &[AssistantPart], at: i64) {
        self.close();
        let said = parts.iter().any(|part| match part {
            AssistantPart::Text(text) => !text.trim().is_empty(),
            AssistantPart::Call(_) => true,
            AssistantPart::Reasoning(_) => false,
        });
        // Thoughts without words or deeds are nothing that can be answered.
        if !said {
            return;
        }
        let parts: Vec<AssistantPart> = parts
            .iter()
            .filter(|part| !matches!(part, AssistantPart::Text(text) if text.trim().is_empty()))
            .cloned()
            .collect();
        self.asked_at = at;
        self.open = parts
            .iter()
            .filter_map(|part| match part {
                AssistantPart::Call(call) => Some((call.clone(), None)),
                _ => None,
            })
            .collect();
        match self.messages.last_mut() {
            Some(Message::Assistant(before)) => before.extend(parts),
            Some(_) => self.messages.push(Message::Assistant(parts)),
            None => {
                self.messages.push(Message::User(vec![Content::Text(BEGINNING.to_owned())]));
                self.messages.push(Message::Assistant(parts));
            }
        }
    }

    fn result(&mut self, result: &CallResult) {
        let slot = self.open.iter_mut().find(|(call, _)| call.id == result.call);
        // A result that nobody asked for cannot be sent, and the first of two holds.
        let Some((_, slot @ None)) = slot else { return };
        *slot = Some(with_content(result));
        if self.open.iter().all(|(_, result)| result.is_some()) {
            self.close();
        }
    }

    fn notice(&mut self, text: &str) {
        let words = Content::Text(format!("[Mainstay: {text}]"));
        if self.open.is_empty() {
            self.say([words]);
        } else {
            self.meanwhile.push(words);
        }
    }

    /// Ends the wait for results.
    fn close(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let asked_at = self.asked_at;
        let results = std::mem::take(&mut self.open)
            .into_iter()
            .map(|(call, result)| result.unwrap_or_else(|| unreported(&call, asked_at)))
            .collect();
        self.messages.push(Message::Results(results));
        let meanwhile = std::mem::take(&mut self.meanwhile);
        self.say(meanwhile);
    }

    fn say(&mut self, content: impl IntoIterator<Item = Content>) {
        let mut content = content.into_iter().peekable();
        if content.peek().is_none() {
            return;
        }
        match self.messages.last_mut() {
            Some(Message::User(before)) => before.extend(content),
            _ => self.messages.push(Message::User(content.collect())),
        }
    }
}

const BEGINNING: &str = "[Mainstay: the conversation begins here.]";

fn is_blank(part: &Content) -> bool {
    part.text().is_some_and(|text| text.trim().is_empty())
}

/// A result never comes empty: some providers refuse that.
fn with_content(result: &CallResult) -> CallResult {
    let mut result = result.clone();
    result.content.retain(|part| !is_blank(part));
    if result.content.is_empty() {
        result.content.push(Content::Text("(no output)".to_owned()));
    }
    result
}

fn unreported(call: &Call, asked_at: i64) -> CallResult {
    let text = format!(
        "[Mainstay: this call was asked for at {} and did not report back. It may have had its \
         effect; check before repeating it.]",
        clock_time(asked_at)
    );
    CallResult {
        call: call.id.clone(),
        name: call.name.clone(),
        content: vec![Content::Text(text)],
        failed: true,
    }
}

/// The time of day, in UTC.
fn clock_time(millis: i64) -> String {
    let minutes = millis.div_euclid(60_000).rem_euclid(24 * 60);
    format!("{:02}:{:02} UTC", minutes / 60, minutes % 60)
}

/// What the model is told of how a turn ended, where it has to know.
fn ending(outcome: Outcome, reason: Option<&str>) -> Option<String> {
    let what = match outcome {
        Outcome::Answered => return None,
        Outcome::Failed => "the turn ended with an error",
        Outcome::Cancelled => "the user stopped the turn",
        Outcome::Stuck => "the turn was ended because it went in circles",
        Outcome::Interrupted => "the turn was interrupted before it was finished",
    };
    Some(match reason {
        Some(reason) => format!("{what}: {reason}"),
        None => what.to_owned(),
    })
}

#[cfg(test)]
mod tests;
