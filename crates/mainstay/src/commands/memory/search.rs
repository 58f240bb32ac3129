//! `mainstay memory search`

use clap::Args;
use mainstay_memory::facts::{self, FoundFact, Query};
use serde_json::{Value, json};

use crate::context::{Context, open_existing};
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;

/// Search facts
///
/// Facts match by their words, by parts of words, and by similar subjects; trusted and recent ones
/// come first.
#[derive(Args, Debug)]
pub(crate) struct SearchArgs {
    /// What to search for
    #[arg(required = true)]
    words: Vec<String>,

    /// Only facts of this category
    #[arg(long)]
    category: Option<String>,

    /// Show at most this many facts
    #[arg(long, short = 'n', default_value_t = 10)]
    limit: usize,
}

pub(crate) fn run(args: &SearchArgs, context: &Context) -> Result<Exit, Error> {
    let text = args.words.join(" ");
    if text.trim().is_empty() {
        return Err(
            Error::usage("no search words given").hint("Pass some: `mainstay memory search WORDS`")
        );
    }
    let half_life = super::memory_settings(context)?.half_life;
    let store = open_existing(&context.paths()?)?;
    let found: Vec<FoundFact> = match engine::find_owner(&store)? {
        None => Vec::new(),
        Some(owner) => store.read(|tx| {
            let query = Query {
                category: args.category.clone(),
                limit: args.limit,
                min_trust: 0.0,
                half_life,
                ..Query::new(text.as_str(), tx.now())
            };
            facts::search(tx, owner, &query)
        })?,
    };
    let gone = super::gone(&store, found.iter().map(|found| &found.fact))?;
    let data: Vec<Value> = found
        .iter()
        .map(|found| {
            let mut data = super::data(&found.fact, &gone);
            data["score"] = json!(found.score);
            data
        })
        .collect();
    let width = super::width(found.iter().map(|found| &found.fact));
    let mut text: String =
        found.iter().map(|found| super::shown(&found.fact, &gone, width)).collect();
    if text.is_empty() {
        text.push_str("No facts found.\n");
    }
    context.output.answer(&json!({ "facts": data }), &text)?;
    Ok(Exit::Done)
}
