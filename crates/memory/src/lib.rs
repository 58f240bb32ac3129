//! What is remembered from one session to the next: [facts] with their vectors, and
//! [notes] that every session is told.
//!
//! Functions here take a transaction and an owner, so that whatever must happen together is one
//! commit of the caller: a fact, its terms, its names and its part in a bank are written together
//! or not at all. Reading writes nothing.
//!
//! This crate owns those tables and the maths of [phase vectors](vector). It must not know models,
//! tools or terminals.

pub mod done;
pub mod entities;
mod error;
pub mod facts;
pub mod notes;
mod schema;
pub mod vector;
pub mod words;

pub use error::{Error, Result};
pub use schema::MEMORY;
