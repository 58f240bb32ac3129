//! What is merged is finished: nothing is left for later, and no test is switched off.

use mainstay_tidy::File;

/// Words that mark something left for later. Split, so that this file passes its own check.
const MARKERS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

const UNWRITTEN: &str = concat!("to", "do!(");
const SWITCHED_OFF: &str = concat!("#[ig", "nore");
const SWITCHED_OFF_SOMEWHERE: (&str, &str) = ("cfg_attr", concat!("ig", "nore"));

fn unfinished(files: &[File]) -> Vec<String> {
    let mut violations = Vec::new();
    for file in files.iter().filter(|file| is_code(&file.path)) {
        for (number, line) in (1..).zip(file.text().unwrap_or_default().lines()) {
            if let Some(what) = complaint(line) {
                violations.push(format!("{}:{number}: {what}", file.path));
            }
        }
    }
    violations
}

/// Sources, manifests and scripts; prose may speak of these words.
fn is_code(path: &str) -> bool {
    [".rs", ".toml", ".sql", ".sh"].iter().any(|extension| path.ends_with(extension))
        || ["scripts/", ".ci/"].iter().any(|directory| path.starts_with(directory))
}

fn complaint(line: &str) -> Option<String> {
    let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    if let Some(marker) = words.find(|word| MARKERS.contains(word)) {
        return Some(format!("{marker} is work left over; do it or drop it"));
    }
    if line.contains(UNWRITTEN) {
        return Some("write it, or leave the branch out".to_owned());
    }
    let (condition, off) = SWITCHED_OFF_SOMEWHERE;
    if line.contains(SWITCHED_OFF) || (line.contains(condition) && line.contains(off)) {
        return Some("a test that never runs proves nothing; fix or delete it".to_owned());
    }
    None
}

#[test]
fn nothing_is_left_for_later() {
    mainstay_tidy::assert_none(&unfinished(&mainstay_tidy::tree().unwrap()));
}

#[test]
fn each_mark_of_unfinished_work_is_found() {
    let lines = [
        format!("// {}: later", MARKERS[0]),
        format!("// ({})", MARKERS[1]),
        format!("# {} hack", MARKERS[2]),
        format!("{UNWRITTEN});"),
        format!("{SWITCHED_OFF}]"),
        format!("#[cfg_attr(miri, {})]", SWITCHED_OFF_SOMEWHERE.1),
    ];
    for line in lines {
        for path in ["crates/a/src/lib.rs", "scripts/test"] {
            assert_eq!(unfinished(&[File::new(path, &line)]).len(), 1, "{path}: {line}");
        }
        mainstay_tidy::assert_none(&unfinished(&[File::new("STYLE.md", &line)]));
    }
    let template = format!("mktemp name.{}", MARKERS[2].repeat(2));
    mainstay_tidy::assert_none(&unfinished(&[File::new("scripts/test", &template)]));
}
