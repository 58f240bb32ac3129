//! What a server sent, made readable.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use mainstay_message::Image;
use url::Url;

use super::body::Body;
use super::html;
use crate::files::media_type;

/// The largest picture: 5 MiB.
const IMAGE: usize = 5 << 20;
/// Where a page may say how it is encoded, and where it shows what it is.
const BEGINNING: usize = 1_024;

/// Something that can be shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Document {
    Text { title: String, text: String },
    Image(Image),
    Pdf(Vec<u8>),
}

/// Reads what came. The error says why it cannot be shown.
pub(super) fn read(body: Body, content_type: &str, address: &Url) -> Result<Document, String> {
    let Body { bytes, cut, .. } = body;
    let (kind, charset) = parted(content_type);
    if let Some(media_type) = media_type(&bytes) {
        if cut || bytes.len() > IMAGE {
            return Err(format!("it is a picture of more than {} MiB", IMAGE >> 20));
        }
        let base64 = STANDARD.encode(bytes);
        return Ok(Document::Image(Image { media_type: media_type.to_owned(), base64 }));
    }
    if bytes.starts_with(b"%PDF-") {
        if cut {
            return Err("it is a PDF file over the size limit".to_owned());
        }
        return Ok(Document::Pdf(bytes));
    }
    let beginning = &bytes[..bytes.len().min(BEGINNING)];
    // UTF-16 has zeros too, and says so.
    if beginning.contains(&0) && Encoding::for_bom(&bytes).is_none() && charset.is_none() {
        return Err("it is not text".to_owned());
    }
    let is_page = matches!(kind.as_str(), "text/html" | "application/xhtml+xml")
        || (!says_plain(&kind) && looks_like_page(beginning));
    let text = decoded(&bytes, charset.as_deref(), is_page);
    if is_page {
        let html::Page { title, text } = html::page(&text, address);
        return Ok(Document::Text { title, text });
    }
    Ok(Document::Text { title: String::new(), text })
}

/// The kind that a server names, as far as it is one: it is told among the harness' own words.
pub(super) fn kind(content_type: &str) -> String {
    let kind = content_type.split(';').next().unwrap_or_default().trim().chars();
    let kind = kind.take_while(|letter| letter.is_ascii_alphanumeric() || "/+.-".contains(*letter));
    kind.take(60).collect::<String>().to_ascii_lowercase()
}

/// The kind and the encoding that a server names.
fn parted(content_type: &str) -> (String, Option<String>) {
    let mut parts = content_type.split(';').map(str::trim);
    let kind = kind(parts.next().unwrap_or_default());
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        let charset = name.trim().eq_ignore_ascii_case("charset");
        charset.then(|| value.trim().trim_matches('"').to_owned())
    });
    (kind, charset)
}

/// Whether a server says that it is text of another kind than a page.
fn says_plain(kind: &str) -> bool {
    kind.starts_with("text/") || kind.contains("json") || kind.contains("javascript")
}

fn looks_like_page(beginning: &[u8]) -> bool {
    let beginning = String::from_utf8_lossy(beginning).trim_start().to_ascii_lowercase();
    beginning.starts_with("<!doctype html") || beginning.starts_with("<html")
}

/// The text, by the mark at its beginning, by what the server says, by what the page says, or by
/// what it looks like.
fn decoded(bytes: &[u8], charset: Option<&str>, is_page: bool) -> String {
    let said = charset
        .and_then(|label| Encoding::for_label(label.as_bytes()))
        .or_else(|| is_page.then(|| named_in_page(bytes)).flatten());
    let encoding = match said {
        Some(encoding) => encoding,
        // The last character may be cut in the middle.
        None if std::str::from_utf8(bytes).map_or_else(|e| e.error_len().is_none(), |_| true) => {
            UTF_8
        }
        None => WINDOWS_1252,
    };
    encoding.decode(bytes).0.into_owned()
}

/// The encoding that a page names at its beginning.
fn named_in_page(bytes: &[u8]) -> Option<&'static Encoding> {
    let beginning =
        String::from_utf8_lossy(&bytes[..bytes.len().min(BEGINNING)]).to_ascii_lowercase();
    let (_, after) = beginning.split_once("charset")?;
    let label = after.trim_start().strip_prefix('=')?.trim_start_matches([' ', '"', '\'']);
    let end =
        label.find(|letter: char| !letter.is_ascii_alphanumeric() && !"-_.:".contains(letter));
    let encoding = Encoding::for_label(&label.as_bytes()[..end.unwrap_or(label.len())])?;
    // A page that says so in bytes of one each is none.
    Some(if encoding == encoding_rs::UTF_16LE || encoding == encoding_rs::UTF_16BE {
        UTF_8
    } else {
        encoding
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::body::tests::whole;

    fn text(content_type: &str, bytes: &[u8]) -> String {
        let address = Url::parse("https://example.org/").unwrap();
        match read(whole(bytes), content_type, &address) {
            Ok(Document::Text { text, .. }) => text,
            other => panic!("{content_type}: {other:?}"),
        }
    }

    #[test]
    fn text_is_decoded_as_the_server_or_the_page_says() {
        let cases: [(&str, &[u8], &str); 11] = [
            ("text/plain; charset=iso-8859-1", b"caf\xe9", "café"),
            ("text/plain; charset=\"Shift_JIS\"", b"\x83e\x83X\x83g", "テスト"),
            ("text/plain", "naïve".as_bytes(), "naïve"),
            ("text/plain", b"caf\xe9 \x80", "café €"),
            ("text/plain; charset=nonsense", "ü".as_bytes(), "ü"),
            ("text/plain", b"\xff\xfeh\0i\0", "hi"),
            ("text/html", b"<meta charset='windows-1251'><p>\xcf\xf0", "Пр"),
            ("text/html; charset=utf-8", b"<meta charset=latin1><p>\xc3\xa4", "ä"),
            ("", b"<!DOCTYPE html><p>page", "page"),
            ("application/octet-stream", b"plain <b>words", "plain <b>words"),
            ("text/plain; charset=utf-8", b"bad \xc3 byte", "bad \u{fffd} byte"),
        ];
        for (content_type, bytes, expected) in cases {
            assert_eq!(text(content_type, bytes), expected, "{content_type}");
        }
        assert_eq!(text("text/plain", b"<html> is a tag"), "<html> is a tag");
        assert_eq!(text("application/json", b"{\"a\": 1}"), "{\"a\": 1}");
    }

    #[test]
    fn pictures_and_documents_are_known_by_their_bytes_not_by_what_is_said() {
        let address = Url::parse("https://example.org/").unwrap();
        let png = b"\x89PNG\r\n\x1a\n rest";
        let read = |bytes: &[u8], kind: &str| read(whole(bytes), kind, &address);
        assert!(
            matches!(read(png, "text/html"), Ok(Document::Image(image)) if image.media_type == "image/png")
        );
        assert!(matches!(read(b"%PDF-1.7 x", "text/plain"), Ok(Document::Pdf(_))));
        assert_eq!(read(b"\x7fELF\0\0", "text/html").unwrap_err(), "it is not text");
        assert!(read(b"GIF89a", "image/gif").is_ok());
        let huge = [png.as_slice(), &vec![0; IMAGE]].concat();
        assert!(read(&huge, "image/png").unwrap_err().contains("more than 5 MiB"));
    }
}
