//! The tools of a server, and what comes of calling one, in types of our own.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value};

/// A tool of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What the server says about it.
    pub description: String,
    /// The schema of its arguments, an object.
    pub parameters: Map<String, Value>,
}

/// What came of calling a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Its words, one part after the other. What is no text is named in a word.
    pub texts: Vec<String>,
    /// What it says as data, where it does.
    pub structured: Option<Value>,
    /// Whether the tool says that it failed.
    pub failed: bool,
}

impl From<rmcp::model::Tool> for Tool {
    fn from(tool: rmcp::model::Tool) -> Self {
        Self {
            name: tool.name.into_owned(),
            description: tool.description.unwrap_or_default().into_owned(),
            parameters: (*tool.input_schema).clone(),
        }
    }
}

impl From<CallToolResult> for Answer {
    fn from(result: CallToolResult) -> Self {
        let texts = result.content.into_iter().map(|block| match block {
            ContentBlock::Text(text) => text.text,
            ContentBlock::Image(image) => format!("[a picture: {}]", image.mime_type),
            ContentBlock::Audio(audio) => format!("[a sound: {}]", audio.mime_type),
            ContentBlock::ResourceLink(link) => link.uri,
            _ => "[a resource]".to_owned(),
        });
        Self {
            texts: texts.collect(),
            structured: result.structured_content,
            failed: result.is_error.unwrap_or(false),
        }
    }
}
