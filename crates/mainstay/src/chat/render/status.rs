//! The status line: the mode, the model, how full its window is, the cost, what runs in the background.

use mainstay_agent::budget::dollars;
use mainstay_journal::turn::Mode;
use unicode_width::UnicodeWidthStr;

use crate::chat::render::text::{Colour, Line, Style};

/// What the status line tells.
#[derive(Clone, Debug, Default)]
pub(crate) struct Status {
    /// What is done without asking.
    pub(crate) mode: Mode,
    /// `provider/model`.
    pub(crate) model: String,
    /// Tokens of the conversation.
    pub(crate) context: u64,
    /// Tokens that the model can read and write together, where that is known.
    pub(crate) window: Option<u64>,
    /// Of the session, in millionths of a dollar.
    pub(crate) cost: i64,
    /// How many processes run in the background.
    pub(crate) processes: u64,
}

impl Status {
    /// The line: as many of its parts as fit, the last ones first to go.
    pub(crate) fn line(&self, width: usize) -> Line {
        let mut parts = vec![self.mode.to_string(), self.model.clone()];
        if self.context > 0 {
            parts.push(match self.window.filter(|window| *window > 0) {
                Some(window) => {
                    let share = self.context.saturating_mul(100) / window;
                    format!("{} of {} ({share}%)", tokens(self.context), tokens(window))
                }
                None => format!("{} tokens", tokens(self.context)),
            });
        }
        if self.cost > 0 {
            parts.push(dollars(self.cost));
        }
        if self.processes > 0 {
            let plural = if self.processes == 1 { "" } else { "es" };
            parts.push(format!("{} process{plural}", self.processes));
        }
        while parts.len() > 1 && parts.join(GAP).width() > width {
            // What a person pays attention to stays longest: the model's name can be shortened.
            match parts[1].split_once('/') {
                Some((_, model)) => parts[1] = model.to_owned(),
                None => drop(parts.pop()),
            }
        }
        let rest = parts.split_off(1);
        // Who has said yes to everything sees it.
        let style = match self.mode {
            Mode::Yes => Style::of(Colour::Yellow).strong(),
            Mode::Plan | Mode::Ask | Mode::Auto => Style::DIM,
        };
        let line = Line::styled(&parts.join(GAP), style);
        let rest: String = rest.iter().map(|part| format!("{GAP}{part}")).collect();
        line.and(&rest, Style::DIM).cut()
    }
}

const GAP: &str = " · ";

/// A number of tokens, short.
pub(crate) fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..100_000 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        100_000..1_000_000 => format!("{}k", count / 1_000),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_goes() {
        let status = Status {
            mode: Mode::Auto,
            model: "local/qwen".into(),
            context: 12_345,
            window: Some(128_000),
            cost: 12_300,
            processes: 2,
        };
        let shown = |width| status.line(width).text();
        assert_eq!(shown(80), "auto · local/qwen · 12.3k of 128k (9%) · $0.0123 · 2 processes");
        assert_eq!(shown(43), "auto · qwen · 12.3k of 128k (9%) · $0.0123");
        assert_eq!(shown(11), "auto · qwen");
        assert_eq!(tokens(999), "999");
        assert_eq!(tokens(2_500_000), "2.5M");
    }
}
