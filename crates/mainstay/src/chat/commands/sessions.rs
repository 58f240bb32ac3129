//! `/new`, `/resume`, `/fork` and `/retry`: which session is talked in, and its last turn again.

use mainstay_agent::session::manage;
use mainstay_journal::turn::{Outcome, State};

use crate::chat::conversation::Conversation;
use crate::chat::opening::message_text;
use crate::chat::render::text::{Colour, Line, Style};
use crate::chat::turn::TurnStart;
use crate::error::Error;
use crate::plain_text::clean;
use crate::wording;

impl Conversation<'_> {
    pub(crate) async fn new_session(&mut self) -> Result<(), Error> {
        self.close_session().await?;
        self.place.session = None;
        self.screen.status.context = 0;
        self.screen.status.cost = 0;
        self.load_completions();
        self.screen.note("New session; the previous one is saved");
        Ok(())
    }

    pub(crate) async fn resume(&mut self, rest: &str) -> Result<(), Error> {
        if rest.is_empty() {
            return self.list_sessions();
        }
        let session = self.place.find(rest)?;
        if self.place.session == Some(session.id) {
            self.screen.note("That is the current session");
            return Ok(());
        }
        let before = self.place.session;
        self.close_session().await?;
        self.place.turn_to(&session).await?;
        if let Err(error) = self.open_current_session() {
            // Another process has it: back to where one was.
            self.place.session = before;
            return Err(error);
        }
        self.show_model();
        Ok(())
    }

    pub(crate) fn list_sessions(&mut self) -> Result<(), Error> {
        let sessions = self.place.sessions(15)?;
        let mut lines: Vec<Line> = Vec::new();
        for (session, turn) in &sessions {
            let this = self.place.session == Some(session.id);
            let unfinished = turn.as_ref().is_some_and(|turn| turn.state != State::Ended);
            let mark = if this { "▸ " } else { "  " };
            let line = Line::plain(&format!("{mark}{}", session.id))
                .and(&format!("  {}", wording::minute(session.used_at)), Style::DIM)
                .and(if unfinished { "  unfinished" } else { "" }, Style::of(Colour::Yellow))
                .and(&format!("  {}", clean(&session.title)), Style::PLAIN);
            lines.push(line.cut());
        }
        lines.push(Line::dim(if lines.is_empty() {
            "No sessions yet."
        } else {
            "  /resume ID opens one; the start of its id is enough."
        }));
        self.screen.lines(lines);
        Ok(())
    }

    /// Goes on in a copy of the session, as it is or as it was after some turn.
    pub(crate) async fn fork(&mut self, rest: &str) -> Result<(), Error> {
        let Some(parent) = self.place.session else {
            self.screen.note("Nothing to fork yet");
            return Ok(());
        };
        let after = match rest {
            "" => None,
            number => Some(number.parse::<i64>().map_err(|_| {
                Error::usage(format!("{number:?} is not a valid turn number"))
                    .hint("/fork 2 continues as it was after the second turn.")
            })?),
        };
        let turns = self.place.find(&parent.to_string())?.turns;
        if after.is_some_and(|after| !(1..=turns).contains(&after)) {
            return Err(Error::usage(format!(
                "this session has {}",
                wording::count(u64::try_from(turns).unwrap_or(0), "turn")
            )));
        }
        let id = manage::fork(&self.place.store, parent, after)?;
        self.close_session().await?;
        let session = self.place.find(&id.to_string())?;
        self.place.turn_to(&session).await?;
        self.screen.note(&format!("Forked into session {id}; go back with /resume {parent}"));
        self.open_current_session()
    }

    pub(crate) fn retry(&mut self) -> Result<(), Error> {
        let last = self.place.last_turn()?.map(|(turn, _)| turn);
        let Some(turn) = last else {
            self.screen.note("Nothing to retry yet");
            return Ok(());
        };
        if turn.state != State::Ended || turn.outcome == Some(Outcome::Failed) {
            self.begin(TurnStart::Resume);
            return Ok(());
        }
        match self.place.last_input()? {
            Some(content) => {
                let shown = message_text(&content);
                self.begin(TurnStart::Say(content, shown));
            }
            None => self.screen.note("Nothing to retry"),
        }
        Ok(())
    }

    /// Parts with the session: what runs for it in the background ends.
    pub(crate) async fn close_session(&mut self) -> Result<(), Error> {
        if let Some(session) = self.session.take() {
            session.leave().await?;
        }
        if self.screen.status.processes > 0 {
            self.screen.note("Ended the background processes of the session");
            self.screen.status.processes = 0;
        }
        Ok(())
    }
}
