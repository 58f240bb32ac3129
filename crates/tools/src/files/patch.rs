//! Applies a unified diff. The context must fit exactly; only the line numbers may be off.

use super::blocking::Stop;
use super::replace::Miss;
use super::text::{LineEnds, clip, count, line_ends, to_unix};

const SHOWN_BYTES: usize = 400;

/// What `content` is after `patch`.
///
/// The counts in the headers of the hunks are not insisted on, because models miscount; the lines
/// themselves decide. A hunk that does not fit where its header says is applied at the one other
/// place where it fits.
pub(super) fn apply(content: &[u8], patch: &str, stop: &Stop) -> Result<Vec<u8>, Miss> {
    match line_ends(content) {
        // A model reads lines without their ends, and writes them so.
        LineEnds::Windows if !patch.contains('\r') => {
            apply_exactly(&to_unix(content), patch, stop).map(|text| with_returns(&text))
        }
        LineEnds::Unix if line_ends(patch.as_bytes()) == LineEnds::Windows => {
            apply_exactly(content, &patch.replace("\r\n", "\n"), stop)
        }
        _ => apply_exactly(content, patch, stop),
    }
}

fn apply_exactly(content: &[u8], patch: &str, stop: &Stop) -> Result<Vec<u8>, Miss> {
    let hunks = parse(patch)?;
    // A patch that does not mention a missing last line feed does not add one either.
    let silent = hunks.iter().all(|hunk| hunk.lines.iter().all(|line| line.ends));
    if silent && !content.is_empty() && !content.ends_with(b"\n") {
        let mut result = place(&[content, b"\n"].concat(), &hunks, stop)?;
        result.pop_if(|last| *last == b'\n');
        return Ok(result);
    }
    place(content, &hunks, stop)
}

/// A carriage return before each line feed, also where there is one: it belongs to the line.
fn with_returns(content: &[u8]) -> Vec<u8> {
    let mut result = Vec::with_capacity(content.len() + content.len() / 32);
    for &byte in content {
        if byte == b'\n' {
            result.push(b'\r');
        }
        result.push(byte);
    }
    result
}

struct Hunk<'a> {
    /// The first line in the old file, and how many it takes there, as the header says.
    old: Option<(usize, usize)>,
    lines: Vec<Line<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Kept,
    Removed,
    Added,
}

struct Line<'a> {
    kind: Kind,
    text: &'a [u8],
    /// Whether a line feed ends it.
    ends: bool,
}

impl Line<'_> {
    fn is(&self, found: &[u8]) -> bool {
        if self.ends { found.strip_suffix(b"\n") == Some(self.text) } else { found == self.text }
    }
}

fn parse(patch: &str) -> Result<Vec<Hunk<'_>>, Miss> {
    let mut hunks: Vec<Hunk<'_>> = Vec::new();
    let mut left = Counts::default();
    let lines: Vec<&str> = patch.strip_suffix('\n').unwrap_or(patch).split('\n').collect();
    for (at, &line) in lines.iter().enumerate() {
        if line.starts_with("@@") {
            let header = header(line);
            left = header.map_or(Counts::default(), |(_, counts)| counts);
            let old = header.map(|(start, counts)| (start, counts.old));
            hunks.push(Hunk { old, lines: Vec::new() });
            continue;
        }
        // What stands before the first hunk names files; the path says which one is meant.
        let Some(hunk) = hunks.last_mut() else { continue };
        let next_file = line.starts_with("--- ")
            && lines.get(at + 1).is_some_and(|next| next.starts_with("+++ "));
        if line.starts_with("diff ") || (next_file && left.are_used_up()) {
            return Err(Miss::said(
                "The patch changes several files. Give one call for each file.",
            ));
        }
        let (kind, text) = match line.as_bytes() {
            [b' ', text @ ..] => (Kind::Kept, text),
            [b'-', text @ ..] => (Kind::Removed, text),
            [b'+', text @ ..] => (Kind::Added, text),
            [b'\\', ..] => {
                if let Some(last) = hunk.lines.last_mut() {
                    last.ends = false;
                }
                continue;
            }
            // Blank lines after the last hunk; elsewhere one that lost the space before it.
            [] if left.are_used_up() && lines[at..].iter().all(|line| line.is_empty()) => break,
            text @ ([] | b"\r") => (Kind::Kept, text),
            _ => {
                return Err(Miss::said(format!(
                    "Line {} of the patch does not begin with a space, `-`, `+` or `@@`.",
                    at + 1
                )));
            }
        };
        left.take(kind);
        hunk.lines.push(Line { kind, text, ends: true });
    }
    if hunks.is_empty() {
        return Err(Miss::said("The patch has no hunk: no line begins with `@@`."));
    }
    if hunks.iter().all(|hunk| hunk.lines.iter().all(|line| line.kind == Kind::Kept)) {
        return Err(Miss::said("The patch neither adds nor removes a line."));
    }
    Ok(hunks)
}

/// How many lines of a hunk are still to come.
#[derive(Clone, Copy, Default)]
struct Counts {
    old: usize,
    new: usize,
}

impl Counts {
    fn are_used_up(self) -> bool {
        self.old == 0 && self.new == 0
    }

    fn take(&mut self, kind: Kind) {
        if kind != Kind::Added {
            self.old = self.old.saturating_sub(1);
        }
        if kind != Kind::Removed {
            self.new = self.new.saturating_sub(1);
        }
    }
}

/// Reads `@@ -12,3 +12,4 @@`. A header without numbers is allowed: its place is searched.
fn header(line: &str) -> Option<(usize, Counts)> {
    let mut words = line.strip_prefix("@@")?.split_whitespace();
    let (start, old) = range(words.next()?.strip_prefix('-')?)?;
    let (_, new) = range(words.next()?.strip_prefix('+')?)?;
    Some((start, Counts { old, new }))
}

fn range(text: &str) -> Option<(usize, usize)> {
    match text.split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    }
}

/// Puts the hunks in their places, in order.
fn place(content: &[u8], hunks: &[Hunk<'_>], stop: &Stop) -> Result<Vec<u8>, Miss> {
    let lines: Vec<&[u8]> = content.split_inclusive(|&byte| byte == b'\n').collect();
    let mut result = Vec::with_capacity(content.len() + 1024);
    let mut next = 0;
    let mut drift = 0_isize;
    for (index, hunk) in hunks.iter().enumerate() {
        let at = find(&lines, hunk, next, drift, stop).map_err(|miss| Miss {
            words: format!("Hunk {}: {}", index + 1, miss.words),
            ..miss
        })?;
        if let Some(expected) = hunk.expected() {
            drift = at.cast_signed() - expected.cast_signed();
        }
        lines[next..at].iter().for_each(|line| result.extend_from_slice(line));
        next = at;
        for line in &hunk.lines {
            if line.kind != Kind::Added {
                next += 1;
            }
            if line.kind != Kind::Removed {
                end_line(&result)?;
                result.extend_from_slice(line.text);
                if line.ends {
                    result.push(b'\n');
                }
            }
        }
    }
    for line in &lines[next..] {
        end_line(&result)?;
        result.extend_from_slice(line);
    }
    Ok(result)
}

/// Fails when a line would be glued to one that the patch says has no line feed.
fn end_line(result: &[u8]) -> Result<(), Miss> {
    if result.is_empty() || result.ends_with(b"\n") {
        return Ok(());
    }
    Err(Miss::said("The patch adds lines after one that it says is the last, without a line feed."))
}

impl Hunk<'_> {
    fn old_lines(&self) -> impl Iterator<Item = &Line<'_>> {
        self.lines.iter().filter(|line| line.kind != Kind::Added)
    }

    /// The index of its first line in the old file. A hunk that takes no line there stands after
    /// the line that its header names.
    fn expected(&self) -> Option<usize> {
        self.old.map(|(start, count)| if count == 0 { start } else { start.saturating_sub(1) })
    }

    /// How many of its old lines are in the file from `at` on.
    fn fits(&self, lines: &[&[u8]], at: usize) -> Result<(), usize> {
        for (offset, line) in self.old_lines().enumerate() {
            if !lines.get(at + offset).is_some_and(|found| line.is(found)) {
                return Err(offset);
            }
        }
        Ok(())
    }
}

/// The index of the line where the hunk belongs, from `next` on.
fn find(
    lines: &[&[u8]],
    hunk: &Hunk<'_>,
    next: usize,
    drift: isize,
    stop: &Stop,
) -> Result<usize, Miss> {
    let expected = hunk.expected().map(|at| at.saturating_add_signed(drift));
    if hunk.old_lines().next().is_none() {
        return match (expected, hunk.old) {
            (Some(at), Some((_, 0))) if (next..=lines.len()).contains(&at) => Ok(at),
            _ => Err(Miss::said("it has no lines of the file around it. Add some.")),
        };
    }
    if let Some(at) = expected.filter(|&at| at >= next && hunk.fits(lines, at).is_ok()) {
        return Ok(at);
    }
    let places: Vec<usize> = (next..lines.len())
        .take_while(|_| !stop.is_set())
        .filter(|&at| hunk.fits(lines, at).is_ok())
        .collect();
    match places[..] {
        [at] => Ok(at),
        [] => Err(misfit(lines, hunk, expected.unwrap_or(next).max(next))),
        [first, second, ..] => Err(Miss::said(format!(
            "it fits in {} places, among them lines {} and {}, and not at the line its header names. Add lines around it.",
            places.len(),
            first + 1,
            second + 1
        ))),
    }
}

/// Says where the hunk and the file part.
fn misfit(lines: &[&[u8]], hunk: &Hunk<'_>, expected: usize) -> Miss {
    // Where most of its first lines are found, or else where it should have been.
    let (at, offset) = (0..lines.len())
        .map(|at| (at, hunk.fits(lines, at).err().unwrap_or_default()))
        .filter(|&(_, offset)| offset > 0)
        .max_by_key(|&(at, offset)| (offset, std::cmp::Reverse(at.abs_diff(expected))))
        .unwrap_or((expected, 0));
    let wanted = hunk.old_lines().nth(offset).map_or(&b""[..], |line| line.text);
    let wanted = String::from_utf8_lossy(wanted);
    let wanted = clip(&wanted, SHOWN_BYTES).0;
    let number = at + offset + 1;
    match lines.get(at + offset) {
        Some(found) => {
            let found = String::from_utf8_lossy(found);
            let found = clip(found.trim_end_matches(['\r', '\n']), SHOWN_BYTES).0;
            Miss {
                words: format!(
                    "it does not fit. It expects line {number} to be `{wanted}`; the file has another one there. \
                     Read the file again and copy the lines exactly."
                ),
                lines: Some(format!("{number}\t{found}\n")),
            }
        }
        None => Miss::said(format!(
            "it does not fit. It expects line {number} to be `{wanted}`, but the file has {}. Read it again.",
            count(lines.len() as u64, "line", "lines")
        )),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use similar::TextDiff;

    use super::*;

    fn patched(content: &str, patch: &str) -> Result<String, Miss> {
        apply(content.as_bytes(), patch, &Stop::default())
            .map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn a_hunk_is_applied_where_its_header_says() {
        let patch = "--- a/x\n+++ b/x\n@@ -3,2 +3,2 @@ fn main\n x\n-y\n+z\n";
        assert_eq!(patched("x\ny\nx\ny\n", patch).unwrap(), "x\ny\nx\nz\n");
    }

    #[test]
    fn a_hunk_is_found_elsewhere_if_it_fits_once() {
        let patch = "@@ -1,2 +1,2 @@\n c\n-d\n+e\n";
        assert_eq!(patched("a\nb\nc\nd\n", patch).unwrap(), "a\nb\nc\ne\n");
        let miss = patched("a\nc\nd\nc\nd\n", patch).unwrap_err();
        assert!(
            miss.words.contains("fits in 2 places, among them lines 2 and 4"),
            "{}",
            miss.words
        );
    }

    #[test]
    fn what_moved_the_first_hunk_moves_the_second() {
        let patch = "@@ -1 +1 @@\n-one\n+ONE\n@@ -3 +3 @@\n-x\n+X\n";
        assert_eq!(patched("new\none\ny\nx\nx\n", patch).unwrap(), "new\nONE\ny\nX\nx\n");
    }

    #[test]
    fn counts_are_not_insisted_on_and_headers_may_lack_numbers() {
        assert_eq!(patched("a\nb\nc\n", "@@ -1,9 +1,1 @@\n a\n-b\n c\n").unwrap(), "a\nc\n");
        assert_eq!(patched("a\nb\n", "@@\n a\n-b\n+c\n").unwrap(), "a\nc\n");
        assert_eq!(patched("a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n\n").unwrap(), "a\n\nc\n");
    }

    #[test]
    fn a_hunk_that_only_adds_stands_after_the_line_it_names() {
        assert_eq!(patched("", "@@ -0,0 +1,2 @@\n+a\n+b\n").unwrap(), "a\nb\n");
        assert_eq!(patched("a\nb\n", "@@ -1,0 +2 @@\n+x\n").unwrap(), "a\nx\nb\n");
        assert!(patched("a\n", "@@ -7,0 +8 @@\n+x\n").is_err());
        assert!(patched("a\n", "@@\n+x\n").is_err());
    }

    #[test]
    fn crlf_stays_whatever_the_patch_is_written_with() {
        let unix = "@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n";
        assert_eq!(patched("a\r\nb\r\n", unix).unwrap(), "a\r\nc\r\nd\r\n");
        assert_eq!(patched("a\r\nb\r\n", &unix.replace('\n', "\r\n")).unwrap(), "a\r\nc\r\nd\r\n");
        assert_eq!(patched("a\nb\n", &unix.replace('\n', "\r\n")).unwrap(), "a\nc\nd\n");
        assert_eq!(patched("a\r\r\nb\r\n", "@@ -2 +2 @@\n-b\n+c\n").unwrap(), "a\r\r\nc\r\n");
    }

    #[test]
    fn a_missing_last_line_feed_is_kept_added_and_removed() {
        let note = "\\ No newline at end of file\n";
        assert_eq!(patched("a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n").unwrap(), "a\nc");
        assert_eq!(patched("a\nb", &format!("@@ -2 +2 @@\n-b\n{note}+b\n")).unwrap(), "a\nb\n");
        assert_eq!(patched("a\nb\n", &format!("@@ -2 +2 @@\n-b\n+b\n{note}")).unwrap(), "a\nb");
        assert!(patched("a\nb\n", &format!("@@ -1 +1 @@\n-a\n+x\n{note}")).is_err());
        assert!(patched("a\nb\n", &format!("@@ -2 +2 @@\n-b\n{note}+c\n")).is_err());
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (patch, words) in [
            ("", "no hunk"),
            ("hello", "no hunk"),
            ("@@ -1 +1 @@\n a\n", "neither adds nor removes"),
            ("@@ -1 +1 @@\n-a\n+b\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", "several files"),
            ("@@ -1 +1 @@\n-a\n+b\ndiff --git a/y b/y\n", "several files"),
            ("@@ -1 +1 @@\n-a\nb\n", "Line 3 of the patch"),
        ] {
            let miss = patched("a\n", patch).unwrap_err();
            assert!(miss.words.contains(words), "{patch:?}: {}", miss.words);
        }
        assert_eq!(patched("-- x\n", "@@ -1 +1 @@\n--- x\n+++ y\n").unwrap(), "++ y\n");
    }

    #[test]
    fn a_misfit_shows_the_line_where_patch_and_file_part() {
        let miss = patched("a\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n b2\n-c\n+d\n").unwrap_err();
        assert!(miss.words.contains("line 2 to be `b2`"), "{}", miss.words);
        assert_eq!(miss.lines.as_deref(), Some("2\tb\n"));
        let miss = patched("a\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n").unwrap_err();
        assert!(miss.words.contains("the file has 1 line."), "{}", miss.words);
    }

    /// Lines from few words, so that the same ones come again and contexts are ambiguous.
    fn text() -> impl Strategy<Value = String> {
        let line = prop::sample::select(vec!["", "a", "b", "- x", "++ y", " ", "@@", "ä", "c\t"]);
        let end = prop::sample::select(vec!["\n", "\n", "\n", "\r\n"]);
        let lines = prop::collection::vec((line, end), 0..24);
        (lines, any::<bool>()).prop_map(|(lines, ends)| {
            let mut text: String = lines.into_iter().flat_map(|(line, end)| [line, end]).collect();
            if !ends && text.ends_with('\n') {
                text.truncate(text.trim_end_matches(['\r', '\n']).len());
            }
            text
        })
    }

    proptest! {
        #[test]
        fn a_diff_of_two_texts_turns_the_one_into_the_other(
            old in text(), new in text(), radius in 1_usize..4,
        ) {
            prop_assume!(old != new);
            let old_lines: Vec<&str> = old.split_inclusive('\n').collect();
            let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
            let diff = TextDiff::configure().newline_terminated(true)
                .diff_slices(&old_lines, &new_lines)
                .unified_diff().context_radius(radius).header("a", "b").to_string();
            prop_assert_eq!(patched(&old, &diff), Ok(new));
        }

        #[test]
        fn no_patch_makes_it_panic(old in text(), patch in "(@@ -[0-9]{1,2},[0-9] \\+1 @@\n)?([-+ @\\\\]?[ab]?\n){0,12}") {
            let _ = patched(&old, &patch);
        }
    }
}
