//! Where words of a session came from, for tools that leave something to later ones.

use std::sync::{Arc, Mutex};

use mainstay_store::lock;

use crate::Fact;

/// Where the first words came from that nobody at hand wrote. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Outside(Arc<Mutex<Option<String>>>);

impl Outside {
    /// Takes note of what a call left.
    pub fn note(&self, fact: &Fact) {
        if let Fact::Outside { origin } = fact {
            let mut first = lock(&self.0);
            first.get_or_insert_with(|| origin.clone());
        }
    }

    /// Where they came from. Returns `None` if there are none.
    pub fn first(&self) -> Option<String> {
        lock(&self.0).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_place_is_known_to_all_who_share_it() {
        let outside = Outside::default();
        let shared = outside.clone();
        shared.note(&Fact::InDoubt);
        assert_eq!(outside.first(), None);
        for origin in ["example.org", "example.com"] {
            shared.note(&Fact::Outside { origin: origin.to_owned() });
        }
        assert_eq!(outside.first().as_deref(), Some("example.org"));
    }
}
