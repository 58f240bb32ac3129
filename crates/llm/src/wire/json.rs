//! Pieces of JSON that several formats share.

use std::fmt::{self, Display};

use mainstay_message::Image;
use serde::{Serialize, Serializer};

use super::conversation::{Part, Piece};

/// A picture as a `data:` address, written without a copy.
pub(crate) struct DataUrl<'a>(pub(crate) &'a Image);

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Image { media_type, base64 } = self.0;
        serializer.collect_str(&format_args!("data:{media_type};base64,{base64}"))
    }
}

/// Several texts as one string, with an empty line between, written without a copy.
pub(crate) struct Joined<'a>(pub(crate) Vec<&'a str>);

impl<'a> Joined<'a> {
    /// The words among these pieces.
    pub(crate) fn of_pieces(pieces: &[Piece<'a>]) -> Joined<'a> {
        let text = |piece: &Piece<'a>| match *piece {
            Piece::Text(text) => Some(text),
            Piece::Image(_) => None,
        };
        Joined(pieces.iter().filter_map(text).collect())
    }

    /// What was said among these parts.
    pub(crate) fn of_parts(parts: &[Part<'a>]) -> Joined<'a> {
        let text = |part: &Part<'a>| match *part {
            Part::Text(text) => Some(text),
            Part::Reasoning(_) | Part::Call(_) => None,
        };
        Joined(parts.iter().filter_map(text).collect())
    }

    /// What was thought among these parts.
    pub(crate) fn of_thoughts(parts: &[Part<'a>]) -> Option<Joined<'a>> {
        let text = |part: &Part<'a>| match *part {
            Part::Reasoning(reasoning) if !reasoning.text.is_empty() => Some(&*reasoning.text),
            Part::Reasoning(_) | Part::Text(_) | Part::Call(_) => None,
        };
        let thoughts: Vec<&str> = parts.iter().filter_map(text).collect();
        (!thoughts.is_empty()).then_some(Joined(thoughts))
    }
}

impl Display for Joined<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, text) in self.0.iter().enumerate() {
            if number > 0 {
                f.write_str("\n\n")?;
            }
            f.write_str(text)?;
        }
        Ok(())
    }
}

impl Serialize for Joined<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0[..] {
            [only] => serializer.serialize_str(only),
            _ => serializer.collect_str(self),
        }
    }
}

/// The pictures among these pieces.
pub(crate) fn images<'a>(pieces: &[Piece<'a>]) -> Vec<&'a Image> {
    let image = |piece: &Piece<'a>| match *piece {
        Piece::Image(image) => Some(image),
        Piece::Text(_) => None,
    };
    pieces.iter().filter_map(image).collect()
}
