//! The grammar of the shell: lists, pipelines, compound commands, redirections.
//!
//! The parser reads what `sh` and `bash` both may run. Where they read a line differently the caller
//! parses it once as each. Depth and work are bounded; a line beyond the bounds is an error, and an
//! error is never harmless.

use super::redirects::Awaited;
use super::syntax::{Assignment, Command, CompoundKind, Joint, List, Script, Simple, Word};

/// Which shell reads the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Bash,
    Posix,
}

/// Why a line cannot be read.
pub(super) type Unreadable = &'static str;

/// It takes more work than a line is given.
pub(super) const TOO_LONG: Unreadable = "it takes too long to read";
/// It takes more of the stack than a line is given.
pub(super) const TOO_DEEP: Unreadable = "it is nested too deep";

pub(super) type Parsed<T> = Result<T, Unreadable>;

/// How deep commands, quotes and substitutions may nest.
const DEPTH: u32 = 48;

/// Reads one text, be it a line or a payload in it.
pub(super) struct Parser<'a> {
    pub(super) text: Vec<char>,
    pub(super) at: usize,
    pub(super) dialect: Dialect,
    pub(super) depth: u32,
    pub(super) shared: &'a mut ParserState,
    /// Here-documents whose text comes after this line.
    pub(super) awaited: Vec<Awaited>,
}

/// What all texts of one line share.
#[derive(Debug, Default)]
pub(super) struct ParserState {
    /// How many characters may still be looked at.
    pub(super) fuel: usize,
    /// The texts of here-documents.
    pub(super) documents: Vec<Word>,
    /// The scripts of substitutions: they run when a word is expanded.
    pub(super) substitutions: Vec<Script>,
    /// What variables were seen to get, in any order.
    pub(super) values: Vec<(String, Word)>,
    /// Something was expanded that may run what a variable holds.
    pub(super) runs_values: bool,
    /// Something is calculated, and with it whatever words variables and substitutions bring.
    pub(super) calculates: bool,
    /// The texts of calculations.
    pub(super) calculated: Vec<String>,
    /// Something in the line is given input, which what runs within it may read too.
    pub(super) fed: bool,
}

impl ParserState {
    /// Notes that a shell calculates with a word: what variables bring is calculated too, and a place
    /// in an array there may hold a command.
    pub(super) fn calculates_with(&mut self, word: &Word) {
        self.runs_values = true;
        self.calculates = true;
        self.calculated.push(word.known());
    }
}

impl<'a> Parser<'a> {
    pub(super) fn new(
        text: &str,
        dialect: Dialect,
        depth: u32,
        shared: &'a mut ParserState,
    ) -> Self {
        Self { text: text.chars().collect(), at: 0, dialect, depth, shared, awaited: Vec::new() }
    }

    /// Reads all of the text. What could be read before an error is kept: a shell runs line by line.
    pub(super) fn all(mut self) -> (Script, Option<Unreadable>) {
        let mut script = Vec::new();
        let error = loop {
            match self.skip_to_command() {
                Err(error) => break Some(error),
                Ok(()) if self.peek().is_none() => break self.read_documents().err(),
                Ok(()) => {}
            }
            match self.list() {
                Ok(list) => script.push(list),
                Err(error) => break Some(error),
            }
            if let Err(error) = self.separator() {
                break Some(error);
            }
        };
        (script, error)
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    pub(super) fn peek_at(&self, offset: usize) -> Option<char> {
        self.text.get(self.at + offset).copied()
    }

    pub(super) fn looking_at(&self, what: &str) -> bool {
        what.chars().enumerate().all(|(offset, wanted)| self.peek_at(offset) == Some(wanted))
    }

    pub(super) fn bump(&mut self) -> Parsed<Option<char>> {
        let Some(fuel) = self.shared.fuel.checked_sub(1) else {
            return Err(TOO_LONG);
        };
        self.shared.fuel = fuel;
        let next = self.peek();
        self.at += usize::from(next.is_some());
        Ok(next)
    }

    pub(super) fn skip(&mut self, count: usize) -> Parsed<()> {
        for _ in 0..count {
            self.bump()?;
        }
        Ok(())
    }

    /// One level deeper, while `inner` runs.
    pub(super) fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH {
            return Err(TOO_DEEP);
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Skips blanks, escaped newlines and comments.
    pub(super) fn skip_blanks(&mut self) -> Parsed<()> {
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.skip(1)?,
                Some('\\') if self.peek_at(1) == Some('\n') => self.skip(2)?,
                Some('#') => {
                    while self.peek().is_some_and(|next| next != '\n') {
                        self.skip(1)?;
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    /// Skips blanks and newlines; a newline brings the here-documents that are awaited.
    pub(super) fn skip_lines(&mut self) -> Parsed<()> {
        loop {
            self.skip_blanks()?;
            if self.peek() != Some('\n') {
                return Ok(());
            }
            self.newline()?;
        }
    }

    fn newline(&mut self) -> Parsed<()> {
        self.skip(1)?;
        self.read_documents()
    }

    fn skip_to_command(&mut self) -> Parsed<()> {
        self.skip_lines()
    }

    fn separator(&mut self) -> Parsed<()> {
        self.skip_blanks()?;
        match self.peek() {
            None => Ok(()),
            Some('\n') => self.newline(),
            Some(';') if self.peek_at(1) != Some(';') => self.skip(1),
            Some('&') if self.peek_at(1) != Some('&') => self.skip(1),
            Some(_) => Err("its syntax is not valid"),
        }
    }

    /// Reads lists up to a word or sign that ends them, which is left where it is.
    pub(super) fn script(&mut self, ends: &[&str]) -> Parsed<Script> {
        self.deeper(|parser| {
            let mut script = Vec::new();
            loop {
                parser.skip_lines()?;
                if parser.at_end_of(ends) {
                    return Ok(script);
                }
                if parser.peek().is_none() {
                    return Err("it ends unexpectedly");
                }
                script.push(parser.list()?);
                parser.skip_blanks()?;
                if parser.at_end_of(ends) {
                    return Ok(script);
                }
                parser.separator()?;
            }
        })
    }

    fn at_end_of(&self, ends: &[&str]) -> bool {
        ends.iter().any(|end| match *end {
            ")" | ";;" | ";&" => self.looking_at(end),
            word => self.at_keyword(word),
        })
    }

    /// Whether a reserved word stands here, alone and not quoted.
    pub(super) fn at_keyword(&self, word: &str) -> bool {
        self.looking_at(word) && self.peek_at(word.chars().count()).is_none_or(is_break)
    }

    pub(super) fn expect_keyword(&mut self, word: &str) -> Parsed<()> {
        self.skip_lines()?;
        if self.at_keyword(word) {
            return self.skip(word.chars().count());
        }
        Err("it lacks a shell keyword")
    }

    fn list(&mut self) -> Parsed<List> {
        let mut parts = vec![(Joint::First, self.pipeline()?)];
        loop {
            self.skip_blanks()?;
            let joint = if self.looking_at("&&") {
                Joint::And
            } else if self.looking_at("||") {
                Joint::Or
            } else {
                return Ok(List { parts });
            };
            self.skip(2)?;
            self.skip_lines()?;
            parts.push((joint, self.pipeline()?));
        }
    }

    fn pipeline(&mut self) -> Parsed<Vec<Command>> {
        self.skip_blanks()?;
        loop {
            if self.at_keyword("!") {
                self.skip(1)?;
            } else if self.looking_at("time ") && !self.looking_at("time -") {
                self.skip(4)?;
            } else {
                break;
            }
            self.skip_blanks()?;
        }
        let mut commands = vec![self.command()?];
        loop {
            self.skip_blanks()?;
            if self.peek() != Some('|') || self.peek_at(1) == Some('|') {
                return Ok(commands);
            }
            self.skip(if self.peek_at(1) == Some('&') { 2 } else { 1 })?;
            self.skip_lines()?;
            commands.push(self.command()?);
        }
    }

    pub(super) fn command(&mut self) -> Parsed<Command> {
        self.deeper(Self::command_here)
    }

    fn command_here(&mut self) -> Parsed<Command> {
        self.skip_blanks()?;
        let bash = self.dialect == Dialect::Bash;
        if bash && self.looking_at("((") {
            // Where it does not end as a calculation it is a subshell in a subshell.
            let start = self.at;
            self.skip(2)?;
            let calculated = self.calculation();
            if calculated.is_ok() {
                return self.compound(CompoundKind::Test, Vec::new(), Vec::new(), None);
            }
            self.at = start;
        }
        if self.peek() == Some('(') {
            self.skip(1)?;
            let body = self.script(&[")"])?;
            self.skip(1)?;
            return self.compound(CompoundKind::Subshell, Vec::new(), vec![body], None);
        }
        if bash && self.at_keyword("[[") {
            self.skip(2)?;
            let words = self.test_words()?;
            return self.compound(CompoundKind::Test, words, Vec::new(), None);
        }
        let keyword = ["{", "if", "while", "until", "for", "select", "case", "function"]
            .into_iter()
            .find(|word| self.at_keyword(word));
        let Some(keyword) = keyword else { return self.simple_or_function() };
        if matches!(keyword, "select" | "function") && !bash {
            return self.simple_or_function();
        }
        self.skip(keyword.len())?;
        match keyword {
            "{" => {
                let body = self.script(&["}"])?;
                self.skip(1)?;
                self.compound(CompoundKind::Group, Vec::new(), vec![body], None)
            }
            "if" => self.branch(),
            "while" | "until" => {
                let condition = self.script(&["do"])?;
                let body = self.do_done()?;
                self.compound(CompoundKind::Loop, Vec::new(), vec![condition, body], None)
            }
            "for" | "select" => self.for_loop(),
            "case" => self.case(),
            _ => self.named_function(),
        }
    }

    fn simple_or_function(&mut self) -> Parsed<Command> {
        let start = self.at;
        let mut simple = Simple::default();
        loop {
            self.skip_blanks()?;
            if let Some(redirect) = self.redirect()? {
                simple.redirects.push(redirect);
                continue;
            }
            let Some(next) = self.peek() else { break };
            if next == '(' {
                return self.function(&simple);
            }
            // A substitution of a process begins with a sign that would end a word.
            if is_break(next) && !self.at_process_substitution() {
                break;
            }
            if simple.words.is_empty()
                && let Some(assignment) = self.assignment()?
            {
                simple.assignments.push(assignment);
                continue;
            }
            let word = self.word()?;
            simple.words.push(word);
        }
        if simple.words.is_empty() && simple.assignments.is_empty() && simple.redirects.is_empty() {
            return Err("a command is missing in it");
        }
        const RESERVED: [&str; 11] =
            ["then", "else", "elif", "fi", "do", "done", "esac", "in", "}", "]]", "case"];
        if let Some(verb) = simple.words.first()
            && let [super::syntax::WordPart::Bare(verb)] = verb.parts.as_slice()
            && RESERVED.contains(&verb.as_str())
        {
            return Err("a shell keyword is in the wrong place");
        }
        simple.text = self.text[start..self.at].iter().collect::<String>().trim().to_owned();
        Ok(Command::Simple(simple))
    }

    fn function(&mut self, simple: &Simple) -> Parsed<Command> {
        let ([name], true) = (simple.words.as_slice(), simple.redirects.is_empty()) else {
            return Err("a parenthesis is in the wrong place");
        };
        let Some(name) = name.literal().filter(|_| simple.assignments.is_empty()) else {
            return Err("a function has no plain name");
        };
        self.skip(1)?;
        self.skip_blanks()?;
        if self.bump()? != Some(')') {
            return Err("a parenthesis is in the wrong place");
        }
        self.skip_lines()?;
        let body = Box::new(self.command()?);
        Ok(Command::Function { name, body })
    }

    /// Reads `NAME=value`, `NAME+=value`, `NAME[place]=value` or `NAME=(values)`.
    fn assignment(&mut self) -> Parsed<Option<Assignment>> {
        let mut length = 0;
        while self.peek_at(length).is_some_and(|next| next == '_' || next.is_ascii_alphanumeric()) {
            length += 1;
        }
        if length == 0 || self.peek().is_some_and(|first| first.is_ascii_digit()) {
            return Ok(None);
        }
        let name: String = self.text[self.at..self.at + length].iter().collect();
        let mut end = length;
        if self.dialect == Dialect::Bash && self.peek_at(end) == Some('[') {
            // What stands in the brackets is calculated, and may run a command.
            let start = self.at + end;
            while self.peek_at(end).is_some_and(|next| next != ']' && next != '\n') {
                end += 1;
            }
            if self.peek_at(end) != Some(']') || !matches!(self.peek_at(end + 1), Some('=' | '+')) {
                return Ok(None);
            }
            self.shared.runs_values = true;
            self.shared.calculated.push(self.text[start..self.at + end].iter().collect());
            end += 1;
        }
        if self.peek_at(end) == Some('+') {
            end += 1;
        }
        if self.peek_at(end) != Some('=') {
            return Ok(None);
        }
        self.skip(end + 1)?;
        let value = if self.dialect == Dialect::Bash && self.peek() == Some('(') {
            self.skip(1)?;
            self.array()?
        } else if self.peek().is_none_or(is_break) && !self.at_process_substitution() {
            Word::of("")
        } else {
            self.word()?
        };
        self.shared.values.push((name.clone(), value.clone()));
        Ok(Some(Assignment { name, value }))
    }

    fn array(&mut self) -> Parsed<Word> {
        let mut words: Vec<Word> = Vec::new();
        loop {
            self.skip_lines()?;
            match self.peek() {
                None => return Err("it ends unexpectedly"),
                Some(')') => {
                    self.skip(1)?;
                    return Ok(match words.as_slice() {
                        [only] => only.clone(),
                        _ => Word::anything(),
                    });
                }
                Some(first) => {
                    let word = self.word()?;
                    // What stands in brackets is calculated.
                    if first == '[' {
                        self.shared.calculates_with(&word);
                    }
                    words.push(word);
                }
            }
        }
    }

    fn test_words(&mut self) -> Parsed<Vec<Word>> {
        let mut words = Vec::new();
        loop {
            self.skip_lines()?;
            if self.at_keyword("]]") {
                self.skip(2)?;
                if words.iter().any(calculates) {
                    words.iter().for_each(|word| self.shared.calculates_with(word));
                }
                return Ok(words);
            }
            match self.peek() {
                None => return Err("it ends unexpectedly"),
                Some('(' | ')' | '<' | '>' | '|' | '&') if !self.at_process_substitution() => {
                    self.skip(1)?;
                }
                Some(';') => return Err("its syntax is not valid"),
                Some(_) => words.push(self.word()?),
            }
        }
    }

    pub(super) fn at_process_substitution(&self) -> bool {
        self.dialect == Dialect::Bash && (self.looking_at("<(") || self.looking_at(">("))
    }

    /// Reads the commands of a substitution, up to its parenthesis.
    pub(super) fn substitution(&mut self) -> Parsed<()> {
        let outer = std::mem::take(&mut self.awaited);
        let script = self.script(&[")"])?;
        self.skip(1)?;
        if !self.awaited.is_empty() {
            return Err("a here-document in it does not begin where it should");
        }
        self.awaited = outer;
        self.shared.substitutions.push(script);
        Ok(())
    }
}

/// Whether a sign in a test calculates with what stands beside it.
fn calculates(word: &Word) -> bool {
    const SIGNS: [&str; 7] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v"];
    word.literal().is_some_and(|text| SIGNS.contains(&text.as_str()))
}

/// Whether a character ends a word that is not quoted.
pub(super) fn is_break(next: char) -> bool {
    matches!(next, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')')
}

pub(super) fn is_name(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(|first| first == '_' || first.is_ascii_alphabetic())
        && characters.all(|next| next == '_' || next.is_ascii_alphanumeric())
}
