//! Rendering: from events and text to lines, and from lines to what the terminal is sent.

pub(crate) mod calls;
pub(crate) mod highlight;
pub(crate) mod live;
pub(crate) mod markdown;
pub(crate) mod paint;
pub(crate) mod screen;
pub(crate) mod status;
pub(crate) mod stream;
pub(crate) mod table;
pub(crate) mod text;
