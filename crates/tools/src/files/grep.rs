//! The `grep` tool.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, MmapChoice, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch,
};
use mainstay_message::ToolSpec;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::LOOKS;
use super::blocking::{self, Stop};
use super::bounds::Bounds;
use super::glob::Pattern;
use super::open::{Closed, Patient, open};
use super::text::{clip, count};
use super::walk::{Hidden, Root, Walk, root};
use crate::schema::{arguments, parameters};
use crate::{Action, Exposure, Invocation, Outcome, Tool, Traits, Workplace};

const SHOWN_MATCHES: usize = 200;
const SHOWN_FILES: usize = 500;
const SHOWN_BYTES: usize = 32 << 10;
const LINE_BYTES: usize = 400;
const CONTEXT_LIMIT: usize = 10;
/// The most that is searched of one file, and that one line may take in memory.
const FILE_LIMIT: u64 = 1 << 30;
const LINE_MEMORY: usize = 16 << 20;

/// Searches the contents of files.
pub(super) struct Grep;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Rust regex for one line.
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    ignore_case: Option<bool>,
    /// Lines around.
    context: Option<usize>,
    /// Names and counts.
    files_only: Option<bool>,
}

impl Tool for Grep {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "grep".to_owned(),
            description: "Searches a file, or a directory without hidden and git-ignored files."
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
        Box::pin(blocking::outcome(room, move |stop| grep(&workplace, &given?, stop)))
    }
}

fn grep(workplace: &Workplace, given: &Arguments, stop: &Stop) -> Result<Outcome, Outcome> {
    let bounds = Arc::new(Bounds::of(workplace));
    let mut search = Search::new(given)?;
    let mut notes = Vec::new();
    match root(&bounds, given.path.as_deref())? {
        Root::File(path) => search.file(&bounds, &path, stop)?,
        Root::Directory(directory) => {
            let glob = given.glob.as_deref().map(Pattern::new).transpose()?;
            let hidden = glob.as_ref().map_or(Hidden::Skipped, |glob| glob.hidden);
            let mut walk = Walk::new(&bounds, &directory, None, hidden, stop);
            while !search.found.full
                && let Some(entry) = walk.next()
            {
                let wanted = entry.file_type().is_some_and(|kind| kind.is_file())
                    && glob.as_ref().is_none_or(|glob| glob.matches(&directory, entry.path()));
                if wanted {
                    search.file(&bounds, entry.path(), stop)?;
                }
            }
            notes = walk.notes(&bounds);
        }
    }
    stop.check()?;
    Ok(search.outcome(&bounds, notes))
}

struct Search {
    matcher: RegexMatcher,
    searcher: Searcher,
    found: Matches,
    unsearched: Vec<PathBuf>,
}

impl Search {
    fn new(given: &Arguments) -> Result<Self, Outcome> {
        let matcher = RegexMatcherBuilder::new()
            .case_insensitive(given.ignore_case == Some(true))
            .multi_line(true)
            // In this order: the first sets the end of a line too, which the searcher has to share.
            .crlf(true)
            .line_terminator(Some(b'\n'))
            .size_limit(10 << 20)
            .dfa_size_limit(32 << 20)
            .build(&given.pattern)
            .map_err(|error| {
                Outcome::failed(format!(
                    "The pattern is not a valid regular expression for a line: {error}. Escape special characters with `\\`."
                ))
            })?;
        let show = if given.files_only == Some(true) { Show::Files } else { Show::Lines };
        let context = match show {
            Show::Files => 0,
            Show::Lines => given.context.unwrap_or(0).min(CONTEXT_LIMIT),
        };
        let searcher = SearcherBuilder::new()
            .memory_map(MmapChoice::never())
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(LINE_MEMORY))
            .before_context(context)
            .after_context(context)
            .build();
        Ok(Self { matcher, searcher, found: Matches::new(show), unsearched: Vec::new() })
    }

    fn file(&mut self, bounds: &Bounds, path: &Path, stop: &Stop) -> Result<(), Outcome> {
        stop.check()?;
        match open(bounds, path) {
            Ok((file, _)) => {
                let searched = self.contents(file, bounds.shown(path), stop);
                stop.check()?;
                if searched.is_err() {
                    self.unsearched.push(path.to_owned());
                }
            }
            // It is gone, or a link is in the way by now: what the walk came upon is not there.
            Err(Closed::Missing | Closed::Elsewhere) => {}
            Err(_) => self.unsearched.push(path.to_owned()),
        }
        Ok(())
    }

    fn contents(&mut self, file: File, name: String, stop: &Stop) -> io::Result<()> {
        let reader = Patient::new(file.take(FILE_LIMIT), stop);
        let mut sink =
            InFile { found: &mut self.found, name, text: String::new(), matches: 0, binary: false };
        let searched = self.searcher.search_reader(&self.matcher, reader, &mut sink);
        sink.end();
        searched
    }

    fn outcome(self, bounds: &Bounds, notes: Vec<String>) -> Outcome {
        let Matches { text, matches, files, full, .. } = self.found;
        let lines = count(matches as u64, "matching line", "matching lines");
        let in_files = count(files as u64, "file", "files");
        let mut words = vec![match (matches, full) {
            (0, _) => "No matches.".to_owned(),
            (_, false) => format!("{lines} in {in_files}."),
            (_, true) => format!(
                "Stopped after {lines} in {in_files}; there may be more. \
                 Narrow the pattern, the path or the glob."
            ),
        }];
        if let Some(first) = self.unsearched.first() {
            words.push(format!(
                "{} could not be searched, including {}.",
                count(self.unsearched.len() as u64, "file", "files"),
                bounds.shown(first)
            ));
        }
        words.extend(notes);
        let outcome = Outcome::said(words.join(" "));
        if text.is_empty() { outcome } else { outcome.data(text) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Show {
    Lines,
    Files,
}

/// What was found in all files.
struct Matches {
    show: Show,
    text: String,
    matches: usize,
    files: usize,
    /// Whether no more fits.
    full: bool,
}

impl Matches {
    fn new(show: Show) -> Self {
        Self { show, text: String::new(), matches: 0, files: 0, full: false }
    }
}

/// What is found in one file. It counts only when the file turns out to be text.
struct InFile<'a> {
    found: &'a mut Matches,
    name: String,
    text: String,
    matches: usize,
    binary: bool,
}

impl InFile<'_> {
    /// Adds a line, and says whether there is room for more.
    fn line(&mut self, number: Option<u64>, mark: char, line: &[u8]) -> bool {
        let line = String::from_utf8_lossy(line);
        let (line, left) = clip(line.trim_end_matches(['\r', '\n']), LINE_BYTES);
        let more = if left > 0 { " […]" } else { "" };
        self.text.push_str(&format!("{}{mark}{line}{more}\n", number.unwrap_or_default()));
        self.found.text.len() + self.text.len() < SHOWN_BYTES
    }

    fn end(self) {
        if self.matches == 0 || self.binary {
            return;
        }
        let found = self.found;
        found.files += 1;
        found.matches += self.matches;
        match found.show {
            Show::Lines => found.text.push_str(&format!("{}\n{}", self.name, self.text)),
            Show::Files => found.text.push_str(&format!("{}: {}\n", self.name, self.matches)),
        }
        found.full = found.text.len() >= SHOWN_BYTES
            || match found.show {
                Show::Lines => found.matches >= SHOWN_MATCHES,
                Show::Files => found.files >= SHOWN_FILES,
            };
    }
}

impl Sink for InFile<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.matches += 1;
        if self.found.show == Show::Files {
            return Ok(true);
        }
        let room = self.line(found.line_number(), ':', found.bytes());
        Ok(room && self.found.matches + self.matches < SHOWN_MATCHES)
    }

    fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> io::Result<bool> {
        Ok(self.line(found.line_number(), '-', found.bytes()))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.text.push_str("--\n");
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.binary = true;
        Ok(false)
    }
}
