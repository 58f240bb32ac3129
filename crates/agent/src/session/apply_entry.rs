//! Taking an entry in: into what the model is shown, and into what code knows of the session.

use mainstay_journal::entry::Body;
use mainstay_store::wall_millis;
use mainstay_tools::Fact;

use super::open::OpenSession;
use crate::taint;

impl OpenSession {
    /// Takes in what was just said or done.
    pub(crate) fn apply_entry(&mut self, body: &Body) {
        self.apply_entry_at(body, wall_millis());
    }

    /// Takes in what was said or done at a time, in milliseconds since 1970.
    pub(crate) fn apply_entry_at(&mut self, body: &Body, at: i64) {
        self.conversation.size.add(body);
        self.apply_facts(body);
        self.conversation.transcript.push(body, at);
    }

    /// Takes in what code has to know of an entry, beside its text.
    pub(crate) fn apply_facts(&mut self, body: &Body) {
        self.recalled.note(body);
        match body {
            Body::Notice { .. } => {
                taint::outside(body).iter().for_each(|fact| self.apply_fact(fact));
            }
            Body::Result { facts, .. } => {
                for fact in facts {
                    if let Ok(fact) = serde_json::from_value::<Fact>(fact.clone()) {
                        self.apply_fact(&fact);
                    }
                }
            }
            Body::User { .. }
            | Body::Assistant { .. }
            | Body::End { .. }
            | Body::Compaction(_)
            | Body::Restored { .. } => {}
        }
    }

    fn apply_fact(&mut self, fact: &Fact) {
        self.workplace.seen.note(fact);
        self.workplace.steps.note(fact);
        self.workplace.outside.note(fact);
        self.trust.origins.note(fact);
        if let Fact::Loaded { tool } = fact {
            self.offer_tool(tool);
        }
    }

    /// Tells the model of a tool from the next request on.
    fn offer_tool(&mut self, tool: &str) {
        if self.tools.loaded.iter().any(|loaded| loaded == tool) {
            return;
        }
        self.tools.loaded.push(tool.to_owned());
        let before = self.tools.specs.len();
        self.tools.specs = self.agent.parts.offer.specs(&self.tools.loaded);
        self.conversation.size.add_tools(&self.tools.specs[before..]);
    }
}
