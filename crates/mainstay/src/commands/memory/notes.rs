//! `mainstay memory notes`

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use mainstay_memory::notes::{self, Change, Note, Scope};
use serde_json::json;

use crate::commands::run::{current_directory, directory};
use crate::context::{Context, open_existing};
use crate::error::Error;
use crate::exit::Exit;
use crate::plain_text::clean;
use crate::{engine, humans_only};

/// Show or change the notes that every new session gets
///
/// Without options, shows them. Several changes are made together, all or none. A note is named by
/// its text, or by a part of it that no other note has.
#[derive(Args, Debug)]
pub(crate) struct NotesArgs {
    /// Who or what the notes are about: you, or this workspace
    #[arg(long, value_enum, default_value_t = About::User)]
    about: About,

    /// Workspace, if it is not the current directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    workspace: Option<PathBuf>,

    /// Add a note; may be repeated
    #[arg(long, value_name = "TEXT")]
    add: Vec<String>,

    /// Replace a note with another; may be repeated
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"])]
    replace: Vec<String>,

    /// Remove a note; may be repeated
    #[arg(long, value_name = "TEXT")]
    remove: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum About {
    /// You, in every workspace
    User,
    /// This workspace
    Workspace,
}

pub(crate) fn run(args: &NotesArgs, context: &Context) -> Result<Exit, Error> {
    let changes = changes(args, context)?;
    let settings = super::memory_settings(context)?;
    let about = if args.workspace.is_some() { About::Workspace } else { args.about };
    let place = match &args.workspace {
        Some(named) => directory(named)?,
        None => current_directory()?,
    };
    let place = place.display().to_string();
    let (scope, limit) = match about {
        About::User => (Scope::User, settings.user_limit),
        About::Workspace => (Scope::Workspace(&place), settings.workspace_limit),
    };
    let notes = if changes.is_empty() {
        let store = open_existing(&context.paths()?)?;
        match engine::find_owner(&store)? {
            Some(owner) => store.read(|tx| notes::read(tx, owner, scope))?,
            None => Vec::new(),
        }
    } else {
        humans_only::require("changing memories")?;
        let (store, owner) = engine::open_store(&context.paths()?)?;
        let changed =
            store.write(|tx| notes::change(tx, owner, scope, &changes, super::SOURCE, limit))?;
        changed.map_err(|refused| {
            Error::usage(refused.to_string()).hint("Show the notes: `mainstay memory notes`")
        })?
    };
    let size = notes::size(notes.iter().map(|note| note.text.as_str()));
    let about = match about {
        About::User => "you".to_owned(),
        About::Workspace => place.clone(),
    };
    let mut text = format!("Notes about {about} ({size} of {limit} characters):\n");
    text.extend(notes.iter().map(line));
    if notes.is_empty() {
        text = format!("No notes about {about}. Add one: `mainstay memory notes --add TEXT`\n");
        text = context.paths()?.completed(&text);
    }
    let data = json!({ "about": about, "notes": notes, "characters": size, "limit": limit });
    context.output.answer(&data, &text)?;
    Ok(Exit::Done)
}

fn changes(args: &NotesArgs, context: &Context) -> Result<Vec<Change>, Error> {
    let mut changes = Vec::new();
    for pair in args.replace.chunks_exact(2) {
        changes
            .push(Change::Replace { old: pair[0].clone(), new: super::worded(&pair[1], context)? });
    }
    changes.extend(args.remove.iter().cloned().map(Change::Remove));
    for text in &args.add {
        changes.push(Change::Add(super::worded(text, context)?));
    }
    Ok(changes)
}

/// A note, its further lines indented.
pub(super) fn line(note: &Note) -> String {
    format!("- {}\n", clean(&note.text).lines().collect::<Vec<_>>().join("\n  "))
}
