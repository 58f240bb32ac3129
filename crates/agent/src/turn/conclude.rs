//! The end of a turn with an answer, unless there is nothing in it or a hook continues it.

use mainstay_journal::entry::Body;
use mainstay_journal::turn::Outcome;
use mainstay_llm::{Answer, Stop};

use super::answer::spoken_text;
use super::end::TurnStop;
use super::runner::TurnRunner;
use crate::Event;

/// How often a model may end its turn without a word.
const EMPTY_ANSWERS: u32 = 1;

impl TurnRunner<'_> {
    /// Ends the turn with a model's message that asks for no calls. A model that said nothing is asked
    /// once more. Returns `None` if the turn goes on.
    pub(crate) async fn finish_with(
        &mut self,
        answer: &Answer,
    ) -> Result<Option<String>, TurnStop> {
        let text = spoken_text(&answer.parts);
        if text.is_empty() {
            if self.limits.empty_answers >= EMPTY_ANSWERS {
                return Err(TurnStop::Failed(format!(
                    "{} returned an empty answer twice",
                    answer.candidate
                )));
            }
            self.limits.empty_answers += 1;
            let notice = "your last message was empty; answer, or call a tool";
            self.commit_entries(vec![Body::notice(notice)])?;
            return Ok(None);
        }
        let concluded = self.conclude(text).await?;
        if concluded.is_some() && matches!(answer.stop, Stop::Length) {
            let message = "the answer was cut at the model's limit for one answer".to_owned();
            (self.observer)(Event::Notice { about: "cut", message, void: false });
        }
        Ok(concluded)
    }

    /// Ends the turn with this answer, in the commit that writes it. Returns `None` if a hook sends
    /// the turn on.
    pub(crate) async fn conclude(&mut self, answer: String) -> Result<Option<String>, TurnStop> {
        if self.run_stop_hooks(&answer).await? {
            return Ok(None);
        }
        self.end(Outcome::Answered, None)?;
        Ok(Some(answer))
    }
}
