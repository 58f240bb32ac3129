//! What was written of a conversation before, so that a round costs what is new in it.

use std::fmt;
use std::sync::{Mutex, MutexGuard};

use mainstay_message::{AssistantPart, Content, Message};

use crate::lock::lock;

/// What was written of a conversation before. Give the same one with every request of a conversation
/// whose messages only grow at their end, and a new one when earlier messages change.
#[derive(Default)]
pub struct Memo(Mutex<Kept>);

/// The beginning of a conversation, as it goes over the wire.
#[derive(Default)]
struct Kept {
    /// The model it is written for.
    model: String,
    /// How many messages it holds.
    count: usize,
    /// The last of them, which tells a conversation that is another one after all.
    last: Option<Message>,
    bytes: Vec<u8>,
    /// How long the whole request was that it went into last.
    size: usize,
}

impl Memo {
    /// Appends to `out` what `write` makes of all messages, given them in pieces; pieces that are
    /// kept from before are not made again. Each piece is given with a separator before it, but for
    /// the first.
    pub(crate) fn write<E>(
        &self,
        model: &str,
        messages: &[Message],
        out: &mut Vec<u8>,
        mut write: impl FnMut(&[Message], Whole, &mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut kept = self.kept();
        let settled = settled(messages);
        let same = kept.model == model
            && kept.count <= settled
            && kept.count.checked_sub(1).and_then(|last| messages.get(last)) == kept.last.as_ref();
        if !same {
            *kept = Kept { model: model.to_owned(), size: kept.size, ..Kept::default() };
        }
        if kept.count < settled {
            let from = kept.count;
            let part = if from == 0 { Whole::Beginning } else { Whole::Middle };
            write(&messages[from..settled], part, &mut kept.bytes)?;
            kept.count = settled;
            kept.last = messages.get(settled - 1).cloned();
        }
        out.extend_from_slice(&kept.bytes);
        let part = if kept.count == 0 { Whole::All } else { Whole::End };
        write(&messages[kept.count..], part, out)
    }

    /// How long the last request was; the next one will be about as long.
    pub(crate) fn last_size(&self) -> usize {
        self.kept().size
    }

    pub(crate) fn was_sized(&self, size: usize) {
        self.kept().size = size;
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        lock(&self.0)
    }
}

/// Which part of a conversation a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whole {
    /// All of it.
    All,
    /// From its beginning on.
    Beginning,
    /// Between other pieces.
    Middle,
    /// Up to its end.
    End,
}

impl Whole {
    pub(crate) fn begins(self) -> bool {
        matches!(self, Whole::All | Whole::Beginning)
    }

    pub(crate) fn ends(self) -> bool {
        matches!(self, Whole::All | Whole::End)
    }
}

/// How many messages will never change: those before the last one of the model, which what came of it
/// and what was said meanwhile may still join. Returns `None` if the messages there could be joined.
fn settled(messages: &[Message]) -> usize {
    let model = |message: &Message| matches!(message, Message::Assistant(_));
    let last = messages.iter().rposition(model).unwrap_or(0);
    let parted = match messages[..last] {
        [.., Message::User(ref content)] => content.iter().any(|part| match part {
            Content::Text(text) => !text.trim().is_empty(),
            Content::Image(_) => true,
        }),
        [.., ref before, Message::Results(_)] => has_calls(before),
        _ => false,
    };
    let says = messages.get(last).is_some_and(says_something);
    if parted && says { last } else { 0 }
}

fn has_calls(message: &Message) -> bool {
    let Message::Assistant(parts) = message else { return false };
    parts.iter().any(|part| matches!(part, AssistantPart::Call(_)))
}

fn says_something(message: &Message) -> bool {
    let Message::Assistant(parts) = message else { return false };
    parts.iter().any(|part| match part {
        AssistantPart::Text(text) => !text.trim().is_empty(),
        AssistantPart::Call(_) => true,
        AssistantPart::Reasoning(_) => false,
    })
}

impl fmt::Debug for Memo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Memo")
    }
}
