//! `mainstay memory providers`

use clap::Args;
use serde_json::{Value, json};

use crate::config::Config;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::plain_text::clean;
use crate::progress::Progress;
use crate::providers::{self, ProviderCheck};
use crate::wording;

/// List external memory providers, and check that each one answers
///
/// Asks every provider in [[memory.providers]] of config.toml, all at once, each within its time
/// limit, and shows the answers. The exit code is 0 only if all of them answered.
#[derive(Args, Debug)]
pub(crate) struct ProvidersArgs {
    /// What to ask them
    #[arg(value_name = "WORDS", default_value = "what do you know of me?")]
    words: Vec<String>,
}

/// How much of a memory is shown.
const SHOWN: usize = 100;

pub(crate) fn run(args: &ProvidersArgs, context: &Context) -> Result<Exit, Error> {
    let paths = context.paths()?;
    let config = Config::load(&paths, None, context.output)?;
    let progress = Progress::begin("asking", None);
    let check = providers::check_all(&paths, &config, &args.words.join(" "))?;
    drop(progress);

    let data: Vec<Value> = check.iter().map(data).collect();
    let mut text: String = check.iter().map(provider_lines).collect();
    if check.is_empty() {
        let place = wording::path(config.path());
        text =
            format!("No external memory providers. Add them as [[memory.providers]] to {place}.\n");
    }
    context.output.answer(&data, &text)?;
    let all = check.iter().all(|one| one.answer.is_ok());
    Ok(if all { Exit::Done } else { Exit::Failed })
}

fn provider_lines(check: &ProviderCheck) -> String {
    let description = &check.description;
    let mut traits = Vec::new();
    if description.write {
        traits.push("gets new memories");
    }
    if description.trusted {
        traits.push("trusted");
    }
    let traits =
        if traits.is_empty() { String::new() } else { format!(" ({})", traits.join(", ")) };
    let mut text = format!("{}: {}{traits}\n", description.name, check.place());
    match &check.answer {
        Err(why) => text.push_str(&format!("  does not answer: {}\n", wording::line(&clean(why)))),
        Ok((memories, choice)) => {
            let count = match memories.len() {
                0 => "nothing".to_owned(),
                1 => "1 memory".to_owned(),
                more => format!("{more} memories"),
            };
            let took = check.took.as_millis();
            let by = choice.recall.as_ref().map(|used| format!(", with its tool {}", used.tool));
            text.push_str(&format!("  answers in {took} ms{}: {count}\n", by.unwrap_or_default()));
            if description.write
                && let mainstay_agent::memory::external::ProviderKind::Server(_) = description.kind
            {
                text.push_str(&match &choice.remember {
                    Some(used) => format!("  remembers with its tool {}\n", used.tool),
                    None => "  has no tool to remember with; set remember_tool\n".into(),
                });
            }
            for memory in memories {
                let line = crate::redaction::shared().text(&memory.text).into_owned();
                let line: String = wording::line(&clean(&line)).chars().take(SHOWN).collect();
                text.push_str(&format!("    {line}\n"));
            }
        }
    }
    text
}

fn data(check: &ProviderCheck) -> Value {
    let (description, redactor) = (&check.description, crate::redaction::shared());
    let mut data = json!({
        "name": description.name,
        "place": check.place(),
        "write": description.write,
        "trusted": description.trusted,
        "answers": check.answer.is_ok(),
        "milliseconds": u64::try_from(check.took.as_millis()).unwrap_or(u64::MAX),
    });
    match &check.answer {
        Err(why) => data["reason"] = json!(redactor.text(why)),
        Ok((memories, choice)) => {
            let memories = memories.iter().map(|memory| {
                json!({ "id": memory.id, "text": redactor.text(&memory.text), "score": memory.score })
            });
            data["memories"] = memories.collect();
            data["recall_tool"] = json!(choice.recall.as_ref().map(|used| &used.tool));
            data["remember_tool"] = json!(choice.remember.as_ref().map(|used| &used.tool));
        }
    }
    data
}
