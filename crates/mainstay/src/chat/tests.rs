//! The chat as a whole, on a virtual screen.

pub(crate) mod virtual_screen;

mod situations;
