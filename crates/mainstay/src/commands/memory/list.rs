//! `mainstay memory list`

use clap::Args;
use mainstay_memory::facts::{self, List};
use mainstay_memory::notes::{self, Note, Scope};
use serde_json::{Value, json};

use crate::commands::run::current_directory;
use crate::context::{Context, open_existing};
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;
use crate::wording;

/// Show the notes and the newest facts
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Only facts of this category
    #[arg(long)]
    category: Option<String>,

    /// Only facts with this tag
    #[arg(long)]
    tag: Option<String>,

    /// Only facts before this one, for the next page
    #[arg(long, value_name = "ID")]
    before: Option<String>,

    /// Show at most this many facts
    #[arg(long, short = 'n', default_value_t = 50)]
    limit: usize,
}

pub(crate) fn run(args: &ListArgs, context: &Context) -> Result<Exit, Error> {
    let before = args.before.as_deref().map(super::fact_id).transpose()?;
    let store = open_existing(&context.paths()?)?;
    let Some(owner) = engine::find_owner(&store)? else { return nothing(context) };
    let place = current_directory()?.display().to_string();
    let list =
        List { category: args.category.clone(), tag: args.tag.clone(), before, limit: args.limit };
    let (user, here, places, found, count) = store.read(|tx| -> mainstay_memory::Result<_> {
        Ok((
            notes::read(tx, owner, Scope::User)?,
            notes::read(tx, owner, Scope::Workspace(&place))?,
            notes::workspaces(tx, owner)?,
            facts::list(tx, owner, &list)?,
            facts::count(tx, owner)?,
        ))
    })?;
    let gone = super::gone(&store, &found)?;
    let data = json!({
        "notes": { "user": user, "workspace": here, "workspaces": places },
        "facts": found.iter().map(|fact| super::data(fact, &gone)).collect::<Vec<Value>>(), "count": count,
    });
    let mut text = String::new();
    add_notes(&mut text, "Notes about you", &user);
    add_notes(&mut text, "Notes about this workspace", &here);
    let elsewhere = places.iter().filter(|other| **other != place).count() as u64;
    if elsewhere > 0 {
        text.push_str(&format!(
            "There are also notes about {}.\n\n",
            wording::count(elsewhere, "other workspace")
        ));
    }
    if !found.is_empty() {
        let of = match u64::try_from(count) {
            Ok(count) if count > found.len() as u64 => format!(", {} of {count}", found.len()),
            _ => String::new(),
        };
        text.push_str(&format!("Facts, newest first{of}:\n"));
        let width = super::width(&found);
        text.extend(found.iter().map(|fact| super::shown(fact, &gone, width)));
    }
    if text.is_empty() {
        return nothing(context);
    }
    context.output.answer(&data, &text)?;
    Ok(Exit::Done)
}

fn add_notes(text: &mut String, heading: &str, notes: &[Note]) {
    if !notes.is_empty() {
        text.push_str(&format!("{heading}:\n"));
        text.extend(notes.iter().map(super::notes::line));
        text.push('\n');
    }
}

fn nothing(context: &Context) -> Result<Exit, Error> {
    let data = json!({
        "notes": { "user": [], "workspace": [], "workspaces": [] }, "facts": [], "count": 0,
    });
    context.output.answer(
        &data,
        &context
            .paths()?
            .completed("Nothing is remembered yet. Add a fact: `mainstay memory add TEXT`\n"),
    )?;
    Ok(Exit::Done)
}
