//! Markdown from the tags and words of a page.

use std::fmt::Write as _;
use std::ops::Range;

use url::Url;

use super::Page;
use super::entities;
use super::tokens::{Attributes, Token, Tokens};

/// What is kept of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// What it is about: not its menus and forms.
    Content,
    /// All words that a reader sees.
    All,
}

/// Elements that are no words for a reader.
const NEVER_SHOWN: &[&str] = &[
    "script", "style", "noscript", "template", "svg", "iframe", "object", "noembed", "noframes",
    "canvas", "math", "audio", "video", "datalist", "select",
];
/// Elements that are about the page, not its content.
const AROUND: &[&str] = &["nav", "footer", "aside", "form", "button", "dialog", "menu"];
/// Elements without content.
const EMPTY: &[&str] = &[
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
];
/// The content of a page lies here, where it has such an element with so many bytes of text.
const MAIN: &[&str] = &["main", "article"];
const ENOUGH: usize = 200;
/// The longest title, and the longest address that is written out.
const LONGEST: usize = 500;
/// Lists and quotes deeper than this are not indented further.
const DEEPEST: usize = 8;

/// What separates a word from the text before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    None,
    Space,
    Line,
    Blank,
}

/// Writes a page as Markdown.
pub(super) struct Writer {
    address: Url,
    keep: Keep,
    out: String,
    gap: Gap,
    title: String,
    in_title: bool,
    /// The element that is left out with all in it, and how many of its name are open.
    skipped: Option<(String, usize)>,
    preformatted: usize,
    /// Open lists: the number of the last entry, where they have numbers.
    lists: Vec<Option<u32>>,
    quotes: usize,
    cells: usize,
    /// The open link: where its text begins, and where it leads.
    link: Option<(usize, String)>,
    main: Option<(&'static str, usize, usize)>,
    mains: Vec<Range<usize>>,
}

impl Writer {
    pub(super) fn new(address: &Url, keep: Keep) -> Self {
        Self {
            address: address.clone(),
            keep,
            out: String::new(),
            gap: Gap::None,
            title: String::new(),
            in_title: false,
            skipped: None,
            preformatted: 0,
            lists: Vec::new(),
            quotes: 0,
            cells: 0,
            link: None,
            main: None,
            mains: Vec::new(),
        }
    }

    pub(super) fn write(mut self, html: &str) -> Page {
        for token in Tokens::new(html) {
            match token {
                Token::Text(text) => self.text(text),
                Token::Open(name, attributes) => self.open(&name, attributes),
                Token::Close(name) => self.close(&name),
            }
        }
        self.end_link();
        if let Some((_, _, from)) = self.main.take() {
            self.mains.push(from..self.out.len());
        }
        let title = single_spaced(&self.title).chars().take(LONGEST).collect();
        let inside: usize = self.mains.iter().map(Range::len).sum();
        let text = match (self.mains.first(), self.mains.last()) {
            (Some(first), Some(last)) if self.keep == Keep::Content && inside >= ENOUGH => {
                self.out[first.start..last.end].trim()
            }
            _ => self.out.trim(),
        };
        Page { title, text: text.to_owned() }
    }

    fn text(&mut self, text: &str) {
        if self.skipped.is_some() {
            return;
        }
        let text = entities::decode(text);
        if self.in_title {
            self.title.push_str(&text);
            return;
        }
        if self.preformatted > 0 {
            for (number, line) in text.split('\n').enumerate() {
                if number > 0 {
                    self.start_line();
                }
                if !line.is_empty() {
                    self.settle();
                    self.out.push_str(line.trim_end_matches('\r'));
                }
            }
            return;
        }
        let space = |letter: char| letter.is_whitespace();
        for (number, word) in text.split(space).enumerate() {
            if number > 0 {
                self.want(Gap::Space);
            }
            if !word.is_empty() {
                self.settle();
                self.out.push_str(word);
            }
        }
    }

    fn open(&mut self, name: &str, attributes: Attributes<'_>) {
        if let Some((skipped, depth)) = &mut self.skipped {
            if skipped == name {
                *depth += 1;
            }
            return;
        }
        if self.is_left_out(name, attributes) {
            self.skipped = Some((name.to_owned(), 1));
            return;
        }
        if let Some(main) = MAIN.iter().copied().find(|main| *main == name) {
            self.open_main(main);
        }
        match name {
            // An icon in the page has a title too.
            "title" if self.title.is_empty() => self.in_title = true,
            "base" => {
                if let Some(base) =
                    attributes.get("href").and_then(|href| self.address.join(&href).ok())
                {
                    self.address = base;
                }
            }
            "br" => self.want(Gap::Line),
            "hr" => {
                self.want(Gap::Blank);
                self.mark("---");
                self.want(Gap::Blank);
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.end_link();
                self.want(Gap::Blank);
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.mark(&"#".repeat(level));
                self.want(Gap::Space);
            }
            "pre" => {
                self.want(Gap::Blank);
                if self.preformatted == 0 {
                    self.mark("```");
                    self.want(Gap::Line);
                }
                self.preformatted += 1;
            }
            "code" | "kbd" | "samp" if self.preformatted == 0 => {
                self.settle();
                self.out.push('`');
            }
            "ul" => self.open_list(None),
            "ol" => {
                let start = attributes.get("start").and_then(|start| start.parse::<u32>().ok());
                self.open_list(Some(start.unwrap_or(1).saturating_sub(1)));
            }
            "li" => self.open_entry(),
            "blockquote" => {
                self.want(Gap::Blank);
                self.quotes += 1;
            }
            "tr" => {
                self.want(Gap::Line);
                self.cells = 0;
            }
            "td" | "th" => {
                if self.cells > 0 {
                    self.want(Gap::Space);
                    self.mark("|");
                    self.want(Gap::Space);
                }
                self.cells += 1;
            }
            "a" => {
                self.end_link();
                if let Some(to) = attributes.get("href").and_then(|href| self.target(&href)) {
                    self.settle();
                    self.out.push('[');
                    self.link = Some((self.out.len(), to));
                }
            }
            "img" => {
                if let Some(shown) = attributes.get("alt").map(|alt| single_spaced(&alt))
                    && !shown.is_empty()
                {
                    self.settle();
                    // Writing to a string does not fail.
                    let _ = write!(self.out, "[image: {shown}]");
                }
            }
            _ => self.want(around(name)),
        }
    }

    fn close(&mut self, name: &str) {
        if let Some((skipped, depth)) = &mut self.skipped {
            if skipped == name {
                *depth -= 1;
                if *depth == 0 {
                    self.skipped = None;
                }
            }
            return;
        }
        match name {
            "title" => self.in_title = false,
            "pre" => {
                if self.preformatted == 1 {
                    if !self.out.ends_with('\n') {
                        self.want(Gap::Line);
                    }
                    self.mark("```");
                    self.want(Gap::Blank);
                }
                self.preformatted = self.preformatted.saturating_sub(1);
            }
            "code" | "kbd" | "samp" if self.preformatted == 0 => self.out.push('`'),
            "ul" | "ol" => {
                self.lists.pop();
                self.want(if self.lists.is_empty() { Gap::Blank } else { Gap::Line });
            }
            "blockquote" => {
                self.quotes = self.quotes.saturating_sub(1);
                self.want(Gap::Blank);
            }
            "a" => self.end_link(),
            _ => self.want(around(name)),
        }
        if self.main.is_some_and(|(main, _, _)| main == name) {
            self.close_main();
        }
    }

    /// Whether an element is left out with all that is in it.
    fn is_left_out(&self, name: &str, attributes: Attributes<'_>) -> bool {
        if EMPTY.contains(&name) {
            return false;
        }
        let hidden = || {
            attributes.get("hidden").is_some()
                || attributes.get("aria-hidden").is_some_and(|value| value == "true")
                || attributes.get("style").is_some_and(|style| {
                    let style: String = style.split_whitespace().collect();
                    let style = style.to_ascii_lowercase();
                    style.contains("display:none") || style.contains("visibility:hidden")
                })
        };
        NEVER_SHOWN.contains(&name)
            || (self.keep == Keep::Content && AROUND.contains(&name))
            || hidden()
    }

    fn open_main(&mut self, name: &'static str) {
        // What is open when the border is noted may be taken back later.
        self.end_link();
        match &mut self.main {
            Some((main, depth, _)) if *main == name => *depth += 1,
            Some(_) => {}
            None => self.main = Some((name, 1, self.out.len())),
        }
    }

    fn close_main(&mut self) {
        self.end_link();
        if let Some((_, depth, from)) = &mut self.main {
            *depth -= 1;
            if *depth == 0 {
                self.mains.push(*from..self.out.len());
                self.main = None;
            }
        }
    }

    fn open_list(&mut self, number: Option<u32>) {
        self.want(if self.lists.is_empty() { Gap::Blank } else { Gap::Line });
        self.lists.push(number);
    }

    fn open_entry(&mut self) {
        self.want(Gap::Line);
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number = number.saturating_add(1);
                format!("{number}.")
            }
            _ => "-".to_owned(),
        };
        self.mark(&mark);
        self.want(Gap::Space);
    }

    /// Where a link leads, if it leads anywhere.
    fn target(&self, href: &str) -> Option<String> {
        if href.starts_with('#') || href.len() > LONGEST {
            return None;
        }
        let url = self.address.join(href).ok()?;
        let to = url.as_str();
        (matches!(url.scheme(), "http" | "https") && to.len() <= LONGEST).then(|| to.to_owned())
    }

    fn end_link(&mut self) {
        let Some((from, to)) = self.link.take() else { return };
        if self.out[from..].trim().is_empty() {
            self.out.truncate(from - 1);
        } else {
            // Writing to a string does not fail.
            let _ = write!(self.out, "]({to})");
        }
    }

    /// Asks for a gap before the next word; the widest wins.
    fn want(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    /// A new line now, also an empty one.
    fn start_line(&mut self) {
        self.out.push('\n');
        self.gap = Gap::None;
        self.indent();
    }

    fn mark(&mut self, mark: &str) {
        self.settle();
        self.out.push_str(mark);
    }

    /// Writes the gap that was asked for.
    fn settle(&mut self) {
        let gap = std::mem::replace(&mut self.gap, Gap::None);
        if self.out.is_empty() {
            return self.indent();
        }
        match gap {
            Gap::None => {}
            Gap::Space => self.out.push(' '),
            Gap::Line => {
                self.out.push('\n');
                self.indent();
            }
            Gap::Blank => {
                self.out.push_str("\n\n");
                self.indent();
            }
        }
    }

    fn indent(&mut self) {
        let depth = self.lists.len().saturating_sub(1).min(DEEPEST);
        self.out.push_str(&"  ".repeat(depth));
        self.out.push_str(&"> ".repeat(self.quotes.min(DEEPEST)));
    }
}

/// What stands around an element.
fn around(name: &str) -> Gap {
    match name {
        "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "table" | "section" | "article"
        | "main" | "header" | "footer" | "aside" | "nav" | "figure" | "dl" | "form" | "details"
        | "body" => Gap::Blank,
        "div" | "li" | "tr" | "dt" | "dd" | "figcaption" | "summary" | "address" | "option"
        | "fieldset" | "legend" | "caption" | "thead" | "tbody" => Gap::Line,
        "td" | "th" => Gap::Space,
        _ => Gap::None,
    }
}

/// The words of a text, with one space between them.
fn single_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
