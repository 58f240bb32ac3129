//! Which tools a hook is for.

use regex::Regex;

/// Which tools a hook is for.
#[derive(Clone, Debug)]
pub(super) enum Matcher {
    All,
    /// Whole names, one of which it has to be.
    Names(Vec<String>),
    Pattern(Regex),
}

impl Matcher {
    /// What is written in a file: nothing or `*` for all, names parted by `|`, or else a regular
    /// expression that has to be found somewhere in the name. The error says what is wrong with it.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() || text == "*" {
            return Ok(Self::All);
        }
        let plain = |letter: char| letter.is_alphanumeric() || "_| ,-".contains(letter);
        if text.chars().all(plain) {
            let names = text.split(['|', ',']).map(|name| name.trim().to_owned());
            return Ok(Self::Names(names.filter(|name| !name.is_empty()).collect()));
        }
        // Long ones are mistakes, and cost memory.
        let built = regex::RegexBuilder::new(text).size_limit(1 << 20).build();
        built.map(Self::Pattern).map_err(|error| crate::hooks::answer::one_line(&error.to_string()))
    }

    /// Whether one of the names of a thing is meant.
    pub(super) fn matches(&self, names: &[&str]) -> bool {
        match self {
            Self::All => true,
            Self::Names(meant) => meant.iter().any(|meant| names.contains(&meant.as_str())),
            Self::Pattern(pattern) => names.iter().any(|name| pattern.is_match(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_whole_and_patterns_anywhere() {
        let cases = [
            ("", "Bash", true),
            ("*", "anything", true),
            ("Bash", "Bash", true),
            ("Bash", "BashOutput", false),
            ("bash", "Bash", false),
            ("Edit|Write", "Write", true),
            ("Edit|MultiEdit | Write", "Edit", true),
            ("Edit|Write", "NotebookWrite", false),
            ("Notebook.*", "NotebookEdit", true),
            ("mcp__.*__write", "mcp__files__write_all", true),
            ("^Read$", "Read", true),
            ("^Read$", "ReadMany", false),
            (".*", "x", true),
        ];
        for (text, name, expected) in cases {
            assert_eq!(Matcher::read(text).unwrap().matches(&[name]), expected, "{text} {name}");
        }
        assert!(Matcher::read("Edit(").is_err());
    }
}
