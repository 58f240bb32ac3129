//! Where the words of a line lead when they are paths, and what writing there does.

use std::path::{Path, PathBuf};

use super::Walk;
use crate::policy::command::globs::Pattern;
use crate::policy::command::syntax::{Word, WordPart};
use crate::policy::command::verbs::is_plain;
use crate::policy::command::{Class, Classes};
use crate::policy::place::{self, Change, PathPlace, locate};

impl Walk<'_> {
    /// The same words, with the values of variables that have one for all the line to see.
    pub(in crate::policy::command) fn with_values(&self, words: &[Word]) -> Vec<Word> {
        let seen = |word: &Word| {
            let has_variable =
                word.parts.iter().any(|part| matches!(part, WordPart::Variable { .. }));
            let path = self.plain_path(word).filter(|_| has_variable)?;
            let text = path.into_os_string().into_string().ok()?;
            // A value that is not quoted is split and expanded.
            let stays = !word.may_split() || is_plain(&text);
            stays.then(|| Word::of(text))
        };
        words.iter().map(|word| seen(word).unwrap_or_else(|| word.clone())).collect()
    }

    /// Where a word leads when it is a path.
    pub(in crate::policy::command) fn place(&self, word: &Word) -> PathPlace {
        if let Some(path) = self.plain_path(word) {
            return self.place_of(&path);
        }
        let head = word.head();
        let dots = |part: &WordPart| match part {
            WordPart::Quoted(text) | WordPart::Bare(text) => text.contains(".."),
            _ => false,
        };
        let Some(pattern) = Pattern::of(word).filter(|_| !word.parts.iter().any(dots)) else {
            return PathPlace::Outside;
        };
        // A wildcard stays below the directory before it, unless there is a link.
        let directory = head.rfind('/').map_or("", |end| &head[..=end]);
        let below = match self.place_of(Path::new(directory)) {
            _ if !self.links.is_empty() => PathPlace::Outside,
            // All that is there.
            PathPlace::Root if directory.len() == head.len() => PathPlace::Root,
            PathPlace::Root | PathPlace::Inside if pattern.may_name(".git") => PathPlace::Git,
            PathPlace::Root => PathPlace::Inside,
            place => place,
        };
        let found = self.here.known.iter().map(|here| {
            let matches = pattern.matches(&self.workspace.join(here));
            let inner = |path: &PathBuf| match path.strip_prefix(self.workspace) {
                Ok(inner) => inner.to_owned(),
                Err(_) => path.clone(),
            };
            let places = matches.paths.iter().map(|path| locate(&inner(path), self.workspace));
            let worst = places.reduce(worse).unwrap_or(below);
            if matches.more { PathPlace::Outside } else { worst }
        });
        found.fold(below, |place, other| match other {
            PathPlace::Inside | PathPlace::Root | PathPlace::Temporary => place,
            PathPlace::Git | PathPlace::Outside => worse(place, other),
        })
    }

    /// The files that a word names now, links not followed.
    fn paths(&self, word: &Word) -> Vec<PathBuf> {
        let places = self.here.known.iter().map(|here| self.workspace.join(here));
        match (self.plain_path(word), Pattern::of(word)) {
            (Some(path), _) => places.map(|here| here.join(&path)).collect(),
            (None, Some(pattern)) => places.flat_map(|here| pattern.matches(&here).paths).collect(),
            (None, None) => Vec::new(),
        }
    }

    /// Whether a word is a wildcard that finds no file whose name looks like an option.
    pub(in crate::policy::command) fn matches_plain_names(&self, word: &Word) -> bool {
        let pattern = Pattern::of(word).filter(|_| word.literal().is_none());
        pattern.is_some_and(|pattern| {
            !self.here.others
                && self.here.known.iter().all(|here| {
                    let matches = pattern.matches(&self.workspace.join(here));
                    let dashed = |path: &PathBuf| {
                        path.file_name()
                            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"-"))
                    };
                    !matches.more && !matches.paths.iter().any(dashed)
                })
        })
    }

    /// Whether a word names what git keeps, wherever it lies.
    pub(in crate::policy::command) fn names_git(&self, word: &Word) -> bool {
        let names = |path: PathBuf| path.iter().any(|part| part == ".git");
        match self.plain_path(word) {
            Some(path) => names(path),
            None => Pattern::of(word).is_some_and(|pattern| pattern.may_name(".git")),
        }
    }

    /// Whether a word is a wildcard for all that the workspace holds.
    pub(in crate::policy::command) fn names_everything(&self, word: &Word) -> bool {
        let head = word.head();
        let star = matches!(word.parts.last(), Some(WordPart::Pattern(sign)) if sign == "*");
        let plain = word.parts.iter().filter(|part| matches!(part, WordPart::Pattern(_))).count();
        star && plain == 1
            && (head.is_empty() || head.ends_with('/'))
            && self.place_of(Path::new(&head)) == PathPlace::Root
    }

    /// Whether a word names the directory of a repository.
    pub(in crate::policy::command) fn is_repository(&self, word: &Word) -> bool {
        self.paths(word).iter().any(|path| path.join(".git").exists())
    }

    /// Whether a tree holds a repository.
    pub(in crate::policy::command) fn holds_git(&self, word: &Word) -> bool {
        self.paths(word).iter().any(|path| place::holds(path, |name| name == ".git"))
    }

    /// Whether a tree holds a repository other than where it begins.
    pub(in crate::policy::command) fn holds_nested_git(&self, word: &Word) -> bool {
        let below = |path: &PathBuf| {
            let entries = path.read_dir().into_iter().flatten().flatten();
            let others = entries.filter(|entry| entry.file_name() != ".git");
            others.into_iter().any(|entry| place::holds(&entry.path(), |name| name == ".git"))
        };
        self.paths(word).iter().any(below)
    }

    /// Whether git, started here or in a directory named by these words, may go by the settings of a
    /// repository that commands could have made.
    pub(in crate::policy::command) fn is_made_repository(&self, below: &[Word]) -> bool {
        let path: Option<PathBuf> = below.iter().map(|word| self.plain_path(word)).collect();
        let Some(path) = path else { return false };
        let here = self.here.known.iter();
        here.map(|here| here.join(&path)).any(|path| {
            self.links.iter().any(|link| path.starts_with(link))
                || place::in_made_repository(&path, self.workspace)
        })
    }

    /// Notes that a verb makes links to these, with this name or in this directory.
    pub(in crate::policy::command) fn note_link(&mut self, name: &Word, sources: &[&Word]) {
        let Some(name) = self.plain_path(name) else { return };
        for here in self.here.known.clone() {
            let link = here.join(&name);
            for source in sources {
                if let Some(last) = self.plain_path(source).as_deref().and_then(Path::file_name) {
                    self.links.push(link.join(last));
                }
            }
            if !self.workspace.join(&link).is_dir() {
                self.links.push(link);
            }
        }
    }

    /// Notes that a verb brings trees as they are to a place. Links come along, and lead to where they
    /// led from wherever they are.
    pub(in crate::policy::command) fn note_brought(&mut self, place: &Word, sources: &[&Word]) {
        if self.brings_links(sources) {
            self.note_link(place, sources);
        }
    }

    /// Whether one of these is a link, or a tree that holds one.
    pub(in crate::policy::command) fn brings_links(&self, sources: &[&Word]) -> bool {
        let made = |path: &PathBuf| {
            self.links.iter().any(|link| self.workspace.join(link).starts_with(path))
        };
        let link = |path: &PathBuf| path.is_symlink() || made(path) || place::holds_link(path);
        sources.iter().any(|source| self.paths(source).iter().any(link))
    }

    /// Whether a tree holds a link with such a name that leads out of the workspace.
    pub(in crate::policy::command) fn holds_way_out(
        &self,
        word: &Word,
        is_named: impl Fn(&str) -> bool,
    ) -> bool {
        let leads_out = |path: &Path| locate(path, self.workspace) == PathPlace::Outside;
        let ways = |path: &PathBuf| {
            place::holds_link_that(path, |link| {
                let name = link.file_name().unwrap_or_default().to_string_lossy();
                is_named(&name) && leads_out(link)
            })
        };
        self.paths(word).iter().any(ways)
    }

    /// Notes that the stage writes to a path.
    pub(in crate::policy::command) fn note_write(&self, word: &Word) {
        let told = match (self.plain_path(word), Pattern::of(word)) {
            (Some(path), _) => {
                let places = self.here.known.iter().map(|here| here.join(&path));
                places.into_iter().any(|path| place::instructs(&path))
            }
            (None, Some(pattern)) => {
                let names = ["AGENTS.md", "CLAUDE.md", ".agents", ".claude", "skills"];
                names.iter().any(|name| pattern.may_name(name))
            }
            (None, None) => true,
        };
        self.instructs.set(self.instructs.get() || told);
    }

    /// Notes that the stage brings a file, or a tree of them, to another place.
    pub(in crate::policy::command) fn note_copy(&self, word: &Word) {
        let instructs = |name: &str| {
            ["agents.md", "claude.md", ".agents", ".claude", "skills"]
                .contains(&name.to_lowercase().as_str())
        };
        self.note_write(word);
        if self.paths(word).iter().any(|path| place::holds(path, instructs)) {
            self.note_any_write();
        }
    }

    /// Notes that the stage may write to any file of the workspace.
    pub(in crate::policy::command) fn note_any_write(&self) {
        self.instructs.set(true);
    }

    fn place_of(&self, path: &Path) -> PathPlace {
        if path.is_absolute() {
            return locate(path, self.workspace);
        }
        if self.here.others {
            return PathPlace::Outside;
        }
        let below_link = |path: &Path| self.links.iter().any(|link| path.starts_with(link));
        let places = self.here.known.iter().map(|here| match here.join(path) {
            path if below_link(&path) => PathPlace::Outside,
            path => locate(&path, self.workspace),
        });
        places.reduce(worse).unwrap_or(PathPlace::Outside)
    }

    /// What writing to a path does.
    pub(in crate::policy::command) fn writes(&self, word: &Word) -> Classes {
        self.changes(word, Change::Written)
    }

    /// What it does to put something into a directory, or in the place of what is there.
    pub(in crate::policy::command) fn places(&self, word: &Word) -> Classes {
        self.changes(word, Change::Placed)
    }

    /// What it does to take a path away.
    pub(in crate::policy::command) fn removes(&self, word: &Word) -> Classes {
        self.changes(word, Change::Removed)
    }

    fn changes(&self, word: &Word, change: Change) -> Classes {
        let head = word.head();
        if let Some(device) = head.strip_prefix("/dev/") {
            const HARMLESS: [&str; 6] = ["null", "stdout", "stderr", "tty", "full", "zero"];
            let harmless = word.literal().is_some()
                && (HARMLESS.contains(&device) || device.starts_with("fd/"))
                && !device.contains("..");
            return if harmless {
                Classes::READ
            } else if device.starts_with("shm/") {
                self.outside(word, Change::Written)
            } else {
                Class::Destructive.into()
            };
        }
        if head.starts_with("/proc/") || head.starts_with("/sys/") {
            return Class::Destructive.into();
        }
        self.note_write(word);
        match self.place(word) {
            PathPlace::Inside | PathPlace::Temporary | PathPlace::Root => Class::WriteInside.into(),
            // Its hooks and settings name programs that are run later.
            PathPlace::Git => Class::Execute.into(),
            // Of several places the others count too.
            PathPlace::Outside if self.may_be_in_git(word) => {
                self.outside(word, change).with(Class::Execute)
            }
            PathPlace::Outside => self.outside(word, change),
        }
    }

    /// Changes something outside the workspace, and notes what has to be writable for that if the line
    /// says it.
    fn outside(&self, word: &Word, change: Change) -> Classes {
        match self.needs_outside(word, change) {
            Some(paths) => {
                self.outside.borrow_mut().extend(paths);
                Classes::TOLD_OUTSIDE
            }
            None => Class::WriteOutside.into(),
        }
    }

    fn needs_outside(&self, word: &Word, change: Change) -> Option<Vec<PathBuf>> {
        let path = self.plain_path(word).or_else(|| self.homely_path(word))?;
        // Once it runs, a link that the line makes leads elsewhere.
        if !self.links.is_empty() || self.here.others && path.is_relative() {
            return None;
        }
        let mut needed = Vec::new();
        for here in &self.here.known {
            let path = self.workspace.join(here).join(&path);
            match locate(&path, self.workspace) {
                PathPlace::Outside => needed.push(place::writable(&path, change)?),
                PathPlace::Inside | PathPlace::Root | PathPlace::Git | PathPlace::Temporary => {}
            }
        }
        Some(needed)
    }

    /// A path that is known but for the home that it begins with.
    fn homely_path(&self, word: &Word) -> Option<PathBuf> {
        let (first, rest) = word.parts.split_first()?;
        let is_home = match first {
            WordPart::Pattern(sign) => sign == "~",
            WordPart::Variable { name, .. } => name == "HOME",
            _ => false,
        };
        if !is_home || !self.values_of("HOME").is_empty() {
            return None;
        }
        let home = std::env::home_dir().filter(|home| home.to_str().is_some_and(is_plain))?;
        if rest.is_empty() {
            return Some(home);
        }
        let rest = self.plain_path(&Word { parts: rest.to_vec() })?;
        // What follows without a stroke is the name of another user.
        Some(home.join(rest.strip_prefix("/").ok()?))
    }

    /// Whether a path leads to what git keeps from one of the directories in which it may start.
    fn may_be_in_git(&self, word: &Word) -> bool {
        let Some(path) = self.plain_path(word) else { return false };
        let mut places = self.here.known.iter().map(|here| here.join(&path));
        places.any(|path| locate(&path, self.workspace) == PathPlace::Git)
    }
}

/// The more dangerous of two places to write to.
fn worse(one: PathPlace, other: PathPlace) -> PathPlace {
    let rank = |place| match place {
        PathPlace::Inside => 0,
        PathPlace::Temporary => 1,
        PathPlace::Root => 2,
        PathPlace::Git => 3,
        PathPlace::Outside => 4,
    };
    if rank(other) > rank(one) { other } else { one }
}
