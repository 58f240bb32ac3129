//! `mainstay context`

use clap::Args;
use serde_json::json;

use crate::config::Overrides;
use crate::context::{Context, open_existing};
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;
use crate::wording;

/// Show what uses the tokens of a session
///
/// Shows what the next request is made of: the prompt, project instructions, tools, and the
/// conversation by kind. Figures are scaled to the provider's last count; before its first answer
/// they are estimates.
#[derive(Args, Debug)]
pub(crate) struct ContextArgs {
    /// Session to show (a prefix of its ID is enough) [default: the last one in this directory]
    id: Option<String>,
}

pub(crate) fn run(args: &ContextArgs, context: &Context) -> Result<Exit, Error> {
    let paths = context.paths()?;
    let store = open_existing(&paths)?;
    let session = super::undo::find(&store, args.id.as_deref())?;
    let workspace = std::path::Path::new(&session.workspace);
    let agent = engine::agent(context, store, session.owner, workspace, Overrides::default())?;
    let window = agent.context(session.id)?;
    let mut data = json!(window);
    data["session"] = json!(session.id);
    context.output.answer(&data, &text(&window))?;
    Ok(Exit::Done)
}

fn text(window: &mainstay_agent::Context) -> String {
    let all = window.tokens.max(1);
    let width = window.parts.iter().map(|part| part.name.chars().count()).max().unwrap_or(0);
    let width = width.max("total".len());
    let line = |name: &str, tokens: u64| {
        format!("{name:<width$}  {tokens:>9}  {:>3} %\n", share(tokens, all))
    };
    let mut text = String::new();
    for part in &window.parts {
        text.push_str(&line(&wording::unbroken(&part.name), part.tokens));
    }
    text.push_str(&line("total", window.tokens));
    if let Some(size) = window.window {
        let share = share(window.tokens, size.max(1));
        text.push_str(&format!("{share} % of the model's window of {size} tokens\n"));
    }
    if !window.largest.is_empty() {
        text.push_str("\nLargest results:\n");
        for large in &window.largest {
            let call = wording::unbroken(&format!("{} {}", large.tool, large.asked));
            text.push_str(&format!("{:>9}  {call}\n", large.tokens));
        }
    }
    text.push_str(&match &window.counted {
        Some(counted) => {
            format!(
                "\nScaled to the last count of {}, {} tokens.\n",
                wording::unbroken(&counted.model),
                counted.tokens
            )
        }
        None => "\nEstimates: no provider has counted yet.\n".to_owned(),
    });
    text
}

fn share(part: u64, all: u64) -> u64 {
    (part.saturating_mul(100) + all / 2) / all
}
