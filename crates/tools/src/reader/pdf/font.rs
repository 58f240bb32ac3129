//! Fonts: which text a code stands for, and how wide its glyph is.

use std::collections::HashMap;

use hayro_syntax::object::{Array, Dict, Name, Object, Stream};

use super::character_map::CharacterMap;
use super::glyphs;

/// The most widths that are read.
const MOST_WIDTHS: usize = 100_000;

/// A font.
pub(super) struct Font {
    map: CharacterMap,
    codes: Codes,
    widths: HashMap<u32, f64>,
    usual_width: f64,
}

/// How codes are written, and what they mean where the table does not say.
enum Codes {
    /// One byte each.
    Bytes(Box<[String; 256]>),
    /// Two bytes each, mostly.
    Pairs {
        /// Whether a code is a unit of UTF-16.
        are_text: bool,
    },
}

/// A glyph that is drawn.
pub(super) struct Glyph {
    /// Empty where nobody knows what it shows.
    pub(super) text: String,
    /// As a share of the font's size.
    pub(super) width: f64,
    /// Whether the gap between words comes after it.
    pub(super) is_space: bool,
}

impl Font {
    pub(super) fn new(dict: &Dict<'_>) -> Self {
        let map = dict
            .get::<Stream<'_>>("ToUnicode")
            .and_then(|stream| stream.decoded_data().ok())
            .map(|program| CharacterMap::read(&program))
            .unwrap_or_default();
        let kind = dict.get::<Name<'_>>("Subtype");
        if kind.is_some_and(|kind| kind.as_ref() == b"Type0") {
            Self::composite(dict, map)
        } else {
            Self::simple(dict, map)
        }
    }

    fn composite(dict: &Dict<'_>, map: CharacterMap) -> Self {
        let below = dict.get::<Array<'_>>("DescendantFonts");
        let below = below.and_then(|fonts| fonts.iter::<Dict<'_>>().next()).unwrap_or_default();
        let usual_width = below.get::<f64>("DW").unwrap_or(1000.0) / 1000.0;
        let mut widths = HashMap::new();
        if let Some(array) = below.get::<Array<'_>>("W") {
            read_widths(&array, &mut widths);
        }
        let encoding = dict.get::<Name<'_>>("Encoding");
        let are_text = encoding.is_some_and(|name| {
            let name = name.as_str();
            name.contains("UCS2") || name.contains("UTF16")
        });
        Self { map, codes: Codes::Pairs { are_text }, widths, usual_width }
    }

    fn simple(dict: &Dict<'_>, map: CharacterMap) -> Self {
        let mut texts = glyphs::standard();
        if let Some(name) = dict.get::<Name<'_>>("Encoding") {
            texts = glyphs::named_encoding(name.as_ref()).unwrap_or(texts);
        } else if let Some(encoding) = dict.get::<Dict<'_>>("Encoding") {
            let base = encoding.get::<Name<'_>>("BaseEncoding");
            texts = base.and_then(|name| glyphs::named_encoding(name.as_ref())).unwrap_or(texts);
            let mut code = 0_usize;
            for item in encoding.get::<Array<'_>>("Differences").iter().flat_map(Array::iter) {
                match item {
                    Object::Number(number) => {
                        code = usize::try_from(number.as_i64()).unwrap_or(256);
                    }
                    Object::Name(name) => {
                        if let Some(slot) = texts.get_mut(code) {
                            *slot = glyphs::text(name.as_str()).unwrap_or_default();
                        }
                        code = code.saturating_add(1);
                    }
                    _ => {}
                }
            }
        }
        // A font that is drawn by programs has a scale of its own.
        let scale = dict
            .get::<Array<'_>>("FontMatrix")
            .and_then(|matrix| matrix.iter::<f64>().next())
            .unwrap_or(0.001);
        let first = dict.get::<u32>("FirstChar").unwrap_or(0);
        let widths = dict.get::<Array<'_>>("Widths");
        let widths: HashMap<u32, f64> = widths
            .iter()
            .flat_map(Array::iter::<f64>)
            .take(256)
            .enumerate()
            .filter_map(|(at, width)| {
                Some((first.checked_add(u32::try_from(at).ok()?)?, width * scale))
            })
            .collect();
        Self { map, codes: Codes::Bytes(texts), widths, usual_width: 0.5 }
    }

    /// The glyphs that a string draws.
    pub(super) fn glyphs<'f>(&'f self, bytes: &'f [u8]) -> impl Iterator<Item = Glyph> + 'f {
        let mut rest = bytes;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let length = match &self.codes {
                Codes::Bytes(_) => 1,
                Codes::Pairs { .. } => self.map.length(rest).unwrap_or(2).min(rest.len()),
            };
            let (code, after) = rest.split_at(length);
            rest = after;
            let number = code.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
            let width = self.widths.get(&number).copied().unwrap_or(self.usual_width);
            Some(Glyph { text: self.text(number), width, is_space: code == b" " })
        })
    }

    fn text(&self, code: u32) -> String {
        if let Some(text) = self.map.text(code) {
            // Some tables say zero where they mean nothing.
            return text.replace('\0', "");
        }
        match &self.codes {
            Codes::Bytes(texts) => usize::try_from(code)
                .ok()
                .and_then(|code| texts.get(code))
                .cloned()
                .unwrap_or_default(),
            Codes::Pairs { are_text: true } => {
                char::from_u32(code).map(String::from).unwrap_or_default()
            }
            Codes::Pairs { are_text: false } => String::new(),
        }
    }
}

/// Reads the widths of a composite font: lists for codes in a row, and ranges of one width.
fn read_widths(array: &Array<'_>, widths: &mut HashMap<u32, f64>) {
    let mut items = array.iter::<Object<'_>>();
    while let (Some(Object::Number(first)), Some(next)) = (items.next(), items.next()) {
        let Ok(first) = u32::try_from(first.as_i64()) else { return };
        match next {
            Object::Array(list) => {
                for (code, width) in (first..).zip(list.iter::<f64>()) {
                    widths.insert(code, width / 1000.0);
                }
            }
            Object::Number(last) => {
                let (Ok(last), Some(Object::Number(width))) =
                    (u32::try_from(last.as_i64()), items.next())
                else {
                    return;
                };
                for code in first..=last.min(first.saturating_add(65_535)) {
                    widths.insert(code, width.as_f64() / 1000.0);
                }
            }
            _ => return,
        }
        if widths.len() > MOST_WIDTHS {
            return;
        }
    }
}
