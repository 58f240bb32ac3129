//! Command lines with their class, as data.

use std::path::PathBuf;

use mainstay_agent::policy::command::{Class, judge};

const TABLE: &str = include_str!("table.txt");
const EVERYDAY: &str = include_str!("everyday.txt");

/// A workspace in which one link leads outside.
pub(crate) fn workspace() -> tempfile::TempDir {
    // Not below /tmp itself, which is a place of its own.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::create_dir_all(directory.path().join("src")).unwrap();
    std::os::unix::fs::symlink("/etc", directory.path().join("link")).unwrap();
    directory
}

/// Every line of the table with its class.
pub(crate) fn lines() -> Vec<(Class, String)> {
    read(TABLE)
}

fn read(table: &str) -> Vec<(Class, String)> {
    let lines = table.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let (class, command) = line.split_once(": ").unwrap_or_else(|| panic!("{line}"));
            let class = serde_json::from_value(class.into()).unwrap_or_else(|_| panic!("{line}"));
            let signs = [('¶', '\n'), ('␀', '\0'), ('␛', '\u{1b}'), ('␍', '\r')];
            let command = signs.iter().fold(command.to_owned(), |command, (sign, meant)| {
                command.replace(*sign, &meant.to_string())
            });
            (class, command)
        })
        .collect()
}

#[test]
fn every_line_of_the_table_has_its_class() {
    let workspace = workspace();
    let lines = lines();
    assert!(lines.len() >= 150, "{} lines", lines.len());
    let wrong: Vec<String> = lines
        .iter()
        .filter_map(|(class, line)| {
            let judged = judge(line, workspace.path());
            (judged.class() != *class).then(|| format!("{line}\n  is {class:?}, judged {judged:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_people_run_every_day_is_taken_for_nothing_worse() {
    let workspace = workspace();
    let lines = read(EVERYDAY);
    assert!(lines.len() >= 150, "{} lines", lines.len());
    let worse: Vec<String> = lines
        .iter()
        .filter_map(|(class, line)| {
            let judged = judge(line, workspace.path());
            (judged.class() > *class).then(|| format!("{line}\n  was {class:?}, judged {judged:?}"))
        })
        .collect();
    assert!(worse.is_empty(), "{} worse:\n{}", worse.len(), worse.join("\n"));
}

#[test]
fn what_is_in_a_workspace_that_is_not_there_is_outside() {
    let judged = judge("echo x > file", &PathBuf::from("/does/not/exist"));
    assert_eq!(judged.class(), Class::WriteOutside);
}
