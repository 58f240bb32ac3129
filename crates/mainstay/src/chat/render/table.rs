//! Tables: columns as wide as they need, or as the screen lets them be.

use pulldown_cmark::Alignment;
use unicode_width::UnicodeWidthStr;

use crate::chat::render::text::{Line, Span, Style};

/// A table being read.
pub(crate) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Line>>,
}

/// A column below this width is no column any more.
const NARROWEST: usize = 6;

impl Table {
    pub(crate) fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, rows: Vec::new() }
    }

    /// Begins a row; the first is the head.
    pub(crate) fn row(&mut self) {
        self.rows.push(Vec::new());
    }

    /// Adds a cell to the row.
    pub(crate) fn cell(&mut self, spans: Vec<Span>) {
        if let Some(row) = self.rows.last_mut() {
            row.push(Line { spans, ..Line::default() });
        }
    }

    /// The table within a width: in columns where they fit, otherwise row by row.
    pub(crate) fn lines(self, width: usize) -> Vec<Line> {
        let columns = self.alignments.len();
        let gaps = columns.saturating_sub(1) * 3;
        match self.widths(width.saturating_sub(gaps)) {
            Some(widths) => self.in_columns(&widths),
            None => self.row_by_row(),
        }
    }

    /// How wide each column is. Returns `None` if they do not fit.
    fn widths(&self, room: usize) -> Option<Vec<usize>> {
        let mut widths = vec![1; self.alignments.len()];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.width().max(*width);
            }
        }
        // The widest gives way first.
        while widths.iter().sum::<usize>() > room {
            let widest = widths.iter_mut().max()?;
            if *widest <= NARROWEST {
                return None;
            }
            *widest -= 1;
        }
        Some(widths)
    }

    fn in_columns(self, widths: &[usize]) -> Vec<Line> {
        let mut lines = Vec::new();
        for (number, row) in self.rows.into_iter().enumerate() {
            let cells: Vec<Vec<Line>> = widths
                .iter()
                .enumerate()
                .map(|(column, width)| row.get(column).map_or(Vec::new(), |cell| cell.rows(*width)))
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for part in 0..height {
                let mut line = Line::default();
                for (column, width) in widths.iter().enumerate() {
                    if column > 0 {
                        line = line.and(" │ ", Style::DIM);
                    }
                    let cell = cells[column].get(part).cloned().unwrap_or_default();
                    let blank = width.saturating_sub(cell.width());
                    let before = match self.alignments.get(column) {
                        Some(Alignment::Right) => blank,
                        Some(Alignment::Center) => blank / 2,
                        _ => 0,
                    };
                    line = line.and(&" ".repeat(before), Style::PLAIN);
                    for span in cell.spans {
                        let style = span.style();
                        let style = if number == 0 { style.strong() } else { style };
                        line = line.and(span.text(), style);
                    }
                    line = line.and(&" ".repeat(blank - before), Style::PLAIN);
                }
                lines.push(line);
            }
            if number == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(Line::dim(&rule.join("─┼─")));
            }
        }
        lines
    }

    fn row_by_row(self) -> Vec<Line> {
        let mut rows = self.rows.into_iter();
        let head: Vec<String> = rows.next().unwrap_or_default().iter().map(Line::text).collect();
        let mut lines = Vec::new();
        for row in rows {
            for (column, cell) in row.into_iter().enumerate() {
                let name = head.get(column).map_or("", String::as_str);
                let mark = if column == 0 { "• " } else { "  " };
                let mut line = Line::plain(mark).and(&format!("{name}: "), Style::BOLD);
                if name.width() == 0 {
                    line = Line::plain(mark);
                }
                line.spans.extend(cell.spans);
                lines.push(line.hanging("    ", Style::PLAIN));
            }
        }
        lines
    }
}
