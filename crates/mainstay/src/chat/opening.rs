//! What is shown when a chat begins or a session is opened, and what can be completed in it.

use mainstay_journal::entry::{Body, Entry};
use mainstay_journal::turn::Turn;
use mainstay_message::{AssistantPart, Content};

use crate::chat::conversation::Conversation;
use crate::chat::place::homely;
use crate::chat::render::text::{Colour, Line, Style};
use crate::engine;
use crate::plain_text::clean;
use crate::wording;

impl Conversation<'_> {
    /// Says where one is.
    pub(crate) fn greet(&mut self) {
        self.show_model();
        let model = &self.screen.status.model;
        let head = Line::styled("Mainstay", Style::of(Colour::Cyan).strong())
            .and(&format!(" {}", env!("CARGO_PKG_VERSION")), Style::DIM)
            .and(&format!(" · {model} · {}", homely(&self.place.workspace)), Style::PLAIN);
        let mode =
            format!("Mode {}. Shift-Tab changes it.", wording::mode(self.screen.status.mode));
        let help = "Type a task. /help lists commands and keys.";
        self.screen.lines(vec![head, Line::dim(&mode), Line::dim(help)]);
        self.load_completions();
    }

    /// Shows the current model in the status line.
    pub(crate) fn show_model(&mut self) {
        let (model, window) = self.place.model();
        self.screen.status.mode = self.place.agent.choices().mode;
        self.screen.status.model = model;
        self.screen.status.window = window;
    }

    /// What can be completed.
    pub(crate) fn load_completions(&mut self) {
        let models = engine::model_names(self.place.context, &self.place.workspace);
        self.screen.vocabulary.models = models.unwrap_or_default();
        self.load_skills();
        let sessions = self.place.sessions(50).unwrap_or_default();
        self.screen.vocabulary.sessions = sessions
            .into_iter()
            .map(|(session, _)| (session.id.to_string(), clean(&session.title)))
            .collect();
    }

    /// Shows what was said last in a session that is taken up.
    pub(crate) fn show_last_turn(&mut self, turn: &Turn, entries: &[Entry]) {
        if turn.number > 1 {
            let before = u64::try_from(turn.number - 1).unwrap_or(0);
            self.screen.note(&format!("… {} before this one", wording::count(before, "turn")));
        }
        for entry in entries {
            match &entry.body {
                Body::User { content } => self.screen.user(&message_text(content)),
                Body::Assistant { parts, .. } => {
                    for part in parts {
                        if let AssistantPart::Text(text) = part {
                            self.screen.said_before(text);
                        }
                    }
                }
                Body::Compaction(made) => self.screen.note(&wording::compaction(made)),
                Body::Restored { number } => self.screen.note(&wording::taken_back(*number)),
                Body::Result { .. } | Body::Notice { .. } | Body::End { .. } => {}
            }
        }
        if let Ok(Some(spent)) = self.place.spent() {
            self.screen.status.cost = spent.cost;
        }
        if let Some(session) = &self.session {
            self.screen.status.context = u64::try_from(session.size()).unwrap_or(0);
        }
        self.count_processes();
    }
}

/// The words of a message; pictures are named.
pub(crate) fn message_text(content: &[Content]) -> String {
    let told = |part: &&Content| {
        // What a skill says follows what was typed, and is long.
        !part.text().is_some_and(|text| text.starts_with(mainstay_agent::skills::CALLED))
    };
    let parts = content.iter().filter(told).map(|part| match part {
        Content::Text(text) => text.clone(),
        Content::Image(image) => format!("({})", image.media_type),
    });
    parts.collect::<Vec<_>>().join("\n")
}
