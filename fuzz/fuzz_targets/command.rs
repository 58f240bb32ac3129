//! Command lines that nobody would write: judging one never fails, takes bounded time, and no
//! wrapping and no further stage makes it more harmless.
//!
//! Run it with `cargo +nightly fuzz run command`; the lines of the table are good seeds:
//! `grep -o ': .*' crates/agent/tests/agent/commands/table.txt | cut -c3- | split -l 1 - fuzz/corpus/command/`.

#![no_main]

use std::path::Path;
use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use policy::command::{Class, Judged, judge};

// The module alone: with the whole crate there would be a database to instrument.
#[allow(dead_code)]
#[path = "../../crates/agent/src/policy"]
mod policy {
    pub mod command;
    mod place;
}

fn at(line: &str) -> Judged {
    let begun = Instant::now();
    // A workspace that is not there: nothing is inside, and no file is looked at.
    let judged = judge(line, Path::new("/does/not/exist"));
    assert!(begun.elapsed() < Duration::from_secs(5), "it took too long");
    assert!(!judged.stages.is_empty());
    judged
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(line) = std::str::from_utf8(bytes) else { return };
    let alone = at(line);
    let class = alone.class();
    if alone.prefixes().is_some() {
        assert!(class <= Class::Execute && alone.unclear.is_none());
    }
    // Wrapped it may become too long to be read, which is never harmless.
    let quoted = format!("'{}'", line.replace('\'', "'\\''"));
    for wrapped in [
        format!("sh -c {quoted}"),
        format!("env LC_ALL=C bash -c {quoted}"),
        format!("ls | xargs sh -c {quoted}"),
        format!("eval {quoted}"),
    ] {
        let judged = at(&wrapped);
        assert!(judged.class() >= class, "{wrapped:?} {judged:?} {alone:?}");
    }
    // A part that one of the two shells refuses is refused with all that is around it.
    // A here-document without an end takes in what is around it.
    // A backslash at the end joins the line with what comes after it.
    if alone.unclear.is_some() || alone.only_bash || line.contains("<<") || line.ends_with('\\') {
        return;
    }
    for wrapped in [
        format!("( {line}\n)"),
        format!("{{ {line}\n}}"),
        format!("echo \"$( {line}\n)\""),
        format!("true | ( {line}\n) | cat"),
        format!("if true; then {line}\nfi"),
        format!("{line}\ntrue"),
        format!("rm -rf /; {line}"),
    ] {
        let judged = at(&wrapped);
        // A comment of nothing but blanks has no class of its own within another command.
        assert!(judged.class() >= class, "{wrapped:?} {judged:?} {alone:?}");
    }
});
