//! An MCP server with memories, as a program and over HTTP: honest, or broken in some way.

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};

use crate::artifact;
use crate::web::{Page, Visit};

/// How a server behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// It answers.
    Well,
    /// It never answers a call.
    Hangs,
    /// It does not even answer the greeting.
    Dumb,
    /// It ends when it is called.
    Dies,
    /// It ends before it is greeted.
    Stillborn,
    /// It answers calls with something that is no message.
    Garbage,
    /// It answers calls with more and more of nothing.
    Floods,
    /// It answers calls with an error.
    Refuses,
}

impl Mood {
    /// All of them, with their names on a command line.
    pub const ALL: [(&'static str, Mood); 8] = [
        ("well", Mood::Well),
        ("hangs", Mood::Hangs),
        ("dumb", Mood::Dumb),
        ("dies", Mood::Dies),
        ("stillborn", Mood::Stillborn),
        ("garbage", Mood::Garbage),
        ("floods", Mood::Floods),
        ("refuses", Mood::Refuses),
    ];
}

/// A server: what it knows, and what it was told.
pub struct McpServer {
    memories: Vec<String>,
    mood: Mood,
    told: Mutex<Vec<Value>>,
}

impl McpServer {
    /// A server with these memories.
    pub fn new<S: Into<String>>(memories: impl IntoIterator<Item = S>, mood: Mood) -> Self {
        let memories = memories.into_iter().map(Into::into).collect();
        Self { memories, mood, told: Mutex::default() }
    }

    /// How it behaves.
    pub fn mood(&self) -> Mood {
        self.mood
    }

    /// The calls that reached it, each with the name of the tool and its arguments.
    pub fn calls(&self) -> Vec<Value> {
        self.told.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// What an honest server answers to a message. Returns `None` if it wants no answer.
    pub fn answer(&self, message: &Value) -> Option<Value> {
        let id = message.get("id")?;
        let result = match message["method"].as_str()? {
            "initialize" => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "memories", "version": "1" },
            }),
            "ping" => json!({}),
            "tools/list" => json!({ "tools": [
                tool("search_memory", &json!({ "query": { "type": "string" }, "limit": { "type": "integer" } }), "query"),
                tool("add_memory", &json!({ "text": { "type": "string" } }), "text"),
            ]}),
            "tools/call" => {
                let call = &message["params"];
                let seen = json!({ "tool": call["name"], "arguments": call["arguments"] });
                self.told.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(seen);
                match call["name"].as_str() {
                    Some("search_memory") => {
                        let found = self.memories.iter().enumerate();
                        let found: Vec<Value> = found
                            .map(|(id, text)| json!({ "id": id.to_string(), "memory": text, "score": 0.9 }))
                            .collect();
                        text(&json!({ "results": found }).to_string())
                    }
                    _ => text("kept"),
                }
            }
            _ => {
                let error = json!({ "code": -32601, "message": "there is no such method" });
                return Some(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
            }
        };
        Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }

    /// What it answers to a request. Calls are answered with a stream of events, all else with JSON.
    pub fn page(&self, visit: &Visit) -> Page {
        let Ok(message) = serde_json::from_slice::<Value>(&visit.body) else {
            return Page::new("text/plain", "no message").status(400);
        };
        let is_call = message["method"] == "tools/call";
        match self.mood {
            Mood::Dumb => return Page::silence(),
            Mood::Stillborn => return Page::new("text/plain", "out of order").status(503),
            Mood::Hangs if is_call => return Page::silence(),
            Mood::Dies if is_call => return Page::half("{\"jsonrpc\""),
            Mood::Garbage if is_call => return Page::html("<p>Welcome!"),
            Mood::Floods if is_call => {
                return Page::endless(vec![b' '; 64 << 10], Duration::ZERO)
                    .with("content-type", "application/json");
            }
            Mood::Refuses if is_call => return Page::new("text/plain", "not you").status(403),
            _ => {}
        }
        match self.answer(&message) {
            None => Page::new("text/plain", "").status(202),
            Some(answer) if is_call => {
                Page::new("text/event-stream", format!("event: message\ndata: {answer}\n\n"))
            }
            Some(answer) => Page::json(&answer).with("mcp-session-id", "s-1"),
        }
    }
}

fn tool(name: &str, properties: &Value, required: &str) -> Value {
    let schema = json!({ "type": "object", "properties": properties, "required": [required] });
    json!({ "name": name, "description": "what it does", "inputSchema": schema })
}

fn text(words: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": words }], "isError": false })
}

/// The server as a program: `mcp-server MOOD [MEMORY…]`. It writes its calls to the file that
/// `CALLS` names, a line each.
pub fn program() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let arguments = ["--package", "mainstay-testkit", "--bin", "mcp-server"];
    BUILT
        .get_or_init(|| {
            artifact::build("the MCP server", &arguments, |message| {
                let is_it = message["target"]["name"] == "mcp-server";
                message["executable"].as_str().filter(|_| is_it).map(PathBuf::from)
            })
        })
        .clone()
}
