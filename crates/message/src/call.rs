//! Tool calls: what is offered, what is asked for, what came of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Content, Schema};

/// A tool as it is offered to a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolSpec {
    /// Its name: letters, digits, `_` and `-`.
    pub name: String,
    /// What it does, in a sentence or two.
    pub description: String,
    /// The JSON schema of its arguments, an object.
    pub parameters: Schema,
}

/// A call that a model asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Names the call within its session; a result refers to it.
    pub id: String,
    /// The tool's name, as the model wrote it.
    pub name: String,
    /// The arguments as the model wrote them: JSON if it did well.
    pub arguments: String,
    /// What the provider wants to see again with this call, such as a signature of its thoughts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Value>,
}

/// What came of a call, as the model reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallResult {
    /// The call's [`id`](Call::id).
    pub call: String,
    /// The tool's name.
    pub name: String,
    /// What the model is shown.
    pub content: Vec<Content>,
    /// Whether the call failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}
