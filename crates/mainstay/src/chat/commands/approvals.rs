//! `/approvals`: what waits for a decision, and what is always allowed.

use mainstay_agent::approvals::questions;
use mainstay_agent::approvals::requests::{self, RequestFilter};

use crate::chat::conversation::Conversation;
use crate::chat::render::text::{Colour, Line, Style};
use crate::error::Error;
use crate::plain_text::clean;
use crate::wording;

impl Conversation<'_> {
    pub(crate) fn approvals(&mut self) -> Result<(), Error> {
        let (store, owner) = (&self.place.store, self.place.owner);
        let (waiting, questions, rules) = store.read(|tx| -> mainstay_agent::Result<_> {
            let waiting = requests::list(tx, owner, RequestFilter::Waiting)?;
            let questions = questions::list(tx, owner, RequestFilter::Waiting)?;
            Ok((waiting, questions, mainstay_agent::approvals::rules::remembered(tx, owner)?))
        })?;
        let mut lines: Vec<Line> = Vec::new();
        let command = |what: String| self.place.paths.command(&what);
        for approval in &waiting {
            let request = &approval.request;
            let words = wording::line(&wording::wants(request));
            lines.push(asked(&words));
            let yes = command(format!("approve {}", request.id));
            let no = command(format!("deny {}", request.id));
            let words = format!("  in session {}; decide: {yes} or {no}", request.session);
            lines.push(Line::dim(&words).hanging("  ", Style::DIM));
        }
        for waiting in &questions {
            lines.push(asked(&wording::line(&waiting.question.text)));
            let answer = command(format!("answer {} TEXT", waiting.question.id));
            let words = format!("  in session {}; answer: {answer}", waiting.question.session);
            lines.push(Line::dim(&words).hanging("  ", Style::DIM));
        }
        if lines.is_empty() {
            lines.push(Line::dim("Nothing is waiting for a decision."));
        }
        for rule in &rules {
            let words = clean(&wording::line(&rule.rule.describe()));
            lines.push(
                Line::styled("✓ ", Style::of(Colour::Green))
                    .and(&format!("always allowed: {words}"), Style::PLAIN)
                    .and(&format!(", in {}", clean(&rule.workspace)), Style::DIM)
                    .hanging("  ", Style::PLAIN),
            );
        }
        if !rules.is_empty() {
            let forget = command("approvals forget ID".to_owned());
            lines.push(Line::dim(&format!("  Remove one: {forget}")));
        }
        self.screen.lines(lines);
        Ok(())
    }
}

fn asked(words: &str) -> Line {
    let mark = Line::styled("? ", Style::of(Colour::Yellow));
    mark.and(&clean(words), Style::BOLD).hanging("  ", Style::PLAIN)
}
