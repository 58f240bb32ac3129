//! `mainstay sessions show`

use std::fmt::Write as _;

use clap::Args;
use mainstay_agent::budget::dollars;
use mainstay_journal::entry::{self, Body, Entry};
use mainstay_journal::model_call::{self, On};
use mainstay_journal::{session, turn};
use mainstay_message::{AssistantPart, Content};
use serde_json::{Value, json};

use super::{list, view};
use crate::context::{Context, open_existing};
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;
use crate::wording;

/// Show what was said and done in a session
#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// Session to show (a prefix of its ID is enough)
    id: String,
    /// Show what the model was sent as of this entry, with the compactions of that time
    #[arg(long, value_name = "N")]
    at: Option<i64>,
}

pub(crate) fn run(args: &ShowArgs, context: &Context) -> Result<Exit, Error> {
    let paths = context.paths()?;
    let store = open_existing(&paths)?;
    let owner = engine::existing_owner(&store, "session", &args.id)?;
    let (session, turn, entries, spent) = store.read(|tx| -> mainstay_journal::Result<_> {
        let session = session::find(tx, owner, &args.id)?;
        let turn = turn::last(tx, session.id)?;
        let entries = entry::all(tx, session.id)?;
        let spent = model_call::spent_on(tx, On::Session(session.id))?;
        Ok((session, turn, entries, spent))
    })?;

    if let Some(at) = args.at {
        return view::show(context, &session, &entries, at);
    }
    let mut data = list::data(&session, turn.as_ref());
    data["spent"] = json!(spent);
    data["log"] = entries.iter().map(entry_data).collect();
    let mut text = format!(
        "session {}  {}\nin {}\n{} of models, {} tokens, {}\n",
        session.id,
        wording::unbroken(&session.title),
        wording::unbroken(&session.workspace),
        wording::count(u64::try_from(spent.calls).unwrap_or(0), "call"),
        spent.usage.total(),
        dollars(spent.cost)
    );
    if let Some((parent, seq)) = session.parent {
        text.push_str(&format!("forked from {parent}, sharing {seq} entries\n"));
    }
    for entry in &entries {
        write_entry(&mut text, entry);
    }
    if let Some(turn) = &turn
        && turn.state != turn::State::Ended
    {
        let reason = turn
            .reason
            .as_deref()
            .map(|reason| format!(": {}", wording::unbroken(reason)))
            .unwrap_or_default();
        text.push_str(&format!("\nThe last turn is {}{reason}\n", list::standing(turn)));
    }
    context.output.answer(&data, &text)?;
    Ok(Exit::Done)
}

fn entry_data(entry: &Entry) -> Value {
    json!({ "seq": entry.seq, "turn": entry.turn, "at": entry.at, "kind": entry.body.kind(),
        "body": entry.body })
}

fn write_entry(text: &mut String, entry: &Entry) {
    let mut head = |words: &str| {
        // Writing to a string does not fail.
        let words = wording::unbroken(words);
        let _ = write!(text, "\n[{} {}] {words}\n", entry.seq, wording::minute(entry.at));
    };
    match &entry.body {
        Body::User { content } => {
            head("user");
            contents(text, content);
        }
        Body::Assistant { parts, model } => {
            head(model);
            said(text, parts);
        }
        Body::Result { result, .. } => {
            head(&format!("{}{}", result.name, if result.failed { " (failed)" } else { "" }));
            contents(text, &result.content);
        }
        Body::Notice { text, .. } => head(&format!("note: {text}")),
        Body::End { outcome, reason } => {
            let reason = reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
            head(&format!("end of the turn: {}{reason}", outcome.as_str()));
        }
        Body::Compaction(made) => head(&wording::compaction(made)),
        Body::Restored { number } => head(&wording::taken_back(*number)),
    }
}

/// Adds what a model said and the calls it asked for.
pub(super) fn said(text: &mut String, parts: &[AssistantPart]) {
    for part in parts {
        match part {
            AssistantPart::Text(words) => text.push_str(&wording::indented(words.trim())),
            AssistantPart::Call(call) => {
                let call = format!("{} {}", call.name, call.arguments);
                text.push_str(&format!("> {}\n", wording::unbroken(&call)));
            }
            AssistantPart::Reasoning(_) => {}
        }
    }
}

pub(super) fn contents(text: &mut String, content: &[Content]) {
    for part in content {
        match part {
            Content::Text(words) => text.push_str(&wording::indented(words.trim_end())),
            Content::Image(image) => {
                text.push_str(&format!("  ({})\n", wording::unbroken(&image.media_type)));
            }
        }
    }
}
