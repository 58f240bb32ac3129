//! Which tools a model is told of: some with the first request, the rest once it asks.
//!
//! To load a tool breaks the provider's cache of the whole conversation, which costs more than its
//! description does in a hundred requests. So a tool waits only where there are too many, or where
//! the model has little room.
//!
//! What was asked for is a fact of a call's result, so the journal says it: a session that is taken
//! up, or forked, is offered the same tools, and a provider's cache is broken only by the asking.

use std::sync::Arc;

use mainstay_message::ToolSpec;
use mainstay_tools::{Exposure, MoreTools, Tool};

/// Whether a window of so many tokens is better not filled: its model is told of the most needed
/// tools only, and less of everything else.
pub(crate) fn is_small(window: u64) -> bool {
    window <= 16 * 1024
}

/// What the first request tells of tools, in bytes; those beyond it wait.
const MOST_BYTES: usize = 8 * 1024;

/// The tools of an agent, and what a model is told of them.
#[derive(Clone)]
pub struct Offer {
    tools: Vec<(String, Arc<dyn Tool>)>,
    first: Vec<ToolSpec>,
    on_demand: Vec<ToolSpec>,
}

impl Offer {
    /// Offers these tools to a model with a window of so many tokens, where that is known.
    pub fn new(tools: Vec<Arc<dyn Tool>>, window: Option<u64>) -> Self {
        let small = window.is_some_and(is_small);
        let specs: Vec<(Exposure, ToolSpec)> =
            tools.iter().map(|tool| (tool.exposure(), tool.spec())).collect();
        let always = specs.iter().filter(|(told, _)| *told == Exposure::Always);
        let mut bytes: usize = always.map(|(_, spec)| size(spec)).sum();
        let (mut first, mut on_demand) = (Vec::new(), Vec::new());
        for (told, spec) in specs {
            let waits = match told {
                Exposure::Always => false,
                Exposure::ByDefault if small || bytes + size(&spec) > MOST_BYTES => true,
                Exposure::ByDefault => {
                    bytes += size(&spec);
                    false
                }
                Exposure::OnDemand => true,
            };
            if waits { &mut on_demand } else { &mut first }.push(spec);
        }
        let mut offer = Self {
            tools: tools.into_iter().map(|tool| (tool.spec().name, tool)).collect(),
            first,
            on_demand,
        };
        if !offer.on_demand.is_empty() {
            let more = MoreTools::new(&offer.on_demand);
            offer.first.push(more.spec());
            offer.tools.push((MoreTools::NAME.to_owned(), Arc::new(more)));
        }
        offer
    }

    /// What a model is told when it has asked for these tools. They come last, in the order in which
    /// it asked; names of tools that are not there any more say nothing.
    pub fn specs(&self, loaded: &[String]) -> Vec<ToolSpec> {
        let mut specs = self.first.clone();
        for name in loaded {
            let waiting = self.on_demand.iter().find(|spec| spec.name == *name);
            specs.extend(waiting.cloned());
        }
        specs
    }

    /// The tool of a name. A model may call one that it was not told of: it knows the name.
    pub fn tool(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|(known, _)| known == name).map(|(_, tool)| tool)
    }

    /// The names of all tools.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|(name, _)| name.as_str())
    }
}

/// How many bytes of a request a tool takes.
pub(crate) fn size(spec: &ToolSpec) -> usize {
    spec.name.len() + spec.description.len() + spec.parameters.as_str().len()
}

#[cfg(test)]
mod tests {
    use futures_util::future::BoxFuture;
    use mainstay_tools::{Action, Concurrency, Invocation, Outcome, Replay, Traits};

    use super::*;

    fn names(specs: &[ToolSpec]) -> Vec<&str> {
        specs.iter().map(|spec| spec.name.as_str()).collect()
    }

    #[test]
    fn a_small_window_is_told_of_few_tools_and_can_ask_for_the_rest() {
        let offer = Offer::new(mainstay_tools::all(), Some(8_192));
        let first = offer.specs(&[]);
        assert_eq!(
            names(&first),
            ["shell", "read_file", "write_file", "edit_file", "grep", "more_tools"]
        );
        assert!(first[5].description.contains("\nglob: "), "{}", first[5].description);
        let asked = ["glob", "gone", "process"].map(str::to_owned);
        let later = offer.specs(&asked);
        assert_eq!(names(&later[..6]), names(&first), "what was told before stands as it was");
        assert_eq!(names(&later[6..]), ["glob", "process"]);
        assert!(offer.tool("glob").is_some() && offer.tool("gone").is_none());
    }

    #[test]
    fn what_is_too_much_for_the_first_request_waits() {
        let mut tools = mainstay_tools::all();
        let ours = tools.len();
        tools.extend((0..100).map(|number| -> Arc<dyn Tool> { Arc::new(Foreign(number)) }));
        let offer = Offer::new(tools, Some(200_000));
        let first = offer.specs(&[]);
        let told: usize = first.iter().map(size).sum();
        assert!(first.len() > ours && told < MOST_BYTES + 3_000, "{} tools: {told}", first.len());
        let more = first.last().unwrap();
        assert_eq!(more.name, MoreTools::NAME);
        assert!(more.description.contains("foreign_99"), "{}", more.description);
        assert_eq!(offer.names().count(), ours + 101);
    }

    /// One of many tools from elsewhere.
    struct Foreign(u32);

    impl Tool for Foreign {
        fn spec(&self) -> ToolSpec {
            ToolSpec {
                name: format!("foreign_{}", self.0),
                description: format!("Does {}. {}", self.0, "It is long to tell. ".repeat(20)),
                parameters: serde_json::json!({ "type": "object" }).into(),
            }
        }

        fn traits(&self) -> Traits {
            let wall = std::time::Duration::from_secs(1);
            Traits { replay: Replay::Pure, concurrency: Concurrency::Parallel, wall }
        }

        fn action(&self, _: &Invocation<'_>) -> Action {
            Action::Read
        }

        fn run<'a>(
            &'a self,
            _: Invocation<'a>,
            _: Option<&'a serde_json::Value>,
        ) -> BoxFuture<'a, Outcome> {
            Box::pin(async { Outcome::default() })
        }
    }

    #[test]
    fn with_room_enough_nothing_has_to_be_asked_for_twice() {
        let offer = Offer::new(mainstay_tools::all(), None);
        let all: Vec<&str> = offer.names().collect();
        assert_eq!(names(&offer.specs(&[])), all);
        // A session that began with a small window goes on with a large one.
        assert_eq!(names(&offer.specs(&["glob".to_owned()])), all);
    }
}
