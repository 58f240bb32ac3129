//! What both sides know: the protocol between agent and keeper, the format of the spool, and how the
//! processes of a keeper are told from others.

pub(super) mod brand;
mod ending;
pub(super) mod gates;
mod job;
pub(super) mod marks;
pub(super) mod processes;
pub(super) mod protocol;
mod shown;
pub(super) mod spool;
pub(super) mod stamp;
mod status;

pub use ending::{Ended, Exit, KillReason, Left};
pub use job::{BACKSTOP, Job, Limits, Program, Streams};
pub use shown::Shown;
pub(super) use shown::{part_of, read_part};
pub use status::Status;
