//! `mainstay skills trash`

use clap::Args;
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::{person, wording};

/// List what was removed or replaced, or delete it for good
#[derive(Args, Debug)]
pub(crate) struct TrashArgs {
    /// Delete all of it for good
    #[arg(long)]
    empty: bool,

    /// Do not ask
    #[arg(long, short, requires = "empty")]
    yes: bool,
}

pub(super) fn run(args: &TrashArgs, context: &Context) -> Result<Exit, Error> {
    let settings = context.settings()?;
    let shelf = super::shelf(&settings);
    let trash = shelf.trash()?;
    if args.empty {
        person::only("mainstay skills trash --empty")?;
        let many = wording::count(trash.len() as u64, "folder");
        let question = format!("Delete {many} in the trash for good?");
        let wanted = !trash.is_empty() && (args.yes || person::confirms(&question)?);
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
    text.push_str(match trash.is_empty() {
        true => "The trash is empty.\n",
        false => {
            "Bring one back: `mainstay skills restore NAME`. Delete all: `mainstay skills trash --empty`\n"
        }
    });
    let data: Vec<Value> =
        trash.iter().map(|it| json!({ "name": it.name, "at": it.at, "path": it.path })).collect();
    context.output.answer(&data, &settings.completed(&text))?;
    Ok(Exit::Done)
}
