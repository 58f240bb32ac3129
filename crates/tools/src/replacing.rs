//! Puts a new file in the place of another, so that nobody's content is lost.
//!
//! Three kinds of others want the same file. Processes of Mainstay take turns: by a [slot](EditSlots)
//! of their home, and, where the homes differ, by a lock on the directory for the moment that counts.
//! Everybody else knows nothing of locks. So the new file is not put over the old one: the two are
//! exchanged, and what comes out is looked at. If it is what was read, it goes; if not, it is put back
//! ([`exchange`]). A process that dies in between leaves a record in its slot, by which whoever comes
//! next finishes this ([`recovery`]).
//!
//! All of it happens in a directory that is open, by names in it.

mod exchange;
mod former;
mod record;
mod recovery;
mod slots;
mod writers;

pub(crate) use exchange::{
    Content, Expected, New, Replacement, Site, Version, create, remove, replace,
};
pub(crate) use former::{Former, GivenWay};
pub use slots::EditSlots;
pub(crate) use slots::{Slot, SlotTurn};
pub(crate) use writers::Quiet;

/// A file, whatever its names: device and inode.
type Identity = (u64, u64);
