//! The walks of ARCHITECTURE.md can be walked: each hop names a function that is in the file it names,
//! there are few hops, and none comes back to a file that was left.

use mainstay_tidy::File;

/// A walk: the heading it stands under, and the most hops it may have.
const WALKS: [(&str, usize); 2] = [("## A message", 25), ("## A tool call", 20)];

/// What is wrong with the walk under a heading of a page.
fn violations(page: &str, heading: &str, most: usize, files: &[File]) -> Vec<String> {
    let mut violations = Vec::new();
    let mut walked: Vec<&str> = Vec::new();
    let section = page.split(&format!("{heading}\n")).nth(1).unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    for line in section.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())) {
        let mut quoted = line.split('`').skip(1).step_by(2);
        let (Some(path), Some(function)) = (quoted.next(), quoted.next()) else {
            violations.push(format!("{line}: names no file and function"));
            continue;
        };
        let full = format!("crates/{path}");
        let text = files.iter().find(|file| file.path == full).and_then(File::text);
        match text {
            None => violations.push(format!("{full} is not there")),
            Some(text) if !defines(text, function) => {
                violations.push(format!("{full} has no function {function}"));
            }
            Some(_) => {}
        }
        if walked.contains(&path) {
            violations.push(format!("{heading} comes back to {path}"));
        }
        walked.push(path);
    }
    if walked.is_empty() || walked.len() > most {
        violations
            .push(format!("{heading} has {} hops, and at most {most} are walked", walked.len()));
    }
    violations
}

fn defines(text: &str, function: &str) -> bool {
    ["(", "<"].iter().any(|next| text.contains(&format!("fn {function}{next}")))
}

#[test]
fn the_walks_lead_through_functions_that_are_there_and_never_back() {
    let files = mainstay_tidy::tree().unwrap();
    let page = files.iter().find(|file| file.path == "ARCHITECTURE.md").unwrap();
    let page = page.text().unwrap();
    let all = WALKS.iter().flat_map(|(heading, most)| violations(page, heading, *most, &files));
    mainstay_tidy::assert_none(&all.collect::<Vec<_>>());
}

#[test]
fn a_wrong_walk_is_found() {
    let files = [File::new("crates/a/src/b.rs", "pub fn c() {}\nasync fn d<T>(t: T) {}")];
    let walk = |text: &str| violations(text, "## A message", 2, &files);
    assert_eq!(walk("## A message\n\n1. `a/src/b.rs` `c`: x\n\n## Next\n\n2. `z` `z`"), [""; 0]);
    assert_eq!(walk("## A message\n1. `a/src/b.rs` `d`"), [""; 0]);
    assert_eq!(walk("## A message\n1. `a/src/b.rs` `e`"), ["crates/a/src/b.rs has no function e"]);
    assert_eq!(walk("## A message\n1. `a/src/x.rs` `c`"), ["crates/a/src/x.rs is not there"]);
    let back = walk("## A message\n1. `a/src/b.rs` `c`\n2. `a/src/b.rs` `d`");
    assert_eq!(back, ["## A message comes back to a/src/b.rs"]);
    assert_eq!(walk("## A message\nnothing").len(), 1);
    assert_eq!(walk(&format!("## A message\n{}", "1. `a/src/b.rs` `c`\n".repeat(3))).len(), 3);
    assert_eq!(walk("## A message\n1. somewhere").len(), 2);
}
