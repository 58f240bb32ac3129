//! What a new session is told of skills: names and descriptions, in bounded room.

use super::diff::is_hidden;
use super::{FoundSkills, Origin, Skill, Warning};
use crate::session::offered_tools::is_small;

/// The first line of what the prompt says of skills.
pub(crate) const HEADING: &str = "# Skills: load one with `skill`";
/// So many bytes of descriptions, and then so many of names alone.
const DESCRIPTIONS: usize = 3_000;
const NAMES: usize = 1_000;
/// So many characters of one description.
const SHOWN: usize = 400;
/// So many skills that cannot be used are told of one by one.
const WARNINGS: usize = 5;

/// What the prompt of a new session says of skills. Returns an empty text if there are none. A model
/// with a small window is told their names only.
pub(crate) fn skills_prompt(found: &FoundSkills, window: Option<u64>) -> String {
    if found.skills.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{HEADING}\n");
    if let Some(window) = window.filter(|window| is_small(*window)) {
        let room = usize::try_from(window / 16).unwrap_or(NAMES).clamp(64, NAMES);
        text.push_str(&names(&found.skills.iter().collect::<Vec<_>>(), room));
        return text;
    }
    text.push_str("When a task fits a description, load that skill before you begin.\n");
    let mut room = DESCRIPTIONS;
    let mut bare: Vec<&Skill> = Vec::new();
    for (origin, words) in [
        (Origin::Home, "The user's own:"),
        (Origin::Given, "From places that the user named:"),
        (Origin::Workspace, "From the workspace, written by the project's authors:"),
    ] {
        let mut lines = String::new();
        for skill in found.skills.iter().filter(|skill| skill.origin == origin) {
            let line = format!("- {}: {}\n", skill.front.name, short(&skill.front.description));
            match room.checked_sub(line.len()) {
                Some(rest) => {
                    room = rest;
                    lines.push_str(&line);
                }
                None => bare.push(skill),
            }
        }
        if !lines.is_empty() {
            text.push_str(&format!("{words}\n{lines}"));
        }
    }
    if !bare.is_empty() {
        text.push_str("Others (call `skill` without a name for their descriptions): ");
        text.push_str(&names(&bare, NAMES));
    }
    text
}

/// The notices about skills that cannot be used: a few one by one, and how many more there are.
pub(crate) fn unusable_skill_notices(warnings: &[Warning]) -> Vec<String> {
    let told = warnings.iter().take(WARNINGS);
    let mut told: Vec<String> =
        told.map(|warning| format!("a skill cannot be used: {warning}")).collect();
    if warnings.len() > WARNINGS {
        let more = warnings.len() - WARNINGS;
        told.push(format!("{more} more skills cannot be used; see `mainstay skills list`"));
    }
    told
}

/// Names, as many as there is room for, and how many more there are.
fn names(skills: &[&Skill], room: usize) -> String {
    let mut line = String::new();
    for (place, skill) in skills.iter().enumerate() {
        let name = &skill.front.name;
        if line.len() + name.len() > room {
            return format!("{line} and {} more.\n", skills.len() - place);
        }
        line.push_str(if place == 0 { "" } else { ", " });
        line.push_str(name);
    }
    line.push('\n');
    line
}

/// A description on one line, with nothing in it that only a model would see.
pub(super) fn short(description: &str) -> String {
    let words = description.split_whitespace().collect::<Vec<_>>().join(" ");
    let words: String = words.chars().filter(|letter| !is_hidden(*letter)).collect();
    match words.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{} …", &words[..end]),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Front;
    use super::*;

    fn found(count: usize, description: &str) -> FoundSkills {
        let skill = |number: usize| Skill {
            front: Front {
                name: format!("skill-number-{number:03}"),
                description: description.to_owned(),
                ..Front::default()
            },
            origin: if number.is_multiple_of(2) { Origin::Home } else { Origin::Workspace },
            path: "/x".into(),
            file: "/x/SKILL.md".into(),
        };
        FoundSkills { skills: (0..count).map(skill).collect(), ..FoundSkills::default() }
    }

    #[test]
    fn descriptions_are_told_by_where_they_come_from_on_one_line_each() {
        assert_eq!(skills_prompt(&FoundSkills::default(), None), "");
        let text = skills_prompt(&found(2, "Does\nthis.\u{1b}[2J\u{202e}\u{e0041}"), None);
        let expected = "\n# Skills: load one with `skill`\nWhen a task fits a description, load that \
                        skill before you begin.\nThe user's own:\n- skill-number-000: Does \
                        this.[2J\nFrom the workspace, written by the project's authors:\n- \
                        skill-number-001: Does this.[2J\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn of_many_that_cannot_be_used_a_few_are_told_of() {
        let warning = Warning { file: "x/SKILL.md".into(), what: "it is empty".to_owned() };
        let mut warnings = vec![warning; 5];
        assert_eq!(unusable_skill_notices(&warnings).len(), 5);
        assert_eq!(
            unusable_skill_notices(&warnings)[0],
            "a skill cannot be used: x/SKILL.md: it is empty"
        );
        warnings.extend(warnings.clone());
        let told = unusable_skill_notices(&warnings);
        assert_eq!((told.len(), told[5].starts_with("5 more skills")), (6, true), "{told:?}");
    }

    #[test]
    fn room_is_bounded_and_what_has_none_is_named_or_counted() {
        let text = skills_prompt(&found(500, &"x".repeat(1_024)), None);
        assert!(text.len() < 5_000, "{}", text.len());
        assert!(text.contains("Others (call `skill`") && text.contains(" more.\n"), "{text}");
        let small = skills_prompt(&found(500, "Does this."), Some(8_192));
        assert!(small.len() < 700, "{}", small.len());
        assert!(!small.contains("Does this") && small.contains("skill-number-001"), "{small}");
        let all = skills_prompt(&found(3, "Does this."), Some(4_096));
        assert!(all.ends_with("skill-number-000, skill-number-001, skill-number-002\n"), "{all}");
    }
}
