//! `/cost`: what the session and the day cost.

use mainstay_agent::budget::dollars;
use mainstay_journal::model_call::{self, By};

use crate::chat::conversation::Conversation;
use crate::chat::render::status::tokens;
use crate::chat::render::text::{Line, Style};
use crate::error::Error;
use crate::wording;

impl Conversation<'_> {
    pub(crate) fn cost(&mut self) -> Result<(), Error> {
        let mut lines = Vec::new();
        let told = |what: &str, spent: &model_call::Spent| {
            let calls = wording::count(u64::try_from(spent.calls).unwrap_or(0), "call");
            let usage = &spent.usage;
            Line::styled(&format!("  {what:<12}"), Style::BOLD)
                .and(&format!("{:<10}", dollars(spent.cost)), Style::PLAIN)
                .and(
                    &format!(
                        "{calls}, {} tokens in ({} from the cache), {} out",
                        tokens(usage.all_input()),
                        tokens(usage.cached),
                        tokens(usage.output)
                    ),
                    Style::DIM,
                )
                .hanging("              ", Style::PLAIN)
        };
        if let Some(spent) = self.place.spent()? {
            lines.push(told("session", &spent));
        }
        let day = 24 * 60 * 60 * 1000;
        let today = mainstay_store::wall_millis().div_euclid(day) * day;
        let (store, owner) = (&self.place.store, self.place.owner);
        let spent = store.read(|tx| model_call::spent(tx, owner, By::Day, today))?;
        if let Some(spent) = spent.first() {
            lines.push(told("today (UTC)", spent));
        }
        if lines.is_empty() {
            lines.push(Line::dim("Nothing spent yet."));
        }
        self.screen.lines(lines);
        Ok(())
    }
}
