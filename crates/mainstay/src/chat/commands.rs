//! Slash commands: which there are ([`slash`]), and what each does.

pub(crate) mod slash;

mod approvals;
mod context;
mod cost;
mod memory;
mod mode;
mod model;
mod processes;
mod sessions;
mod skills;
mod undo;

use self::slash::Slash;
use crate::chat::conversation::Conversation;
use crate::chat::render::text::{Line, Style};

/// The keys, for whoever asks.
const KEYS: &[(&str, &str)] = &[
    ("Enter", "send; queue while a turn is running"),
    ("Ctrl-S", "send to the running turn at its next step"),
    ("Alt-Enter, Ctrl-J", "new line (or a backslash before Enter)"),
    ("Up, Down", "earlier messages"),
    ("Tab", "complete commands, models and @files"),
    ("/NAME words", "use a skill; /skills lists them"),
    ("@picture.png", "attach a picture"),
    ("Shift-Tab", "change the mode: plan, ask, auto"),
    ("Ctrl-O", "show the last folded output in full"),
    ("Ctrl-C", "stop the turn; again to leave"),
    ("Ctrl-D", "leave"),
];

impl Conversation<'_> {
    /// Does what a command says.
    pub(crate) async fn command(&mut self, slash: Slash, rest: &str) {
        let done = match slash {
            Slash::Help => {
                self.help();
                Ok(())
            }
            Slash::Model => self.model(rest),
            Slash::Mode => self.mode(rest),
            Slash::New => self.new_session().await,
            Slash::Resume => self.resume(rest).await,
            Slash::Fork => self.fork(rest).await,
            Slash::Undo => self.undo(rest).await,
            Slash::Retry => self.retry(),
            Slash::Context => self.context(),
            Slash::Compact => self.compact(rest),
            Slash::Uncompact => self.uncompact(),
            Slash::Cost => self.cost(),
            Slash::Approvals => self.approvals(),
            Slash::Memory => self.memory(),
            Slash::Skills => self.skills(rest),
            Slash::Processes => self.processes(),
            Slash::Quit => {
                self.stop_and_leave();
                Ok(())
            }
        };
        if let Err(error) = done {
            self.failed(&error);
        }
    }

    pub(crate) fn help(&mut self) {
        let mut lines = Vec::new();
        let mut keys_from = slash::ALL.len();
        let commands = slash::ALL.iter().map(|(_, name, takes, what)| {
            (format!("/{name} {takes}").trim_end().to_owned(), (*what).to_owned())
        });
        let keys = KEYS.iter().map(|(key, what)| ((*key).to_owned(), (*what).to_owned()));
        let all: Vec<(String, String)> = commands.chain(keys).collect();
        let width = all.iter().map(|(left, _)| left.chars().count()).max().unwrap_or(0);
        for (left, what) in all {
            if keys_from == 0 {
                lines.push(Line::default());
            }
            keys_from = keys_from.wrapping_sub(1);
            let hang = " ".repeat(width + 4);
            lines.push(
                Line::styled(&format!("  {left:<width$}"), Style::BOLD)
                    .and(&format!("  {what}"), Style::PLAIN)
                    .hanging(&hang, Style::PLAIN),
            );
        }
        self.screen.lines(lines);
    }
}
