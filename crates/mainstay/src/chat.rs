//! The chat in the terminal.

mod editor;
mod highlight;
mod history;
mod markdown;
#[cfg(test)]
mod on_screen;
mod paint;
mod stream;
mod table;
mod text;
