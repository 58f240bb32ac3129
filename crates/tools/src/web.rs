//! What tools do on the network: get documents, and search.
//!
//! Every request goes through [`client`], which decides whether an address may be reached when it
//! is dialled; [`body`] bounds what comes back, [`document`] makes something readable of it.

mod address;
mod body;
mod client;
mod document;
mod fetch;
mod html;
mod place;
mod search;
#[cfg(test)]
mod tests;

pub use client::{PlaceError, Web};
pub use fetch::Fetch;
pub use search::{Engine, KeySource, WebSearch};
