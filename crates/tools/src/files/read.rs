//! The `read_file` tool.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use mainstay_message::{Image, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::blocking::{self, Stop};
use super::bounds::Bounds;
use super::open::{Closed, Patient, open, whole};
use super::pdf::{self, Document};
use super::seen::fact;
use super::text::{BYTE_ORDER_MARK, clip, count, hash, hexadecimal, is_binary, size};
use super::{LARGE, LOOKS};
use crate::schema::{arguments, parameters};
use crate::{Action, Exposure, Fact, Invocation, Outcome, Piece, Tool, Traits, Workplace};

const DEFAULT_LINES: u64 = 2_000;
/// The most that one call shows.
const SHOWN_BYTES: usize = 48 << 10;
/// The most that is shown of one line.
const LINE_BYTES: usize = 2_000;
/// Looking for a line ends here.
const SCAN_LIMIT: u64 = 1 << 30;
const IMAGE_LIMIT: u64 = 5 << 20;
const BEGINNING: usize = 8 << 10;

/// Reads a file: lines of text, or a picture.
pub(super) struct ReadFile;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    path: String,
    /// First line, or page of a PDF, from 1.
    offset: Option<u64>,
    /// How many; 2000 lines if left out.
    limit: Option<u64>,
}

impl Tool for ReadFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "read_file".to_owned(),
            description:
                "Reads a text file as `number<tab>line`, a PDF by page, or shows a picture (png, \
                 jpeg, gif, webp)."
                    .to_owned(),
            parameters: parameters::<Arguments>(),
        }
    }

    fn traits(&self) -> Traits {
        LOOKS
    }

    fn exposure(&self) -> Exposure {
        Exposure::Always
    }

    fn action(&self, _call: &Invocation<'_>) -> Action {
        Action::Read
    }

    fn run<'a>(&'a self, call: Invocation<'a>, _plan: Option<&'a Value>) -> BoxFuture<'a, Outcome> {
        let given = arguments::<Arguments>(call.arguments);
        let workplace = call.workplace.clone();
        let room = workplace.confinement.room();
        let reader = call.workplace.reader.clone();
        let seen = call.workplace.seen.clone();
        Box::pin(async move {
            let found = blocking::blocking(room, move |stop| read(&workplace, &given?, stop)).await;
            let outcome = match found {
                Ok(Ok(FileRead::Done(outcome)) | Err(outcome)) | Err(outcome) => outcome,
                Ok(Ok(FileRead::Pdf(document))) => document.read(reader.as_ref()).await,
            };
            outcome.facts.iter().for_each(|fact| seen.note(fact));
            outcome
        })
    }
}

/// What a file turned out to be.
enum FileRead {
    Done(Outcome),
    Pdf(Document),
}

fn read(workplace: &Workplace, given: &Arguments, stop: &Stop) -> Result<FileRead, Outcome> {
    let bounds = Bounds::of(workplace);
    let path = bounds.locate(&given.path)?;
    let (mut file, metadata) =
        open(&bounds, &path).map_err(|closed| closed.outcome(&bounds, &path))?;
    let shown = bounds.shown(&path);
    let unreadable = |error: io::Error| Closed::Failed(error).outcome(&bounds, &path);

    let mut beginning = Vec::new();
    Patient::new((&mut file).take(BEGINNING as u64), stop)
        .read_to_end(&mut beginning)
        .map_err(unreadable)?;
    let outcome = if let Some(media_type) = media_type(&beginning) {
        picture(&shown, &path, media_type, beginning, file, stop).map_err(unreadable)?
    } else if beginning.starts_with(pdf::MARK) {
        let document = Document::new(file, &path, &shown, given.offset, given.limit);
        return document.hashed(metadata.len(), stop).map(FileRead::Pdf).map_err(unreadable);
    } else if is_binary(&beginning) {
        Outcome::failed(format!(
            "{shown} is a binary file of {}, not text. Use `shell` to inspect it.",
            size(metadata.len())
        ))
    } else {
        let wanted = Wanted {
            first: given.offset.unwrap_or(1).max(1),
            count: given.limit.unwrap_or(DEFAULT_LINES).max(1),
            hashed: metadata.len() <= LARGE,
        };
        let lines =
            scan(io::Cursor::new(beginning).chain(file), &wanted, stop).map_err(unreadable)?;
        lines.outcome(&shown, &path, &wanted)
    };
    Ok(FileRead::Done(outcome))
}

/// The kind of a picture, by its first bytes.
pub(crate) fn media_type(beginning: &[u8]) -> Option<&'static str> {
    match beginning {
        [0x89, b'P', b'N', b'G', 0x0D, 0x0A, 0x1A, 0x0A, ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

fn picture(
    shown: &str,
    path: &Path,
    media_type: &str,
    mut content: Vec<u8>,
    file: File,
    stop: &Stop,
) -> io::Result<Outcome> {
    let Some(rest) = whole(file, IMAGE_LIMIT - content.len() as u64, stop)? else {
        return Ok(Outcome::failed(format!(
            "{shown} is a picture ({media_type}) of more than {}. Make it smaller first.",
            size(IMAGE_LIMIT)
        )));
    };
    content.extend(rest);
    let mut outcome =
        Outcome::said(format!("{shown}: {media_type}, {}.", size(content.len() as u64)))
            .fact(fact(path, hash(&content), false));
    let base64 = STANDARD.encode(content);
    outcome.pieces.push(Piece::Image(Image { media_type: media_type.to_owned(), base64 }));
    Ok(outcome)
}

struct Wanted {
    first: u64,
    count: u64,
    hashed: bool,
}

/// What was found in a text.
#[derive(Default)]
struct Lines {
    text: String,
    /// How many lines are in `text`.
    shown: u64,
    /// How many lines were seen.
    seen: u64,
    bytes: u64,
    /// Whether all of the file was seen.
    whole: bool,
    /// Whether `text` could not take the next line.
    full: bool,
    /// How many of those that are shown end with CRLF.
    windows: u64,
    replaced: bool,
    hash: Option<String>,
}

/// Goes through a text and keeps the lines that are wanted. Memory is bounded whatever the file.
fn scan(mut reader: impl Read, wanted: &Wanted, stop: &Stop) -> io::Result<Lines> {
    let mut reader = Patient::new(&mut reader, stop);
    let mut lines = Lines::default();
    let mut hasher = Sha256::new();
    let mut line = Line::default();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = match reader.read(&mut buffer) {
            Ok(0) => break lines.whole = true,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let mut chunk = &buffer[..count];
        lines.bytes += count as u64;
        if wanted.hashed {
            hasher.update(chunk);
        }
        while let Some(end) = chunk.iter().position(|&byte| byte == b'\n') {
            line.extend(&chunk[..end]);
            lines.take(&mut line, wanted);
            chunk = &chunk[end + 1..];
        }
        line.extend(chunk);
        let done = lines.full || lines.seen >= wanted.first.saturating_add(wanted.count);
        let hashing = wanted.hashed && lines.bytes <= LARGE;
        if (done && !hashing) || lines.bytes > SCAN_LIMIT {
            break;
        }
    }
    if line.length > 0 {
        lines.take(&mut line, wanted);
    }
    if lines.whole && wanted.hashed && lines.bytes <= LARGE {
        lines.hash = Some(hexadecimal(&hasher.finalize()));
    }
    Ok(lines)
}

/// A line so far: its beginning and its length.
#[derive(Default)]
struct Line {
    beginning: Vec<u8>,
    length: usize,
    last: Option<u8>,
}

impl Line {
    fn extend(&mut self, bytes: &[u8]) {
        // A little more than is shown, so that a character on the border is whole.
        let room = (LINE_BYTES + 8).saturating_sub(self.beginning.len());
        self.beginning.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.length += bytes.len();
        self.last = bytes.last().copied().or(self.last);
    }
}

impl Lines {
    fn take(&mut self, line: &mut Line, wanted: &Wanted) {
        self.seen += 1;
        let number = self.seen;
        let Line { beginning, length, last } = std::mem::take(line);
        if number < wanted.first || self.shown == wanted.count || self.full {
            return;
        }
        let mut content = beginning.as_slice();
        if number == 1 {
            content = content.strip_prefix(BYTE_ORDER_MARK).unwrap_or(content);
        }
        if last == Some(b'\r') {
            content = content.strip_suffix(b"\r").unwrap_or(content);
        }
        let clipped = length > beginning.len() || content.len() > LINE_BYTES;
        let content = String::from_utf8_lossy(content);
        self.replaced |= content.contains('\u{FFFD}');
        let (text, _) = clip(&content, LINE_BYTES);
        let entry = if clipped {
            format!("{number}\t{text} [… {length} bytes in all]\n")
        } else {
            format!("{number}\t{text}\n")
        };
        if self.text.len() + entry.len() > SHOWN_BYTES {
            self.full = true;
            return;
        }
        self.text.push_str(&entry);
        self.shown += 1;
        self.windows += u64::from(last == Some(b'\r'));
    }

    fn outcome(self, shown: &str, path: &Path, wanted: &Wanted) -> Outcome {
        let last = wanted.first + self.shown.saturating_sub(1);
        let mut words = match (self.shown, self.seen) {
            (0, 0) => format!("{shown} is empty."),
            (0, seen) if self.whole => {
                let lines = count(seen, "line", "lines");
                format!("{shown} has only {lines}; there is no line {}.", wanted.first)
            }
            (0, seen) => format!(
                "Line {} of {shown} is not among its first {seen} ({}). Use `shell` to get at it.",
                wanted.first,
                size(self.bytes)
            ),
            _ if self.whole && wanted.first == 1 && last == self.seen => {
                format!("{shown}, {}.", count(self.seen, "line", "lines"))
            }
            _ if self.whole && last == self.seen => {
                format!("{shown}, lines {} to the last, {last}.", wanted.first)
            }
            _ => {
                let all = if self.whole { format!(" of {}", self.seen) } else { String::new() };
                let next = last + 1;
                format!(
                    "{shown}, lines {} to {last}{all}. Read on with offset {next}.",
                    wanted.first
                )
            }
        };
        match self.windows {
            0 => {}
            // The last line may have no end.
            windows if windows + 1 >= self.shown => words.push_str(" Lines end with CRLF."),
            _ => words.push_str(" Some lines end with CRLF."),
        }
        if self.replaced {
            words.push_str(" Bytes that are not UTF-8 are shown as \u{FFFD}.");
        }
        let mut outcome = if self.shown == 0 && self.seen > 0 {
            Outcome::failed(words)
        } else {
            Outcome::said(words)
        };
        if self.shown > 0 {
            outcome = outcome.data(self.text);
        }
        let fact: Option<Fact> = self.hash.map(|hash| fact(path, hash, false));
        outcome.facts.extend(fact);
        outcome
    }
}
