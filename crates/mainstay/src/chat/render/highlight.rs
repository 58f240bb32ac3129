//! Code in colours: what the grammar says, in the colours that the terminal's user chose.

use std::sync::LazyLock;

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxSet};

use crate::chat::render::text::{Colour, Line, Span, Style, Wrap};

/// The grammars. They take some megabytes and a moment, so they are loaded with the first code that
/// is shown.
static GRAMMARS: LazyLock<SyntaxSet> = LazyLock::new(SyntaxSet::load_defaults_newlines);

/// Longer lines are shown plain: they are data, and a grammar may take for ever on them.
const LONGEST: usize = 1_000;

/// Reads code line by line.
#[derive(Clone)]
pub(crate) struct Highlighter {
    state: Option<(ParseState, ScopeStack)>,
}

impl Highlighter {
    /// For code in this language, as it is named after a fence or by the ending of a file.
    pub(crate) fn of(language: &str) -> Self {
        let token = language.split([',', ' ', '{']).next().unwrap_or_default();
        if token.is_empty() {
            return Self { state: None };
        }
        let token = match token {
            "typescript" | "ts" | "tsx" | "jsx" => "js",
            "shell" | "console" | "sh-session" | "zsh" => "sh",
            "jsonc" | "json5" => "json",
            token => token,
        };
        let grammar = GRAMMARS.find_syntax_by_token(token);
        Self { state: grammar.map(|grammar| (ParseState::new(grammar), ScopeStack::new())) }
    }

    /// The next line, with an indent before it.
    pub(crate) fn line(&mut self, text: &str, indent: &str) -> Line {
        let mut line = Line::plain(indent);
        line.wrap = Wrap::Terminal;
        line.spans.extend(self.spans(text));
        line
    }

    fn spans(&mut self, text: &str) -> Vec<Span> {
        let Some((state, stack)) = &mut self.state else {
            return vec![Span::new(text, Style::PLAIN)];
        };
        let whole = format!("{text}\n");
        let parsed = (text.len() <= LONGEST).then(|| state.parse_line(&whole, &GRAMMARS));
        let Some(Ok(changes)) = parsed else {
            // What follows would be read wrongly.
            self.state = None;
            return vec![Span::new(text, Style::PLAIN)];
        };
        let mut spans = Vec::new();
        let mut from = 0;
        for (at, change) in changes {
            let at = at.min(text.len());
            if at > from {
                spans.push(Span::new(&text[from..at], style(stack)));
                from = at;
            }
            if stack.apply(&change).is_err() {
                break;
            }
        }
        spans.push(Span::new(&text[from..], style(stack)));
        spans
    }
}

/// What a place in the code looks like, by the innermost scope that says something.
fn style(stack: &ScopeStack) -> Style {
    static LOOKS: LazyLock<Vec<(Scope, Style)>> = LazyLock::new(|| {
        let comment = Style { dim: true, italic: true, ..Style::PLAIN };
        let looks = [
            ("comment", comment),
            ("punctuation.definition.comment", comment),
            ("string", Style::of(Colour::Green)),
            ("constant.character.escape", Style::of(Colour::Yellow)),
            ("constant", Style::of(Colour::Yellow)),
            ("keyword.operator", Style::PLAIN),
            ("keyword", Style::of(Colour::Magenta)),
            ("storage", Style::of(Colour::Magenta)),
            ("entity.name.function", Style::of(Colour::Blue)),
            ("support.function", Style::of(Colour::Blue)),
            ("variable.function", Style::of(Colour::Blue)),
            ("entity.name.tag", Style::of(Colour::Blue)),
            ("entity.other.attribute-name", Style::of(Colour::Cyan)),
            ("entity.name", Style::of(Colour::Cyan)),
            ("support.type", Style::of(Colour::Cyan)),
            ("support.class", Style::of(Colour::Cyan)),
            ("markup.inserted", Style::of(Colour::Green)),
            ("markup.deleted", Style::of(Colour::Red)),
            ("markup.heading", Style::BOLD),
        ];
        let scope = |(name, style): (&str, Style)| Some((Scope::new(name).ok()?, style));
        looks.into_iter().filter_map(scope).collect()
    });
    let innermost = stack.scopes.iter().rev();
    innermost
        .filter_map(|scope| LOOKS.iter().find(|(look, _)| look.is_prefix_of(*scope)))
        .map(|(_, style)| *style)
        .next()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_over_two_lines_is_one_string() {
        let mut rust = Highlighter::of("rust");
        let first = rust.line("let a = \"one", "");
        let second = rust.line("two\"; // end", "");
        let colour = |line: &Line, word: &str| {
            line.spans.iter().find(|span| span.text().contains(word)).unwrap().style()
        };
        assert_eq!(colour(&first, "let"), Style::of(Colour::Magenta));
        assert_eq!(colour(&second, "two"), Style::of(Colour::Green));
        assert!(colour(&second, "end").dim);
        assert_eq!(second.text(), "two\"; // end");
    }

    #[test]
    fn an_unknown_language_and_a_long_line_are_plain() {
        let mut none = Highlighter::of("no-such-language");
        assert_eq!(none.line("fn a() {}", "  ").text(), "  fn a() {}");
        let long = "x".repeat(5_000);
        assert_eq!(Highlighter::of("rs").line(&long, "").text(), long);
    }
}
