//! `find`, which looks unless it is told to do something with what it finds.

use super::options::is_listed;
use super::syntax::Word;
use super::walk::{Finding, StandardInput, Walk};
use super::{Class, Classes, globs, verbs, wrappers};
use crate::policy::place::PathPlace;

/// Options and tests without a value.
const ALONE: &str = "\
    -H -L -P -O0 -O1 -O2 -O3 ( ) ! , -a -and -o -or -not -daystart -depth -d -follow \
    -ignore_readdir_race -noignore_readdir_race -mount -xdev -noleaf -nowarn -warn -empty \
    -executable -false -true -nogroup -nouser -readable -writable -print -print0 -ls -prune -quit";

/// Options and tests with a value.
const WITH_VALUE: &str = "\
    -maxdepth -mindepth -regextype -amin -anewer -atime -cmin -cnewer -ctime -mmin -mtime -newer \
    -newerat -newerct -newermt -newermm -fstype -gid -uid -group -user -name -iname -path -ipath \
    -wholename -iwholename -regex -iregex -lname -ilname -inum -links -perm -samefile -size -type \
    -xtype -used -printf";

/// Names of files in a repository that say what git runs or what it takes for its history.
const NAMES_OF_GIT: [&str; 12] = [
    ".git",
    "config",
    "hooks",
    "pre-commit",
    "post-checkout",
    "commit-msg",
    "HEAD",
    "index",
    "attributes",
    "exclude",
    "packed-refs",
    "config.worktree",
];

/// Which of the files below its starts a search may find.
struct Search<'a> {
    starts: Vec<&'a Word>,
    /// The names that are looked for, in the way of wildcards.
    names: Vec<String>,
    /// Whether it says which, and not only which not.
    filtered: bool,
    /// Whether it says to leave out what git keeps, and where.
    leaves_git: Leaves,
    /// Whether links are followed.
    follows: bool,
    /// Whether it finds files only, and no links to them.
    only_files: bool,
}

/// Which repositories a search leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaves {
    None,
    /// The one where it starts, as `-not -path './.git/*'` says.
    First,
    /// All of them, as `-not -path '*/.git/*'` says.
    All,
}

impl Leaves {
    fn of(tests: &[&str], starts: &[&Word]) -> Self {
        let left = tests.windows(3).filter(|three| {
            is_listed("! -not", three[0]) && is_listed("-path -ipath -wholename", three[1])
        });
        let mut patterns = left.map(|three| three[2].trim_end_matches(['*', '/']));
        // Such a pattern is compared with the whole path, which begins with the start as it is typed.
        let first = starts.first().and_then(|start| start.literal()).filter(|_| starts.len() == 1);
        let first = first.map(|start| format!("{}/.git", start.trim_end_matches('/')));
        let git = first.is_some_and(|first| patterns.clone().any(|pattern| pattern == first));
        match (git, patterns.any(|pattern| pattern == "*/.git")) {
            _ if tests.iter().any(|text| is_listed("-o -or ,", text)) => Self::None,
            (_, true) => Self::All,
            (true, false) => Self::First,
            (false, false) => Self::None,
        }
    }
}

impl<'a> Search<'a> {
    /// What an action may find: only what stands before it bounds it.
    fn of(starts: &[&'a Word], texts: &[&str], action: usize) -> Self {
        let tests = &texts[..action];
        Self {
            starts: starts.to_vec(),
            names: values(tests, &["-name", "-iname"]),
            filtered: (0..tests.len()).any(|place| {
                is_listed(
                    "-name -iname -path -ipath -wholename -regex -iregex -empty",
                    tests[place],
                ) && (place == 0 || !is_listed("! -not", tests[place - 1]))
            }),
            leaves_git: Leaves::of(tests, starts),
            // An option counts wherever it stands.
            only_files: (0..tests.len()).any(|place| {
                tests[place..].starts_with(&["-type", "f"])
                    && (place == 0 || !is_listed("! -not", tests[place - 1]))
            }) && !tests.iter().any(|text| is_listed("-o -or ,", text)),
            follows: texts.iter().any(|text| is_listed("-L -follow", text)),
        }
    }

    /// Whether what git keeps may be found, and be named like something that git goes by.
    fn may_find_git(&self, walk: &Walk<'_>) -> bool {
        let reaches = |start: &&Word| match self.leaves_git {
            Leaves::All => false,
            Leaves::First => walk.holds_nested_git(start),
            Leaves::None => {
                matches!(walk.place(start), PathPlace::Root | PathPlace::Git | PathPlace::Outside)
                    || walk.holds_git(start)
            }
        };
        self.starts.iter().any(reaches) && self.may_be_named(&NAMES_OF_GIT)
    }

    /// Whether it may find a link that leads out of the workspace.
    fn may_lead_out(&self, walk: &Walk<'_>) -> bool {
        let leads_out =
            |start: &&Word| walk.holds_way_out(start, |name| self.may_be_named(&[name]));
        !self.only_files && self.starts.iter().any(leads_out)
    }

    fn may_be_named(&self, wanted: &[&str]) -> bool {
        self.names.is_empty()
            || self.names.iter().any(|name| {
                wanted
                    .iter()
                    .any(|wanted| globs::name_matches(&name.to_lowercase(), &wanted.to_lowercase()))
            })
    }
}

/// Judges `find` with its words.
pub(super) fn judge(walk: &mut Walk<'_>, words: &[Word]) -> Finding {
    let feared = |words: &[Word]| verbs::unlisted(words).and(Classes::FEARED);
    let literals: Vec<Option<String>> = words.iter().map(Word::literal).collect();
    let is_expression = |text: &str| {
        text.starts_with(['-', '(', '!', ')', ',']) && !matches!(text, "-H" | "-L" | "-P")
    };
    let first = literals
        .iter()
        .position(|text| text.as_deref().is_some_and(is_expression))
        .unwrap_or(words.len());
    let here = Word::of(".");
    let mut starts: Vec<&Word> =
        words[..first].iter().filter(|word| !word.head().starts_with('-')).collect();
    if starts.is_empty() {
        starts.push(&here);
    }
    // A start that nobody sees may be an expression.
    let unseen =
        |word: &&Word| word.may_bring_options() || word.literal().is_none() && word.may_be_option();
    if starts.len() > 100 || starts.iter().any(unseen) {
        return feared(words);
    }
    let texts: Vec<&str> = literals.iter().map(|text| text.as_deref().unwrap_or("")).collect();
    let mut finding = Finding::from(Class::Read);
    let mut place = first;
    while let Some(text) = literals.get(place) {
        let Some(text) = text.as_deref() else { return feared(words) };
        place += 1;
        match text {
            "-delete" => {
                let search = Search::of(&starts, &texts, place - 1);
                finding = finding.and(deletes(walk, &search));
            }
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                let path = words.get(place).cloned().unwrap_or_else(Word::anything);
                finding = finding.and(walk.writes(&path));
                place += 1 + usize::from(text == "-fprintf");
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let search = Search::of(&starts, &texts, place - 1);
                let rest = &words[place..];
                let length = command_length(&literals[place..]);
                place += length + 1;
                let command = &rest[..length];
                finding = finding.and(match text {
                    "-exec" | "-ok" => runs(walk, &search, command, Whence::Here).classes,
                    _ => runs(walk, &search, command, Whence::There).classes,
                });
            }
            _ if is_listed(ALONE, text) => {}
            _ if is_listed(WITH_VALUE, text) => {
                // A value that becomes several words brings expressions.
                if words.get(place).is_some_and(Word::may_bring_options) {
                    return feared(words);
                }
                place += 1;
            }
            _ => return feared(words),
        }
    }
    finding
}

/// The values of these tests, unless the test is turned round.
fn values(texts: &[&str], tests: &[&str]) -> Vec<String> {
    let found = (0..texts.len())
        .filter(|place| tests.contains(&texts[*place]))
        .filter(|place| *place == 0 || !is_listed("! -not", texts[*place - 1]));
    // Beside another branch a name is no bound.
    if texts.iter().any(|text| is_listed("-o -or ,", text)) {
        let all = found.clone().count();
        let branches = texts.iter().filter(|text| is_listed("-o -or ,", text)).count() + 1;
        if all < branches {
            return Vec::new();
        }
    }
    let named: Vec<String> =
        found.filter_map(|place| texts.get(place + 1).map(|text| (*text).to_owned())).collect();
    // What the shell puts there nobody sees.
    if named.iter().any(String::is_empty) { Vec::new() } else { named }
}

/// How many words the command of `-exec` has: a plus ends it only behind braces.
fn command_length(literals: &[Option<String>]) -> usize {
    let is =
        |place: usize, wanted: &str| literals.get(place).and_then(Option::as_deref) == Some(wanted);
    (0..literals.len())
        .find(|place| is(*place, ";") || *place > 0 && is(*place, "+") && is(*place - 1, "{}"))
        .unwrap_or(literals.len())
}

fn deletes(walk: &Walk<'_>, search: &Search<'_>) -> Classes {
    if search.may_be_named(&["agents.md", "claude.md", "skill.md"]) {
        walk.note_any_write();
    }
    let worst = search.starts.iter().map(|start| match walk.place(start) {
        PathPlace::Temporary | PathPlace::Inside => Class::WriteInside.into(),
        PathPlace::Root if search.filtered => Class::WriteInside.into(),
        PathPlace::Root | PathPlace::Git => Class::Destructive.into(),
        PathPlace::Outside => walk.removes(start).with(Class::Destructive),
    });
    let mut classes = worst.fold(Classes::READ, Classes::and);
    if search.may_find_git(walk) || search.follows {
        classes = classes.with(Class::Destructive);
    }
    if search.follows { classes.with(Class::WriteOutside) } else { classes }
}

/// Where a command runs: where `find` does, or beside what it found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whence {
    Here,
    There,
}

fn runs(walk: &mut Walk<'_>, search: &Search<'_>, command: &[Word], whence: Whence) -> Finding {
    let mut finding = Finding::from(Class::Read);
    let beside = Word::of(".");
    for start in search.starts.clone() {
        let classes = match whence {
            Whence::Here => {
                let found = wrappers::with_found(command, start, search.filtered);
                walk.verb(&found, &StandardInput::Nothing).classes
            }
            Whence::There => walk.within_directory(start, |walk| {
                let found = wrappers::with_found(command, &beside, search.filtered);
                walk.verb(&found, &StandardInput::Nothing).classes
            }),
        };
        finding = finding.and(classes);
    }
    if finding.classes.has(Class::WriteInside) || finding.classes.has(Class::WriteOutside) {
        if search.may_be_named(&["agents.md", "claude.md", "skill.md"]) {
            walk.note_any_write();
        }
        if search.may_find_git(walk) {
            finding = finding.and(Class::Execute);
        }
        // All that the workspace holds is gone then.
        let verb = command.first().and_then(Word::literal).unwrap_or_default();
        let everything = !search.filtered
            && search.starts.iter().any(|start| walk.place(start) == PathPlace::Root)
            || search.may_find_git(walk);
        if everything && is_listed("rm mv unlink shred truncate", &verb) {
            finding = finding.and(Class::Destructive);
        }
        if search.follows || search.may_lead_out(walk) {
            finding = finding.and(Class::WriteOutside);
        }
    }
    finding
}
