//! `/model`: which models there are, and which one answers.

use crate::chat::conversation::Conversation;
use crate::chat::render::text::{Line, Style};
use crate::error::Error;

impl Conversation<'_> {
    pub(crate) fn model(&mut self, rest: &str) -> Result<(), Error> {
        if rest.is_empty() {
            let (now, _) = self.place.model();
            let mut lines: Vec<Line> = Vec::new();
            let mut names = self.screen.vocabulary.models.clone();
            if !names.contains(&now) {
                names.insert(0, now.clone());
            }
            for name in names {
                let (mark, style) =
                    if name == now { ("▸ ", Style::BOLD) } else { ("  ", Style::PLAIN) };
                lines.push(Line::styled(&format!("{mark}{name}"), style));
            }
            lines.push(Line::dim("  /model PROVIDER/MODEL switches to another one."));
            self.screen.lines(lines);
            return Ok(());
        }
        self.place.ask(rest)?;
        if let Some(session) = &mut self.session {
            session.ask_from_now_on(self.place.agent.clone());
        }
        self.show_model();
        self.screen.note(&format!("Now using {}", self.screen.status.model));
        Ok(())
    }
}
