//! What is known of programs, as tables: which of their options are harmless. A program or an option
//! that stands in none of them runs code.

pub(super) mod always;
pub(super) mod changing;
pub(super) mod git;
pub(super) mod looking;
pub(super) mod reaching;
pub(super) mod wrapping;
