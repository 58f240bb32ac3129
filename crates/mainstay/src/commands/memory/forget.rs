//! `mainstay memory forget`

use clap::Args;
use mainstay_memory::facts::{self, Fact, FactId};
use serde_json::json;

use crate::context::{Context, open_existing};
use crate::error::Error;
use crate::exit::Exit;
use crate::plain_text::clean;
use crate::{engine, humans_only, wording};

/// Forget facts
///
/// Forgets all of them, or none if one does not exist. Notes are removed with `mainstay memory
/// notes --remove TEXT`.
#[derive(Args, Debug)]
pub(crate) struct ForgetArgs {
    /// Numbers of the facts
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

/// What became of facts that are to be forgotten.
type Forgotten = Result<Vec<Fact>, FactId>;

pub(crate) fn run(args: &ForgetArgs, context: &Context) -> Result<Exit, Error> {
    humans_only::require("changing memories")?;
    let mut ids = Vec::new();
    for typed in &args.ids {
        let id = super::fact_id(typed)?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    let store = open_existing(&context.paths()?)?;
    let owner = engine::existing_owner(&store, "fact", &args.ids[0])?;
    let forgotten = store.write(|tx| -> mainstay_memory::Result<Forgotten> {
        let mut found = Vec::new();
        for id in &ids {
            match facts::get(tx, owner, *id)? {
                Some(fact) => found.push(fact),
                None => return Ok(Err(*id)),
            }
        }
        for id in &ids {
            facts::forget(tx, owner, *id)?;
        }
        Ok(Ok(found))
    })?;
    let facts = forgotten.map_err(super::no_fact)?;
    let mut text = String::new();
    for fact in &facts {
        let content = wording::line(&clean(&fact.content));
        text.push_str(&format!("Forgot fact {}: {content}\n", fact.id));
    }
    let data: Vec<i64> = ids.into_iter().map(FactId::number).collect();
    context.output.answer(&json!({ "forgotten": data }), &text)?;
    Ok(Exit::Done)
}
