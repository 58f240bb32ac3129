//! How sizes, counts, times, paths and compactions read to a person.

use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use mainstay_journal::compaction::Compaction;
use mainstay_journal::turn::Mode;

use crate::plain_text::clean;

/// Bytes in the unit that keeps the number short.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    #[expect(clippy::cast_precision_loss, reason = "it is rounded to three digits anyway")]
    let mut value = bytes as f64 / 1024.0;
    let mut units = UNITS.iter();
    let mut unit = units.next().unwrap_or(&"");
    while value >= 1024.0
        && let Some(next) = units.next()
    {
        value /= 1024.0;
        unit = next;
    }
    if value < 10.0 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}

/// What a mode does without asking, in a line.
pub(crate) fn mode(mode: Mode) -> String {
    format!("{mode}: {}", mode_does(mode))
}

/// The same as a clause, without the name.
pub(crate) fn mode_does(mode: Mode) -> &'static str {
    match mode {
        Mode::Plan => "only reads; commands can change nothing and have no network",
        Mode::Ask => {
            "changes files in the project; asks before it runs code or reaches anything else"
        }
        Mode::Auto => {
            "runs commands in a box without network that writes only the project; asks before \
             anything leaves it"
        }
        Mode::Yes => "does everything that is not denied without asking",
    }
}

/// A number of things: "1 row", "2 rows".
pub(crate) fn count(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// What a request asks for, as one sentence without a full stop: "shell wants to run `ls`". It has
/// as many lines as the action, and nothing in it can speak to a terminal.
pub(crate) fn wants(request: &mainstay_agent::Request) -> String {
    clean(&request.wants())
}

/// Which memories came with an input: "recalled 2 memories: facts:1, facts:4".
pub(crate) fn recalled(memories: &[mainstay_agent::Recalled]) -> String {
    let number = memories.len();
    let thing = if number == 1 { "memory" } else { "memories" };
    let names: Vec<&str> = memories.iter().map(|memory| memory.id.as_str()).collect();
    line(&format!("recalled {number} {thing}: {}", names.join(", ")))
}

/// What a copy holds: "12 rows in 8 tables".
pub(crate) fn holdings(copied: &mainstay_store::Copied) -> String {
    let tables = u64::try_from(copied.tables.len()).unwrap_or(u64::MAX);
    format!("{} in {}", count(copied.rows(), "row"), count(tables, "table"))
}

/// That a conversation is being compacted.
pub(crate) fn compacting(tokens: u64) -> String {
    format!("compacting: summarising a part of {}", count(tokens, "token"))
}

/// What a compaction did.
pub(crate) fn compacted(before: u64, after: u64, summarised: bool) -> String {
    let how = if summarised { "old parts are summarised" } else { "old results are shortened" };
    format!("compacted from about {before} to {after} tokens; {how}, nothing is deleted")
}

/// What taking a compaction back did.
pub(crate) fn restored(restored: &mainstay_agent::Restored) -> String {
    let excess = match restored.window {
        Some(window) if restored.tokens > window => {
            format!(", more than the model's window of {window}")
        }
        _ => String::new(),
    };
    format!(
        "reverted compaction {}: the model sees about {} tokens again{excess}",
        restored.number, restored.tokens
    )
}

/// A time in milliseconds since 1970, as the clock on the wall here shows it.
pub(crate) fn time(millis: i64) -> String {
    formatted(millis, "%Y-%m-%d %H:%M:%S %:z")
}

/// The same to the minute.
pub(crate) fn minute(millis: i64) -> String {
    formatted(millis, "%Y-%m-%d %H:%M")
}

/// The date in UTC of a time in milliseconds since 1970.
pub(crate) fn date(millis: i64) -> String {
    match Timestamp::from_millisecond(millis) {
        Ok(time) => time.strftime("%Y-%m-%d").to_string(),
        Err(_) => format!("{millis} ms"),
    }
}

/// The date here and now.
pub(crate) fn today() -> String {
    formatted(mainstay_store::wall_millis(), "%Y-%m-%d")
}

fn formatted(millis: i64, format: &str) -> String {
    match Timestamp::from_millisecond(millis) {
        Ok(time) => time.to_zoned(TimeZone::system()).strftime(format).to_string(),
        Err(_) => format!("{millis} ms"),
    }
}

/// A text with its first letter in upper case.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().collect::<String>());
    first.unwrap_or_default() + letters.as_str()
}

/// A path below the workspace as people write it, relative to it; any other as it is. Both are
/// escaped like the paths of snapshots.
pub(crate) fn in_workspace(workspace: &Path, path: &str) -> String {
    let workspace = workspace.canonicalize().unwrap_or_default();
    let inside = format!("{}/", mainstay_tools::snapshot::escaped(&workspace));
    path.strip_prefix(&inside).unwrap_or(path).to_owned()
}

/// Text of any shape as one line of bearable length.
pub(crate) fn line(text: &str) -> String {
    const LONGEST: usize = 400;
    let line = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = line.collect::<Vec<_>>().join("; ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} …", &line[..end]),
        None => line,
    }
}

/// Text of any shape in one line, whole: what others wrote cannot look like a line of ours.
pub(crate) fn unbroken(text: &str) -> String {
    let lines = text.split(['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}']);
    let lines = lines.map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// Text of several lines below a line of ours, each set in so that none can look like one.
pub(crate) fn indented(text: &str) -> String {
    let mut shown = String::with_capacity(text.len() + 16);
    for line in clean(text).lines() {
        shown.push_str(if line.is_empty() { "" } else { "  " });
        shown.push_str(line);
        shown.push('\n');
    }
    shown
}

/// A path as it can be pasted into a shell.
pub(crate) fn path(path: &Path) -> String {
    word(&path.display().to_string())
}

/// A word as it can be pasted into a shell.
pub(crate) fn word(text: &str) -> String {
    let plain =
        |character: char| character.is_ascii_alphanumeric() || "/._-:@%+=".contains(character);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// A compaction in a line: its number, what it covers, the sizes before and after.
pub(crate) fn compaction(made: &Compaction) -> String {
    let Compaction { number, through, trimmed, before, after, .. } = made;
    let covers = match (*through > 0, trimmed > through) {
        (true, true) => format!("entries 1 to {through} replaced, up to {trimmed} shortened"),
        (true, false) => format!("entries 1 to {through} replaced"),
        (false, true) => format!("entries up to {trimmed} shortened"),
        (false, false) => "nothing hidden".to_owned(),
    };
    let focus = made.focus.as_deref().map(|focus| format!("; focus: {}", line(focus)));
    let focus = focus.unwrap_or_default();
    format!("compaction {number}: {covers}; {before} tokens before, {after} after{focus}")
}

/// A compaction that was taken back, in a line.
pub(crate) fn taken_back(number: i64) -> String {
    format!("compaction {number} was reverted: what it hid is shown again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (86_016, "84 KiB"),
            (1 << 30, "1.0 GiB"),
        ];
        for (bytes, words) in cases {
            assert_eq!(size(bytes), words);
        }
        assert_eq!(size(u64::MAX), "16384 PiB");
    }

    #[test]
    fn what_is_wanted_is_a_sentence_that_no_action_can_break_out_of() {
        use crate::chat::input::prompt::tests::request;
        let request = request("to run `ls\u{1b}[2J`", mainstay_agent::Friction::Key);
        let said = wants(&request);
        assert!(said.starts_with("shell wants to run `ls"), "{said}");
        assert!(!said.contains('\u{1b}'), "{said}");
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!(count(1, "row"), "1 row");
        assert_eq!(count(0, "row"), "0 rows");
    }

    #[test]
    fn a_line_is_one_line() {
        assert_eq!(line("as it is"), "as it is");
        assert_eq!(line("first\n\n  second\n"), "first; second");
        assert_eq!(line(&"ü".repeat(500)).chars().count(), 402);
    }

    #[test]
    fn paths_survive_a_shell() {
        assert_eq!(path(Path::new("/a/b.db")), "/a/b.db");
        assert_eq!(path(Path::new("/it's here")), r"'/it'\''s here'");
        assert_eq!(word("postgres://me@host/db?schema=x"), "'postgres://me@host/db?schema=x'");
    }
}
