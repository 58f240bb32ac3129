//! Words of the shell: quotes, escapes, expansions, substitutions.

use super::parse::{Dialect, Parsed, Parser, is_break};
use super::syntax::{Word, WordPart};

/// What a word is gathered from.
#[derive(Default)]
struct Gathered {
    parts: Vec<WordPart>,
    bare: String,
}

impl Gathered {
    fn push(&mut self, part: WordPart) {
        self.flush();
        self.parts.push(part);
    }

    fn flush(&mut self) {
        if !self.bare.is_empty() {
            self.parts.push(WordPart::Bare(std::mem::take(&mut self.bare)));
        }
    }

    fn word(mut self) -> Word {
        self.flush();
        Word { parts: self.parts }
    }
}

impl Parser<'_> {
    /// Reads a word, which must begin here.
    pub(super) fn word(&mut self) -> Parsed<Word> {
        self.deeper(Self::word_here)
    }

    fn word_here(&mut self) -> Parsed<Word> {
        let start = self.at;
        let mut word = Gathered::default();
        // Braces make several words of one only where a comma or two dots stand between them.
        let mut braces = 0_u32;
        while let Some(next) = self.peek() {
            match next {
                '<' | '>' if self.at_process_substitution() => {
                    self.shared.fed |= next == '>';
                    self.skip(2)?;
                    self.substitution()?;
                    // A path to what the other command writes or reads.
                    word.push(WordPart::Quoted("/dev/fd/63".to_owned()));
                }
                next if is_break(next) => break,
                '\\' if self.peek_at(1) == Some('\n') => self.skip(2)?,
                '\\' => {
                    self.skip(1)?;
                    let escaped = self.bump()?.map_or_else(|| "\\".to_owned(), String::from);
                    word.push(WordPart::Quoted(escaped));
                }
                '\'' => {
                    self.skip(1)?;
                    word.push(WordPart::Quoted(self.single_quoted()?));
                }
                '"' => {
                    self.skip(1)?;
                    word.flush();
                    self.double_quoted(&mut word.parts)?;
                }
                '`' | '$' => self.expansion(&mut word, false)?,
                '*' | '?' | '[' => {
                    self.skip(1)?;
                    word.push(WordPart::Pattern(next.to_string()));
                }
                '~' if self.at == start || word.bare.ends_with(['=', ':']) => {
                    self.skip(1)?;
                    word.push(WordPart::Pattern("~".to_owned()));
                }
                '{' if self.dialect == Dialect::Bash && self.opens_braces() => {
                    self.skip(1)?;
                    braces += 1;
                    word.push(WordPart::Pattern("{".to_owned()));
                }
                '}' if braces > 0 => {
                    self.skip(1)?;
                    braces -= 1;
                }
                _ => {
                    self.skip(1)?;
                    word.bare.push(next);
                }
            }
        }
        if self.at == start {
            return Err("a word is missing in it");
        }
        let word = word.word();
        // The verbs `[` and `[[` are no wildcards.
        let brackets = |part: &WordPart| matches!(part, WordPart::Pattern(text) if text == "[");
        if word.parts.len() <= 2 && word.parts.iter().all(brackets) {
            return Ok(Word { parts: vec![WordPart::Bare("[".repeat(word.parts.len()))] });
        }
        Ok(word)
    }

    /// Whether a brace here may make several words. Looking ahead is bounded.
    fn opens_braces(&self) -> bool {
        const FAR: usize = 256;
        let mut several = false;
        for offset in 1..FAR {
            match self.peek_at(offset) {
                None | Some(' ' | '\t' | '\n' | ';' | '&' | '|') => return false,
                Some('}') if several => return true,
                Some(',') => several = true,
                Some('.') if self.peek_at(offset + 1) == Some('.') => several = true,
                // Quotes and nested ones are not looked into: they are feared.
                Some('"' | '\'' | '\\' | '$' | '`' | '{') => return true,
                Some(_) => {}
            }
        }
        true
    }

    fn single_quoted(&mut self) -> Parsed<String> {
        let mut text = String::new();
        loop {
            match self.bump()? {
                None => return Err("a quote in it is not closed"),
                Some('\'') => return Ok(text),
                Some(next) => text.push(next),
            }
        }
    }

    /// Reads up to the closing quote.
    fn double_quoted(&mut self, parts: &mut Vec<WordPart>) -> Parsed<()> {
        let mut text = String::new();
        // An empty quote is a word too.
        let empty = parts.len();
        loop {
            match self.peek() {
                None => return Err("a quote in it is not closed"),
                Some('"') => {
                    self.skip(1)?;
                    if !text.is_empty() || parts.len() == empty {
                        parts.push(WordPart::Quoted(text));
                    }
                    return Ok(());
                }
                Some(_) => self.quoted_piece(&mut text, parts)?,
            }
        }
    }

    /// Reads to the end a text in which the shell expands as in double quotes.
    pub(super) fn expanded_text(&mut self) -> Parsed<Word> {
        let (mut text, mut parts) = (String::new(), Vec::new());
        while self.peek().is_some() {
            self.quoted_piece(&mut text, &mut parts)?;
        }
        parts.push(WordPart::Quoted(text));
        Ok(Word { parts })
    }

    fn quoted_piece(&mut self, text: &mut String, parts: &mut Vec<WordPart>) -> Parsed<()> {
        match self.peek() {
            Some('\\') => {
                self.skip(1)?;
                match self.bump()? {
                    Some('\n') => {}
                    Some(next @ ('$' | '`' | '"' | '\\')) => text.push(next),
                    Some(next) => text.extend(['\\', next]),
                    None => text.push('\\'),
                }
            }
            Some('$' | '`') => {
                if !text.is_empty() {
                    parts.push(WordPart::Quoted(std::mem::take(text)));
                }
                let mut inner = Gathered::default();
                self.expansion(&mut inner, true)?;
                // A lone dollar stands as it is.
                text.push_str(&std::mem::take(&mut inner.bare));
                parts.append(&mut inner.parts);
            }
            Some(next) => {
                self.skip(1)?;
                text.push(next);
            }
            None => {}
        }
        Ok(())
    }

    /// Reads what begins with a dollar or a backquote.
    fn expansion(&mut self, word: &mut Gathered, quoted: bool) -> Parsed<()> {
        self.deeper(|parser| parser.expansion_here(word, quoted))
    }

    fn expansion_here(&mut self, word: &mut Gathered, quoted: bool) -> Parsed<()> {
        if self.peek() == Some('`') {
            self.skip(1)?;
            self.backquoted(quoted)?;
            word.push(WordPart::Unknown { quoted });
            return Ok(());
        }
        let bash = self.dialect == Dialect::Bash;
        match self.peek_at(1) {
            Some('(') if self.peek_at(2) == Some('(') => {
                let start = self.at;
                self.skip(3)?;
                if self.calculation().is_err() {
                    // Not a calculation: a subshell within a substitution.
                    self.at = start;
                    self.skip(2)?;
                    self.substitution()?;
                }
                word.push(WordPart::Unknown { quoted });
            }
            Some('(') => {
                self.skip(2)?;
                self.substitution()?;
                word.push(WordPart::Unknown { quoted });
            }
            Some('[') if bash => {
                return Err("it uses an outdated syntax for arithmetic");
            }
            Some('{') => {
                self.skip(2)?;
                let part = self.braced(quoted)?;
                word.push(part);
            }
            Some('\'') if bash && !quoted => {
                self.skip(2)?;
                let text = self.c_quoted()?;
                word.push(WordPart::Quoted(text));
            }
            // Translated, and otherwise as without the dollar.
            Some('"') if bash && !quoted => {
                self.skip(2)?;
                word.flush();
                self.double_quoted(&mut word.parts)?;
            }
            Some(next) if next == '_' || next.is_ascii_alphabetic() => {
                self.skip(1)?;
                let mut name = String::new();
                while let Some(next) = self.peek() {
                    if next != '_' && !next.is_ascii_alphanumeric() {
                        break;
                    }
                    self.skip(1)?;
                    name.push(next);
                }
                word.push(WordPart::Variable { name, quoted });
            }
            Some(next @ ('0'..='9' | '@' | '*' | '#' | '?' | '-' | '$' | '!')) => {
                self.skip(2)?;
                word.push(WordPart::Variable { name: next.to_string(), quoted });
            }
            _ => {
                self.skip(1)?;
                word.bare.push('$');
            }
        }
        Ok(())
    }

    /// Reads `${…}` after its brace.
    fn braced(&mut self, quoted: bool) -> Parsed<WordPart> {
        // `${ command; }` runs a command.
        if self.peek().is_none_or(|next| next.is_whitespace() || next == '|') {
            return Err("it has an unknown expansion");
        }
        let indirect = self.peek() == Some('!');
        let mut name = String::new();
        while let Some(next) = self.peek() {
            if next != '_' && !next.is_ascii_alphanumeric() {
                break;
            }
            self.skip(1)?;
            name.push(next);
        }
        if self.peek() == Some('}') && !name.is_empty() {
            self.skip(1)?;
            return Ok(WordPart::Variable { name, quoted });
        }
        if self.looking_at("@P") {
            return Err("it runs the value of a variable");
        }
        if indirect || matches!(self.peek(), Some('@' | '*' | '[')) {
            // The value of a variable may name another, be calculated, or be run as a prompt.
            self.shared.runs_values = true;
        }
        let mut offset = 0;
        if self.peek() == Some(':') {
            offset = 1;
        }
        let default = matches!(self.peek_at(offset), Some('-' | '=' | '+'));
        if self.peek_at(offset) == Some('=') {
            self.shared.calculated.push(name.clone());
        }
        // Where a part of a value begins and ends is calculated.
        self.shared.runs_values |= offset == 1 && !default;
        if default && !name.is_empty() {
            self.skip(offset + 1)?;
        }
        let start = self.at;
        let word = self.until_brace(quoted)?;
        if !default {
            let text = self.text[start..self.at].iter().collect();
            self.shared.calculated.push(text);
        }
        if default && !name.is_empty() {
            self.shared.values.push((name.clone(), word));
            return Ok(WordPart::Variable { name, quoted });
        }
        Ok(WordPart::Unknown { quoted })
    }

    /// Reads up to the brace that closes an expansion.
    fn until_brace(&mut self, quoted: bool) -> Parsed<Word> {
        let mut word = Gathered::default();
        loop {
            match self.peek() {
                None => return Err("a brace in it is not closed"),
                Some('}') => {
                    self.skip(1)?;
                    return Ok(word.word());
                }
                Some('\\') => {
                    self.skip(1)?;
                    let escaped = self.bump()?.map(String::from).unwrap_or_default();
                    word.push(WordPart::Quoted(escaped));
                }
                Some('\'') if !quoted => {
                    self.skip(1)?;
                    word.push(WordPart::Quoted(self.single_quoted()?));
                }
                // Whether it quotes depends on the shell and on what stands around it.
                Some('\'') if self.closes_before_brace() => {
                    return Err("a quote in it can be read in two ways");
                }
                Some('"') => {
                    self.skip(1)?;
                    word.flush();
                    self.double_quoted(&mut word.parts)?;
                }
                Some('$' | '`') => self.expansion(&mut word, quoted)?,
                Some(next) => {
                    self.skip(1)?;
                    word.bare.push(next);
                }
            }
        }
    }

    fn closes_before_brace(&self) -> bool {
        let rest = self.text.get(self.at..).unwrap_or_default();
        rest.iter().take_while(|next| **next != '"').filter(|next| **next == '\'').count() > 1
    }

    /// Reads a calculation up to its two parentheses. Commands in it run.
    pub(super) fn calculation(&mut self) -> Parsed<()> {
        self.deeper(|parser| {
            // What a variable holds is calculated too, and a place in an array there may run
            // something.
            parser.shared.runs_values = true;
            let start = parser.at;
            let mut open = 0_u32;
            let mut inner = Gathered::default();
            loop {
                match parser.peek() {
                    None => return Err("a calculation in it is not closed"),
                    Some('(') => {
                        open += 1;
                        parser.skip(1)?;
                    }
                    Some(')') if open > 0 => {
                        open -= 1;
                        parser.skip(1)?;
                    }
                    Some(')') if parser.peek_at(1) == Some(')') => {
                        let text = parser.text[start..parser.at].iter().collect();
                        parser.shared.calculated.push(text);
                        return parser.skip(2);
                    }
                    Some(')') => return Err("a calculation in it is not closed"),
                    Some('$' | '`') => {
                        parser.shared.calculates = true;
                        parser.expansion(&mut inner, true)?;
                    }
                    Some(next) => {
                        parser.shared.calculates |= next == '_' || next.is_ascii_alphabetic();
                        parser.skip(1)?;
                    }
                }
            }
        })
    }

    /// Reads up to the closing backquote, and then what stands between them.
    fn backquoted(&mut self, quoted: bool) -> Parsed<()> {
        let mut inner = String::new();
        loop {
            match self.bump()? {
                None => return Err("a backquote in it is not closed"),
                Some('`') => break,
                Some('\\') => match self.bump()? {
                    Some(next @ ('`' | '\\' | '$')) => inner.push(next),
                    Some('"') if quoted => inner.push('"'),
                    Some(next) => inner.extend(['\\', next]),
                    None => return Err("a backquote in it is not closed"),
                },
                Some(next) => inner.push(next),
            }
        }
        let (dialect, depth) = (self.dialect, self.depth);
        let (script, error) = Parser::new(&inner, dialect, depth, self.shared).all();
        self.shared.substitutions.push(script);
        error.map_or(Ok(()), Err)
    }

    /// Reads `$'…'` after its quote.
    fn c_quoted(&mut self) -> Parsed<String> {
        let mut text = String::new();
        loop {
            let next = self.bump()?.ok_or("a quote in it is not closed")?;
            match next {
                '\'' => return Ok(text),
                '\\' => {
                    let escaped = self.bump()?.ok_or("a quote in it is not closed")?;
                    match self.c_escape(escaped)? {
                        Some('\0') | None => return Err("a quote in it hides a character"),
                        Some(meant) => text.push(meant),
                    }
                }
                next => text.push(next),
            }
        }
    }

    fn c_escape(&mut self, escaped: char) -> Parsed<Option<char>> {
        Ok(match escaped {
            'a' => Some('\u{7}'),
            'b' => Some('\u{8}'),
            'e' | 'E' => Some('\u{1b}'),
            'f' => Some('\u{c}'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'v' => Some('\u{b}'),
            '0'..='7' => {
                self.at -= 1;
                self.number(3, 8)?
            }
            'x' => self.number(2, 16)?,
            'u' => self.number(4, 16)?,
            'U' => self.number(8, 16)?,
            '\\' | '\'' | '"' | '?' => Some(escaped),
            _ => None,
        })
    }

    fn number(&mut self, digits: usize, radix: u32) -> Parsed<Option<char>> {
        let mut value = None;
        for _ in 0..digits {
            let Some(digit) = self.peek().and_then(|next| next.to_digit(radix)) else { break };
            self.skip(1)?;
            value = Some(value.unwrap_or(0_u32).wrapping_mul(radix).wrapping_add(digit));
        }
        Ok(value.and_then(char::from_u32))
    }
}
