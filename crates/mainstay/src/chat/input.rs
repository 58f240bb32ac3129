//! Input: what is typed, and what it means before it is sent.

pub(crate) mod completion;
pub(crate) mod editor;
pub(crate) mod files;
pub(crate) mod history;
pub(crate) mod keys;
pub(crate) mod pictures;
pub(crate) mod prompt;
