//! The `more_tools` tool: what a model is told of once it asks.

use std::time::Duration;

use futures_util::future::BoxFuture;
use mainstay_message::ToolSpec;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::tool::{Action, Concurrency, Exposure, Invocation, Replay, Tool, Traits};
use crate::{Fact, Outcome, schema};

/// The most that is told of one tool, and of all; beyond it they are named only.
const LONGEST_LINE: usize = 80;
const LONGEST_LIST: usize = 2_000;

/// Tells of tools that are seldom needed. A call brings their descriptions from the next request on;
/// the fact that it leaves makes that durable.
pub struct MoreTools {
    names: Vec<String>,
    spec: ToolSpec,
}

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    names: Vec<String>,
}

impl MoreTools {
    /// The name that a model calls.
    pub const NAME: &'static str = "more_tools";

    /// A list of tools, each with the first sentence of its description.
    pub fn new<'a>(specs: impl IntoIterator<Item = &'a ToolSpec>) -> Self {
        let specs: Vec<&ToolSpec> = specs.into_iter().collect();
        let names: Vec<String> = specs.iter().map(|spec| spec.name.clone()).collect();
        let line = |spec: &&ToolSpec| {
            let sentence = first_sentence(&spec.description);
            let end = sentence.floor_char_boundary(LONGEST_LINE);
            format!("\n{}: {}", spec.name, &sentence[..end])
        };
        let mut list: String = specs.iter().map(line).collect();
        if list.len() > LONGEST_LIST {
            list = format!("\n{}", names.join(", "));
        }
        let description =
            format!("Loads further tools by name; you can call them after that.{list}");
        let parameters = schema::parameters::<Arguments>();
        Self { names, spec: ToolSpec { name: Self::NAME.to_owned(), description, parameters } }
    }

    fn load(&self, wanted: &[String]) -> Outcome {
        let (known, unknown): (Vec<_>, Vec<_>) =
            wanted.iter().partition(|name| self.names.contains(name));
        if known.is_empty() {
            let words = format!("Nothing was loaded. Available: {}.", self.names.join(", "));
            return Outcome::failed(words);
        }
        let mut loaded: Vec<String> = Vec::new();
        for name in known {
            if !loaded.contains(name) {
                loaded.push(name.clone());
            }
        }
        let mut words = format!("Loaded: {}.", loaded.join(", "));
        if !unknown.is_empty() {
            words.push_str(&format!(
                " Not found: {}.",
                unknown.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ")
            ));
        }
        let facts = loaded.into_iter().map(|tool| Fact::Loaded { tool }).collect();
        Outcome { facts, ..Outcome::said(words) }
    }
}

impl Tool for MoreTools {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn traits(&self) -> Traits {
        Traits {
            replay: Replay::Pure,
            concurrency: Concurrency::Parallel,
            wall: Duration::from_secs(10),
        }
    }

    fn exposure(&self) -> Exposure {
        Exposure::Always
    }

    fn action(&self, _call: &Invocation<'_>) -> Action {
        Action::Read
    }

    fn run<'a>(&'a self, call: Invocation<'a>, _plan: Option<&'a Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            match schema::arguments::<Arguments>(call.arguments) {
                Ok(given) => self.load(&given.names),
                Err(outcome) => outcome,
            }
        })
    }
}

/// What a description says first, without its full stop.
fn first_sentence(description: &str) -> &str {
    let end = description.find(". ").unwrap_or(description.len());
    description[..end].trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(name: &str, description: &str) -> ToolSpec {
        ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: json!({ "type": "object" }).into(),
        }
    }

    #[test]
    fn each_tool_is_one_line_and_known_names_are_loaded_once() {
        let specs = [spec("a", "Does a. And more."), spec("b", "Does b.")];
        let more = MoreTools::new(&specs);
        assert!(more.spec().description.ends_with("\na: Does a\nb: Does b"));
        let names = ["b", "x", "b"].map(str::to_owned);
        let outcome = more.load(&names);
        assert_eq!(outcome.facts, [Fact::Loaded { tool: "b".to_owned() }]);
        assert_eq!(
            outcome,
            Outcome { facts: outcome.facts.clone(), ..Outcome::said("Loaded: b. Not found: x.") }
        );
        assert!(more.load(&["x".to_owned()]).failed);
    }

    #[test]
    fn many_tools_are_only_named() {
        let specs: Vec<ToolSpec> = (0..100)
            .map(|number| spec(&format!("tool_{number}"), &"Does much ".repeat(40)))
            .collect();
        let description = MoreTools::new(&specs[..10]).spec().description;
        assert!(description.contains("\ntool_9: Does much"), "{description}");
        let description = MoreTools::new(&specs).spec().description;
        assert!(description.len() < 2_000 && description.ends_with(", tool_99"), "{description}");
    }
}
