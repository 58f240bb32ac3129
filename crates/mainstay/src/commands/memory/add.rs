//! `mainstay memory add`

use clap::Args;
use mainstay_memory::facts::{self, Added, NewFact};
use serde_json::json;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::{engine, humans_only};

/// Remember a fact
///
/// The same text is one fact, however often it is added. What every session should know belongs in
/// the notes: `mainstay memory notes --add TEXT`.
#[derive(Args, Debug)]
pub(crate) struct AddArgs {
    /// Fact to remember, a sentence
    text: String,

    /// Category of the fact
    #[arg(long)]
    category: Option<String>,

    /// Tag to find it by; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,

    /// Who or what it is about; may be repeated [default: the names in the text]
    #[arg(long = "entity", value_name = "NAME")]
    entities: Vec<String>,

    /// Idempotency key: the same key twice is one fact
    #[arg(long)]
    key: Option<String>,
}

pub(crate) fn run(args: &AddArgs, context: &Context) -> Result<Exit, Error> {
    humans_only::require("changing memories")?;
    let fact = NewFact {
        content: super::worded(&args.text, context)?,
        category: args.category.clone().unwrap_or_default(),
        tags: args.tags.clone(),
        entities: (!args.entities.is_empty()).then(|| args.entities.clone()),
        source: super::SOURCE.to_owned(),
        key: args.key.clone(),
    };
    let (store, owner) = engine::open_store(&context.paths()?)?;
    let added = store.write(|tx| facts::add(tx, owner, &fact))?;
    let (id, is_new) = match added {
        Added::New(id) => (id, true),
        Added::Known(id) => (id, false),
    };
    let text = if is_new {
        format!("Remembered as fact {id}.\n")
    } else {
        format!("Already known as fact {id}.\n")
    };
    context.output.answer(&json!({ "id": id.number(), "new": is_new }), &text)?;
    Ok(Exit::Done)
}
