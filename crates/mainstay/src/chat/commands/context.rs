//! `/context` and `/uncompact`: what fills the context, and the last compaction taken back.

use crate::chat::conversation::Conversation;
use crate::chat::render::status::tokens;
use crate::chat::render::text::{Colour, Line, Style};
use crate::error::Error;
use crate::plain_text::clean;
use crate::wording;

impl Conversation<'_> {
    /// Shows where the tokens go.
    pub(crate) fn context(&mut self) -> Result<(), Error> {
        let Some(id) = self.place.session else {
            self.screen.note("The context is empty");
            return Ok(());
        };
        let window = self.place.agent.context(id)?;
        let all = window.tokens.max(1);
        let width = window.parts.iter().map(|part| part.name.chars().count()).max().unwrap_or(0);
        let row = |name: &str, count: u64, style: Style| {
            // A bar of at most twenty letters; the figures say the same.
            let letters = usize::try_from(count.saturating_mul(20) / all).unwrap_or(0).min(20);
            let bar = "█".repeat(letters);
            Line::styled(&format!("  {name:<width$}  {:>7}  ", tokens(count)), style)
                .and(&format!("{:>3}% ", count.saturating_mul(100) / all), Style::DIM)
                .and(&bar, Style::of(Colour::Cyan))
                .cut()
        };
        let mut lines: Vec<Line> =
            window.parts.iter().map(|part| row(&part.name, part.tokens, Style::PLAIN)).collect();
        lines.push(row("total", window.tokens, Style::BOLD));
        if let Some(size) = window.window.filter(|size| *size > 0) {
            let share = window.tokens.saturating_mul(100) / size;
            lines.push(Line::dim(&format!("  {share}% of a window of {} tokens", tokens(size))));
        }
        for large in &window.largest {
            let words = clean(&format!("{} {}", large.tool, wording::line(&large.asked)));
            lines.push(Line::dim(&format!("  {:>7}  {words}", tokens(large.tokens))).cut());
        }
        self.screen.lines(lines);
        Ok(())
    }

    /// Takes the last compaction back.
    pub(crate) fn uncompact(&mut self) -> Result<(), Error> {
        if self.place.session.is_none() {
            self.screen.note("Nothing to revert yet");
            return Ok(());
        }
        let mut session = match self.session.take() {
            Some(session) => session,
            None => self.open()?,
        };
        let restored = session.uncompact();
        self.session = Some(session);
        match restored? {
            Some(restored) => {
                self.screen.status.context = restored.tokens;
                self.screen.note(&wording::restored(&restored));
            }
            None => self.screen.note("No compaction to revert"),
        }
        Ok(())
    }
}
