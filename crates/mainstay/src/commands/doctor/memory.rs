//! Who has memories besides the store, and whether each answers.

use super::finding::Finding;
use crate::config::Config;
use crate::output::Output;
use crate::paths::Paths;
use crate::plain_text::clean;
use crate::providers;
use crate::wording;

const CHECK: &str = "memory";
/// What they are asked.
const QUESTION: &str = "what do you know of me?";

/// Asks all of them at once, each within its time.
pub(super) fn examine(paths: &Paths, output: Output) -> Vec<Finding> {
    // One that cannot be read was told of already.
    let Ok(config) = Config::load(paths, None, output.quiet()) else { return Vec::new() };
    let check = match providers::check_all(paths, &config, QUESTION) {
        Ok(check) => check,
        Err(error) => {
            let next = paths.command("config path");
            return vec![Finding::problem(CHECK, wording::line(&error.message), next)];
        }
    };
    let judge = |check: &providers::ProviderCheck| {
        let (name, place) = (&check.description.name, check.place());
        match &check.answer {
            Ok(_) => {
                let took = check.took.as_millis();
                Finding::ok(CHECK, format!("{name} answers in {took} ms ({place})"))
            }
            Err(why) => Finding::warning(
                CHECK,
                format!("{name} does not answer: {} ({place})", wording::line(&clean(why))),
                paths.command("memory providers"),
            ),
        }
    };
    check.iter().map(judge).collect()
}
