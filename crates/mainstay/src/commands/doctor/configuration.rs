//! The configuration: which model is asked, and whether there is a key for it.

use super::finding::Finding;
use crate::config::{Config, KeyFound};
use crate::error::Error;
use crate::output::Output;
use crate::paths::Paths;
use crate::wording;

const CHECK: &str = "model";

/// Looks at the models that would be asked. Nobody is contacted and nothing is run.
pub(super) fn examine(paths: &Paths, output: Output) -> Vec<Finding> {
    let next = || paths.command("config get");
    let config = match Config::load(paths, None, output) {
        Ok(config) => config,
        Err(error) => return vec![Finding::problem(CHECK, error.message, next())],
    };
    let mode = mode(&config, paths);
    let models = config.models();
    if models.is_empty() {
        let said = "none configured yet; the first run looks for one on this machine";
        return vec![mode, Finding::ok(CHECK, said)];
    }
    let profile = match config.profile() {
        Some((name, by)) => format!(", from profile {name} ({by})"),
        None => String::new(),
    };
    let judge = |(place, name): (usize, &str)| {
        let what = if place == 0 { "is the model" } else { "is a fallback" };
        let candidate = match config.candidate(name) {
            Ok(candidate) => candidate,
            Err(error) => return unusable(&error, next()),
        };
        let provider = &candidate.provider;
        let said =
            |key: &str| format!("{name} {what}, at {} with {key}{profile}", place_of(provider));
        match config.key_of(&provider.name) {
            Ok(KeyFound::At(source)) => Finding::ok(CHECK, said(&source)),
            Ok(KeyFound::NotNeeded) => Finding::ok(CHECK, said("no key")),
            Ok(KeyFound::Missing(source)) => Finding::warning(
                CHECK,
                format!("no key for {name}: {source} is not set"),
                paths.command(&format!("config key set {}", provider.name)),
            ),
            Err(error) => unusable(&error, next()),
        }
    };
    [mode].into_iter().chain(models.into_iter().enumerate().map(judge)).collect()
}

/// What is done without asking, and why.
fn mode(config: &Config, paths: &Paths) -> Finding {
    match config.usual_mode() {
        Err(error) => Finding::problem("mode", error.message, paths.command("config get")),
        Ok((mode, because)) => {
            let does = wording::mode_does(mode);
            let because = because.map_or(String::new(), |why| format!("; not auto, because {why}"));
            Finding::ok("mode", format!("{mode}, {does}{because}"))
        }
    }
}

/// An error as a finding; where its hint ends with a command, that is the next one.
fn unusable(error: &Error, next: String) -> Finding {
    let hint = error.hints.first().and_then(|hint| hint.split_once(": "));
    let next = hint
        .filter(|(_, next)| next.starts_with("chmod "))
        .map_or(next, |(_, next)| next.to_owned());
    Finding::problem(CHECK, wording::line(&error.message), next)
}

/// An address without what may be secret in it.
fn place_of(provider: &mainstay_llm::Provider) -> String {
    let mut url = provider.base_url.clone();
    // Both fail only for addresses that cannot carry them.
    let _ = url.set_password(None);
    let _ = url.set_username("");
    url.set_query(None);
    url.to_string()
}
