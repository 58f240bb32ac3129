//! The hooks of a session: when it is taken up, and when the user sends something.

use mainstay_journal::entry::Body;
use mainstay_message::Content;
use tokio_util::sync::CancellationToken;

use super::{Moment, Payload, fire};
use crate::session::open::OpenSession;
use crate::session::submit::Input;
use crate::{Error, Event, Observer, Result};

impl OpenSession {
    /// Runs the hooks of a session that is taken up, and those of what the user sent, if anything.
    /// Returns what the user is to know; what the model is to know waits in `pending_notices`.
    pub(crate) async fn run_session_hooks(
        &mut self,
        input: Option<&Input>,
        cancel: &CancellationToken,
    ) -> Result<Vec<String>> {
        if self.is_child() {
            // The user did not begin a helper's session, nor write its task.
            return Ok(Vec::new());
        }
        let hooks = self.agent.settings().hooks.clone();
        let mut payloads = Vec::new();
        if !std::mem::replace(&mut self.start_hooks_ran, true) && hooks.any(Moment::SessionStart) {
            let source = if self.lineage.is_new { "startup" } else { "resume" };
            payloads.push(Payload::session(source));
        }
        if let Some(input) = input
            && hooks.any(Moment::UserPromptSubmit)
        {
            let texts: Vec<&str> = input.content.iter().filter_map(Content::text).collect();
            payloads.push(Payload::prompt(&texts.join("\n")));
        }
        let mut notices = Vec::new();
        for payload in payloads {
            let (session, workplace) = (self.id.to_string(), self.workplace.clone());
            let reply = tokio::select! {
                biased;
                // The turn finds out itself that it is cancelled.
                () = cancel.cancelled() => return Ok(notices),
                reply = fire(&hooks, &payload, &session, &workplace) => reply,
            };
            notices.extend(reply.notices);
            let redactor = self.agent.redactor();
            let added = reply.context.iter().map(|text| {
                let text = redactor.text(text);
                Body::notice(format!("a hook adds: {text}"))
            });
            self.pending_notices.extend(added);
            if let Some(reason) = reply.halt.or(reply.block)
                && input.is_some()
            {
                let reason = redactor.text(&reason).into_owned();
                self.pending_notices.clear();
                return Err(Error::Blocked(reason));
            }
        }
        Ok(notices)
    }
}

/// Shows a user what hooks want known.
pub(crate) fn show_notices(observer: Observer<'_>, notices: Vec<String>) {
    for message in notices {
        observer(Event::Notice { about: "hook", message, void: false });
    }
}
