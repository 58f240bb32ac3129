//! Messages and their parts.

use serde::{Deserialize, Serialize};

use crate::{Call, CallResult};

/// One message of a conversation. The system prompt stands outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// From the user, or from the harness in the user's place.
    User(Vec<Content>),
    /// From the model.
    Assistant(Vec<AssistantPart>),
    /// What came of the calls of the assistant's message before it, in the order of the calls.
    Results(Vec<CallResult>),
}

/// What a user's message or a call's result is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Words.
    Text(String),
    /// A picture.
    Image(Image),
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Such as `image/png`.
    pub media_type: String,
    /// Its bytes in base64.
    pub base64: String,
}

/// What an assistant's message is made of, in the order in which it came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssistantPart {
    /// What the model thought, where its provider shows or seals it.
    Reasoning(Reasoning),
    /// What it said.
    Text(String),
    /// A tool it asked for.
    Call(Call),
}

/// A block of reasoning. Providers demand it back unchanged, and only from the model that wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reasoning {
    /// The `provider/model` that wrote it.
    pub origin: String,
    /// What can be read of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The provider's name for the block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The provider's proof that the text is unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// The sealed form, where the provider keeps the text to itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<String>,
}

impl Content {
    /// The words of this part; a picture has none.
    pub fn text(&self) -> Option<&str> {
        match self {
            Content::Text(text) => Some(text),
            Content::Image(_) => None,
        }
    }
}
