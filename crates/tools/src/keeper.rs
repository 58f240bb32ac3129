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
//! The agent's side is [`Keeper`]. To cancel is to drop the future that waits.

mod brand;
mod client;
mod conversation;
mod descendants;
mod ending;
mod error;
mod gates;
mod guard;
mod held;
mod input;
mod job;
mod jobs;
mod kept;
mod kill;
mod launch;
mod link;
mod live;
mod output;
mod protocol;
mod spawn;
mod spool;
mod sweep;
mod syscalls;
mod worker;

pub use client::{Attached, Ending, Keeper, Status};
pub use conversation::{Conversation, Hold};
pub use ending::{Ended, How, Left, Shown, Why};
pub use error::KeeperError;
pub use guard::serve;
pub use job::{BACKSTOP, Job, Limits, Program, Streams};
pub use kept::is_kept;
pub use launch::Launch;
pub(crate) use spawn::{Entrance, Number, Ready};
pub use spool::{Collected, collect};
pub(crate) use syscalls::leave_child_signals_to_others;

/// The variable that names the keeper in the environment of every job, so that leftovers of a
/// keeper that was killed together with its guard can be found.
pub(crate) const KEEPER_MARK: &str = "MAINSTAY_KEEPER";
/// The variable that names the job.
pub(crate) const JOB_MARK: &str = "MAINSTAY_JOB";
