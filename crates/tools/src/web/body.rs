//! Reading what a server sends, within bounds.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use mainstay_message::causes;
use reqwest::header::{CONTENT_ENCODING, HeaderMap};

/// The most that is read from the network: 8 MiB.
const PACKED: usize = 8 << 20;
/// The most that it may become when it is unpacked: 16 MiB.
const UNPACKED: u64 = 16 << 20;

/// What came.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) bytes: Vec<u8>,
    /// Whether it went on beyond the bounds.
    pub(super) cut: bool,
    /// Whether it is packed still.
    packed: bool,
}

/// Reads a body. It is not unpacked yet, because that may take a while.
pub(super) async fn read(mut response: reqwest::Response) -> Result<Body, String> {
    let packed = is_packed(response.headers())?;
    let mut bytes = Vec::new();
    let mut cut = false;
    while let Some(chunk) = response.chunk().await.map_err(|error| {
        format!("the connection broke after {} bytes: {}", bytes.len(), causes(&error))
    })? {
        let room = PACKED - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            cut = true;
            break;
        }
    }
    Ok(Body { bytes, cut, packed })
}

impl Body {
    /// Unpacks it, as far as the bounds allow.
    pub(super) fn unpacked(self) -> Result<Self, String> {
        if !self.packed || self.bytes.is_empty() {
            return Ok(self);
        }
        let mut bytes = Vec::new();
        let read =
            MultiGzDecoder::new(self.bytes.as_slice()).take(UNPACKED).read_to_end(&mut bytes);
        let full = bytes.len() as u64 >= UNPACKED;
        match read {
            // One that was cut cannot end well.
            Err(error) if !self.cut => Err(format!("could not decompress the answer: {error}")),
            _ => Ok(Self { bytes, cut: self.cut || full, packed: false }),
        }
    }
}

/// Whether it is packed in the one way that was asked for.
fn is_packed(headers: &HeaderMap) -> Result<bool, String> {
    let Some(value) = headers.get(CONTENT_ENCODING) else { return Ok(false) };
    match String::from_utf8_lossy(value.as_bytes()).trim().to_ascii_lowercase().as_str() {
        "" | "identity" => Ok(false),
        "gzip" | "x-gzip" => Ok(true),
        other => Err(format!("the server compressed it as {other:.20}, which was not requested")),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// A body that came whole.
    pub(in crate::web) fn whole(bytes: &[u8]) -> Body {
        Body { bytes: bytes.to_vec(), cut: false, packed: false }
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_bomb_is_unpacked_up_to_the_bound() {
        // A hundred times 4 MiB of zeros, in 400 KiB.
        let bytes = gzip(&vec![0; 4 << 20]).repeat(100);
        assert!(bytes.len() < 1 << 20);
        let body = Body { bytes, cut: false, packed: true }.unpacked().unwrap();
        assert!(body.cut);
        assert_eq!(body.bytes.len() as u64, UNPACKED);
    }

    #[test]
    fn what_was_cut_is_unpacked_as_far_as_it_goes_and_damage_is_told() {
        let text: String = (0..40_000).map(|number| format!("{number} ")).collect();
        let mut bytes = gzip(text.as_bytes());
        bytes.truncate(bytes.len() / 2);
        let damaged = Body { bytes: bytes.clone(), cut: false, packed: true }.unpacked();
        assert!(damaged.unwrap_err().contains("could not decompress"));
        let body = Body { bytes, cut: true, packed: true }.unpacked().unwrap();
        assert!(body.cut && body.bytes.len() > 1000 && text.as_bytes().starts_with(&body.bytes));
        assert!(
            Body { bytes: b"not valid gzip".to_vec(), cut: false, packed: true }
                .unpacked()
                .is_err()
        );
    }
}
