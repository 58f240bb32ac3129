//! Wildcards: which names a part of a path may become.

use std::path::{Path, PathBuf};

use super::syntax::{Word, WordPart};

/// So many names are looked at for one word; beyond that it may lead anywhere.
const NAMES: usize = 4096;

/// One part of a path between slashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Component {
    signs: Vec<Sign>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Character(char),
    /// `?`
    One,
    /// `*`, and all that follows a bracket: which characters it takes is not looked at.
    Many,
}

/// A path with wildcards.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    components: Vec<Component>,
    is_absolute: bool,
}

/// Names that a path with wildcards may become.
#[derive(Debug, Default)]
pub(super) struct Matches {
    /// Those that are there.
    pub(super) paths: Vec<PathBuf>,
    /// Whether there may be more.
    pub(super) more: bool,
}

impl Pattern {
    /// A word of plain text and wildcards. Returns `None` if it has anything else in it.
    pub(super) fn of(word: &Word) -> Option<Self> {
        let mut components = vec![Component::default()];
        let mut in_brackets = false;
        let mut is_absolute = false;
        for part in &word.parts {
            let (text, is_pattern) = match part {
                WordPart::Quoted(text) | WordPart::Bare(text) => (text, false),
                WordPart::Pattern(text) if matches!(text.as_str(), "*" | "?" | "[") => (text, true),
                WordPart::Pattern(_) | WordPart::Variable { .. } | WordPart::Unknown { .. } => {
                    return None;
                }
            };
            for character in text.chars() {
                if character == '/' {
                    is_absolute |= components.len() == 1 && components[0].signs.is_empty();
                    components.push(Component::default());
                    in_brackets = false;
                    continue;
                }
                let sign = match character {
                    '?' if is_pattern => Sign::One,
                    '*' if is_pattern => Sign::Many,
                    '[' if is_pattern => {
                        in_brackets = true;
                        Sign::Many
                    }
                    _ if in_brackets => continue,
                    character => Sign::Character(character),
                };
                if let Some(last) = components.last_mut() {
                    last.signs.push(sign);
                }
            }
        }
        components.retain(|component| !component.signs.is_empty());
        Some(Self { components, is_absolute })
    }

    /// Whether one of its parts may become this name.
    pub(super) fn may_name(&self, name: &str) -> bool {
        self.components.iter().any(|component| component.matches(name))
    }

    /// The files below `start` that it names now.
    pub(super) fn matches(&self, start: &Path) -> Matches {
        let start = if self.is_absolute { Path::new("/") } else { start };
        let mut found = Matches { paths: vec![start.to_owned()], more: false };
        let mut seen = 0;
        for component in &self.components {
            let mut next = Vec::new();
            for directory in &found.paths {
                if let Some(name) = component.plain() {
                    next.push(directory.join(name));
                    continue;
                }
                let Ok(entries) = directory.read_dir() else { continue };
                for entry in entries.flatten() {
                    seen += 1;
                    if seen > NAMES {
                        found.more = true;
                        break;
                    }
                    let name = entry.file_name();
                    if component.matches(&name.to_string_lossy()) {
                        next.push(directory.join(name));
                    }
                }
            }
            found.paths = next;
        }
        found
    }
}

impl Component {
    /// The name, where it has no wildcard.
    fn plain(&self) -> Option<String> {
        self.signs
            .iter()
            .map(|sign| match sign {
                Sign::Character(character) => Some(*character),
                Sign::One | Sign::Many => None,
            })
            .collect()
    }

    /// Whether it may become this name. A wildcard does not stand for a dot that a name begins with.
    fn matches(&self, name: &str) -> bool {
        let hidden = name.starts_with('.');
        if hidden && !matches!(self.signs.first(), Some(Sign::Character('.'))) {
            return false;
        }
        let name: Vec<char> = name.chars().collect();
        // Which places of the name can be reached with the signs so far.
        let mut reached = vec![false; name.len() + 1];
        reached[0] = true;
        for sign in &self.signs {
            let mut next = vec![false; name.len() + 1];
            for place in 0..=name.len() {
                if !reached[place] {
                    continue;
                }
                match sign {
                    Sign::Many => next[place..].fill(true),
                    Sign::One if place < name.len() => next[place + 1] = true,
                    Sign::Character(character) if name.get(place) == Some(character) => {
                        next[place + 1] = true;
                    }
                    Sign::One | Sign::Character(_) => {}
                }
            }
            reached = next;
        }
        reached[name.len()]
    }
}

/// Whether a pattern for names, such as `find -name` takes, may become this name. All of it is read as
/// a wildcard, a dot at the beginning included.
pub(super) fn name_matches(pattern: &str, name: &str) -> bool {
    let mut signs = Vec::new();
    for character in pattern.chars() {
        match character {
            '*' => signs.push(Sign::Many),
            '?' => signs.push(Sign::One),
            '[' | '\\' => {
                signs.push(Sign::Many);
                break;
            }
            character => signs.push(Sign::Character(character)),
        }
    }
    let fits = |name: &str| Component { signs: signs.clone() }.matches(name);
    // A wildcard does stand for such a dot there.
    fits(name) || fits(name.trim_start_matches('.')) && signs.first() != Some(&Sign::Character('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        let parts = text.chars().map(|next| match next {
            '*' | '?' | '[' => WordPart::Pattern(next.to_string()),
            next => WordPart::Bare(next.to_string()),
        });
        Pattern::of(&Word { parts: parts.collect() }).unwrap()
    }

    #[test]
    fn a_wildcard_reaches_a_hidden_name_only_behind_a_dot() {
        for (text, reaches) in [
            (".g*", true),
            (".*", true),
            (".?it", true),
            (".[a-z]it/hooks", true),
            ("a/.gi?/x", true),
            ("*", false),
            ("?git", false),
            ("*git", false),
            (".gitignore*", false),
            ("[.]git", false),
        ] {
            assert_eq!(pattern(text).may_name(".git"), reaches, "{text}");
        }
    }

    #[test]
    fn what_is_there_is_found_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["a.rs", "b.rs", "c.txt", ".hidden.rs"] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        let mut names: Vec<String> = pattern("*.rs")
            .matches(directory.path())
            .paths
            .iter()
            .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
            .collect();
        names.sort();
        assert_eq!(names, ["a.rs", "b.rs"]);
    }

    #[test]
    fn names_that_find_looks_for_are_matched_with_their_dots() {
        for (text, name, fits) in [
            ("*.tmp", "config", false),
            ("config", "config", true),
            ("*", ".git", true),
            ("c*g", "config", true),
            ("[a-z]*", "config", true),
            ("*.rs", "hooks", false),
        ] {
            assert_eq!(name_matches(text, name), fits, "{text} {name}");
        }
    }
}
