//! What a command line would do, told from its words alone.
//!
//! [`judge`] reads a line as a shell would and names, stage by stage, the worst that it may do. It
//! knows nothing of the machine: a verb that it does not know runs code that nobody knows. It is the
//! finer of two sieves; what a command can really reach is settled by the sandbox.

mod archives;
mod arguments;
mod awk;
mod builtins;
mod compounds;
mod files;
mod find;
mod git;
mod globs;
mod interpreters;
mod known;
mod options;
mod parse;
mod reach;
mod redirects;
mod sed;
mod syntax;
mod variables;
mod verbs;
mod walk;
mod words;
mod wrappers;

use std::path::{Path, PathBuf};

use parse::Dialect;
use serde::{Deserialize, Serialize};

/// What a stage of a command line does. Later ones are worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Only looks at things.
    Read,
    /// Changes files of the workspace, and nothing else.
    WriteInside,
    /// Changes files elsewhere, or files that are not named.
    WriteOutside,
    /// Reaches places on the network.
    Network,
    /// Runs code that nobody can know from the line: builds, interpreters, unknown programs.
    Execute,
    /// Destroys what cannot be put back: disks, whole trees, published history, others' processes.
    Destructive,
    /// Wants to become another user.
    Privilege,
    /// Calls Mainstay itself. The agent must not decide about itself.
    Control,
}

impl Class {
    /// All of them, the most harmless first.
    pub const ALL: [Self; 8] = [
        Self::Read,
        Self::WriteInside,
        Self::WriteOutside,
        Self::Network,
        Self::Execute,
        Self::Destructive,
        Self::Privilege,
        Self::Control,
    ];

    /// What a command of this class does, in words that follow "this command".
    pub fn describe(self) -> &'static str {
        match self {
            Self::Read => "only looks",
            Self::WriteInside => "changes files in the workspace",
            Self::WriteOutside => "changes files outside the workspace",
            Self::Network => "reaches the network",
            Self::Execute => "runs code",
            Self::Destructive => "may destroy data that cannot be restored",
            Self::Privilege => "runs as another user",
            Self::Control => "controls Mainstay itself",
        }
    }
}

/// A set of classes; never empty, because everything reads.
///
/// Two of them have a milder kind, which is kept apart for whoever asks for it and is the same class for
/// everybody else. The milder kind is the one that has to be said, so that what is forgotten errs on the
/// strict side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Classes(u16);

impl Classes {
    /// Only looking.
    pub const READ: Self = Self(1);

    /// Changing files elsewhere, where the line says which.
    const TOLD_OUTSIDE: Self = Self(1 | 1 << 8);

    /// Destructive for no other reason than that nobody can read what it does.
    const FEARED: Self = Self(1 | 1 << 9);

    /// The bits that stand for a class, the milder kind included.
    fn bits(class: Class) -> u16 {
        let milder = match class {
            Class::WriteOutside => Self::TOLD_OUTSIDE.0 & !1,
            Class::Destructive => Self::FEARED.0 & !1,
            _ => 0,
        };
        1 << class as u16 | milder
    }

    /// Whether it has the class itself, and not only its milder kind.
    fn has_strictly(self, class: Class) -> bool {
        self.0 & 1 << class as u16 != 0
    }

    /// With one more.
    #[must_use]
    pub fn with(self, class: Class) -> Self {
        Self(self.0 | 1 << class as u16)
    }

    /// Those of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether this one is among them.
    pub fn has(self, class: Class) -> bool {
        self.0 & Self::bits(class) != 0
    }

    /// Whether every one of these is among the others.
    pub fn within(self, others: Self) -> bool {
        self.iter().all(|class| others.has(class))
    }

    /// The worst of them.
    pub fn worst(self) -> Class {
        self.iter().last().unwrap_or(Class::Read)
    }

    /// Each of them, the most harmless first.
    pub fn iter(self) -> impl Iterator<Item = Class> {
        Class::ALL.into_iter().filter(move |class| self.has(*class))
    }
}

impl From<Class> for Classes {
    fn from(class: Class) -> Self {
        Self::READ.with(class)
    }
}

/// One command of a line: a stage of a pipeline, of a list, of a substitution or of a payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stage {
    /// Its words, for a person.
    pub text: String,
    /// All that it may do.
    pub classes: Classes,
    /// What "always" may remember of it. It is `None` if it must be asked about each time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Prefix>,
    /// Whether it may write what sessions that begin in the workspace later are told.
    pub instructs: bool,
    /// What it writes to outside the workspace, as far as the line says: real paths that exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<PathBuf>,
}

impl Stage {
    /// A stage that must be asked about each time.
    fn plain(text: String, classes: Classes) -> Self {
        Self { text, classes, prefix: None, instructs: false, outside: Vec::new() }
    }

    /// Whether nobody can read what it does, so that the worst is feared of it.
    pub fn is_unread(&self) -> bool {
        self.classes.has(Class::Destructive) && !self.classes.has_strictly(Class::Destructive)
    }
}

/// What "always" remembers: the words of a command and what it was seen to do. Options that only change
/// how much a known program says are not among the words.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Prefix {
    /// The words, such as `cargo test`.
    pub words: Vec<String>,
    /// What a stage with these words did when a person said yes to it.
    pub classes: Classes,
}

impl Prefix {
    /// Whether a person who said "always" to this said it to that stage too: it has the same words and
    /// does no more.
    pub fn covers(&self, stage: &Stage) -> bool {
        stage.prefix.as_ref().is_some_and(|other| other.words == self.words)
            && stage.classes.within(self.classes)
    }
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let quoted = |word: &String| match verbs::is_plain(word) {
            true => word.clone(),
            false => format!("'{}'", word.replace('\'', "'\\''")),
        };
        formatter.write_str(&self.words.iter().map(quoted).collect::<Vec<_>>().join(" "))
    }
}

/// What a whole line would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LineJudgement {
    /// Every command in it, wherever it stands. A line that was read has at least one.
    pub stages: Vec<Stage>,
    /// Why the line could not be read. It is `None` if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unclear: Option<&'static str>,
    /// Whether `bash` would run the line, and a plainer `sh` refuse a part of it.
    pub only_bash: bool,
}

impl LineJudgement {
    /// All that the line may do.
    pub fn classes(&self) -> Classes {
        self.stages.iter().fold(Classes::READ, |classes, stage| classes.and(stage.classes))
    }

    /// The worst that it may do.
    pub fn class(&self) -> Class {
        self.classes().worst()
    }

    /// What has to be writable outside the workspace so that the line can do what it says: real paths
    /// that exist now, each a file that it writes, or the directory in which it makes, replaces or
    /// removes something. Returns `None` if it writes to somewhere that the line does not say.
    ///
    /// Code that it runs may want more; of that the line says nothing, and it is not counted here.
    pub fn outside_paths(&self) -> Option<Vec<PathBuf>> {
        if self.classes().has_strictly(Class::WriteOutside) {
            return None;
        }
        let mut paths: Vec<PathBuf> = Vec::new();
        for path in self.stages.iter().flat_map(|stage| &stage.outside) {
            if !paths.contains(path) {
                paths.push(path.clone());
            }
        }
        Some(paths)
    }

    /// Whether it counts as destructive for no other reason than that it, or a part of it, cannot be
    /// read: nothing in it is seen to destroy something, to become another user or to call Mainstay.
    pub fn is_only_unclear(&self) -> bool {
        self.class() == Class::Destructive && !self.classes().has_strictly(Class::Destructive)
    }

    /// What "always" would remember: a prefix for every stage that does more than look. Returns `None`
    /// if one of them must be asked about each time.
    pub fn prefixes(&self) -> Option<Vec<Prefix>> {
        let mut prefixes: Vec<Prefix> = Vec::new();
        for stage in &self.stages {
            if stage.classes == Classes::READ {
                continue;
            }
            let prefix = stage.prefix.clone()?;
            if !prefixes.contains(&prefix) {
                prefixes.push(prefix);
            }
        }
        Some(prefixes)
    }
}

/// A longer line is not read.
const LONGEST: usize = 64 * 1024;

/// Says what a line would do when a shell runs it in the workspace. It takes a bounded time and a
/// bounded depth of the stack, whatever the line is.
pub fn judge(line: &str, workspace: &Path) -> LineJudgement {
    if line.len() > LONGEST {
        return unclear(line, "it is too long");
    }
    if line.chars().any(is_deceiving) {
        return unclear(line, "it contains invisible characters");
    }
    let (mut stages, unclear) = walk::walk(line, workspace, Dialect::Bash);
    // `sh` is not `bash` everywhere. Where the two differ, the line is judged as each reads it.
    let differs = ["$'", "$\"", "&>", "[[", "((", "{"].iter().any(|sign| line.contains(sign));
    let mut only_bash = false;
    if differs {
        let (others, refused) = walk::walk(line, workspace, Dialect::Posix);
        only_bash = refused.is_some() && unclear.is_none();
        for other in others {
            if !stages.contains(&other) && other.classes != Classes::READ {
                stages.push(other);
            }
        }
    }
    if stages.is_empty() {
        stages.push(Stage::plain(String::new(), Classes::READ));
    }
    LineJudgement { stages, unclear, only_bash }
}

/// Says what a text would do that a running command is given, after all that it was given before. Only
/// of plain shells it is known how they read it; to any other program it is code.
pub fn judge_input(
    command: &str,
    before: Option<&str>,
    text: &str,
    workspace: &Path,
) -> LineJudgement {
    let Some(before) = before else {
        return unclear(text, "what the process was given before is not known");
    };
    // A shell goes on in the middle of a word, a quote or a here-document.
    let mut judged = judge(&format!("{before}{text}"), workspace);
    if !interpreters::reads_lines(command) {
        let shown = text.chars().take(300).collect();
        judged.stages.push(Stage::plain(shown, Class::Execute.into()));
    }
    judged
}

/// Whether a character shows nothing, or changes how others are shown.
fn is_deceiving(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => {
            true
        }
        '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' => true,
        '\u{e0000}'..='\u{e007f}' => true,
        other => other.is_control(),
    }
}

/// What words that cannot be judged may do.
fn feared(text: &str) -> Classes {
    let classes = Classes::from(Class::WriteOutside)
        .with(Class::Network)
        .with(Class::Execute)
        .and(Classes::FEARED);
    classes.and(verbs::mentioned(text))
}

/// A line that cannot be read may do all that its words let one fear.
fn unclear(line: &str, why: &'static str) -> LineJudgement {
    let text = line.chars().take(300).collect();
    LineJudgement {
        stages: vec![Stage::plain(text, feared(line))],
        unclear: Some(why),
        only_bash: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(words: &[&str], class: Class) -> Stage {
        let classes = Classes::from(class);
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Stage { prefix: Some(Prefix { words, classes }), ..Stage::plain(String::new(), classes) }
    }

    #[test]
    fn a_prefix_covers_the_same_words_doing_no_more_than_was_seen() {
        let remembered = stage(&["git", "fetch"], Class::Network).prefix.unwrap();
        assert!(remembered.covers(&stage(&["git", "fetch"], Class::Network)));
        assert!(remembered.covers(&stage(&["git", "fetch"], Class::Read)));
        assert!(!remembered.covers(&stage(&["git", "fetch"], Class::Execute)));
        assert!(!remembered.covers(&stage(&["git", "push"], Class::Network)));
        let never = Stage { prefix: None, ..stage(&["git", "fetch"], Class::Network) };
        assert!(!remembered.covers(&never));
    }

    #[test]
    fn what_a_process_is_given_is_judged_with_all_that_it_was_given_before() {
        let workspace = tempfile::tempdir().unwrap();
        let class = |command: &str, before: &str, text: &str| {
            judge_input(command, Some(before), text, workspace.path()).class()
        };
        assert_eq!(class("bash", "", "echo x"), Class::Read);
        assert_eq!(class("bash", "echo x", "#;frobnicate\n"), Class::Execute);
        assert_eq!(class("bash", "echo 'x", "'; rm -rf /\n"), Class::Destructive);
        assert_eq!(class("sh", "cat <<EOF\n", "EOF\nsudo ls\n"), Class::Privilege);
        assert_eq!(class("bash --norc", "cd /etc\n", "touch x\n"), Class::WriteOutside);
        assert_eq!(class("bash", "ls\n", "git status\n"), Class::Read);
        assert_eq!(class("/bin/sh", "main", "stay approve 1\n"), Class::Control);
        // An interactive shell runs what was typed in others: `!!`.
        for command in ["bash -i", "python3", "ed file", "zsh", "bash x.sh", "bash -c sh", "sh; ls"]
        {
            assert_eq!(class(command, "", "w notes\n"), Class::Execute, "{command}");
        }
        let unknown = judge_input("bash", None, "ls\n", workspace.path());
        assert_eq!(unknown.class(), Class::Destructive);
    }

    #[test]
    fn a_line_that_cannot_be_read_is_feared_and_not_remembered() {
        let judged = unclear("ls", "it is too long");
        assert_eq!(judged.class(), Class::Destructive);
        assert_eq!(judged.prefixes(), None);
    }
}
