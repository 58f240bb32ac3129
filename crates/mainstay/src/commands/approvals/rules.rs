//! `mainstay approvals rules`

use clap::Args;
use mainstay_agent::approvals::rules::{self, RememberedRule};
use serde_json::{Value, json};

use crate::context::{Context, open_existing};
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;
use crate::wording;

/// List what you always allow
#[derive(Args, Debug)]
pub(crate) struct RulesArgs {}

pub(super) fn run(_args: &RulesArgs, context: &Context) -> Result<Exit, Error> {
    let paths = context.paths()?;
    let store = open_existing(&paths)?;
    let rules = match engine::find_owner(&store)? {
        None => Vec::new(),
        Some(owner) => store.read(|tx| rules::remembered(tx, owner))?,
    };
    let mut text = String::new();
    for rule in &rules {
        text.push_str(&format!(
            "{}  {}  {}, in {}\n",
            rule.id,
            wording::minute(rule.created_at),
            wording::line(&rule.rule.describe()),
            rule.workspace
        ));
    }
    if rules.is_empty() {
        text.push_str("No rules: you are asked each time.\n");
    } else {
        let line = "Remove one with `mainstay approvals forget ID`.\n";
        text.push_str(&paths.completed(line));
    }
    let data: Vec<Value> = rules.iter().map(data).collect();
    context.output.answer(&data, &text)?;
    Ok(Exit::Done)
}

/// A rule as data.
pub(super) fn data(rule: &RememberedRule) -> Value {
    json!({
        "id": rule.id,
        "class": rule.class,
        "rule": rule.rule,
        "words": rule.rule.describe(),
        "workspace": rule.workspace,
        "request": rule.request,
        "created_at": rule.created_at,
    })
}
