//! Where secrets are taken out: of all that enters the record, goes to a model, or is told.
//!
//! Everything that comes from outside passes one of these on its way in: what a user sends, what a
//! provider answers, what a call brings, what hooks say. So the record, the view that is made of it
//! and the events are without secrets, and nobody behind them has to think of it.

use std::borrow::Cow;

use mainstay_journal::entry::Body;
use mainstay_llm::{Answer, Attempt, Failure};
use mainstay_message::redactor::Flow;
use mainstay_message::{AssistantPart, Content, Redactor};
use mainstay_tools::{Fact, Outcome, Piece};

use crate::session::submit::Input;
use crate::{Event, Observer};

/// What a user sends.
pub(crate) fn input<'a>(redactor: &Redactor, input: &'a Input) -> Cow<'a, Input> {
    let dirty = |part: &Content| {
        part.text().is_some_and(|text| matches!(redactor.text(text), Cow::Owned(_)))
    };
    if !input.content.iter().any(dirty) {
        return Cow::Borrowed(input);
    }
    let mut clean = input.clone();
    clean.content.iter_mut().for_each(|part| content(redactor, part));
    Cow::Owned(clean)
}

fn content(redactor: &Redactor, part: &mut Content) {
    match part {
        Content::Text(text) => drop(redactor.string(text)),
        Content::Image(_) => {}
    }
}

/// What the engine itself writes down.
pub(crate) fn body(redactor: &Redactor, body: &mut Body) {
    match body {
        Body::Notice { text, facts } => {
            redactor.string(text);
            for fact in facts.iter_mut().flatten() {
                redactor.value(fact);
            }
        }
        Body::End { reason: Some(reason), .. } => drop(redactor.string(reason)),
        Body::User { content: parts } => parts.iter_mut().for_each(|part| content(redactor, part)),
        Body::Assistant { parts, .. } => said(redactor, parts),
        Body::Result { result, .. } => {
            result.content.iter_mut().for_each(|part| content(redactor, part));
        }
        Body::Compaction(made) => {
            for text in [&mut made.summary, &mut made.focus].into_iter().flatten() {
                redactor.string(text);
            }
            for text in made.ledger.texts() {
                redactor.string(text);
            }
        }
        Body::End { reason: None, .. } | Body::Restored { .. } => {}
    }
}

/// What a model answered.
pub(crate) fn answer(redactor: &Redactor, answer: &mut Answer) {
    said(redactor, &mut answer.parts);
    answer.attempts.iter_mut().for_each(|attempt| self::attempt(redactor, attempt));
}

fn said(redactor: &Redactor, parts: &mut Vec<AssistantPart>) {
    parts.retain_mut(|part| match part {
        AssistantPart::Text(text) => {
            redactor.string(text);
            true
        }
        AssistantPart::Call(call) => {
            redactor.string(&mut call.name);
            redactor.string(&mut call.arguments);
            true
        }
        // Its provider takes it back unchanged or not at all.
        AssistantPart::Reasoning(reasoning) => !redactor.string(&mut reasoning.text),
    });
}

/// What providers said when none answered.
pub(crate) fn failure(redactor: &Redactor, failure: &mut Failure) {
    failure.attempts.iter_mut().for_each(|attempt| self::attempt(redactor, attempt));
}

fn attempt(redactor: &Redactor, attempt: &mut Attempt) {
    redactor.string(&mut attempt.said);
    for text in [&mut attempt.request_id, &mut attempt.note].into_iter().flatten() {
        redactor.string(text);
    }
}

/// What came of a call.
pub(crate) fn outcome(redactor: &Redactor, outcome: &mut Outcome) {
    for piece in &mut outcome.pieces {
        match piece {
            Piece::Said(words) | Piece::Data(words) | Piece::Instructions(words) => {
                redactor.string(words);
            }
            Piece::Image(_) => {}
        }
    }
    if let Some(whole) = &mut outcome.whole {
        redactor.bytes(&mut whole.bytes);
    }
    for fact in &mut outcome.facts {
        if let Fact::Background { command, .. } | Fact::Exit { command, .. } = fact {
            redactor.string(command);
        }
    }
}

/// Takes secrets out of the events of a turn before its observer gets them.
pub(crate) struct RedactingObserver {
    redactor: Redactor,
    words: Flow,
    thoughts: Flow,
}

impl RedactingObserver {
    pub(crate) fn new(redactor: &Redactor) -> Self {
        Self { redactor: redactor.clone(), words: Flow::default(), thoughts: Flow::default() }
    }

    /// Tells an event without secrets. Of words that come in pieces, what may be the beginning of a
    /// secret is told with the next piece.
    pub(crate) fn tell(&mut self, event: Event, observer: Observer<'_>) {
        match event {
            Event::Text { delta } => {
                self.tell_thoughts(observer);
                let delta = self.words.push_text(&self.redactor, &delta);
                if !delta.is_empty() {
                    observer(Event::Text { delta });
                }
            }
            Event::Reasoning { delta } => {
                self.tell_words(observer);
                let delta = self.thoughts.push_text(&self.redactor, &delta);
                if !delta.is_empty() {
                    observer(Event::Reasoning { delta });
                }
            }
            mut event => {
                self.tell_rest(observer);
                self.clean(&mut event);
                observer(event);
            }
        }
    }

    /// Tells what was held back.
    pub(crate) fn tell_rest(&mut self, observer: Observer<'_>) {
        self.tell_thoughts(observer);
        self.tell_words(observer);
    }

    fn tell_words(&mut self, observer: Observer<'_>) {
        let delta = self.words.rest_text(&self.redactor);
        if !delta.is_empty() {
            observer(Event::Text { delta });
        }
    }

    fn tell_thoughts(&mut self, observer: Observer<'_>) {
        let delta = self.thoughts.rest_text(&self.redactor);
        if !delta.is_empty() {
            observer(Event::Reasoning { delta });
        }
    }

    fn clean(&self, event: &mut Event) {
        let redactor = &self.redactor;
        match event {
            Event::ToolCall { arguments, .. } => drop(redactor.value(arguments)),
            Event::ToolResult { text, .. } => drop(redactor.string(text)),
            Event::Notice { message, .. } => drop(redactor.string(message)),
            Event::Recalled { memories } => {
                for memory in memories {
                    redactor.string(&mut memory.text);
                }
            }
            Event::Parked { reason, .. } => drop(redactor.string(reason)),
            Event::End { answer, reason, .. } => {
                redactor.string(answer);
                if let Some(reason) = reason {
                    redactor.string(reason);
                }
            }
            _ => {}
        }
    }
}
