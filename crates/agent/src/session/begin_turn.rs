//! Writing down a turn with its input, and the session where this is its first.

use mainstay_journal::entry::{self, Body};
use mainstay_journal::turn::{self, Mode, Turn};
use mainstay_journal::{TurnId, session};
use mainstay_message::Content;

use super::open::OpenSession;
use super::submit::Input;
use crate::{Error, Result, budget};

impl OpenSession {
    /// Writes down the turn: its input, what was chosen for it, its budget, and the session where this
    /// is its first turn.
    pub(crate) fn begin_turn(&mut self, key: &str, input: &Input) -> Result<Turn> {
        let (agent, id, turn) = (self.agent.clone(), self.id, TurnId::new());
        let settings = agent.settings();
        let workspace = self.workplace.workspace.display().to_string();
        let title = title(&input.content);
        let mut bodies = vec![Body::User { content: input.content.clone() }];
        bodies.append(&mut self.pending_notices);
        let before = self.last_turn.row.as_ref().and_then(|turn| turn.choices.as_ref());
        let told = mode_notice(before.map(|choices| choices.mode), settings.choices.mode);
        bodies.extend(told.map(Body::notice));
        let (lineage, prompt) = (&self.lineage, &self.conversation.prompt);
        let mut row = self.write(|tx| {
            if lineage.is_new {
                let new = session::New {
                    owner: agent.owner(),
                    workspace: &workspace,
                    prompt,
                    title: &title,
                    begun_by: lineage.parent.as_ref().map(|parent| parent.session),
                };
                session::create(tx, id, &new)?;
            } else if lineage.lacks_prompt {
                session::set_prompt(tx, id, prompt)?;
            }
            let row = turn::begin(tx, turn, id, key)?;
            turn::choose(tx, turn, &settings.choices)?;
            let session = budget::of_session(id);
            match &lineage.parent {
                Some(above) => {
                    budget::open(tx, &session, Some(&above.budget), &above.limits)?;
                }
                // A child's share stays what it was.
                None if lineage.is_child => {}
                None => {
                    budget::open(tx, &session, None, &settings.budgets.session)?;
                }
            }
            let limits = &settings.budgets.turn;
            let depth = budget::open(tx, &budget::of_turn(turn), Some(&session), limits)?;
            if depth > settings.budgets.depth {
                return Err(Error::TooDeep(depth));
            }
            for body in &bodies {
                entry::append(tx, id, turn, body)?;
            }
            Ok(row)
        })?;
        row.choices = Some(settings.choices.clone());
        self.lineage.is_new = false;
        self.lineage.lacks_prompt = false;
        self.lineage.is_child |= self.lineage.parent.take().is_some();
        self.last_turn.entries.clear();
        bodies.iter().for_each(|body| self.apply_entry(body));
        self.last_turn.row = Some(row.clone());
        Ok(row)
    }
}

/// What the model is told of a mode that says what its work is, when that begins and when it is over.
fn mode_notice(before: Option<Mode>, now: Mode) -> Option<&'static str> {
    let planned = before == Some(Mode::Plan);
    match now {
        Mode::Plan if !planned => Some(
            "plan mode: only look. Files cannot be changed, and commands run where nothing but \
             temporary files can be written, without a network. End with a plan of what you would do; \
             the user decides whether you carry it out.",
        ),
        Mode::Plan => None,
        Mode::Ask | Mode::Auto | Mode::Yes if planned => {
            Some("plan mode is over: you may change files and run commands now.")
        }
        Mode::Ask | Mode::Auto | Mode::Yes => None,
    }
}

/// The first line of an input.
fn title(content: &[Content]) -> String {
    let text = content.iter().find_map(Content::text).unwrap_or_default();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().filter(|character| *character != '\0').take(80).collect()
}
