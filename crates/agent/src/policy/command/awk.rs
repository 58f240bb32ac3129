//! Programs for `awk`, read by their own grammar as far as it takes to see what they may do.

use super::options::Options;
use super::syntax::Word;
use super::walk::Finding;
use super::{Class, verbs};

const OPTIONS: Options = Options { letters: "F:v:", names: "field-separator= assign=" };

/// Judges `awk` with its words. A program that is not in the line is code.
pub(super) fn judge(words: &[Word]) -> Finding {
    let Ok(given) = OPTIONS.read_own(words) else { return verbs::unlisted(words) };
    let program = given.plain.first().and_then(|word| word.literal());
    match program {
        Some(program) if only_looks(&program) => Class::Read.into(),
        Some(program) => Finding::from(Class::Execute).and(verbs::mentioned(&program)),
        None => verbs::unlisted(words),
    }
}

/// Whether a program has no way to run or to write anything.
fn only_looks(program: &str) -> bool {
    // Whether a slash after a parenthesis divides or begins a pattern depends on what stands before:
    // the program must be harmless either way.
    [Slash::Divides, Slash::Begins]
        .into_iter()
        .all(|slash| tokens(program, slash).is_some_and(|tokens| is_harmless(&tokens)))
}

/// What a slash after a closing parenthesis does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slash {
    Divides,
    Begins,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A name or a keyword.
    Name(String),
    /// A number, a text or a pattern.
    Value,
    Sign(char),
    /// `>>`
    Appends,
    /// `||`, `&&` and the like: two signs that belong together.
    Pair,
    Newline,
}

/// The tokens of a program. Returns `None` if it cannot be read.
fn tokens(program: &str, slash: Slash) -> Option<Vec<Token>> {
    let characters: Vec<char> = program.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&next) = characters.get(at) {
        let after = characters.get(at + 1).copied();
        at += 1;
        match next {
            ' ' | '\t' | '\r' => {}
            '\\' if after == Some('\n') => at += 1,
            '\n' => tokens.push(Token::Newline),
            '#' => {
                while characters.get(at).is_some_and(|next| *next != '\n') {
                    at += 1;
                }
            }
            '"' => {
                at = closed(&characters, at, '"')?;
                tokens.push(Token::Value);
            }
            '/' if begins_pattern(tokens.last(), slash) => {
                at = closed(&characters, at, '/')?;
                tokens.push(Token::Value);
            }
            _ if next == '_' || next.is_ascii_alphabetic() => {
                let start = at - 1;
                let is_inner = |next: &char| *next == '_' || next.is_ascii_alphanumeric();
                while characters.get(at).is_some_and(is_inner) {
                    at += 1;
                }
                tokens.push(Token::Name(characters[start..at].iter().collect()));
            }
            '0'..='9' | '.' => {
                let is_inner = |next: &char| *next == '.' || next.is_ascii_alphanumeric();
                while characters.get(at).is_some_and(is_inner) {
                    at += 1;
                }
                tokens.push(Token::Value);
            }
            '>' if after == Some('>') => {
                at += 1;
                tokens.push(Token::Appends);
            }
            '|' if after == Some('|') => {
                at += 1;
                tokens.push(Token::Pair);
            }
            '&' if after == Some('&') => {
                at += 1;
                tokens.push(Token::Pair);
            }
            '=' | '!' | '<' | '>' if after == Some('=') => {
                at += 1;
                tokens.push(Token::Pair);
            }
            '+' | '-' if after == Some(next) => {
                at += 1;
                // What it counts may stand on either side; a pattern cannot follow a name.
                tokens.push(Token::Value);
            }
            _ if next.is_ascii_punctuation() => tokens.push(Token::Sign(next)),
            _ => return None,
        }
    }
    Some(tokens)
}

/// The place behind the sign that closes what begins at `from`.
fn closed(characters: &[char], from: usize, sign: char) -> Option<usize> {
    let mut at = from;
    let mut in_brackets = false;
    while let Some(&next) = characters.get(at) {
        match next {
            '\\' => at += 1,
            '\n' => return None,
            '[' if sign == '/' => in_brackets = true,
            ']' if sign == '/' => in_brackets = false,
            // Whether brackets hide a slash depends on the `awk`.
            _ if next == sign && in_brackets => return None,
            _ if next == sign => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
    None
}

fn begins_pattern(last: Option<&Token>, slash: Slash) -> bool {
    match last {
        None | Some(Token::Newline | Token::Pair | Token::Appends) => true,
        Some(Token::Value) => false,
        Some(Token::Sign(')')) => slash == Slash::Begins,
        Some(Token::Sign(sign)) => !matches!(sign, ']' | '$'),
        Some(Token::Name(name)) => {
            matches!(name.as_str(), "print" | "printf" | "return" | "in" | "else" | "do" | "case")
        }
    }
}

fn is_harmless(tokens: &[Token]) -> bool {
    // Within `print`, a greater-than sign that no parenthesis holds leads to a file.
    let mut printing = false;
    let mut open = 0_u32;
    let mut before: Option<&Token> = None;
    for token in tokens {
        match token {
            Token::Name(name) => match name.as_str() {
                "system" | "getline" | "fflush" | "close" => return false,
                "print" | "printf" => (printing, open) = (true, 0),
                _ => {}
            },
            Token::Sign('|' | '@') => return false,
            Token::Sign('(' | '[') => open += 1,
            Token::Sign(')' | ']') => open = open.saturating_sub(1),
            Token::Sign(';' | '}' | '{') => printing = false,
            Token::Sign('>') | Token::Appends if printing && open == 0 => return false,
            // A line goes on after a comma and after signs that join.
            Token::Newline if !matches!(before, Some(Token::Sign(',') | Token::Pair)) => {
                printing = false;
            }
            Token::Sign(_) | Token::Value | Token::Pair | Token::Appends | Token::Newline => {}
        }
        before = Some(token);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_only_look_are_told_from_those_that_may_do_more() {
        let looking = [
            "{ print $1, $3 }",
            "$3 > 1000 { print $1 }",
            "{ print ($1 > 3) }",
            "{ print a[$1 > 2] }",
            "{ s += $1 } END { print s / NR }",
            "/a|b/ { n++ } END { print n }",
            "NR % 2 == 0 || NR > 5",
            "{ gsub(/\\//, \"|\"); print }",
            "BEGIN { print \"a > b | c\" } # > x",
            "{ systems = 1; print systems }",
        ];
        for program in looking {
            assert!(only_looks(program), "{program}");
        }
        let feared = [
            "{ print > \"f\" }",
            "{ print \"a;\" > \"f\" }",
            "{ print \"a}\" > \"f\" }",
            "{ print 1,\n 2 > \"f\" }",
            "{ print 1, \\\n 2 >> \"f\" }",
            "{ print(1, 2) > \"f\" }",
            "{ printf \"%s\", 1 | \"sh\" }",
            "BEGIN { system(\"x\") }",
            "BEGIN { \"x\" | getline }",
            "BEGIN { @f() }",
            "{ if (x) /a\"/; print \"\" > \"f\" }",
            "{ print /[/]/ > \"f\" }",
            "\"unclosed",
        ];
        for program in feared {
            assert!(!only_looks(program), "{program}");
        }
    }
}
