//! `mainstay sessions show --at`: what a model was sent as of some entry.

use mainstay_journal::entry::Entry;
use mainstay_journal::session::Session;
use mainstay_journal::{compaction, transcript};
use mainstay_message::Message;
use serde_json::json;

use super::show::{contents, said};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::wording;

/// Shows the messages that the entries up to `at` make.
pub(super) fn show(
    context: &Context,
    session: &Session,
    entries: &[Entry],
    at: i64,
) -> Result<Exit, Error> {
    let there = entries.iter().take_while(|entry| entry.seq <= at).count();
    if at < 1 || entries.last().is_none_or(|last| last.seq < at) {
        let last = entries.last().map_or(0, |entry| entry.seq);
        return Err(Error::usage(format!("session {} has no entry {at}", session.id))
            .hint(format!("Its entries are numbered from 1 to {last}.")));
    }
    let entries = entries.get(..there).unwrap_or_default();
    let messages = transcript(entries);
    let compactions: Vec<i64> =
        compaction::Standing::of(entries).made.iter().map(|(_, made)| made.number).collect();
    let data = json!({
        "id": session.id,
        "at": at,
        "compactions": compactions,
        "messages": messages,
    });
    let mut text = format!("session {} as of entry {at}\n", session.id);
    for message in &messages {
        write_message(&mut text, message);
    }
    context.output.answer(&data, &text)?;
    Ok(Exit::Done)
}

fn write_message(text: &mut String, message: &Message) {
    match message {
        Message::User(content) => {
            text.push_str("\n[user]\n");
            contents(text, content);
        }
        Message::Assistant(parts) => {
            text.push_str("\n[assistant]\n");
            said(text, parts);
        }
        Message::Results(results) => {
            for result in results {
                let failed = if result.failed { " (failed)" } else { "" };
                text.push_str(&format!("\n[{}{failed}]\n", wording::unbroken(&result.name)));
                contents(text, &result.content);
            }
        }
    }
}
