//! OpenAI's responses, stateless: nothing is kept there, sealed reasoning travels with us.

mod decode;
mod encode;

pub(crate) use decode::Decoder;
pub(crate) use encode::encode;
