//! `mainstay models`

mod kept_lists;

use std::time::Duration;

use clap::Args;
use futures_util::future::join_all;
use mainstay_agent::budget::dollars;
use mainstay_llm::{Client, Listed, Prices};
use mainstay_store::wall_millis;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::context::Context;
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;
use crate::wording;

/// List the models of your providers
///
/// Asks the providers of your models, those with a table in config.toml, and those whose key you
/// stored with `config key set`; nobody else is contacted. Answers of remote providers are kept for
/// a day.
#[derive(Args, Debug)]
pub(crate) struct ModelsArgs {
    /// Ask again instead of using kept answers
    #[arg(long)]
    refresh: bool,
}

/// How long a provider may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a provider said.
struct ProviderModels {
    provider: String,
    models: Result<Vec<Listed>, String>,
}

pub(crate) fn run(args: &ModelsArgs, context: &Context) -> Result<Exit, Error> {
    let paths = context.paths()?;
    let here = std::env::current_dir().ok();
    let config = Config::load(&paths, here.as_deref(), context.output)?;
    let names = config.chosen_providers()?;
    if names.is_empty() {
        return Err(Error::configuration("no model is configured")
            .hint(
            "Set a model (`mainstay config set model PROVIDER/MODEL`) or a key (`mainstay config key set PROVIDER`).",
        ));
    }
    let answers = engine::block_on(async |cancel: CancellationToken| {
        tokio::select! {
            answers = ask(&names, &config, args) => answers,
            () = cancel.cancelled() => Err(Error::interrupted("stopped")),
        }
    })??;

    let lines = lines(&answers, &config);
    for one in &answers {
        if let Err(why) = &one.models {
            context.output.warning(format!("could not list the models of {}: {why}", one.provider));
        }
    }
    let problems: Vec<Value> = answers
        .iter()
        .filter_map(|one| {
            Some(json!({ "provider": one.provider, "problem": one.models.as_ref().err()? }))
        })
        .collect();
    let data = json!({ "models": lines.iter().map(Line::as_json).collect::<Vec<_>>(),
        "problems": problems });
    context.output.answer(&data, &table(&lines))?;
    let all_failed = answers.iter().all(|one| one.models.is_err());
    Ok(if all_failed { Exit::Failed } else { Exit::Done })
}

/// Asks all providers side by side.
async fn ask(
    names: &[String],
    config: &Config,
    args: &ModelsArgs,
) -> Result<Vec<ProviderModels>, Error> {
    let client = Client::new();
    let mut lists = kept_lists::read(config.home());
    let now = wall_millis();
    let asked = names.iter().map(|name| {
        let (client, lists) = (&client, &lists);
        async move {
            let provider = match config.provider(name) {
                Ok(provider) => provider,
                Err(error) => return (name, None, Err(error.message)),
            };
            let place = provider.base_url.to_string();
            // What runs on this machine changes with every download, and answers at once.
            let kept = lists.get(name).filter(|_| !args.refresh && !provider.is_loopback());
            if let Some(list) = kept.filter(|list| list.holds(&place, now)) {
                return (name, None, Ok(list.models.clone()));
            }
            let models = client.models(&provider, PATIENCE).await;
            (name, Some(place).filter(|_| !provider.is_loopback()), models)
        }
    });
    let mut answers = Vec::new();
    let mut is_new = false;
    for (name, place, models) in join_all(asked).await {
        if let (Some(place), Ok(models)) = (place, &models) {
            is_new = true;
            lists.insert(name.clone(), kept_lists::List { place, at: now, models: models.clone() });
        }
        answers.push(ProviderModels { provider: name.clone(), models });
    }
    if is_new {
        kept_lists::write(config.home(), &lists);
    }
    Ok(answers)
}

/// A line of the table.
struct Line {
    name: String,
    window: Option<u64>,
    prices: Option<Prices>,
    /// Its place among the models that are asked, from 0.
    place: Option<usize>,
}

fn lines(answers: &[ProviderModels], config: &Config) -> Vec<Line> {
    let used = config.models();
    let mut lines = Vec::new();
    for one in answers {
        for model in one.models.iter().flatten() {
            let name = wording::unbroken(&format!("{}/{}", one.provider, model.name));
            let candidate = config.candidate(&name).ok();
            let set = candidate.as_ref().and_then(|candidate| candidate.window);
            let known = candidate.as_ref().and_then(|candidate| candidate.price_list());
            let place = used.iter().position(|used| *used == name);
            let window = set.or(model.served).or(model.window);
            lines.push(Line { window, prices: model.prices.or(known), place, name });
        }
    }
    // One that is used and that nobody lists is worth knowing.
    for (place, name) in used.iter().enumerate() {
        if !lines.iter().any(|line| line.name == *name) {
            let candidate = config.candidate(name).ok();
            let window = candidate.as_ref().and_then(|candidate| candidate.window);
            let prices = candidate.as_ref().and_then(|candidate| candidate.price_list());
            lines.push(Line { name: (*name).to_owned(), window, prices, place: Some(place) });
        }
    }
    lines.sort_by(|one, other| {
        let rank = |line: &Line| (line.place.unwrap_or(usize::MAX), line.name.clone());
        rank(one).cmp(&rank(other))
    });
    lines
}

impl Line {
    fn as_json(&self) -> Value {
        let Self { name, window, prices, .. } = self;
        #[expect(clippy::cast_precision_loss, reason = "it is for reading")]
        let usd = |micros: u64| micros as f64 / 1e6;
        let prices = prices.map(|prices| {
            json!({ "input": usd(prices.input), "cached": usd(prices.cached),
                "cache_written": usd(prices.cache_written), "output": usd(prices.output) })
        });
        json!({ "name": name, "window": window, "usd_a_million_tokens": prices, "use": self.used() })
    }

    fn used(&self) -> Option<&'static str> {
        self.place.map(|place| if place == 0 { "model" } else { "fallback" })
    }
}

fn table(lines: &[Line]) -> String {
    let width = lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0).max(5);
    let row = |name: &str, window: &str, input: &str, output: &str, used: &str| {
        let line = format!("{name:<width$}  {window:>9}  {input:>9}  {output:>9}  {used}");
        format!("{}\n", line.trim_end())
    };
    let mut text = row("", "window", "in / 1M", "out / 1M", "");
    for line in lines {
        let price = |price: fn(&Prices) -> u64| match &line.prices {
            Some(prices) => dollars(i64::try_from(price(prices)).unwrap_or(i64::MAX)),
            None => "-".to_owned(),
        };
        let window = line.window.map_or("-".to_owned(), |window| window.to_string());
        let used = line.used().unwrap_or_default();
        text.push_str(&row(
            &line.name,
            &window,
            &price(|prices| prices.input),
            &price(|prices| prices.output),
            used,
        ));
    }
    text
}
