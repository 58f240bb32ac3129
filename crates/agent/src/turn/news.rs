//! What happened beside the turn since its last round: processes that ended, words of the user.

use mainstay_journal::entry::Body;
use mainstay_journal::{entry, process};
use mainstay_message::Content;

use super::runner::TurnRunner;
use crate::background::processes;
use crate::{Event, Result, budget};

impl TurnRunner<'_> {
    /// Writes down what happened beside the turn, for the model to read with the next request.
    pub(crate) fn take_in_news(&mut self) -> Result<()> {
        processes::note_endings(self.session)?;
        if self.session.has_processes {
            self.announce_ended_processes()?;
        }
        self.take_in_steering()
    }

    /// Tells the model which background processes ended.
    fn announce_ended_processes(&mut self) -> Result<()> {
        let (account, place) = (self.limits.account.clone(), self.turn.place());
        let bodies = self.commit_with(|tx, correction| {
            budget::correct(tx, &account, &correction)?;
            let mut bodies = Vec::new();
            for process in process::announce(tx, place.session, place.turn)? {
                let body = Body::notice(processes::announcement(&process));
                entry::append(tx, place.session, place.turn, &body)?;
                bodies.push(body);
            }
            Ok(bodies)
        })?;
        bodies.iter().for_each(|body| self.session.apply_entry(body));
        Ok(())
    }

    /// Takes in what the user said since the last round. Faces are told when it is written, and what
    /// is not written is not taken.
    fn take_in_steering(&mut self) -> Result<()> {
        let waiting = self.session.steering.snapshot();
        if waiting.is_empty() {
            return Ok(());
        }
        let (count, mut texts) = (waiting.len(), Vec::new());
        for content in &waiting {
            let text: Vec<&str> = content.iter().filter_map(Content::text).collect();
            texts.push(text.join("\n"));
        }
        self.commit_entries(waiting.into_iter().map(|content| Body::User { content }).collect())?;
        self.session.steering.heard(count);
        for text in texts {
            (self.observer)(Event::Steered { text });
        }
        Ok(())
    }
}
