//! Markdown as lines for a terminal.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use crate::chat::render::highlight::Highlighter;
use crate::chat::render::table::Table;
use crate::chat::render::text::{Colour, Line, Span, Style, Wrap};

/// The lines of a piece of Markdown that stands on its own, without blank ones around it.
pub(crate) fn render(source: &str, width: usize) -> Vec<Line> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut page = Page { width, ..Page::default() };
    for event in Parser::new_ext(source, options) {
        page.take(event);
    }
    page.end_line();
    page.lines
}

/// What was rendered so far.
#[derive(Default)]
struct Page {
    width: usize,
    lines: Vec<Line>,
    spans: Vec<Span>,
    /// What stands before every row: marks of quotations, indents of lists.
    margin: Vec<Margin>,
    style: Vec<Style>,
    /// The numbers of the lists around; `None` for a list without numbers.
    lists: Vec<Option<u64>>,
    code: Option<Highlighter>,
    table: Option<Table>,
    link: Option<String>,
    /// A blank line is due before the next block.
    gap: bool,
}

/// What stands before the rows of a block.
struct Margin {
    /// Before its first row, until that is written.
    first: Option<Span>,
    rest: Span,
}

impl Page {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &self.code {
                Some(_) => self.code_lines(&text),
                None => self.push(&text),
            },
            Event::Code(text) => {
                self.style.push(Style::of(Colour::Cyan));
                // Without colours the marks tell it.
                self.push(&format!("`{text}`"));
                self.style.pop();
            }
            Event::Html(text) | Event::InlineHtml(text) => {
                for (number, line) in text.lines().enumerate() {
                    if number > 0 {
                        self.end_line();
                    }
                    self.push(line);
                }
            }
            Event::SoftBreak => self.push(" "),
            Event::HardBreak => self.end_line(),
            Event::Rule => {
                self.block();
                self.spans.push(Span::new("────────", Style::DIM));
                self.end_line();
                self.gap = true;
            }
            Event::TaskListMarker(done) => self.push(if done { "[x] " } else { "[ ] " }),
            Event::FootnoteReference(text) => self.push(&format!("[{text}]")),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.push(&text),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let outer = self.style.last().copied().unwrap_or_default();
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.block(),
            Tag::Heading { level, .. } => {
                self.block();
                let marks = format!("{} ", "#".repeat(level as usize));
                self.spans.push(Span::new(&marks, Style::of(Colour::Magenta)));
                self.style.push(Style::of(Colour::Magenta).strong());
            }
            Tag::BlockQuote(_) => {
                self.block();
                let mark = Span::new("│ ", Style::DIM);
                self.margin.push(Margin { first: None, rest: mark });
            }
            Tag::CodeBlock(kind) => {
                self.block();
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some(Highlighter::of(&language));
            }
            Tag::List(number) => {
                // A list within an item follows it closely.
                if self.lists.is_empty() {
                    self.block();
                } else {
                    self.end_line();
                    self.gap = false;
                }
                self.lists.push(number);
            }
            Tag::Item => {
                self.end_line();
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                };
                let rest = " ".repeat(mark.chars().count());
                self.margin.push(Margin {
                    first: Some(Span::new(&mark, Style::of(Colour::Cyan))),
                    rest: Span::new(&rest, Style::PLAIN),
                });
            }
            Tag::Table(alignments) => {
                self.block();
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.row();
                }
            }
            Tag::TableCell => {}
            Tag::Emphasis => self.style.push(Style { italic: true, ..outer }),
            Tag::Strong => self.style.push(Style { bold: true, ..outer }),
            Tag::Strikethrough => self.style.push(Style { struck: true, ..outer }),
            Tag::Link { dest_url, .. } => {
                self.link = Some(dest_url.to_string());
                self.style.push(Style { underlined: true, ..outer });
            }
            Tag::Image { dest_url, .. } => {
                self.link = Some(dest_url.to_string());
                self.style.push(outer);
            }
            _ => self.style.push(outer),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.end_line();
                self.gap = true;
            }
            TagEnd::Heading(_) => {
                self.style.pop();
                self.end_line();
                self.gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.end_line();
                self.margin.pop();
                self.gap = true;
            }
            TagEnd::CodeBlock => {
                self.code = None;
                self.gap = true;
            }
            TagEnd::List(_) => {
                self.end_line();
                self.lists.pop();
                self.gap = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.end_line();
                self.margin.pop();
                self.gap = false;
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    for line in table.lines(self.width.saturating_sub(self.margin_width())) {
                        self.spans = line.spans;
                        self.end_line();
                        if let Some(last) = self.lines.last_mut() {
                            last.hang.extend(line.hang);
                        }
                    }
                }
                self.gap = true;
            }
            TagEnd::TableHead | TagEnd::TableRow => {}
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.spans);
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::Link | TagEnd::Image => {
                self.style.pop();
                if let Some(address) = self.link.take() {
                    let said: String = self.spans.iter().map(Span::text).collect();
                    if !said.ends_with(&address) {
                        self.spans.push(Span::new(&format!(" ({address})"), Style::DIM));
                    }
                }
            }
            _ => drop(self.style.pop()),
        }
    }

    /// Begins a block: what was before it is ended, with a blank line where one is due.
    fn block(&mut self) {
        self.end_line();
        if std::mem::take(&mut self.gap) && !self.lines.is_empty() {
            let margin = self.margin.iter().map(|margin| margin.rest.clone()).collect();
            self.lines.push(Line { spans: margin, ..Line::default() });
        }
    }

    fn push(&mut self, text: &str) {
        let style = self.style.last().copied().unwrap_or_default();
        self.spans.push(Span::new(text, style));
    }

    fn code_lines(&mut self, text: &str) {
        let Some(mut code) = self.code.take() else { return };
        for line in text.lines() {
            self.spans = code.line(line, "  ").spans;
            self.end_line();
            if let Some(line) = self.lines.last_mut() {
                line.wrap = Wrap::Terminal;
            }
        }
        self.code = Some(code);
    }

    fn end_line(&mut self) {
        let waiting = self.margin.iter().any(|margin| margin.first.is_some());
        if self.spans.is_empty() && !waiting {
            return;
        }
        if self.spans.is_empty() && self.code.is_none() {
            // The mark of an item waits for its words.
            return;
        }
        let mut line = Line::default();
        for margin in &mut self.margin {
            line.spans.push(margin.first.take().unwrap_or_else(|| margin.rest.clone()));
            line.hang.push(margin.rest.clone());
        }
        line.spans.append(&mut self.spans);
        self.lines.push(line);
    }

    fn margin_width(&self) -> usize {
        self.margin.iter().map(|margin| margin.rest.text().chars().count()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(source: &str, width: usize) -> String {
        let rows = render(source, width).into_iter().flat_map(|line| line.rows(width));
        rows.map(|row| row.text().trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn blocks_look_like_what_they_are() {
        let source = "# Head\n\nSome **bold**, *leaning*, `code` and [a link](http://x.y).\n\n\
            - one\n- two, which is long enough to be broken\n  1. first\n  2. second\n\n\
            > said\n> by somebody\n\n---\n\n- [x] done\n- [ ] open\n\n```rust\nfn main() {}\n```\n";
        insta::assert_snapshot!(shown(source, 30));
    }

    #[test]
    fn an_item_may_hold_several_blocks() {
        insta::assert_snapshot!(shown("1. one\n\n   more\n\n   ```\n   code\n   ```\n2. two", 30));
    }

    #[test]
    fn tables_fit_the_screen() {
        let source = "| name | what it does | n |\n|---|---|--:|\n| `run` | gives the agent a task \
            and prints its answer | 1 |\n| 語 | wide | 22 |\n";
        insta::assert_snapshot!(format!("{}\n\n{}", shown(source, 44), shown(source, 18)));
    }

    #[test]
    fn nothing_is_too_odd() {
        for source in ["", "*", "- ", "1. ", "> ", "|", "```", "[a](", "<b", "- - - a", "\\", "**a"]
        {
            for width in [2, 7, 80] {
                let _ = shown(source, width);
            }
        }
    }
}
