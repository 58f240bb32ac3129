//! Notices of versions that recorded a sentence and no facts.
//!
//! Their sentences are all there is, so here alone they are read: a session that was tainted by a
//! memory stays tainted. Every notice that is written now has facts, be there none, so no new words
//! come this way.

use super::notice::{NoticeFact, RecalledMemory};

/// How a sentence began that brought memories.
const RECALLED: &str = "memories that may bear on this";
/// How a memory was marked that came from outside.
const OUTSIDE: &str = " (from outside";
/// How a sentence began that sent a turn on.
const CONTINUED: &str = "a hook wants you to go on";

/// What such a sentence says.
pub(super) fn facts(text: &str) -> Vec<NoticeFact> {
    if text.starts_with(CONTINUED) {
        return vec![NoticeFact::HookContinued];
    }
    if !text.starts_with(RECALLED) {
        return Vec::new();
    }
    vec![NoticeFact::Recalled { memories: text.lines().filter_map(memory).collect() }]
}

/// A memory stood on one line behind its name, so it could not pass for another one.
fn memory(line: &str) -> Option<RecalledMemory> {
    let (id, rest) = line.strip_prefix("- [")?.split_once(']')?;
    let (provider, _) = id.split_once(':')?;
    let from_outside = rest.starts_with(OUTSIDE).then(|| provider.to_owned());
    Some(RecalledMemory { id: id.to_owned(), text: rest.trim().to_owned(), from_outside })
}
