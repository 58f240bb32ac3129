//! What the scripted model says, and how the words reach the client, or do not.

use std::borrow::Borrow;
use std::time::Duration;

use serde_json::Value;

use super::delivery::{Delivery, End};
use super::render::{self, Occasion};
use super::{Gate, Shape};

/// An answer. It begins as [`text`](Reply::text), [`calls`](Reply::call_of), a
/// [`status`](Reply::status) or [`raw`](Reply::raw) bytes, and grows by the other methods.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(super) body: Body,
    pub(super) headers: Vec<(String, String)>,
    pub(super) delivery: Delivery,
}

#[derive(Clone, Debug)]
pub(super) enum Body {
    Message(Message),
    Fault(Fault),
    Raw { status: u16, bytes: Vec<u8> },
}

/// What a model says in one answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Message {
    pub(super) parts: Vec<Part>,
    pub(super) stop: Stop,
    pub(super) usage: Option<Tokens>,
    pub(super) call_ids: CallIds,
    pub(super) call_proofs: CallProofs,
}

#[derive(Clone, Debug)]
pub(super) enum Part {
    Reasoning(String),
    SealedReasoning(String),
    Text(String),
    Call { name: String, arguments: String },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stop {
    #[default]
    Natural,
    Length,
    Refused,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CallIds {
    #[default]
    Given,
    Absent,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CallProofs {
    #[default]
    None,
    OnFirst,
}

/// Tokens; the kinds of input do not overlap.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tokens {
    pub(super) input: u64,
    pub(super) cached: u64,
    pub(super) cache_written: u64,
    pub(super) output: u64,
    pub(super) reasoning: u64,
}

/// An error in the provider's words.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) status: u16,
    pub(super) words: String,
    pub(super) kind: Option<String>,
    pub(super) code: Option<String>,
    pub(super) param: Option<String>,
}

/// What it says.
impl Reply {
    /// Says a text; more parts may follow.
    pub fn text(text: impl Into<String>) -> Self {
        Self::empty().and_text(text)
    }

    /// Thinks first; what it says follows with [`and_text`](Reply::and_text) or [`call`](Reply::call).
    pub fn thinking(text: impl Into<String>) -> Self {
        Self::empty().reasoning(text)
    }

    /// Asks for a tool and says nothing.
    pub fn call_of(tool: impl Into<String>, arguments: impl Borrow<Value>) -> Self {
        Self::empty().call(tool, arguments)
    }

    /// Says nothing at all, as models now and then do.
    pub fn empty() -> Self {
        Self::with(Body::Message(Message::default()))
    }

    /// Fails with a status and an error body of the shape that was asked.
    pub fn status(status: u16, words: impl Into<String>) -> Self {
        let words = words.into();
        Self::with(Body::Fault(Fault { status, words, kind: None, code: None, param: None }))
    }

    /// Answers with these bytes, whatever was asked.
    pub fn raw(status: u16, headers: &[(&str, &str)], bytes: impl Into<Vec<u8>>) -> Self {
        headers
            .iter()
            .fold(Self::with(Body::Raw { status, bytes: bytes.into() }), |reply, (name, value)| {
                reply.header(name, *value)
            })
    }

    /// Says a further text, after the parts before it.
    pub fn and_text(self, text: impl Into<String>) -> Self {
        self.part(Part::Text(text.into()))
    }

    /// Thinks before it goes on. Called after [`text`](Reply::text), the thought comes first all the
    /// same, as it does with every provider.
    pub fn reasoning(mut self, text: impl Into<String>) -> Self {
        let message = self.message();
        let thoughts = message.parts.iter().take_while(|part| part.is_thought()).count();
        message.parts.insert(thoughts, Part::Reasoning(text.into()));
        self
    }

    /// Thinks in secret: Anthropic's redacted thinking, and a sealed item without a summary in
    /// OpenAI's responses. The other shapes show nothing of it.
    pub fn sealed_reasoning(mut self, text: impl Into<String>) -> Self {
        let message = self.message();
        let thoughts = message.parts.iter().take_while(|part| part.is_thought()).count();
        message.parts.insert(thoughts, Part::SealedReasoning(text.into()));
        self
    }

    /// Asks for a tool; several are parallel calls.
    pub fn call(self, tool: impl Into<String>, arguments: impl Borrow<Value>) -> Self {
        self.part(Part::Call { name: tool.into(), arguments: arguments.borrow().to_string() })
    }

    /// Asks for a tool with arguments that need not be JSON, as models now and then do.
    pub fn call_with_words(self, tool: impl Into<String>, arguments: impl Into<String>) -> Self {
        self.part(Part::Call { name: tool.into(), arguments: arguments.into() })
    }

    /// Gives its calls no ids, as some imitations of chat completions and older Ollamas do. The
    /// other two shapes always have them.
    pub fn without_call_ids(mut self) -> Self {
        self.message().call_ids = CallIds::Absent;
        self
    }

    /// Signs the first of its calls, as Gemini does behind chat completions: the call bears an
    /// `extra_content` that must come back with it. The other shapes have no such thing.
    pub fn with_signed_calls(mut self) -> Self {
        self.message().call_proofs = CallProofs::OnFirst;
        self
    }

    /// The tokens it took: input that was read anew, input from the cache, output. Without this they
    /// are guessed from the sizes.
    pub fn usage(mut self, input: u64, cached: u64, output: u64) -> Self {
        let tokens = self.message().usage.get_or_insert_default();
        (tokens.input, tokens.cached, tokens.output) = (input, cached, output);
        self
    }

    /// Tokens that were written to the cache, which only Anthropic counts.
    pub fn cache_written(mut self, tokens: u64) -> Self {
        self.message().usage.get_or_insert_default().cache_written = tokens;
        self
    }

    /// The share of the output that was reasoning, which only OpenAI counts.
    pub fn reasoning_tokens(mut self, tokens: u64) -> Self {
        self.message().usage.get_or_insert_default().reasoning = tokens;
        self
    }

    /// Stops because the limit of its output is reached.
    pub fn stopped_by_length(mut self) -> Self {
        self.message().stop = Stop::Length;
        self
    }

    /// Stops because the provider's filter refuses to go on.
    pub fn refused(mut self) -> Self {
        self.message().stop = Stop::Refused;
        self
    }

    /// The `type` of an error, in place of the usual one of its status.
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.fault().kind = Some(kind.into());
        self
    }

    /// The `code` of an error of OpenAI's shapes.
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.fault().code = Some(code.into());
        self
    }

    /// The `param` of an error of OpenAI's shapes.
    pub fn param(mut self, param: impl Into<String>) -> Self {
        self.fault().param = Some(param.into());
        self
    }

    /// A further header, or another value for one that the server would send.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_ascii_lowercase(), value.into()));
        self
    }

    /// How many events this has in a shape, so that a test can cut at each. The last one is the end
    /// marker; an error and raw bytes are one event. Chat completions are counted with the chunk of
    /// usage, which the client has to ask for, and responses with what the server seals.
    pub fn events(&self, shape: Shape) -> usize {
        render::events(self, shape, &Occasion::typical()).len()
    }

    fn with(body: Body) -> Self {
        Self { body, headers: Vec::new(), delivery: Delivery::default() }
    }

    fn part(mut self, part: Part) -> Self {
        self.message().parts.push(part);
        self
    }

    fn message(&mut self) -> &mut Message {
        match &mut self.body {
            Body::Message(message) => message,
            Body::Fault(_) | Body::Raw { .. } => panic!("An error says nothing: begin with text."),
        }
    }

    fn fault(&mut self) -> &mut Fault {
        match &mut self.body {
            Body::Fault(fault) => fault,
            Body::Message(_) | Body::Raw { .. } => panic!("Only a status has this: begin with it."),
        }
    }
}

impl Part {
    fn is_thought(&self) -> bool {
        matches!(self, Part::Reasoning(_) | Part::SealedReasoning(_))
    }
}

/// How it reaches the client. The last of the methods that end an answer early holds.
impl Reply {
    /// Is silent until the gate is open, before all else.
    pub fn held_by(mut self, gate: &Gate) -> Self {
        self.delivery.gate = Some(gate.clone());
        self
    }

    /// Is silent for a time before the first byte.
    pub fn after(mut self, time: Duration) -> Self {
        self.delivery.after = time;
        self
    }

    /// Is silent for a time before each event but the first.
    pub fn pausing(mut self, time: Duration) -> Self {
        self.delivery.between = time;
        self
    }

    /// Sends the events in pieces of so many bytes, wherever that cuts them.
    pub fn in_pieces_of(mut self, bytes: usize) -> Self {
        assert!(bytes > 0, "A piece has at least one byte.");
        self.delivery.piece = Some(bytes);
        self
    }

    /// Sends a comment before each event, as OpenRouter does while it waits. Streams of server-sent
    /// events only.
    pub fn with_comments(mut self) -> Self {
        self.delivery.comments = true;
        self
    }

    /// Resets the connection where it would be closed: the client reads an error and not an end.
    pub fn by_reset(mut self) -> Self {
        self.delivery.reset = true;
        self
    }

    /// Closes the connection before the first byte.
    pub fn cut_before_first_byte(self) -> Self {
        self.ending(End::CutBeforeFirstByte)
    }

    /// Closes the connection after so many events, without the end that HTTP demands.
    pub fn cut_after_events(self, events: usize) -> Self {
        self.ending(End::CutAfter(events))
    }

    /// Closes the connection in the middle of the event that follows so many whole ones.
    pub fn cut_inside_event(self, events: usize) -> Self {
        self.ending(End::CutInside(events))
    }

    /// Is silent before the first byte until the client goes or the server stops.
    pub fn stall_before_first_byte(self) -> Self {
        self.ending(End::StallBeforeFirstByte)
    }

    /// Is silent after so many events until the client goes or the server stops.
    pub fn stall_after_events(self, events: usize) -> Self {
        self.ending(End::StallAfter(events))
    }

    /// Sends `drip` again and again after so many events, each after a time, until the client goes or
    /// the server stops.
    pub fn drip_after_events(
        self,
        events: usize,
        drip: impl Into<Vec<u8>>,
        every: Duration,
    ) -> Self {
        self.pausing(every).ending(End::DripAfter { events, drip: drip.into() })
    }

    /// Ends after so many events, in good order as far as HTTP is concerned.
    pub fn end_after_events(self, events: usize) -> Self {
        self.ending(End::WholeAfter(events))
    }

    /// Leaves out the last event, the end marker of its shape.
    pub fn without_end_marker(self) -> Self {
        self.ending(End::WithoutMarker)
    }

    /// Ends after so many events with an error of its shape inside the stream.
    pub fn error_event_after(
        self,
        events: usize,
        kind: impl Into<String>,
        words: impl Into<String>,
    ) -> Self {
        self.ending(End::ErrorAfter { events, kind: kind.into(), words: words.into() })
    }

    /// Sends something that is no JSON in place of the first event, and ends.
    pub fn garbage(self) -> Self {
        self.garbage_after_events(0)
    }

    /// Sends something that is no JSON after so many events, and ends.
    pub fn garbage_after_events(self, events: usize) -> Self {
        self.ending(End::GarbageAfter(events))
    }

    fn ending(mut self, end: End) -> Self {
        self.delivery.end = end;
        self
    }
}
