//! A page as tags and words.

use std::borrow::Cow;

use super::entities;

/// A piece of a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// Words, with their entities as they stand.
    Text(&'a str),
    /// The beginning of an element, its name in lower case.
    Open(Cow<'a, str>, Attributes<'a>),
    /// The end of an element.
    Close(Cow<'a, str>),
}

/// The attributes of a tag, as they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attributes<'a>(&'a str);

/// Elements whose content is no markup.
const RAW: &[&str] =
    &["script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"];

/// Reads a page from its beginning to its end; each byte is looked at a fixed number of times.
pub(super) struct Tokens<'a> {
    rest: &'a str,
    /// The element whose content is not markup, where one has just begun.
    raw: Option<&'static str>,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(html: &'a str) -> Self {
        Self { rest: html, raw: None }
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }

    /// Skips what begins here and ends with `end`, or all that is left.
    fn skip_past(&mut self, end: &str) {
        let length = self.rest.find(end).map_or(self.rest.len(), |at| at + end.len());
        self.take(length);
    }

    /// A tag, after its `<` or `</`: its name and what follows up to its `>`.
    fn tag(&mut self) -> (Cow<'a, str>, Attributes<'a>) {
        let bytes = self.rest.as_bytes();
        let name_ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>');
        let end = bytes.iter().position(name_ends).unwrap_or(bytes.len());
        let name = lower(self.take(end));
        let bytes = self.rest.as_bytes();
        let mut quote = None;
        let mut before = b' ';
        let mut end = bytes.len();
        for (at, &byte) in bytes.iter().enumerate() {
            match quote {
                Some(open) if byte == open => quote = None,
                Some(_) => {}
                // A quote counts where a value begins.
                None if matches!(byte, b'"' | b'\'') && before == b'=' => quote = Some(byte),
                None if byte == b'>' => {
                    end = at;
                    break;
                }
                None => {}
            }
            if !byte.is_ascii_whitespace() {
                before = byte;
            }
        }
        let attributes = Attributes(self.take(end));
        if !self.rest.is_empty() {
            self.take(1);
        }
        (name, attributes)
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        if let Some(name) = self.raw.take() {
            let end = raw_end(self.rest, name);
            if end > 0 {
                return Some(Token::Text(self.take(end)));
            }
        }
        loop {
            let bytes = self.rest.as_bytes();
            match bytes {
                [] => return None,
                [b'<', b'!', b'-', b'-', ..] => {
                    self.take(4);
                    self.skip_past("-->");
                }
                [b'<', b'!' | b'?', ..] => self.skip_past(">"),
                [b'<', b'/', letter, ..] if letter.is_ascii_alphabetic() => {
                    self.take(2);
                    return Some(Token::Close(self.tag().0));
                }
                [b'<', b'/', ..] => self.skip_past(">"),
                [b'<', letter, ..] if letter.is_ascii_alphabetic() => {
                    self.take(1);
                    let (name, attributes) = self.tag();
                    self.raw = RAW.iter().copied().find(|raw| *raw == name);
                    return Some(Token::Open(name, attributes));
                }
                _ => {
                    let next = bytes.iter().skip(1).position(|byte| *byte == b'<');
                    return Some(Token::Text(self.take(next.map_or(bytes.len(), |at| at + 1))));
                }
            }
        }
    }
}

/// Where the content of an element ends that holds no markup.
fn raw_end(text: &str, name: &str) -> usize {
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(found) = text[from..].find("</") {
        let at = from + found;
        let after = &bytes[at + 2..];
        if after.len() >= name.len() && after[..name.len()].eq_ignore_ascii_case(name.as_bytes()) {
            return at;
        }
        from = at + 2;
    }
    text.len()
}

fn lower(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    }
}

impl<'a> Attributes<'a> {
    /// The value of an attribute, empty where it has none. The first of two holds.
    pub(super) fn get(self, wanted: &str) -> Option<Cow<'a, str>> {
        self.iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| entities::decode(value))
    }

    fn iter(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            rest = rest
                .trim_start_matches(|letter: char| letter.is_ascii_whitespace() || letter == '/');
            if rest.is_empty() {
                return None;
            }
            let ends = |letter: char| letter.is_ascii_whitespace() || matches!(letter, '=' | '/');
            // A name may begin with what else would end it.
            let first = rest.chars().next().map_or(0, char::len_utf8);
            let end = rest[first..].find(ends).map_or(rest.len(), |at| first + at);
            let (name, after) = rest.split_at(end);
            let after = after.trim_start();
            let Some(value) = after.strip_prefix('=') else {
                rest = after;
                return Some((name, ""));
            };
            let value = value.trim_start();
            let (value, after) = match value.chars().next() {
                Some(quote @ ('"' | '\'')) => {
                    let inner = &value[1..];
                    inner.split_once(quote).unwrap_or((inner, ""))
                }
                _ => {
                    let end = value.find(|letter: char| letter.is_ascii_whitespace());
                    value.split_at(end.unwrap_or(value.len()))
                }
            };
            rest = after;
            Some((name, value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(html: &str) -> Vec<String> {
        Tokens::new(html)
            .map(|token| match token {
                Token::Text(text) => format!("{text:?}"),
                Token::Open(name, _) => format!("<{name}>"),
                Token::Close(name) => format!("</{name}>"),
            })
            .collect()
    }

    #[test]
    fn tags_words_comments_and_raw_content_are_told_apart() {
        let cases: [(&str, &[&str]); 9] = [
            ("a<B c=d>e</b >f", &["\"a\"", "<b>", "\"e\"", "</b>", "\"f\""]),
            ("1 < 2 <3", &["\"1 \"", "\"< 2 \"", "\"<3\""]),
            ("<!doctype html><!-- <b> -->x", &["\"x\""]),
            (
                "<script>if (a<b) '</scr'</SCRIPT >y",
                &["<script>", "\"if (a<b) '</scr'\"", "</script>", "\"y\""],
            ),
            ("<a title=\"x>y\">z", &["<a>", "\"z\""]),
            ("<a b'>c", &["<a>", "\"c\""]),
            ("<a href=\"never closed>z", &["<a>"]),
            ("x<!-- open", &["\"x\""]),
            ("<style></style></>q", &["<style>", "</style>", "\"q\""]),
        ];
        for (html, expected) in cases {
            assert_eq!(names(html), expected, "{html}");
        }
    }

    #[test]
    fn attributes_are_found_however_they_are_written() {
        let Some(Token::Open(_, attributes)) =
            Tokens::new("<a  HREF = 'x?a=1&amp;b=2' id=ä/b hidden class=\"\" =odd/ >").next()
        else {
            panic!("no tag");
        };
        assert_eq!(attributes.get("href").as_deref(), Some("x?a=1&b=2"));
        assert_eq!(attributes.get("id").as_deref(), Some("ä/b"));
        assert_eq!(attributes.get("hidden").as_deref(), Some(""));
        assert_eq!(attributes.get("class").as_deref(), Some(""));
        assert_eq!(attributes.get("src"), None);
    }
}
