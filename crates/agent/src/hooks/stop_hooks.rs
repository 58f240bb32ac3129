//! The hooks of a turn that is about to end: they may send it on.

use mainstay_journal::entry::Body;

use super::answer::one_line;
use super::session_hooks::show_notices;
use super::{Moment, Payload, fire};
use crate::session::notice::{NoticeFact, notice};
use crate::turn::end::TurnStop;
use crate::turn::runner::TurnRunner;

/// How often hooks may send a turn on that was about to end.
const MOST_CONTINUES: u32 = 5;

impl TurnRunner<'_> {
    /// Asks the hooks whether the turn may end with this answer. Returns true if it goes on.
    pub(crate) async fn run_stop_hooks(&mut self, answer: &str) -> Result<bool, TurnStop> {
        let hooks = self.session.agent.settings().hooks.clone();
        // The end of a helper's turn is in the middle of the user's.
        if !hooks.any(Moment::Stop) || self.session.is_child() {
            return Ok(false);
        }
        // An answer that was paid for is durable before anything slow.
        self.commit(|_| Ok(()))?;
        let (workplace, session) = (self.session.workplace.clone(), self.session.id.to_string());
        let payload = Payload::stop(answer, self.limits.hook_continues > 0);
        let mut reply = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(TurnStop::Cancelled),
            reply = fire(&hooks, &payload, &session, &workplace) => reply,
        };
        show_notices(self.observer, std::mem::take(&mut reply.notices));
        let Some(reason) = reply.block.filter(|_| reply.halt.is_none()) else {
            return Ok(false);
        };
        if self.limits.hook_continues >= MOST_CONTINUES {
            let text =
                format!("ignored a hook that asked to continue more than {MOST_CONTINUES} times");
            show_notices(self.observer, vec![text]);
            return Ok(false);
        }
        self.limits.hook_continues += 1;
        let text = format!("a hook wants you to go on: {reason}");
        let mut bodies = vec![notice(text, &NoticeFact::HookContinued)];
        let added = reply.context.iter().map(|text| format!("a hook adds: {text}"));
        bodies.extend(added.map(Body::notice));
        self.commit_entries(bodies)?;
        let shown = format!("a hook continued the turn: {}", one_line(&reason));
        show_notices(self.observer, vec![shown]);
        Ok(true)
    }
}
