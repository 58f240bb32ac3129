//! What a client's messages mean: which of them commits, and which the server will answer.

use std::collections::HashMap;

use super::messages::Message;
use super::statements::commits;

/// What is known of a client's prepared statements and portals.
#[derive(Default)]
pub(super) struct Frontend {
    statements: HashMap<Vec<u8>, bool>,
    portals: HashMap<Vec<u8>, bool>,
}

impl Frontend {
    /// Says whether a message carries out a COMMIT, and remembers what it prepares.
    pub(super) fn commits(&mut self, message: &Message) -> bool {
        let mut parts = message.body().split(|byte| *byte == 0);
        let mut part = || parts.next().unwrap_or_default();
        match message.kind() {
            b'Q' => commits(part()),
            b'P' => {
                let name = part().to_vec();
                let commit = commits(part());
                self.statements.insert(name, commit);
                false
            }
            b'B' => {
                let portal = part().to_vec();
                let commit = self.statements.get(part()).copied().unwrap_or(false);
                self.portals.insert(portal, commit);
                false
            }
            b'E' => self.portals.get(part()).copied().unwrap_or(false),
            _ => false,
        }
    }
}

/// Says whether the server ends its answer to this message with "ready for query".
pub(super) fn is_answered(message: &Message) -> bool {
    matches!(message.kind(), b'Q' | b'S' | b'F')
}
