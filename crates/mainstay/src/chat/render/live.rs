//! The rows at the bottom: what comes in, what runs, what is queued, the editor, the status.

use crate::chat::render::paint::Live;
use crate::chat::render::screen::{Block, Phase, Screen};
use crate::chat::render::text::{Colour, Line, Style};
use crate::plain_text::clean;

/// So many rows of words that are not finished are shown, unless the screen is small.
const TAIL_ROWS: usize = 12;
const THOUGHT_ROWS: usize = 2;
const CALL_ROWS: usize = 6;
const QUEUE_ROWS: usize = 3;
const SPINNER: [&str; 8] = ["⠋", "⠙", "⠸", "⠴", "⠦", "⠧", "⠇", "⠏"];

impl Screen {
    /// The picture of the rows at the bottom. It fits the screen, whatever its size.
    pub(crate) fn live(&self) -> Live {
        // The last column stays free: terminals differ on what a full row means.
        let width = self.width.saturating_sub(1).max(4);
        let most = self.height.saturating_sub(1).max(2);
        let (foot, cursor) = self.foot(width, most);
        let room = most.saturating_sub(foot.len());
        let mut rows = self.head(width, room);
        let surplus = rows.len().saturating_sub(room);
        rows.drain(..surplus);
        let before = rows.len();
        rows.extend(foot);
        Live { rows, cursor: cursor.map(|(row, column)| (before + row, column)) }
    }

    /// What comes in and what runs.
    fn head(&self, width: usize, room: usize) -> Vec<Line> {
        let mut rows = vec![Line::default()];
        // Calls stand close together, those that run and those that are done.
        if self.block == Block::Call && !self.calls.is_empty() {
            rows.clear();
        }
        let mut busy = false;
        let tail = self.stream.tail(width);
        if !tail.is_empty() {
            let mut tail: Vec<Line> = tail.iter().flat_map(|line| cut_rows(line, width)).collect();
            let surplus = tail.len().saturating_sub(TAIL_ROWS.min(room.saturating_sub(1)));
            tail.drain(..surplus);
            // The words go on where those above end.
            if self.stream.has_finished() {
                rows.clear();
            }
            rows.extend(tail);
            rows.push(Line::default());
        } else if self.stream.has_finished() && !self.stream.is_empty() {
            rows.clear();
            rows.push(Line::default());
        }
        if !self.thoughts.trim().is_empty() {
            busy = true;
            rows.push(self.activity("thinking"));
            let style = Style { dim: true, italic: true, ..Style::PLAIN };
            let words = clean(&self.thoughts);
            let last: Vec<&str> = words.lines().filter(|line| !line.trim().is_empty()).collect();
            let last = last.last().copied().unwrap_or_default();
            let line = Line::styled(&format!("  {last}"), style).hanging("  ", style);
            let shown = line.rows(width);
            let from = shown.len().saturating_sub(THOUGHT_ROWS);
            rows.extend(shown.into_iter().skip(from));
        }
        for call in self.calls.iter().take(CALL_ROWS) {
            busy = true;
            rows.extend(call.running(self.spinner(), self.now).rows(width));
        }
        if self.calls.len() > CALL_ROWS {
            let more = self.calls.len() - CALL_ROWS;
            rows.push(Line::dim(&format!("  and {more} more")));
        }
        if let Phase::Stopping { .. } = self.phase {
            let what = if self.leaving {
                "stopping, then leaving … Ctrl-C again to leave at once"
            } else {
                "stopping … Ctrl-C again to leave"
            };
            rows.push(Line::styled(what, Style::DIM).cut());
        } else if self.is_working() && !busy && self.prompt.is_none() {
            let what = if self.sending.is_some() { "sending" } else { "working" };
            rows.push(self.activity(what));
        }
        rows.into_iter().flat_map(|row| row.rows(width)).collect()
    }

    fn activity(&self, what: &str) -> Line {
        let since = match self.phase {
            Phase::Working { since } | Phase::Stopping { since } => since,
            Phase::Idle => self.now,
        };
        let seconds = self.now.saturating_sub(since) / 1000;
        Line::styled(&format!("{} ", self.spinner()), Style::of(Colour::Yellow))
            .and(what, Style::PLAIN)
            .and(&format!(" {seconds} s"), Style::DIM)
            .and(" · Ctrl-C stops", Style::DIM)
            .cut()
    }

    fn spinner(&self) -> &'static str {
        let step = usize::try_from(self.now / 100).unwrap_or(0);
        SPINNER[step % SPINNER.len()]
    }

    /// What is queued, the question or the editor, the menu and the status, and the cursor in them.
    fn foot(&self, width: usize, most: usize) -> (Vec<Line>, Option<(usize, usize)>) {
        let mut rows: Vec<Line> = Vec::new();
        if most > 6 {
            rows.extend(self.waiting(width));
        }
        let cursor = if let Some(prompt) = &self.prompt {
            let (mut asked, mut cursor) = prompt.rows(width, self.now);
            let room = most.saturating_sub(1);
            if rows.len() + asked.len() > room {
                rows.clear();
            }
            if asked.len() > room && room > 2 {
                // How it begins and its keys stay. What is left out is said, lest somebody agrees to
                // what cannot be seen.
                let (head, left_out) = ((room - 1) / 2, asked.len() - room + 1);
                let words = format!("  … {left_out} more rows (Ctrl-O shows all)");
                asked.splice(head..head + left_out, Line::dim(&words).cut().rows(width));
                cursor = cursor.map(|(row, column)| ((row + 1).saturating_sub(left_out), column));
            }
            let before = rows.len();
            rows.extend(asked);
            cursor.map(|(row, column)| (before + row, column))
        } else {
            let (edited, (row, column)) = self.editor.rows(width);
            // Around the cursor, as much as there is room for.
            let room = (most / 2).max(1);
            let from = (row + 1).saturating_sub(room).min(edited.len().saturating_sub(room));
            let cursor = (rows.len() + row - from, column);
            rows.extend(edited.into_iter().skip(from).take(room));
            Some(cursor)
        };
        if let Some(menu) = &self.menu
            && most > rows.len() + 1
        {
            let room = (most - rows.len() - 1).min(6);
            rows.extend(menu.rows(room).into_iter().flat_map(|row| row.rows(width)));
        }
        if most > rows.len() {
            let line = match &self.hint {
                Some(hint) => Line::dim(hint).cut(),
                None => self.status.line(width),
            };
            rows.extend(line.rows(width));
        }
        // A question that does not fit loses its first rows, never its keys.
        let surplus = rows.len().saturating_sub(most);
        rows.drain(..surplus);
        let cursor = cursor.map(|(row, column)| (row.saturating_sub(surplus), column));
        (rows, cursor)
    }

    fn waiting(&self, width: usize) -> Vec<Line> {
        let one = |mark: &str, words: &str| {
            let words = clean(words);
            let first = words.lines().next().unwrap_or_default();
            let more = if words.lines().nth(1).is_some() { " …" } else { "" };
            Line::dim(&format!("{mark}{first}{more}")).cut()
        };
        let mut lines: Vec<Line> = Vec::new();
        lines.extend(self.sending.iter().map(|words| one("sending: ", words)));
        lines.extend(self.steering.iter().map(|words| one("at the next step: ", words)));
        lines.extend(self.queue.iter().map(|words| one("queued: ", words)));
        let more = lines.len().saturating_sub(QUEUE_ROWS);
        lines.truncate(QUEUE_ROWS);
        if more > 0 {
            lines.push(Line::dim(&format!("and {more} more")));
        }
        lines.into_iter().flat_map(|line| line.rows(width)).collect()
    }
}

/// The rows of a line; also one that the terminal is to break is broken here.
fn cut_rows(line: &Line, width: usize) -> Vec<Line> {
    let mut line = line.clone();
    line.wrap = crate::chat::render::text::Wrap::Words;
    line.rows(width)
}
