//! OpenAI's chat completions, and what most other providers and servers speak.

mod decode;
mod encode;

pub(crate) use decode::Decoder;
pub(crate) use encode::{Tool, encode};
