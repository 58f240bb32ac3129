//! `/processes`: what runs in the background.

use mainstay_journal::process;

use crate::chat::conversation::Conversation;
use crate::chat::render::text::{Line, Style};
use crate::error::Error;
use crate::plain_text::clean;
use crate::wording;

impl Conversation<'_> {
    pub(crate) fn processes(&mut self) -> Result<(), Error> {
        if let Some(session) = &mut self.session {
            session.look_after_processes()?;
        }
        self.count_processes();
        let mut lines: Vec<Line> = Vec::new();
        for process in self.place.processes()? {
            let (mark, state) = match (process.state, &process.ending) {
                (process::State::Running, _) => {
                    ("● ", format!("running since {}", wording::minute(process.started_at)))
                }
                (process::State::Ended, ending) => {
                    ("✗ ", format!("ended: {}", ending.as_deref().unwrap_or("unknown how")))
                }
            };
            let command = clean(&process.command);
            let command = command.lines().next().unwrap_or_default();
            let line = Line::plain(mark).and(command, Style::BOLD);
            lines.push(line.and(&format!("  {}", clean(&state)), Style::DIM).cut());
        }
        if lines.is_empty() {
            lines.push(Line::dim("Nothing is running in the background."));
        }
        self.screen.lines(lines);
        Ok(())
    }
}
