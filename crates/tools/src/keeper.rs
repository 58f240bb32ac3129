//! The keeper: one small process beside each agent process that owns all child processes.
//!
//! It is the same binary, re-executed ([`serve`]), and consists of two processes: the *guard* waits
//! and does nothing else; the *worker* starts the jobs. Every process that a job starts is a
//! descendant of both, and both are subreapers, so nothing can leave: what a job leaves behind falls
//! to the worker, and what a killed worker leaves behind falls to the guard, which kills it.
//!
//! A job is named by its key, the id of the call in the journal. The worker writes the key to its
//! spool before it starts the job and how the job ended after; so whoever comes later, another agent
//! or nobody for a day, can tell whether a command ran. The keeper never opens the store.
//!
//! The rooms are processes: `client` runs in the agent's process, `worker` in the keeper's, guard
//! included, and `shared` is what both know: the protocol between them and the format of the spool.
//! The agent's side is [`Keeper`]. To cancel is to drop the future that waits.

mod client;
mod shared;
mod worker;

pub use crate::shell::planned_text as planned;
pub use client::{
    Attached, Collected, Conversation, Ending, Hold, Keeper, KeeperError, KeeperFound, Launch,
    Survey, clear_up, collect, is_kept, survey,
};
pub use shared::{
    BACKSTOP, Ended, Exit, Job, KillReason, Left, Limits, Program, Shown, Status, Streams,
};
pub use worker::serve;
pub(crate) use worker::{Entrance, Number, Ready, leave_child_signals_to_others};
