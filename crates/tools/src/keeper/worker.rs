//! What runs in the keeper's two processes: the guard, and the worker that starts the jobs and
//! answers agents.

mod connection;
mod event_loop;
mod guard;
mod held;
mod input;
mod jobs;
mod kill;
mod live;
mod output;
mod spawn;
mod spool;
mod syscalls;

pub use guard::serve;
pub(crate) use spawn::{Entrance, Number, Ready};
pub(crate) use syscalls::leave_child_signals_to_others;
