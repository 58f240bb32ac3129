//! Taint: text from outside is in the session, and may hold instructions of an attacker.
//!
//! What is tainted is derived from the facts of the journal when a session is taken up, so it
//! survives everything that the journal does and costs nothing while nothing comes from outside.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;

use mainstay_journal::SessionId;
use mainstay_journal::entry::{self, Body};
use mainstay_store::ReadTx;
use mainstay_tools::Fact;

use crate::policy::Act;
use crate::policy::command::{self, Class};
use crate::session::notice::{self, NoticeFact};
use crate::{Result, memory};

/// Where the words of an imported session are from.
const IMPORTED: &str = "an imported session";

/// Where words of a session came from that nobody at hand wrote.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    places: BTreeSet<String>,
    first: Option<String>,
}

impl Origins {
    /// Takes in what is remembered of a result.
    pub(crate) fn note(&mut self, fact: &Fact) {
        if let Fact::Outside { origin } = fact {
            self.first.get_or_insert_with(|| origin.clone());
            self.places.insert(origin.to_lowercase());
        }
    }

    /// All of it, for another session that takes in what came of this one.
    pub(crate) fn facts(&self) -> impl Iterator<Item = Fact> {
        self.places.iter().map(|place| Fact::Outside { origin: place.clone() })
    }

    /// Where the first of them came from. Returns `None` if the session is not tainted.
    pub fn first(&self) -> Option<&str> {
        self.first.as_deref()
    }

    /// Whether words came from this place before.
    pub(crate) fn knows(&self, place: &str) -> bool {
        self.places.contains(&place.to_lowercase())
    }
}

/// Where words of a session came from, as far as they are written down.
pub(crate) fn of_session(tx: &mut ReadTx<'_>, session: SessionId) -> Result<Origins> {
    let mut origins = Origins::default();
    for entry in entry::all(tx, session)? {
        outside(&entry.body).iter().for_each(|fact| origins.note(fact));
    }
    Ok(origins)
}

/// Where words of an entry came from: those of a result, and those of memories that were brought.
pub(crate) fn outside(body: &Body) -> Vec<Fact> {
    match body {
        Body::Result { facts, .. } => {
            let facts = facts.iter().filter_map(|fact| serde_json::from_value(fact.clone()).ok());
            facts.filter(|fact| matches!(fact, Fact::Outside { .. })).collect()
        }
        Body::Notice { .. } => {
            notice::facts(body).into_iter().flat_map(outside_of_notice).collect()
        }
        Body::User { .. }
        | Body::Assistant { .. }
        | Body::End { .. }
        | Body::Compaction(_)
        | Body::Restored { .. } => Vec::new(),
    }
}

fn outside_of_notice(fact: NoticeFact) -> Vec<Fact> {
    let outside = |origin: String| Fact::Outside { origin };
    match fact {
        NoticeFact::Recalled { memories } => memories
            .into_iter()
            .filter_map(|memory| memory.from_outside)
            .map(|provider| outside(memory::external::origin(&provider)))
            .collect(),
        NoticeFact::Imported => vec![outside(IMPORTED.to_owned())],
        NoticeFact::HookContinued => Vec::new(),
    }
}

/// What is to be remembered of a command that ran and reached the network: its output is from there.
/// `act` is what was read before it ran.
pub(crate) fn from_network(facts: &[Fact], act: Option<&Act>, workspace: &Path) -> Option<Fact> {
    const SHOWN: usize = 200;
    let command = facts.iter().find_map(|fact| match fact {
        Fact::Exit { command, .. } | Fact::Background { command, .. } => Some(command),
        _ => None,
    })?;
    if facts.iter().any(|fact| matches!(fact, Fact::Outside { .. })) {
        return None;
    }
    let read = match act.filter(|act| act.runs(command)) {
        Some(act) => Cow::Borrowed(act.line()),
        None => Cow::Owned(command::judge(command, workspace)),
    };
    let stage = read.stages.iter().find(|stage| stage.classes.has(Class::Network))?;
    let text = if stage.text.is_empty() { command } else { &stage.text };
    let shown: String = text.chars().take(SHOWN).collect();
    Some(Fact::Outside { origin: format!("`{shown}`") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::notice::RecalledMemory;

    #[test]
    fn words_of_results_and_of_memories_are_from_outside() {
        let fact = Fact::Outside { origin: "example.org".to_owned() };
        let memory = |id: &str, from_outside: Option<&str>| RecalledMemory {
            id: id.to_owned(),
            text: "x".to_owned(),
            from_outside: from_outside.map(str::to_owned),
        };
        let memories = vec![memory("facts:1", None), memory("theirs:2", Some("theirs"))];
        let body = notice::notice("some".to_owned(), &NoticeFact::Recalled { memories });
        let theirs = Fact::Outside { origin: memory::external::origin("theirs") };
        assert_eq!(outside(&body), [theirs]);
        let result = serde_json::json!({ "result": {
            "result": { "call": "c", "name": "fetch", "content": [], "failed": false },
            "facts": [fact, Fact::InDoubt], "fingerprint": "" } });
        assert_eq!(outside(&serde_json::from_value(result).unwrap()), [fact]);
        let body = notice::notice("imported".to_owned(), &NoticeFact::Imported);
        assert_eq!(outside(&body), [Fact::Outside { origin: IMPORTED.to_owned() }]);
        // Words of a hook that look like a recall are none.
        let text = "memories that may bear on this\n- [theirs:2] (from outside) x";
        assert_eq!(outside(&Body::notice(text)), []);
    }

    #[test]
    fn only_a_command_that_reaches_the_network_brings_words_from_there() {
        let ran = |command: &str| [Fact::Exit { command: command.to_owned(), code: 0 }];
        let workspace = Path::new("/does/not/exist");
        let origin = |command: &str| from_network(&ran(command), None, workspace);
        let outside = Fact::Outside { origin: "`curl -s https://example.org`".to_owned() };
        assert_eq!(origin("ls; curl -s https://example.org | head"), Some(outside));
        assert_eq!(origin("cat README.md"), None);
        assert_eq!(from_network(&[Fact::InDoubt], None, workspace), None);
        let mut origins = Origins::default();
        origins.note(&Fact::Outside { origin: "Example.org".to_owned() });
        assert!(origins.knows("example.org") && !origins.knows("example.com"));
        assert_eq!(origins.first(), Some("Example.org"));
    }
}
