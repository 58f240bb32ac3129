//! How files look before they are changed, so that they can be put back.
//!
//! A [`State`] says what is at a path. A whole workspace is a tree of [listings](Listing): each
//! directory's listing is an object named by its hash, and names the objects of its files and
//! directories, so that what did not change is kept once. [`Scan`] makes the tree, reading only what
//! changed since the last time; [`restore`] puts states back. This module knows files, and neither
//! turns nor the store: objects leave it and come back by their hash.
//!
//! What is not kept is said ([`Omission`]): git's own files, what is ignored and large, huge and special
//! files. Owners, times and extended attributes are not kept. A file with several names is put back
//! as a file of its own.

mod escape;
mod ignored;
mod listing;
mod look;
mod restore;
mod scan;
mod state;
#[cfg(test)]
mod tests;

pub use escape::{escaped, unescaped};
pub use listing::{Item, Listing, Signature};
pub use look::{Looked, is_closed, look};
pub use restore::{PathChange, Restored, restore, with_closed_directories};
pub use scan::{Left, Limits, Manifest, Scan, Scanned, Secret};
pub use state::{Omission, State};
