//! Snapshots: how files were before a turn changed them, and putting them back.
//!
//! A turn that changes files is a *segment* of marks. Before a file tool changes a file, that one
//! file is saved. Before the first command of the turn that may write, the whole workspace is
//! looked at. When the turn ends or is parked, it is looked at again, so that what somebody else
//! changes later can be told from what the turn did. Marks are committed with the start of the
//! call that they are for and with the end of the turn, which are commits that happen anyway.

mod changes;
mod mark;
mod objects;
mod plan;
mod sweep;
mod take;
#[cfg(test)]
mod tests;
mod undo;

pub(crate) use mark::{TABLES, forget};
pub use plan::{Conflict, Conflicts, Plan, UndoTarget};
pub use sweep::{Retention, Swept, sweep, sweep_if_due};
pub(crate) use take::{Snapshots, UpcomingChange};
pub(crate) use undo::interrupted;
pub use undo::{ChangedTurn, Undone, changed_turns};
