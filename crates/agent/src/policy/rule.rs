//! What "always" remembers, and what it covers.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::command::{Prefix, Stage};
use super::place;

/// What a person said "always" to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Commands with these words that do no more than was seen.
    Command(Prefix),
    /// Changing files in this directory and below it.
    Directory(PathBuf),
    /// Reaching this host.
    Host(String),
}

/// What an action needs a rule for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// Running a stage of a command line.
    Command(Stage),
    /// Changing a file in this directory, links followed.
    Directory(PathBuf),
    /// Reaching this host.
    Host(String),
}

impl Rule {
    /// Whether who said "always" to this said it to that too.
    pub fn covers(&self, need: &Need) -> bool {
        match (self, need) {
            (Self::Command(prefix), Need::Command(stage)) => prefix.covers(stage),
            (Self::Directory(allowed), Need::Directory(wanted)) => wanted.starts_with(allowed),
            (Self::Host(allowed), Need::Host(wanted)) => allowed == wanted,
            _ => false,
        }
    }

    /// What it lets through, in words.
    pub fn describe(&self) -> String {
        match self {
            Self::Command(prefix) => format!("the command `{prefix}`"),
            Self::Directory(path) => format!("changes in {}", path.display()),
            Self::Host(host) => format!("reaching {host}"),
        }
    }
}

impl Need {
    /// What a stage needs. Returns `None` if it must be asked about each time.
    pub(super) fn command(stage: &Stage) -> Option<Self> {
        stage.prefix.is_some().then(|| Self::Command(stage.clone()))
    }

    /// What a change of a file needs. The root is no directory to say "always" to.
    pub(super) fn directory(path: &Path, workspace: &Path) -> Option<Self> {
        let file = place::real(&workspace.join(path))?;
        let directory = file.parent().filter(|directory| directory.parent().is_some())?;
        Some(Self::Directory(directory.to_owned()))
    }

    /// What reaching a place needs, by its host. A port belongs to it.
    pub(super) fn host(place: &str) -> Option<Self> {
        let rest = place.split_once("://").map_or(place, |(_, rest)| rest);
        let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let plain = |letter: char| letter.is_ascii_alphanumeric() || ".-_:[]".contains(letter);
        (!host.is_empty() && host.chars().all(plain)).then(|| Self::Host(host.to_lowercase()))
    }

    /// The rule that an "always" to this remembers.
    pub fn rule(&self) -> Option<Rule> {
        match self {
            Self::Command(stage) => stage.prefix.clone().map(Rule::Command),
            Self::Directory(path) => Some(Rule::Directory(path.clone())),
            Self::Host(host) => Some(Rule::Host(host.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_what_is_dialled_and_nothing_that_looks_like_it() {
        let cases = [
            ("https://Example.org/a/b?c", Some("example.org")),
            ("example.org", Some("example.org")),
            ("http://example.org:8080/x", Some("example.org:8080")),
            ("https://good.org@evil.org/", Some("evil.org")),
            ("https://evil.org\\@good.org/", Some("evil.org")),
            ("https://[::1]:80/", Some("[::1]:80")),
            ("https://", None),
            ("exa mple.org", None),
        ];
        for (place, host) in cases {
            let expected = host.map(|host| Need::Host(host.to_owned()));
            assert_eq!(Need::host(place), expected, "{place}");
        }
    }

    #[test]
    fn a_directory_covers_what_is_below_it_and_not_beside_it() {
        let rule = Rule::Directory("/srv/notes".into());
        for (path, covered) in
            [("/srv/notes", true), ("/srv/notes/a", true), ("/srv/notes-2", false), ("/srv", false)]
        {
            assert_eq!(rule.covers(&Need::Directory(path.into())), covered, "{path}");
        }
        assert!(!rule.covers(&Need::Host("srv".to_owned())));
    }

    #[test]
    fn the_root_is_never_remembered() {
        assert_eq!(Need::directory(Path::new("/x"), Path::new("/")), None);
    }
}
