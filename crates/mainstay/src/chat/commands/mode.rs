//! `/mode`: what is done without asking.

use mainstay_journal::turn::Mode;

use crate::chat::conversation::Conversation;
use crate::chat::render::text::{Line, Style};
use crate::config::mode::{named, unheld};
use crate::error::Error;
use crate::wording;

/// What Shift-Tab goes through. Saying yes to everything takes more than a key.
const CYCLE: [Mode; 3] = [Mode::Plan, Mode::Ask, Mode::Auto];

impl Conversation<'_> {
    pub(crate) fn mode(&mut self, rest: &str) -> Result<(), Error> {
        if rest.is_empty() {
            let now = self.screen.status.mode;
            let lines = Mode::ALL.into_iter().map(|mode| {
                let (mark, style) =
                    if mode == now { ("▸ ", Style::BOLD) } else { ("  ", Style::PLAIN) };
                Line::styled(&format!("{mark}{}", wording::mode(mode)), style)
                    .hanging("    ", Style::PLAIN)
            });
            let help = Line::dim("  /mode NAME or Shift-Tab changes it.");
            let lines = lines.chain([help]).collect();
            self.screen.lines(lines);
            return Ok(());
        }
        self.change_mode(named(rest)?)
    }

    /// The next mode, for whoever presses a key.
    pub(crate) fn next_mode(&mut self) -> Result<(), Error> {
        let now = self.screen.status.mode;
        let here = CYCLE.iter().position(|mode| *mode == now);
        self.change_mode(CYCLE[here.map_or(0, |here| (here + 1) % CYCLE.len())])
    }

    fn change_mode(&mut self, wanted: Mode) -> Result<(), Error> {
        let now = self.place.change_mode(wanted)?;
        if let Some(session) = self.session.take() {
            self.session = Some(session.with_agent(self.place.agent.clone())?);
        }
        self.show_model();
        let unheld = (wanted != now).then(|| unheld(self.place.agent.sandbox())).flatten();
        let note = match unheld {
            Some(why) => format!("Mode {} (auto cannot be had: {why})", wording::mode(now)),
            None => format!("Mode {}", wording::mode(now)),
        };
        self.screen.note(&note);
        Ok(())
    }
}
