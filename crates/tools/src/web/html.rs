//! Pages as text: Markdown with their links, and the title.
//!
//! A page is read as a stream of tags and words, in one pass and without a tree: whatever it is, the
//! work grows with its length and nothing nests.

mod entities;
mod markdown;
mod tokens;

use markdown::{Keep, Writer};
use tokens::{Token, Tokens};
use url::Url;

/// What can be read of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) title: String,
    pub(super) text: String,
}

/// The words of a piece of a page, on one line.
pub(super) fn plain_text(html: &str) -> String {
    let mut text = String::new();
    for token in Tokens::new(html) {
        if let Token::Text(words) = token {
            text.push_str(&entities::decode(words));
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A page with less than this may have its words where usually none are.
const LITTLE: usize = 200;

/// Makes text of a page; links are resolved against its address.
pub(super) fn page(html: &str, address: &Url) -> Page {
    let page = Writer::new(address, Keep::Content).write(html);
    if page.text.len() >= LITTLE || html.len() < LITTLE {
        return page;
    }
    let all = Writer::new(address, Keep::All).write(html);
    if all.text.len() > page.text.len() { all } else { page }
}

#[cfg(test)]
mod tests;
