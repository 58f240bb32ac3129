//! The tables of the agent, and everything that a store of the agent has.

use mainstay_journal::{JOURNAL, SEARCH};
use mainstay_memory::MEMORY;
use mainstay_store::{Component, Migration, Schema};

use crate::approvals::{questions, requests};
use crate::budget::{self, reservations};
use crate::skills::SKILLS;
use crate::snapshots;

/// The tables of the agent. A new table is a new migration at the end of this list.
pub const AGENT: Component = Component {
    name: "agent",
    migrations: &[
        Migration::Both(budget::TABLES),
        Migration::Both(requests::TABLES),
        Migration::Both(questions::TABLES),
        Migration::Both(snapshots::TABLES),
        Migration::Both(reservations::TABLES),
        Migration::Both(requests::SEALS),
    ],
};

/// The components of a store that an agent works with, in the order in which they are made.
pub const COMPONENTS: &[Component] = &[JOURNAL, SEARCH, AGENT, MEMORY, SKILLS];

/// The schema of a store that an agent works with.
pub fn schema() -> Schema {
    Schema::new(COMPONENTS)
}
