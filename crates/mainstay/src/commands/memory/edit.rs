//! `mainstay memory edit`

use clap::Args;
use mainstay_memory::facts::{self, Change, Changed};
use serde_json::json;

use crate::context::{Context, open_existing};
use crate::error::Error;
use crate::exit::Exit;
use crate::{engine, humans_only};

/// Change a fact
///
/// What you do not pass stays the same. Notes are changed with `mainstay memory notes`.
#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub(crate) struct EditArgs {
    /// Number of the fact
    id: String,

    /// New text
    text: Option<String>,

    /// New category
    #[arg(long)]
    category: Option<String>,

    /// New tag, in place of the old ones; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
}

pub(crate) fn run(args: &EditArgs, context: &Context) -> Result<Exit, Error> {
    humans_only::require("changing memories")?;
    let id = super::fact_id(&args.id)?;
    if args.text.is_none() && args.category.is_none() && args.tags.is_empty() {
        return Err(Error::usage("no changes given")
            .hint(format!("Pass the new text: `mainstay memory edit {id} TEXT`")));
    }
    let content = args.text.as_deref().map(|text| super::worded(text, context)).transpose()?;
    let tags = (!args.tags.is_empty()).then(|| args.tags.clone());
    let change = Change { content, category: args.category.clone(), tags, entities: None };
    let store = open_existing(&context.paths()?)?;
    let owner = engine::existing_owner(&store, "fact", &args.id)?;
    let (changed, text) = match store.write(|tx| facts::update(tx, owner, id, &change))? {
        Changed::Made => (true, format!("Changed fact {id}.\n")),
        Changed::Same => (false, format!("Fact {id} is already like that.\n")),
        Changed::Taken(other) => {
            return Err(Error::usage(format!(
                "fact {other} already says that; nothing was changed"
            ))
            .hint(format!("Forget this one: `mainstay memory forget {id}`")));
        }
        Changed::Absent => return Err(super::no_fact(id)),
    };
    context.output.answer(&json!({ "id": id.number(), "changed": changed }), &text)?;
    Ok(Exit::Done)
}
