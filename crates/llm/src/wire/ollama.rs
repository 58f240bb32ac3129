//! Ollama's own format: one JSON object a line.

mod decode;
mod encode;

pub(crate) use decode::Decoder;
pub(crate) use encode::encode;
