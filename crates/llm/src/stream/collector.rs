//! Collects the parts of an answer as they stream in, and tells the listener.

use std::collections::HashSet;

use mainstay_message::{AssistantPart, Call, Message, Reasoning};
use serde_json::Value;

use crate::Event;

/// A part that may still grow.
#[derive(Debug)]
pub(crate) enum Draft {
    Reasoning(Reasoning),
    Text(String),
    Call { id: String, name: String, arguments: String, extra: Option<Value> },
}

/// The answer so far.
pub(crate) struct Collector<'a> {
    drafts: Vec<Draft>,
    /// Whether the model has said a first word.
    spoken: bool,
    /// Whether the answer has grown since that was last asked.
    grown: bool,
    origin: String,
    listener: &'a mut (dyn FnMut(Event<'_>) + Send),
}

impl<'a> Collector<'a> {
    /// `origin` is the `provider/model` that speaks.
    pub(crate) fn new(
        origin: String,
        listener: &'a mut (dyn FnMut(Event<'_>) + Send),
    ) -> Collector<'a> {
        Collector { drafts: Vec::new(), spoken: false, grown: false, origin, listener }
    }

    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// Whether the model has begun to speak.
    pub(crate) fn has_spoken(&self) -> bool {
        self.spoken || !self.drafts.is_empty()
    }

    /// Notes that the model got on, where it shows in none of the parts yet.
    pub(crate) fn grow(&mut self) {
        self.grown = true;
    }

    /// Whether the model got on since this was last asked.
    pub(crate) fn take_growth(&mut self) -> bool {
        std::mem::take(&mut self.grown)
    }

    /// Adds words of the answer to the last part, or begins a new one.
    pub(crate) fn text(&mut self, words: &str) {
        if words.is_empty() {
            return;
        }
        if !matches!(self.drafts.last(), Some(Draft::Text(_))) {
            self.drafts.push(Draft::Text(String::new()));
        }
        self.append(self.drafts.len() - 1, words);
    }

    /// Adds words of a thought to the last part, or begins a new one.
    pub(crate) fn thought(&mut self, words: &str) {
        if words.is_empty() {
            return;
        }
        if !matches!(self.drafts.last(), Some(Draft::Reasoning(_))) {
            self.push(Draft::Reasoning(Reasoning::default()));
        }
        self.append(self.drafts.len() - 1, words);
    }

    /// Begins a part and says where it is. Words it already has are told.
    pub(crate) fn push(&mut self, mut draft: Draft) -> usize {
        match &mut draft {
            Draft::Reasoning(reasoning) => {
                reasoning.origin.clone_from(&self.origin);
                if !reasoning.text.is_empty() {
                    (self.listener)(Event::Reasoning(&reasoning.text));
                }
            }
            Draft::Text(text) if !text.is_empty() => (self.listener)(Event::Text(text)),
            Draft::Call { name, .. } if !name.is_empty() => (self.listener)(Event::Call { name }),
            Draft::Text(_) | Draft::Call { .. } => {}
        }
        self.grown = true;
        self.drafts.push(draft);
        self.drafts.len() - 1
    }

    /// Adds to a part: words, or a fragment of a call's arguments.
    pub(crate) fn append(&mut self, at: usize, words: &str) {
        self.grown |= !words.is_empty();
        match self.drafts.get_mut(at) {
            Some(Draft::Text(text)) => {
                text.push_str(words);
                (self.listener)(Event::Text(words));
            }
            Some(Draft::Reasoning(reasoning)) => {
                reasoning.text.push_str(words);
                (self.listener)(Event::Reasoning(words));
            }
            Some(Draft::Call { arguments, .. }) => arguments.push_str(words),
            None => {}
        }
    }

    /// Names a call that was begun without its name. A name that comes again is ignored.
    pub(crate) fn name(&mut self, at: usize, words: &str) {
        if let Some(Draft::Call { name, .. }) = self.drafts.get_mut(at)
            && name.is_empty()
            && !words.is_empty()
        {
            words.clone_into(name);
            self.grown = true;
            (self.listener)(Event::Call { name });
        }
    }

    pub(crate) fn draft(&mut self, at: usize) -> Option<&mut Draft> {
        self.drafts.get_mut(at)
    }

    /// Tells words that are collected elsewhere.
    pub(crate) fn tell(&mut self, event: Event<'_>) {
        self.spoken = true;
        self.grown = true;
        (self.listener)(event);
    }

    /// Adds a part whose words were told already.
    pub(crate) fn add(&mut self, mut draft: Draft) {
        if let Draft::Reasoning(reasoning) = &mut draft {
            reasoning.origin.clone_from(&self.origin);
        }
        self.grown = true;
        self.drafts.push(draft);
    }

    /// The parts, each call with an id that no other call of the conversation has.
    pub(crate) fn finish(
        self,
        messages: &[Message],
        mut fresh: impl FnMut() -> String,
    ) -> Vec<AssistantPart> {
        let mut used: HashSet<String> = HashSet::new();
        let mut parts = Vec::with_capacity(self.drafts.len());
        for draft in self.drafts {
            parts.push(match draft {
                Draft::Reasoning(reasoning) => {
                    if reasoning.text.is_empty() && reasoning.sealed.is_none() {
                        continue;
                    }
                    AssistantPart::Reasoning(reasoning)
                }
                Draft::Text(text) if text.is_empty() => continue,
                Draft::Text(text) => AssistantPart::Text(text),
                Draft::Call { mut id, name, arguments, extra } => {
                    while !is_plain_id(&id) || is_used(&id, messages) || !used.insert(id.clone()) {
                        id = fresh();
                    }
                    let empty = arguments.trim().is_empty();
                    let arguments = if empty { "{}".to_owned() } else { arguments };
                    AssistantPart::Call(Call { id, name, arguments, extra })
                }
            });
        }
        parts
    }
}

/// Whether a call of the conversation has this id. The newest ones are looked at first: servers that
/// use ids again do it soon.
fn is_used(id: &str, messages: &[Message]) -> bool {
    messages.iter().rev().any(|message| match message {
        Message::Assistant(parts) => {
            parts.iter().any(|part| matches!(part, AssistantPart::Call(call) if call.id == id))
        }
        Message::User(_) | Message::Results(_) => false,
    })
}

/// Whether every provider takes this id.
pub(crate) fn is_plain_id(id: &str) -> bool {
    (1..=64).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> Draft {
        let id = id.to_owned();
        let name = "shell".to_owned();
        Draft::Call { id, name, arguments: String::new(), extra: None }
    }

    #[test]
    fn ids_that_are_missing_odd_or_used_are_replaced() {
        let mut listener = |_: Event<'_>| {};
        let mut collector = Collector::new("p/m".to_owned(), &mut listener);
        for id in ["good_1", "good_1", "", "with space", "earlier", "also-good"] {
            collector.push(call(id));
        }
        let earlier = Call {
            id: "earlier".to_owned(),
            name: String::new(),
            arguments: String::new(),
            extra: None,
        };
        let before = [Message::Assistant(vec![AssistantPart::Call(earlier)])];
        let mut number = 0;
        let parts = collector.finish(&before, || {
            number += 1;
            format!("fresh{number}")
        });
        let ids: Vec<&str> = parts
            .iter()
            .map(|part| match part {
                AssistantPart::Call(call) => {
                    assert_eq!(call.arguments, "{}");
                    call.id.as_str()
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(ids, ["good_1", "fresh1", "fresh2", "fresh3", "fresh4", "also-good"]);
    }
}
