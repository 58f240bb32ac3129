//! The listing of a directory: an object like a file's content.

use super::escape::{escaped_bytes, unescaped_bytes};
use super::state::{Omission, State};

/// What a directory holds, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing(pub Vec<Item>);

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The bytes of the name.
    pub name: Vec<u8>,
    /// What it is.
    pub state: State,
    /// The object of a directory's listing; empty for everything else.
    pub listing: String,
    /// By what a file is known to be unchanged without reading it, where that is so.
    pub signature: Option<Signature>,
}

/// What differs when a file was changed: device, inode, size, the times of its content and of its
/// inode, and its mode.
pub type Signature = [i64; 8];

impl Listing {
    /// The object: a line for each name, its fields parted by tabs.
    pub fn encode(&self) -> Vec<u8> {
        let mut text = String::with_capacity(self.0.len() * 100);
        for Item { name, state, listing, signature } in &self.0 {
            let name = escaped_bytes(name);
            let signature = signature.map(spelled).unwrap_or_default();
            text.push_str(&match state {
                State::File { mode, objects, size } => {
                    format!("f\t{name}\t{mode:o}\t{size}\t{objects}\t{signature}\n")
                }
                State::Link { target } => format!("l\t{name}\t{target}\t{signature}\n"),
                State::Directory { mode } => format!("d\t{name}\t{mode:o}\t{listing}\n"),
                State::Left(why) => format!("x\t{name}\t{}\n", why.as_str()),
                State::Absent => String::new(),
            });
        }
        text.into_bytes()
    }

    /// What an object lists. Returns `None` if it is no listing.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        text.lines().map(item).collect::<Option<Vec<_>>>().map(Self)
    }
}

fn item(line: &str) -> Option<Item> {
    let mut fields = line.split('\t');
    let kind = fields.next()?;
    let name = unescaped_bytes(fields.next()?);
    let mut listing = String::new();
    let state = match kind {
        "f" => State::File {
            mode: u32::from_str_radix(fields.next()?, 8).ok()?,
            size: fields.next()?.parse().ok()?,
            objects: fields.next()?.to_owned(),
        },
        "l" => State::Link { target: fields.next()?.to_owned() },
        "d" => {
            let mode = u32::from_str_radix(fields.next()?, 8).ok()?;
            fields.next()?.clone_into(&mut listing);
            State::Directory { mode }
        }
        "x" => State::Left(Omission::parse(fields.next()?)?),
        _ => return None,
    };
    let signature = fields.next().and_then(parsed);
    Some(Item { name, state, listing, signature })
}

fn spelled(signature: Signature) -> String {
    signature.map(|number| format!("{number:x}")).join(".")
}

fn parsed(text: &str) -> Option<Signature> {
    // Negative numbers are written as they lie in memory.
    let number = |digits: &str| u64::from_str_radix(digits, 16).map(u64::cast_signed);
    let numbers: Vec<i64> = text.split('.').map(number).collect::<Result<_, _>>().ok()?;
    numbers.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_comes_back() {
        let item = |name: &[u8], state, listing: &str| Item {
            name: name.to_vec(),
            state,
            listing: listing.to_owned(),
            signature: name.starts_with(b"a").then_some([1, i64::MAX, 0, -1, 5, 6, 7, 8]),
        };
        let listing = Listing(vec![
            item(b"a\tb", State::File { mode: 0o4755, objects: "aa+bb".into(), size: 7 }, ""),
            item(b"empty", State::File { mode: 0o600, objects: String::new(), size: 0 }, ""),
            item(b"\xff", State::Directory { mode: 0o555 }, "cc"),
            item(b"l", State::Link { target: "x%0ay".into() }, ""),
            item(b"z", State::Left(Omission::Secret), ""),
        ]);
        assert_eq!(Listing::decode(&listing.encode()), Some(listing));
        assert_eq!(Listing::decode(b"what is this"), None);
    }
}
