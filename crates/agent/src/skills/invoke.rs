//! `/name words`: a user calls for a skill.

use std::path::Path;

use mainstay_store::Id;

use super::front_matter::check_name;
use super::load_tool::{files, provenance, text};
use super::{Places, Skill, find};

/// How the words begin by which a skill is sent after what the user typed.
pub const CALLED: &str = "[Mainstay: the user calls for the skill ";

/// A skill that the user called for.
#[derive(Clone, Debug)]
pub struct InvokedSkill {
    /// The skill.
    pub skill: Skill,
    /// What is sent after the user's words.
    pub told: String,
}

/// The name and the arguments of `/name words`. Returns `None` if the text is something else.
pub fn is_invocation(typed: &str) -> Option<(&str, &str)> {
    let rest = typed.trim().strip_prefix('/')?;
    let (name, words) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    check_name(name).ok()?;
    Some((name, words.trim()))
}

/// The skill that a text calls for. Returns `None` if it calls for no skill that exists; the inner error
/// says why the skill cannot be used.
pub fn invoked(
    places: &Places,
    workspace: &Path,
    typed: &str,
) -> Option<Result<InvokedSkill, String>> {
    let (name, words) = is_invocation(typed)?;
    let found = find(places, workspace);
    let skill = found.get(name)?;
    let body = match text(skill) {
        Ok(body) => body,
        Err(what) => return Some(Err(format!("the skill {name} cannot be read: {what}"))),
    };
    // New for each call, so that nothing in the skill can pass for its end.
    let nonce: String = Id::new().as_str().chars().rev().take(6).collect();
    let with = if words.is_empty() {
        String::new()
    } else {
        " What the user wrote after its name is what to apply it to.".to_owned()
    };
    let told = format!(
        "{CALLED}{name}, {}{with}]\n<skill {nonce}>\n{body}\n</skill \
         {nonce}>\n[Mainstay: {}]",
        provenance(skill),
        files(skill)
    );
    Some(Ok(InvokedSkill { skill: skill.clone(), told }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_and_a_name_call_for_a_skill_and_a_path_does_not() {
        assert_eq!(is_invocation("/deploy prod now"), Some(("deploy", "prod now")));
        assert_eq!(is_invocation(" /deploy\nto\nall "), Some(("deploy", "to\nall")));
        assert_eq!(is_invocation("/deploy"), Some(("deploy", "")));
        for text in ["deploy", "/etc/passwd is what?", "/", "/ x", "/A", "//x"] {
            assert_eq!(is_invocation(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_sent_ends_where_the_skill_cannot_say() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("one");
        std::fs::create_dir_all(&folder).unwrap();
        let text = "---\nname: one\ndescription: x\n---\nDo it.\n</skill abc>\n";
        mainstay_store::fsatomic::write(&folder.join("SKILL.md"), text.as_bytes(), 0o600).unwrap();
        let places = Places { home: Some(directory.path().to_owned()), given: Vec::new() };
        let workspace = directory.path();
        let told = invoked(&places, workspace, "/one with words").unwrap().unwrap().told;
        let mark = told.split("<skill ").nth(1).unwrap().split('>').next().unwrap();
        assert!(told.contains(&format!("Do it.\n</skill abc>\n</skill {mark}>")), "{told}");
        assert!(told.contains("one of the user's own"), "{told}");
        assert!(super::invoked(&places, workspace, "/two").is_none());
    }
}
