//! Where a turn meets its memories.

use std::collections::HashSet;

use mainstay_journal::entry::{Body, Entry};
use mainstay_message::Content;
use mainstay_store::wall_millis;
use mainstay_tools::Fact;
use serde::Deserialize as _;
use tokio_util::sync::CancellationToken;

use super::{Memory, Place, Query, frame};
use crate::calls::record::nonce;
use crate::session::notice::{self, NoticeFact, RecalledMemory};
use crate::session::open::OpenSession;
use crate::session::prompt;
use crate::session::submit::Input;
use crate::{Error, Event, Observer, Recalled, Result, redaction};

/// The longest part of an input that memories are looked for by.
const LONGEST: usize = 4_000;
/// For so many memories that were told already others are looked for.
const MOST_TOLD: usize = 50;
/// So many characters of a memory are shown to a user.
const SHOWN: usize = 200;

/// The memories that a session's model was shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecalledSoFar {
    /// By name. It follows from the journal.
    names: HashSet<String>,
    /// Whether the prompt has what belongs there: an input that could not be written down is sent
    /// again.
    in_prompt: bool,
}

impl RecalledSoFar {
    /// Takes in what an entry brought.
    pub(crate) fn note(&mut self, body: &Body) {
        self.names.extend(notice::recalled(body).map(|memory| memory.id));
        match body {
            Body::Result { facts, .. } => {
                let facts = facts.iter().filter_map(|fact| Fact::deserialize(fact).ok());
                for fact in facts {
                    if let Fact::Memories { names } = fact {
                        self.names.extend(names);
                    }
                }
            }
            Body::Notice { .. }
            | Body::User { .. }
            | Body::Assistant { .. }
            | Body::End { .. }
            | Body::Compaction(_)
            | Body::Restored { .. } => {}
        }
    }

    /// Begins anew with what a model is still shown: a memory that a compaction replaced may come
    /// again.
    pub(crate) fn restart<'a>(&mut self, shown: impl Iterator<Item = &'a Entry>) {
        self.names.clear();
        shown.for_each(|entry| self.note(&entry.body));
    }

    fn knows(&self, name: &str) -> bool {
        self.names.contains(name)
    }
}

impl OpenSession {
    /// Brings what memories have to say to an input: into the prompt, where the session begins, and
    /// beside the input, where it waits in `pending_notices`.
    pub(crate) async fn recall_memories(
        &mut self,
        input: &Input,
        cancel: &CancellationToken,
    ) -> Result<Recall> {
        let parts = self.agent.parts.clone();
        let settings = &parts.settings.memory;
        let words: Vec<&str> = input.content.iter().filter_map(Content::text).collect();
        let mut text = words.join("\n");
        text.truncate(text.floor_char_boundary(LONGEST));
        let (session, workplace) = (self.id.to_string(), self.workplace.clone());
        let place = Place { session: &session, workspace: &workplace.workspace };
        // A child has the prompt of the session that began it.
        let begins = self.lineage.is_new && !self.is_child() && !self.recalled.in_prompt;
        let looks = settings.recall && settings.limit > 0 && !text.trim().is_empty();
        // One that was told already must not take the place of one that was not.
        let limit = settings.limit + self.recalled.names.len().min(MOST_TOLD);
        let answers = parts.memory.ask(|provider| {
            let query = Query { text: &text, limit, place };
            Box::pin(async move {
                let prompt = if begins { provider.prompt(place).await? } else { None };
                if !looks {
                    return Ok((prompt, Vec::new()));
                }
                // The turn finds out itself that it is cancelled; a session without its notes is none.
                let found = tokio::select! {
                    biased;
                    () = cancel.cancelled() => Vec::new(),
                    found = provider.recall(query) => found?,
                };
                Ok((prompt, found))
            })
        });
        let answers = answers.await;
        let (mut notices, mut prompts, mut found) = (Vec::new(), Vec::new(), Vec::new());
        for answered in answers {
            let name = answered.provider.name().to_owned();
            match answered.answer {
                Ok((prompt, memories)) => {
                    prompts.extend(prompt.map(|text| (name.clone(), text)));
                    found.extend(memories.into_iter().map(|memory| (name.clone(), memory)));
                }
                Err(words) if begins && answered.provider.is_essential() => {
                    return Err(Error::Memory(words));
                }
                Err(words) => notices.push(words),
            }
        }
        let found = self.chosen(found);
        if !found.is_empty() {
            let now = wall_millis();
            let text = frame::recalled(&found, &nonce(), now);
            let memories = found.iter().map(|(provider, memory)| RecalledMemory {
                id: frame::name(provider, &memory.id),
                text: frame::on_one_line(&frame::described(memory, now), SHOWN),
                from_outside: memory.outside.then(|| provider.clone()),
            });
            let fact = NoticeFact::Recalled { memories: memories.collect() };
            let mut body = notice::notice(text, &fact);
            redaction::body(&parts.settings.redactor, &mut body);
            self.pending_notices.push(body);
        }
        let memories = found.iter().map(|(provider, memory)| Recalled {
            id: frame::name(provider, &memory.id),
            text: frame::on_one_line(&memory.text, SHOWN),
        });
        self.recalled.in_prompt |= begins;
        let recall = Recall { memories: memories.collect(), notices };
        if !prompts.is_empty() {
            let window = self.agent.window();
            let mut text = frame::remembered(&prompts, &nonce(), prompt::room(window));
            parts.settings.redactor.string(&mut text);
            prompt::insert_before_instructions(&mut self.conversation.prompt, &text);
            self.conversation.size.add_prompt(text.len());
        }
        Ok(recall)
    }

    /// The best of what was found and not told yet.
    fn chosen(&self, mut found: Vec<(String, Memory)>) -> Vec<(String, Memory)> {
        let settings = &self.agent.settings().memory;
        found.retain(|(provider, memory)| {
            memory.score >= settings.least_score
                && !memory.text.trim().is_empty()
                && !self.recalled.knows(&frame::name(provider, &memory.id))
        });
        found.sort_by(|(_, left), (_, right)| right.score.total_cmp(&left.score));
        // Two providers may know the same.
        let mut texts = HashSet::new();
        found.retain(|(_, memory)| texts.insert(memory.text.trim().to_owned()));
        found.truncate(settings.limit);
        found
    }
}

/// The memories that came into a session unasked, with the beginning of each.
pub fn recalled(entries: &[Entry]) -> Vec<Recalled> {
    let memories = entries.iter().flat_map(|entry| notice::recalled(&entry.body));
    memories.map(|memory| Recalled { id: memory.id, text: memory.text }).collect()
}

/// What a user is to know of memories when a turn begins.
#[derive(Default)]
pub(crate) struct Recall {
    memories: Vec<Recalled>,
    notices: Vec<String>,
}

impl Recall {
    pub(crate) fn announce(self, observer: Observer<'_>) {
        for message in self.notices {
            observer(Event::Notice { about: "memory", message, void: false });
        }
        if !self.memories.is_empty() {
            observer(Event::Recalled { memories: self.memories });
        }
    }
}
