//! Anthropic's messages.

mod decode;
mod encode;

pub(crate) use decode::Decoder;
pub(crate) use encode::{encode, most};
