//! The conversation as all formats can carry it.
//!
//! Whatever messages come in, what comes out alternates, begins and ends with the user's side, has no
//! empty text, has exactly one result for each call directly after it, and shows a model only
//! reasoning of its own. Everything is borrowed.

use mainstay_message::{AssistantPart, Call, CallResult, Content, Image, Message, Reasoning};

use crate::memo::Whole;

/// Words or a picture.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Piece<'a> {
    Text(&'a str),
    Image(&'a Image),
}

/// A part of the model's message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part<'a> {
    Reasoning(&'a Reasoning),
    Text(&'a str),
    Call(&'a Call),
}

/// What came of one call.
#[derive(Clone, Debug)]
pub(crate) struct Outcome<'a> {
    pub(crate) call: &'a str,
    pub(crate) name: &'a str,
    /// Never empty.
    pub(crate) content: Vec<Piece<'a>>,
    pub(crate) failed: bool,
}

/// One step of the conversation; none is empty.
#[derive(Clone, Debug)]
pub(crate) enum WireMessage<'a> {
    User(Vec<Piece<'a>>),
    Assistant(Vec<Part<'a>>),
    Results(Vec<Outcome<'a>>),
}

/// Stands before a conversation that does not begin with the user.
const BEGINNING: &str = "(The conversation continues.)";
/// Stands after a conversation that ends with the model.
const CONTINUE: &str = "(Continue.)";
/// Stands for a result of which nothing is known; the journal gives one for every call.
const NO_RESULT: &str = "(No result was recorded. Check before you repeat the call.)";
/// Stands for a result without words.
const NO_OUTPUT: &str = "(no output)";

/// Puts messages into the shape above, for the model named `provider/model`.
pub(crate) fn wire_messages<'a>(messages: &'a [Message], model: &str) -> Vec<WireMessage<'a>> {
    wire_messages_of(messages, Whole::All, model)
}

/// Does so with a piece of a conversation that begins with a message of the model, or with the
/// conversation.
pub(crate) fn wire_messages_of<'a>(
    messages: &'a [Message],
    part: Whole,
    model: &str,
) -> Vec<WireMessage<'a>> {
    let mut steps: Vec<WireMessage<'a>> = Vec::with_capacity(messages.len() + 2);
    let mut messages = messages.iter().peekable();
    while let Some(message) = messages.next() {
        match message {
            Message::User(content) => user(&mut steps, pieces(content)),
            // Each belongs to an assistant's message and is taken with it.
            Message::Results(_) => {}
            Message::Assistant(parts) => {
                let parts = said(parts, model);
                if parts.is_empty() {
                    continue;
                }
                let mut results: &[CallResult] = &[];
                if let Some(Message::Results(found)) = messages.peek() {
                    results = found;
                }
                assistant(&mut steps, parts, results);
            }
        }
    }
    if part.begins() && !matches!(steps.first(), Some(WireMessage::User(_))) {
        steps.insert(0, WireMessage::User(vec![Piece::Text(BEGINNING)]));
    }
    if part.ends() && matches!(steps.last(), Some(WireMessage::Assistant(_))) {
        steps.push(WireMessage::User(vec![Piece::Text(CONTINUE)]));
    }
    steps
}

fn user<'a>(steps: &mut Vec<WireMessage<'a>>, content: Vec<Piece<'a>>) {
    if content.is_empty() {
        return;
    }
    match steps.last_mut() {
        Some(WireMessage::User(before)) => before.extend(content),
        _ => steps.push(WireMessage::User(content)),
    }
}

fn assistant<'a>(
    steps: &mut Vec<WireMessage<'a>>,
    parts: Vec<Part<'a>>,
    results: &'a [CallResult],
) {
    let outcomes: Vec<Outcome<'a>> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Call(call) => Some(outcome(call, results)),
            Part::Reasoning(_) | Part::Text(_) => None,
        })
        .collect();
    match steps.last_mut() {
        Some(WireMessage::Assistant(before)) => before.extend(parts),
        _ => steps.push(WireMessage::Assistant(parts)),
    }
    if !outcomes.is_empty() {
        steps.push(WireMessage::Results(outcomes));
    }
}

fn outcome<'a>(call: &'a Call, results: &'a [CallResult]) -> Outcome<'a> {
    let found = results.iter().find(|result| result.call == call.id);
    let mut content = found.map_or_else(|| vec![Piece::Text(NO_RESULT)], |r| pieces(&r.content));
    if content.is_empty() {
        content.push(Piece::Text(NO_OUTPUT));
    }
    let failed = found.is_none_or(|result| result.failed);
    Outcome { call: &call.id, name: &call.name, content, failed }
}

fn pieces(content: &[Content]) -> Vec<Piece<'_>> {
    content
        .iter()
        .filter_map(|content| match content {
            Content::Text(text) => (!text.trim().is_empty()).then_some(Piece::Text(text)),
            Content::Image(image) => Some(Piece::Image(image)),
        })
        .collect()
}

/// The parts that may be sent to this model. Reasoning that nothing follows is left out: providers
/// take it only in front of what came of it.
fn said<'a>(parts: &'a [AssistantPart], model: &str) -> Vec<Part<'a>> {
    let mut kept: Vec<Part<'a>> = parts
        .iter()
        .filter_map(|part| match part {
            AssistantPart::Reasoning(reasoning) => {
                (reasoning.origin == model).then_some(Part::Reasoning(reasoning))
            }
            AssistantPart::Text(text) => (!text.trim().is_empty()).then_some(Part::Text(text)),
            AssistantPart::Call(call) => Some(Part::Call(call)),
        })
        .collect();
    while matches!(kept.last(), Some(Part::Reasoning(_))) {
        kept.pop();
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Content {
        Content::Text(text.to_owned())
    }

    fn call(id: &str) -> AssistantPart {
        let name = "shell".to_owned();
        let arguments = "{}".to_owned();
        AssistantPart::Call(Call { id: id.to_owned(), name, arguments, extra: None })
    }

    fn thought(origin: &str) -> AssistantPart {
        let origin = origin.to_owned();
        let text = "hm".to_owned();
        AssistantPart::Reasoning(Reasoning { origin, text, ..Reasoning::default() })
    }

    /// One word a step: `user:2` for a user's message of two pieces.
    fn shape(messages: &[Message]) -> String {
        let words: Vec<String> = wire_messages(messages, "p/m")
            .iter()
            .map(|step| match step {
                WireMessage::User(content) => format!("user:{}", content.len()),
                WireMessage::Assistant(parts) => format!("assistant:{}", parts.len()),
                WireMessage::Results(outcomes) => format!("results:{}", outcomes.len()),
            })
            .collect();
        words.join(" ")
    }

    #[test]
    fn messages_become_steps_that_alternate() {
        let said = |words: &str| Message::Assistant(vec![AssistantPart::Text(words.to_owned())]);
        let asked = |words: &str| Message::User(vec![text(words)]);
        assert_eq!(shape(&[]), "user:1");
        assert_eq!(shape(&[asked("a"), asked(" "), asked("b")]), "user:2");
        assert_eq!(shape(&[said("a")]), "user:1 assistant:1 user:1");
        assert_eq!(shape(&[asked("a"), said(" "), asked("b")]), "user:2");
        let calls = Message::Assistant(vec![thought("p/m"), thought("q/m"), call("1"), call("2")]);
        assert_eq!(shape(&[asked("a"), calls.clone()]), "user:1 assistant:3 results:2");
        let one = CallResult {
            call: "2".to_owned(),
            name: "shell".to_owned(),
            content: vec![],
            failed: false,
        };
        let messages = [asked("a"), calls, Message::Results(vec![one])];
        assert_eq!(shape(&messages), "user:1 assistant:3 results:2");
        let Some(WireMessage::Results(outcomes)) = wire_messages(&messages, "p/m").pop() else {
            panic!()
        };
        assert!(matches!(outcomes[0].content[..], [Piece::Text(NO_RESULT)]));
        assert!(matches!(outcomes[1].content[..], [Piece::Text(NO_OUTPUT)]));
    }

    #[test]
    fn reasoning_without_anything_after_it_is_left_out() {
        let asked = Message::User(vec![text("a")]);
        let only = Message::Assistant(vec![thought("p/m")]);
        assert_eq!(shape(&[asked.clone(), only, asked]), "user:2");
    }
}
