//! `mainstay skills trash`

use clap::Args;
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::{humans_only, wording};

/// List removed and replaced skills, or delete them for good
#[derive(Args, Debug)]
pub(crate) struct TrashArgs {
    /// Delete everything in the trash for good
    #[arg(long)]
    empty: bool,

    /// Do not ask for confirmation
    #[arg(long, short, requires = "empty")]
    yes: bool,
}

pub(super) fn run(args: &TrashArgs, context: &Context) -> Result<Exit, Error> {
    let paths = context.paths()?;
    let shelf = super::shelf(&paths);
    let trash = shelf.trash()?;
    if args.empty {
        humans_only::require("mainstay skills trash --empty")?;
        let many = wording::count(trash.len() as u64, "folder");
        let action = format!("delete {many} in the trash for good");
        let wanted = !trash.is_empty() && (args.yes || humans_only::confirm(&action)?);
        let deleted = if wanted { shelf.lock()?.empty_trash()? } else { 0 };
        let text = format!("Deleted {}.\n", wording::count(deleted as u64, "folder"));
        context.output.answer(&json!({ "deleted": deleted }), &text)?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    for trashed in &trash {
        text.push_str(&format!(
            "{}  {}  {}\n",
            wording::minute(trashed.at),
            trashed.name,
            trashed.path.display()
        ));
    }
    text.push_str(if trash.is_empty() {
        "The trash is empty.\n"
    } else {
        "Restore one: `mainstay skills restore NAME`. Delete all: `mainstay skills trash --empty`\n"
    });
    let data: Vec<Value> =
        trash.iter().map(|it| json!({ "name": it.name, "at": it.at, "path": it.path })).collect();
    context.output.answer(&data, &paths.completed(&text))?;
    Ok(Exit::Done)
}
