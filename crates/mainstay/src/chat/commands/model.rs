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
            lines.push(Line::dim("  /model PROVIDER/MODEL asks another one from now on."));
            self.screen.lines(lines);
            return Ok(());
        }
        self.place.ask(rest)?;
        if let Some(work) = &mut self.work {
            work.ask_from_now_on(self.place.agent.clone());
        }
        let (model, window) = self.place.model();
        self.screen.note(&format!("{model} is asked from now on"));
        (self.screen.status.model, self.screen.status.window) = (model, window);
        Ok(())
    }
}
