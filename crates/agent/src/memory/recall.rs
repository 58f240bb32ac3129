//! Where a turn meets its memories.

use std::collections::HashSet;

use mainstay_journal::entry::{Body, Entry};
use mainstay_message::Content;
use mainstay_store::wall_millis;
use tokio_util::sync::CancellationToken;

use super::{Memory, Place, Query, frame};
use crate::calls::run::nonce;
use crate::session::open::{Input, OpenSession};
use crate::{Error, Event, Observer, Recalled, Result, session::prompt};

/// The longest part of an input that memories are looked for by.
const LONGEST: usize = 4_000;
/// For so many memories that were told already others are looked for.
const MOST_TOLD: usize = 50;
/// The tool whose results bring memories too.
pub(crate) const TOOL: &str = "memory";

/// What a session was told of memories.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// Those that it was told of, by name. It follows from the journal.
    names: HashSet<String>,
    /// Whether the prompt has what belongs there: an input that could not be written down is sent
    /// again.
    with_prompt: bool,
}

impl Told {
    /// Takes note of what an entry brought.
    pub(crate) fn note(&mut self, body: &Body) {
        match body {
            Body::Notice { text } if frame::is_recall(text) => self.take(text),
            Body::Result { result, .. } if result.name == TOOL => {
                result.content.iter().filter_map(Content::text).for_each(|text| self.take(text));
            }
            _ => {}
        }
    }

    /// Begins anew with what a model is still shown: a memory that a compaction replaced may come
    /// again.
    pub(crate) fn again<'a>(&mut self, shown: impl Iterator<Item = &'a Entry>) {
        self.names.clear();
        shown.for_each(|entry| self.note(&entry.body));
    }

    fn take(&mut self, text: &str) {
        self.names.extend(frame::brought(text).map(|(name, _)| name.to_owned()));
    }

    fn knows(&self, name: &str) -> bool {
        self.names.contains(name)
    }
}

impl OpenSession {
    /// Brings what memories have to say to an input: into the prompt, where the session begins, and
    /// beside the input, where it waits in `context`.
    pub(crate) async fn recollect(
        &mut self,
        input: &Input,
        cancel: &CancellationToken,
    ) -> Result<Recollected> {
        let parts = self.agent.parts.clone();
        let settings = &parts.settings.memory;
        let words: Vec<&str> = input.content.iter().filter_map(Content::text).collect();
        let mut text = words.join("\n");
        text.truncate(text.floor_char_boundary(LONGEST));
        let (session, workplace) = (self.id.to_string(), self.workplace.clone());
        let place = Place { session: &session, workspace: &workplace.workspace };
        // A child has the prompt of the session that began it.
        let begins = self.is_new && !self.is_child() && !self.told.with_prompt;
        let looks = settings.recall && settings.limit > 0 && !text.trim().is_empty();
        // One that was told already must not take the place of one that was not.
        let limit = settings.limit + self.told.names.len().min(MOST_TOLD);
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
            let text = frame::recalled(&found, &nonce(), wall_millis());
            self.context.push(parts.settings.redactor.text(&text).into_owned());
        }
        let memories = found.iter().map(|(provider, memory)| Recalled {
            id: frame::name(provider, &memory.id),
            text: frame::on_one_line(&memory.text, 200),
        });
        self.told.with_prompt |= begins;
        let recollected = Recollected { memories: memories.collect(), notices };
        if !prompts.is_empty() {
            let window = parts.settings.chain.first().and_then(|candidate| candidate.window);
            let mut text = frame::remembered(&prompts, &nonce(), prompt::room(window));
            parts.settings.redactor.string(&mut text);
            prompt::insert_before_instructions(&mut self.prompt, &text);
            self.sizes.add_prompt(text.len());
        }
        Ok(recollected)
    }

    /// The best of what was found and not told yet.
    fn chosen(&self, mut found: Vec<(String, Memory)>) -> Vec<(String, Memory)> {
        let settings = &self.agent.parts.settings.memory;
        found.retain(|(provider, memory)| {
            memory.score >= settings.least_score
                && !memory.text.trim().is_empty()
                && !self.told.knows(&frame::name(provider, &memory.id))
        });
        found.sort_by(|(_, left), (_, right)| right.score.total_cmp(&left.score));
        // Two providers may know the same.
        let mut texts = HashSet::new();
        found.retain(|(_, memory)| texts.insert(memory.text.trim().to_owned()));
        found.truncate(settings.limit);
        found
    }
}

/// The memories that came into a session unasked, with what was said of them.
pub fn recalled(entries: &[Entry]) -> Vec<Recalled> {
    let notices = entries.iter().filter_map(|entry| match &entry.body {
        Body::Notice { text } if frame::is_recall(text) => Some(text),
        _ => None,
    });
    let lines = notices.flat_map(|text| frame::brought(text));
    lines.map(|(id, text)| Recalled { id: id.to_owned(), text: text.to_owned() }).collect()
}

/// What a user is to know of memories when a turn begins.
#[derive(Default)]
pub(crate) struct Recollected {
    memories: Vec<Recalled>,
    notices: Vec<String>,
}

impl Recollected {
    pub(crate) fn tell(self, observer: Observer<'_>) {
        for message in self.notices {
            observer(Event::Notice { about: "memory", message, void: false });
        }
        if !self.memories.is_empty() {
            observer(Event::Recalled { memories: self.memories });
        }
    }
}
