//! The `glob` tool, and patterns for paths.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use globset::{GlobBuilder, GlobMatcher};
use mainstay_message::ToolSpec;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::LOOKS;
use super::blocking::{self, Stop};
use super::bounds::Bounds;
use super::text::count;
use super::walk::{Confirmation, Hidden, Root, Walk, root};
use crate::schema::{arguments, parameters};
use crate::{Action, Invocation, Outcome, Tool, Traits, Workplace};

const SHOWN_FILES: usize = 200;
/// A search ends at so many files that match.
const FOUND_FILES: usize = 100_000;

/// Finds files by name.
pub(super) struct Glob;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Like `src/**/*.rs`; without a slash it matches names at any depth.
    pattern: String,
    path: Option<String>,
}

impl Tool for Glob {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "glob".to_owned(),
            description: "Finds files by name below a directory, newest first; skips hidden (unless the pattern \
                          names them) and git-ignored ones."
                .to_owned(),
            parameters: parameters::<Arguments>(),
        }
    }

    fn traits(&self) -> Traits {
        LOOKS
    }

    fn action(&self, _call: &Invocation<'_>) -> Action {
        Action::Read
    }

    fn run<'a>(&'a self, call: Invocation<'a>, _plan: Option<&'a Value>) -> BoxFuture<'a, Outcome> {
        let given = arguments::<Arguments>(call.arguments);
        let workplace = call.workplace.clone();
        let room = workplace.confinement.room();
        Box::pin(blocking::outcome(room, move |stop| glob(&workplace, &given?, stop)))
    }
}

/// A pattern for paths below a root.
pub(super) struct Pattern {
    matcher: GlobMatcher,
    /// Whether it names hidden files.
    pub(super) hidden: Hidden,
}

impl Pattern {
    /// Like a line of a `.gitignore`: without a slash it is matched with the name alone.
    pub(super) fn new(pattern: &str) -> Result<Self, Outcome> {
        let dotted =
            pattern.split('/').any(|part| part.starts_with('.') && part != "." && part != "..");
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let anywhere =
            if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") };
        let matcher = GlobBuilder::new(anywhere.trim_start_matches('/'))
            .literal_separator(true)
            .build()
            .map_err(|error| {
                Outcome::failed(format!(
                    "The pattern is not valid: {error}. Use `*`, `**`, `?`, `[a-z]`, `{{a,b}}`."
                ))
            })?
            .compile_matcher();
        let hidden = if dotted { Hidden::Included } else { Hidden::Skipped };
        Ok(Self { matcher, hidden })
    }

    /// Whether it matches `path`, which is below `root`.
    pub(super) fn matches(&self, root: &Path, path: &Path) -> bool {
        self.matcher.is_match(path.strip_prefix(root).unwrap_or(path))
    }
}

fn glob(workplace: &Workplace, given: &Arguments, stop: &Stop) -> Result<Outcome, Outcome> {
    let bounds = Arc::new(Bounds::of(workplace));
    let (place, pattern) = split(given);
    let directory = match root(&bounds, place.as_deref())? {
        Root::Directory(path) => path,
        Root::File(path) => {
            return Err(Outcome::failed(format!(
                "{} is a file. Give a directory as `path`.",
                bounds.shown(&path)
            )));
        }
    };
    let pattern = Pattern::new(&pattern)?;
    let mut walk = Walk::new(&bounds, &directory, None, pattern.hidden, stop);
    let mut found: Vec<(Reverse<(i64, i64)>, PathBuf)> = Vec::new();
    let mut confirmation = Confirmation::default();
    for entry in walk.by_ref() {
        if entry.file_type().is_some_and(|kind| kind.is_dir())
            || !pattern.matches(&directory, entry.path())
        {
            continue;
        }
        let Some(status) = confirmation.status(entry.path()) else { continue };
        found.push((Reverse(status.modified), entry.into_path()));
        if found.len() == FOUND_FILES {
            break;
        }
    }
    stop.check()?;
    found.sort_unstable();
    let mut words = vec![match found.len() {
        0 => format!("No files match under {}.", bounds.shown(&directory)),
        FOUND_FILES => {
            format!("Stopped after {FOUND_FILES} matching files; the newest of those:")
        }
        number => format!("{}, newest first.", count(number as u64, "file", "files")),
    }];
    if found.len() > SHOWN_FILES {
        words.push(format!(
            "{} are not shown; narrow the pattern or the path.",
            found.len() - SHOWN_FILES
        ));
    }
    words.extend(walk.notes(&bounds));
    let text: String =
        found.iter().take(SHOWN_FILES).map(|(_, path)| bounds.shown(path) + "\n").collect();
    let outcome = Outcome::said(words.join(" "));
    Ok(if text.is_empty() { outcome } else { outcome.data(text) })
}

/// The directory and the pattern. An absolute pattern names its directory itself.
fn split(given: &Arguments) -> (Option<String>, String) {
    if !given.pattern.starts_with('/') {
        return (given.path.clone(), given.pattern.clone());
    }
    let special = given.pattern.find(['*', '?', '[', '{', '\\']).unwrap_or(given.pattern.len());
    let slash = given.pattern[..special].rfind('/').unwrap_or(0);
    let (directory, pattern) = given.pattern.split_at(slash);
    (Some(format!("{directory}/")), format!(".{pattern}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        let Ok(pattern) = Pattern::new(pattern) else { panic!("{pattern} is not valid") };
        pattern.matches(Path::new("/r"), &Path::new("/r").join(path))
    }

    #[test]
    fn a_pattern_without_a_slash_matches_at_any_depth_and_one_with_a_slash_from_the_root() {
        assert!(matches("*.rs", "a.rs") && matches("*.rs", "x/y/a.rs"));
        assert!(matches("src/*.rs", "src/a.rs") && !matches("src/*.rs", "src/x/a.rs"));
        assert!(matches("src/**/*.rs", "src/a.rs") && matches("src/**/*.rs", "src/x/y/a.rs"));
        assert!(matches("./*.rs", "a.rs") && matches("*.{rs,toml}", "x/Cargo.toml"));
    }

    #[test]
    fn only_a_pattern_that_names_hidden_files_includes_them() {
        for (pattern, hidden) in [
            ("*.rs", Hidden::Skipped),
            ("./a/../b", Hidden::Skipped),
            (".github/**", Hidden::Included),
            ("**/.env", Hidden::Included),
        ] {
            assert_eq!(
                Pattern::new(pattern).map(|pattern| pattern.hidden),
                Ok(hidden),
                "{pattern}"
            );
        }
        assert!(Pattern::new("a[").is_err());
    }

    #[test]
    fn an_absolute_pattern_names_its_directory() {
        let given = |pattern: &str| Arguments { pattern: pattern.to_owned(), path: None };
        assert_eq!(
            split(&given("/a/b/**/*.rs")),
            (Some("/a/b/".to_owned()), "./**/*.rs".to_owned())
        );
        assert_eq!(split(&given("/a/b.rs")), (Some("/a/".to_owned()), "./b.rs".to_owned()));
        assert_eq!(split(&given("/*")), (Some("/".to_owned()), "./*".to_owned()));
    }
}
