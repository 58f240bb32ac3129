//! Which tools of a server recall and remember, and how they are called.

use mainstay_tools::mcp::Tool;
use serde_json::{Map, Value};

use super::super::{ProviderError, Reply};

/// What the configuration says; the rest is chosen by what the server says of its tools.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// The tool that finds memories.
    pub recall_tool: Option<String>,
    /// The argument that is given the words to look for.
    pub recall_argument: Option<String>,
    /// The tool that keeps one.
    pub remember_tool: Option<String>,
    /// The argument that is given its text.
    pub remember_argument: Option<String>,
    /// The tool that forgets one, which is named in its argument `id` or the only one it must have.
    pub forget_tool: Option<String>,
    /// Arguments that tools get besides, where they have them.
    pub arguments: Map<String, Value>,
}

/// What was chosen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choice {
    /// How memories are found.
    pub recall: Option<ChosenTool>,
    /// How one is kept.
    pub remember: Option<ChosenTool>,
    /// How one is forgotten.
    pub forget: Option<ChosenTool>,
}

/// A tool and the arguments that mean something here.
#[derive(Clone, Debug, PartialEq)]
pub struct ChosenTool {
    /// The tool.
    pub tool: String,
    argument: String,
    /// The argument that says how many are wanted.
    limit: Option<String>,
    /// What else it is given.
    besides: Map<String, Value>,
}

/// Names of tools that find memories, the likeliest first, and words that others have in theirs.
const RECALL: [&str; 12] = [
    "recall",
    "search_memory",
    "search_memories",
    "memory_search",
    "recall_memory",
    "retrieve_memory",
    "search_nodes",
    "search_memory_facts",
    "search_facts",
    "search_notes",
    "qdrant-find",
    "search",
];
const RECALL_WORDS: [&str; 5] = ["recall", "search", "find", "retrieve", "query"];
/// The same for tools that keep one.
const REMEMBER: [&str; 9] = [
    "remember",
    "add_memory",
    "add_memories",
    "memory_add",
    "store_memory",
    "save_memory",
    "create_memory",
    "memory_store",
    "qdrant-store",
];
const REMEMBER_WORDS: [&str; 4] = ["remember", "store", "save", "add"];
/// Arguments that words are given in.
const QUERIES: [&str; 6] = ["query", "q", "text", "question", "search_query", "input"];
const TEXTS: [&str; 8] =
    ["text", "content", "memory", "information", "fact", "note", "data", "message"];
const LIMITS: [&str; 8] =
    ["limit", "top_k", "k", "n_results", "num_results", "max_results", "max_facts", "count"];

impl Choice {
    /// Chooses among the tools of a server.
    pub(super) fn among(tools: &[Tool], wishes: &Wishes) -> Reply<Self> {
        let recall = ToolHints { names: &RECALL, words: &RECALL_WORDS, arguments: &QUERIES };
        let remember = ToolHints { names: &REMEMBER, words: &REMEMBER_WORDS, arguments: &TEXTS };
        let forget = ToolHints { names: &[], words: &[], arguments: &["id", "memory_id", "uuid"] };
        let named = |tool: &Option<String>, argument: &Option<String>, hints: &ToolHints<'_>| {
            choose(tools, tool.as_deref(), argument.as_deref(), hints, &wishes.arguments)
        };
        Ok(Self {
            recall: named(&wishes.recall_tool, &wishes.recall_argument, &recall)?,
            remember: named(&wishes.remember_tool, &wishes.remember_argument, &remember)?,
            forget: named(&wishes.forget_tool, &None, &forget)?,
        })
    }
}

impl ChosenTool {
    /// The arguments of a call.
    pub(super) fn arguments(&self, words: &str, limit: Option<usize>) -> Map<String, Value> {
        let mut arguments = self.besides.clone();
        arguments.insert(self.argument.clone(), words.into());
        if let (Some(name), Some(limit)) = (&self.limit, limit) {
            arguments.insert(name.clone(), limit.into());
        }
        arguments
    }
}

/// What a tool is recognised by if the configuration does not name it.
struct ToolHints<'a> {
    names: &'a [&'a str],
    words: &'a [&'a str],
    arguments: &'a [&'a str],
}

fn choose(
    tools: &[Tool],
    tool: Option<&str>,
    argument: Option<&str>,
    hints: &ToolHints<'_>,
    besides: &Map<String, Value>,
) -> Reply<Option<ChosenTool>> {
    if let Some(name) = tool {
        let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
            return Err(ProviderError(format!("it has no tool `{name}`; it has {}", names(tools))));
        };
        // What is named is used as it is named, whatever its schema says.
        let argument = argument.map(str::to_owned).or_else(|| argument_of(tool, hints.arguments));
        let argument = argument.ok_or_else(|| {
            ProviderError(format!(
                "cannot tell which argument of its tool `{name}` to use: name it"
            ))
        })?;
        return Ok(Some(used(tool, argument, besides)));
    }
    let fits = |tool: &&Tool| -> Option<ChosenTool> {
        let argument = match argument {
            Some(argument) => has(tool, argument).then(|| argument.to_owned())?,
            None => argument_of(tool, hints.arguments)?,
        };
        let others = required(tool).filter(|name| *name != argument);
        let given = others.into_iter().all(|name| besides.contains_key(name));
        given.then(|| used(tool, argument, besides))
    };
    let by_name =
        hints.names.iter().filter_map(|name| tools.iter().find(|tool| tool.name == *name));
    let by_word = hints
        .words
        .iter()
        .flat_map(|word| tools.iter().filter(move |tool| tool.name.to_lowercase().contains(word)));
    Ok(by_name.chain(by_word).find_map(|tool| fits(&tool)))
}

fn used(tool: &Tool, argument: String, besides: &Map<String, Value>) -> ChosenTool {
    let limit = LIMITS.iter().find(|name| has(tool, name)).map(|name| (*name).to_owned());
    let given = besides.iter().filter(|(name, _)| has(tool, name));
    let besides = given.map(|(name, value)| (name.clone(), value.clone())).collect();
    ChosenTool { tool: tool.name.clone(), argument, limit, besides }
}

/// The argument that words belong into: one of the usual names, or the only text that it must have.
fn argument_of(tool: &Tool, usual: &[&str]) -> Option<String> {
    if let Some(name) = usual.iter().find(|name| has(tool, name)) {
        return Some((*name).to_owned());
    }
    let mut texts = required(tool).filter(|name| {
        properties(tool).and_then(|all| all.get(*name)?.get("type")?.as_str()) == Some("string")
    });
    match (texts.next(), texts.next()) {
        (Some(only), None) => Some(only.to_owned()),
        _ => None,
    }
}

fn properties(tool: &Tool) -> Option<&Map<String, Value>> {
    tool.parameters.get("properties")?.as_object()
}

fn has(tool: &Tool, name: &str) -> bool {
    properties(tool).is_some_and(|all| all.contains_key(name))
}

fn required(tool: &Tool) -> impl Iterator<Item = &str> {
    let named = tool.parameters.get("required").and_then(Value::as_array);
    named.into_iter().flatten().filter_map(Value::as_str)
}

fn names(tools: &[Tool]) -> String {
    const SHOWN: usize = 12;
    let mut names: Vec<String> =
        tools.iter().take(SHOWN).map(|tool| format!("`{}`", tool.name)).collect();
    if tools.len() > SHOWN {
        names.push("more".to_owned());
    }
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, properties: &[&str], required: &[&str]) -> Tool {
        let all: Map<String, Value> = properties
            .iter()
            .map(|name| ((*name).to_owned(), json!({ "type": "string" })))
            .collect();
        let parameters = json!({ "type": "object", "properties": all, "required": required });
        Tool {
            name: name.to_owned(),
            description: String::new(),
            parameters: parameters.as_object().unwrap().clone(),
        }
    }

    /// The tool and the arguments that are chosen to recall and to remember.
    fn chosen(tools: &[Tool], wishes: &Wishes) -> Vec<String> {
        let choice = Choice::among(tools, wishes).unwrap();
        let outline = |used: &Option<ChosenTool>, words, limit| match used {
            None => "none".to_owned(),
            Some(used) => {
                format!("{} {}", used.tool, Value::Object(used.arguments(words, limit)))
            }
        };
        vec![outline(&choice.recall, "w", Some(5)), outline(&choice.remember, "t", None)]
    }

    #[test]
    fn the_usual_memory_servers_need_no_names() {
        let wishes = Wishes::default();
        let official = [
            tool("create_entities", &["entities"], &["entities"]),
            tool("read_graph", &[], &[]),
            tool("search_nodes", &["query"], &["query"]),
        ];
        assert_eq!(chosen(&official, &wishes), [r#"search_nodes {"query":"w"}"#, "none"]);
        let qdrant = [
            tool("qdrant-store", &["information", "metadata"], &["information"]),
            tool("qdrant-find", &["query"], &["query"]),
        ];
        let expected = [r#"qdrant-find {"query":"w"}"#, r#"qdrant-store {"information":"t"}"#];
        assert_eq!(chosen(&qdrant, &wishes), expected);
        let other = [
            tool("vault_lookup_and_search", &["what", "limit"], &["what"]),
            tool("note_save", &["content"], &["content"]),
        ];
        let expected =
            [r#"vault_lookup_and_search {"what":"w","limit":5}"#, r#"note_save {"content":"t"}"#];
        assert_eq!(chosen(&other, &wishes), expected);
        assert_eq!(chosen(&[], &wishes), ["none", "none"]);
    }

    #[test]
    fn what_is_named_is_used_and_what_must_be_given_is() {
        let tools = [
            tool("find", &["query", "user_id"], &["query", "user_id"]),
            tool("keep", &["title", "body"], &["title", "body"]),
        ];
        assert_eq!(chosen(&tools, &Wishes::default()), ["none", "none"]);
        let arguments = json!({ "user_id": "me", "title": "from Mainstay" });
        let wishes = Wishes {
            remember_tool: Some("keep".to_owned()),
            remember_argument: Some("body".to_owned()),
            arguments: arguments.as_object().unwrap().clone(),
            ..Wishes::default()
        };
        let expected = [
            r#"find {"user_id":"me","query":"w"}"#,
            r#"keep {"title":"from Mainstay","body":"t"}"#,
        ];
        assert_eq!(chosen(&tools, &wishes), expected);
        let gone = Wishes { recall_tool: Some("gone".to_owned()), ..Wishes::default() };
        let words = Choice::among(&tools, &gone).unwrap_err().0;
        assert_eq!(words, "it has no tool `gone`; it has `find`, `keep`");
        let unclear = Wishes { remember_tool: Some("keep".to_owned()), ..Wishes::default() };
        assert!(Choice::among(&tools, &unclear).unwrap_err().0.ends_with("name it"));
    }
}
