//! What is sent for what was typed: the words, and the pictures that they name by path.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_message::{Content, Image};
use mainstay_tools::beneath;

use crate::wording;

/// The biggest picture that providers take.
const BIGGEST: u64 = 5 << 20;

/// The words and the pictures. A picture is named as `@path`, or by its path alone as terminals
/// write it when a file is dropped on them.
pub(crate) fn content(
    text: &str,
    workspace: &Path,
    home: Option<&Path>,
) -> Result<Vec<Content>, String> {
    let mut content = vec![Content::Text(text.to_owned())];
    let mut taken: Vec<PathBuf> = Vec::new();
    for word in split_words(text) {
        let Some(path) = named(&word, workspace, home) else { continue };
        if !taken.contains(&path) {
            content.push(Content::Image(read(&path)?));
            taken.push(path);
        }
    }
    Ok(content)
}

/// The words of a text; quotes and backslashes keep a path with blanks together.
fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' | '"' if quote == Some(letter) => quote = None,
            '\'' | '"' if quote.is_none() && (word.is_empty() || word == "@") => {
                quote = Some(letter);
            }
            '\\' if quote.is_none() && letters.peek() == Some(&' ') => {
                letters.next();
                word.push(' ');
            }
            letter if letter.is_whitespace() && (quote.is_none() || letter == '\n') => {
                quote = None;
                words.push(std::mem::take(&mut word));
            }
            letter => word.push(letter),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// The picture that a word names. Returns `None` if it names none.
fn named(word: &str, workspace: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let marked = word.strip_prefix('@');
    let name = marked.unwrap_or(word).trim_end_matches(['?', '!', ',', ';', ':', '.', ')']);
    let name = name.strip_prefix("file://").unwrap_or(name);
    let path = match (name.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(name),
    };
    if marked.is_none() && !path.is_absolute() {
        return None;
    }
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    if !["png", "jpg", "jpeg", "gif", "webp"].contains(&ending.as_str()) {
        return None;
    }
    let path = workspace.join(path);
    path.is_file().then_some(path)
}

fn read(path: &Path) -> Result<Image, String> {
    let shown = path.display();
    let unreadable = |error: io::Error| format!("could not read {shown}: {error}");
    // The user's links are followed once; what is put in their place then leads nowhere.
    let real = path.canonicalize().map_err(unreadable)?;
    let file = beneath::file(&real).map_err(unreadable)?;
    let size = file.metadata().map_err(unreadable)?.len();
    if size > BIGGEST {
        return Err(format!(
            "{shown} has {}; pictures may have at most {}. Make it smaller first.",
            wording::size(size),
            wording::size(BIGGEST)
        ));
    }
    let mut bytes = Vec::new();
    file.take(BIGGEST).read_to_end(&mut bytes).map_err(unreadable)?;
    let media_type = match bytes.get(..12).unwrap_or(&bytes) {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P'] => "image/webp",
        _ => return Err(format!("{shown} is not a picture in a supported format.")),
    };
    Ok(Image { media_type: media_type.to_owned(), base64: STANDARD.encode(bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_store::fsatomic::write;

    fn kinds(text: &str, workspace: &Path) -> Vec<String> {
        let content = content(text, workspace, Some(workspace)).unwrap();
        content
            .iter()
            .map(|part| match part {
                Content::Text(text) => text.clone(),
                Content::Image(image) => image.media_type.clone(),
            })
            .collect()
    }

    #[test]
    fn pictures_are_found_by_their_paths() {
        let place = tempfile::tempdir().unwrap();
        let at = place.path();
        write(&at.join("a b.png"), b"\x89PNG\r\n\x1a\n....", 0o600).unwrap();
        write(&at.join("c.jpg"), b"\xff\xd8\xff\xe0....", 0o600).unwrap();
        write(&at.join("d.rs"), b"fn", 0o600).unwrap();
        let absolute = at.join("c.jpg").display().to_string();
        let cases = [
            ("what is @c.jpg and @c.jpg?".to_owned(), vec!["image/jpeg"]),
            ("@'a b.png' @d.rs".to_owned(), vec!["image/png"]),
            (absolute, vec!["image/jpeg"]),
            (at.join("a\\ b.png").display().to_string(), vec!["image/png"]),
            ("@~/c.jpg".to_owned(), vec!["image/jpeg"]),
            ("c.jpg @missing.png it's".to_owned(), vec![]),
        ];
        for (text, images) in cases {
            let mut expected = vec![text.clone()];
            expected.extend(images.into_iter().map(str::to_owned));
            assert_eq!(kinds(&text, at), expected);
        }
    }

    #[test]
    fn what_only_calls_itself_a_picture_is_told() {
        let place = tempfile::tempdir().unwrap();
        write(&place.path().join("x.png"), b"hello", 0o600).unwrap();
        assert!(content("@x.png", place.path(), None).unwrap_err().contains("not a picture"));
    }
}
