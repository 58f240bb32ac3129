//! Shows a person what a proposal would change.

use std::time::Duration;

use similar::TextDiff;

use super::SkillFiles;

/// Whether a letter is seen by a model and not by a person.
pub(super) fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Shows hidden and control characters by their number, so that a diff shows a person all there is.
pub fn visible(text: &str) -> String {
    let is_plain = |letter: char| letter == '\n' || letter == '\t' || !is_hidden(letter);
    if text.chars().all(is_plain) {
        return text.to_owned();
    }
    let mut shown = String::new();
    for letter in text.chars() {
        if is_plain(letter) {
            shown.push(letter);
        } else {
            shown.push_str(&format!("\\u{{{:x}}}", u32::from(letter)));
        }
    }
    shown
}

/// What differs between two skills, as a unified diff of each file. Nothing in it hides.
pub fn diff(before: &SkillFiles, after: &SkillFiles) -> String {
    let mut names: Vec<&String> = before.files.keys().chain(after.files.keys()).collect();
    names.sort();
    names.dedup();
    let mut text = String::new();
    for name in names {
        let old = before.files.get(name);
        let new = after.files.get(name);
        if old == new {
            continue;
        }
        let label = |there: bool, side: &str| {
            if there { format!("{side}/{name}") } else { "/dev/null".to_owned() }
        };
        text.push_str(&format!(
            "--- {}\n+++ {}\n",
            label(old.is_some(), "a"),
            label(new.is_some(), "b")
        ));
        let runs =
            |file: Option<&super::files::SkillFile>| file.is_some_and(|file| file.executable);
        if runs(old) != runs(new) {
            text.push_str(if runs(new) { "can be run\n" } else { "cannot be run any more\n" });
        }
        let bytes = |file: Option<&super::files::SkillFile>| {
            file.map(|file| file.bytes.clone()).unwrap_or_default()
        };
        let old = bytes(old);
        let new = bytes(new);
        match (std::str::from_utf8(&old), std::str::from_utf8(&new)) {
            (Ok(old), Ok(new)) => text.push_str(&lines(old, new)),
            _ => text.push_str(&format!("{} bytes before, {} after\n", old.len(), new.len())),
        }
    }
    visible(&text)
}

fn lines(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) =
        (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let diff = TextDiff::configure()
        // After this time the rest counts as replaced: still true, only longer.
        .timeout(Duration::from_millis(300))
        .newline_terminated(true)
        .diff_slices(&old, &new);
    let mut text = diff.unified_diff().context_radius(3).to_string();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_with_all_that_it_would_hide() {
        let (mut before, mut after) = (SkillFiles::default(), SkillFiles::default());
        before.change("SKILL.md", Some("one\ntwo\n"));
        after.change("SKILL.md", Some("one\nthr\u{200b}ee \u{1b}[2J\n"));
        after.change("scripts/run.sh", Some("#!/bin/sh\n"));
        let expected = "--- a/SKILL.md\n+++ b/SKILL.md\n@@ -1,2 +1,2 @@\n one\n-two\n\
                        +thr\\u{200b}ee \\u{1b}[2J\n--- /dev/null\n+++ b/scripts/run.sh\n\
                        can be run\n@@ -0,0 +1 @@\n+#!/bin/sh\n";
        assert_eq!(diff(&before, &after), expected);
        assert_eq!(diff(&after, &after), "");
    }
}
