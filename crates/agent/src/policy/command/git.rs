//! `git`, by what it is told to do.

use super::arguments::{Arguments, Valued};
use super::syntax::Word;
use super::walk::{Finding, Walk};
use super::{Class, Classes};

/// Only look. Those with a way to write to a file or to run something are looked at more closely.
const LOOKING: [&str; 32] = [
    "status",
    "log",
    "diff",
    "show",
    "blame",
    "annotate",
    "rev-parse",
    "describe",
    "ls-files",
    "ls-tree",
    "cat-file",
    "shortlog",
    "whatchanged",
    "name-rev",
    "merge-base",
    "rev-list",
    "count-objects",
    "check-ignore",
    "check-attr",
    "var",
    "version",
    "diff-tree",
    "diff-index",
    "diff-files",
    "for-each-ref",
    "show-ref",
    "show-branch",
    "range-diff",
    "grep",
    "cherry",
    "verify-commit",
    "fsck",
];

/// Change the repository or the files in it, in a way that git itself can take back.
const CHANGING: [&str; 20] = [
    "add",
    "commit",
    "mv",
    "rm",
    "switch",
    "merge",
    "cherry-pick",
    "revert",
    "init",
    "apply",
    "am",
    "notes",
    "stage",
    "update-index",
    "write-tree",
    "commit-tree",
    "sparse-checkout",
    "mergetool",
    "read-tree",
    "hash-object",
];

/// Judges `git`. Returns `None` for another verb.
pub(super) fn judge(walk: &mut Walk<'_>, verb: &str, words: &[Word]) -> Option<Finding> {
    if verb != "git" {
        return None;
    }
    let code = Finding::from(Class::Execute);
    let mut place = 0;
    let mut elsewhere = Classes::READ;
    loop {
        let Some(word) = words.get(place) else { return Some(Class::Read.into()) };
        let Some(text) = word.literal() else {
            // The value of an option may be hidden, a word of git's may not.
            let names_value = word.head().starts_with("--") && word.head().contains('=');
            if names_value && !word.may_split() {
                return Some(code);
            } else {
                return Some(code.and(Class::Destructive));
            }
        };
        match text.as_str() {
            "--version" | "--help" | "-v" | "-h" | "--html-path" | "--exec-path" => {
                return Some(Class::Read.into());
            }
            "--no-pager"
            | "-P"
            | "--no-optional-locks"
            | "--literal-pathspecs"
            | "--no-replace-objects"
            | "--bare" => place += 1,
            "-C" => {
                let path = words.get(place + 1).cloned().unwrap_or_else(Word::anything);
                elsewhere = elsewhere.and(walk.writes(&path));
                place += 2;
            }
            "-c" => {
                let setting = words.get(place + 1).and_then(Word::literal).unwrap_or_default();
                if !is_harmless(&setting) {
                    return Some(code.and(super::verbs::mentioned(&setting)));
                }
                place += 2;
            }
            _ if text.starts_with('-') => return Some(code),
            _ => break,
        }
    }
    let task = words[place].literal().unwrap_or_default();
    let rest = &words[place + 1..];
    let mut finding = judge_task(walk, &task, rest);
    // Outside the workspace, looking is all that stays harmless.
    if finding.classes != Classes::READ && elsewhere.has(Class::WriteOutside) {
        finding = finding.and(Class::WriteOutside).forgotten();
    }
    if finding.classes.worst() <= Class::Execute && finding.remembered.is_none() && place == 0 {
        finding.remembered = match task.as_str() {
            "stash" | "remote" | "worktree" | "submodule" | "bisect" | "lfs" | "notes" => {
                let second = rest.first().and_then(Word::literal);
                second
                    .filter(|word| word.chars().all(|next| next.is_ascii_lowercase()))
                    .map(|second| vec!["git".to_owned(), task.clone(), second])
            }
            _ if is_known(&task) => Some(vec!["git".to_owned(), task.clone()]),
            _ => None,
        };
        if finding.classes.has(Class::Execute) {
            finding.remembered = None;
        }
    }
    Some(finding)
}

fn is_known(task: &str) -> bool {
    LOOKING.contains(&task)
        || CHANGING.contains(&task)
        || matches!(
            task,
            "branch"
                | "tag"
                | "checkout"
                | "restore"
                | "reset"
                | "rebase"
                | "fetch"
                | "pull"
                | "push"
                | "clone"
                | "ls-remote"
                | "config"
                | "format-patch"
                | "archive"
        )
}

/// Settings that change how something looks, or who is named.
fn is_harmless(setting: &str) -> bool {
    let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
    let name = name.to_ascii_lowercase();
    name.starts_with("color.")
        || name.starts_with("advice.")
        || matches!(
            name.as_str(),
            "core.quotepath" | "user.name" | "user.email" | "init.defaultbranch"
        )
        || matches!(name.as_str(), "commit.gpgsign" | "tag.gpgsign" | "diff.renames" | "log.date")
        || name == "core.pager" && matches!(value, "" | "cat")
}

fn judge_task(walk: &Walk<'_>, task: &str, rest: &[Word]) -> Finding {
    let spoken: Valued = match task {
        "commit" | "tag" | "merge" | "stash" | "notes" => {
            ("mF", &["message", "author", "date", "file"])
        }
        _ => ("", &[]),
    };
    let words = Arguments::of(rest).without_values(spoken);
    let arguments = Arguments::of(&words);
    let plain = arguments.plain(("mFCctSLUnlO", &[]));
    let first = rest.first().and_then(Word::literal).unwrap_or_default();
    let hidden = arguments.may_hide_options();
    let code = Finding::from(Class::Execute);
    let destroys = Finding::from(Class::Destructive);
    let changes = Finding::from(Class::WriteInside);
    let reads = Finding::from(Class::Read);
    let reaches = Finding::from(Class::Network);
    if LOOKING.contains(&task) {
        if hidden
            || arguments.may_have("", &["ext-diff", "textconv", "open-files-in-pager", "exec"])
        {
            return code;
        }
        if task == "grep" && arguments.may_have("O", &[]) {
            return code;
        }
        let mut finding = reads;
        for path in arguments.values(None, &["output"]) {
            // `--output-indicator-new` and its like take a sign.
            finding = finding.and(walk.writes(&path));
        }
        return finding;
    }
    if hidden {
        return code.and(Class::Destructive);
    }
    if CHANGING.contains(&task) {
        return match task {
            "mergetool" => code,
            "init" => {
                if arguments.may_have("", &["template", "separate-git-dir"]) {
                    code
                } else {
                    let paths = arguments.plain(("b", &["initial-branch", "object-format"]));
                    paths.iter().fold(changes, |found, path| found.and(walk.writes(path)))
                }
            }
            "apply" | "am" if arguments.may_have("", &["unsafe-paths", "directory"]) => {
                changes.and(Class::WriteOutside)
            }
            "switch" if arguments.may_have("fC", &["force", "discard-changes", "force-create"]) => {
                destroys
            }
            "rm" if arguments.may_have("f", &["force"]) => destroys,
            _ => changes,
        };
    }
    match task {
        "branch" if arguments.may_have("DMCf", &["force"]) => destroys,
        "branch" if arguments.may_have("dmcut", &["delete", "move", "copy", "set-upstream-to"]) => {
            changes
        }
        "branch" if arguments.may_have("", &["edit-description"]) => code,
        "branch" if plain.is_empty() || arguments.may_have("alrv", LISTING) => reads,
        "branch" => changes,
        "tag" if arguments.may_have("df", &["delete", "force"]) => destroys,
        "tag" if plain.is_empty() || arguments.may_have("ln", LISTING) => reads,
        "tag" => changes,
        "remote" => match first.as_str() {
            "" | "-v" | "get-url" => reads,
            "show" | "update" | "prune" => reaches,
            _ => changes.and(Class::Network),
        },
        "reflog" => match first.as_str() {
            "expire" | "delete" => destroys,
            _ => reads,
        },
        "config" => match arguments.may_have("l", &["get", "get-all", "get-regexp", "list"])
            || matches!(first.as_str(), "list" | "get")
        {
            true if !arguments.may_have("e", &["edit", "unset", "add", "replace-all"]) => reads,
            // Settings name programs that git runs.
            _ => code,
        },
        "symbolic-ref" if plain.len() <= 1 && !arguments.may_have("d", &["delete"]) => reads,
        "stash" => match first.as_str() {
            "list" | "show" => reads,
            "drop" | "clear" => destroys,
            _ => changes,
        },
        "worktree" => match first.as_str() {
            "list" => reads,
            "add" => {
                let paths = Arguments::of(&rest[1..]).plain(("bB", &[]));
                paths.iter().take(1).fold(changes, |found, path| found.and(walk.writes(path)))
            }
            "remove" if arguments.may_have("f", &["force"]) => destroys,
            _ => changes,
        },
        "checkout" => {
            let files = rest.iter().any(|word| {
                word.literal().is_none_or(|text| text == "--" || text == "." || text.contains("./"))
            });
            let forced = arguments.may_have("fBp", &["force", "ours", "theirs", "patch"]);
            // A path without a mark looks like a branch.
            let paths = plain.iter().any(|word| word.head().contains('.') || plain.len() > 1);
            let creates = arguments.may_have("b", &["orphan"]);
            if files || forced || paths && !creates { destroys } else { changes }
        }
        "restore" => {
            if arguments.may_have("S", &["staged"]) && !arguments.may_have("W", &["worktree"]) {
                changes
            } else {
                destroys
            }
        }
        "reset" => {
            if arguments.may_have("", &["hard", "merge", "keep"]) {
                destroys
            } else {
                changes
            }
        }
        "clean" => {
            if arguments.may_have("n", &["dry-run"]) && !arguments.may_have("f", &["force"]) {
                reads
            } else {
                destroys
            }
        }
        "rebase" => {
            if arguments.may_have("xi", &["exec", "interactive", "edit-todo"]) {
                code
            } else {
                changes
            }
        }
        "bisect" => match first.as_str() {
            "run" => code,
            "log" | "view" => reads,
            _ => changes,
        },
        "submodule" => match first.as_str() {
            "" | "status" | "summary" => reads,
            "foreach" => code,
            "deinit" => destroys,
            _ => changes.and(Class::Network),
        },
        "format-patch" => {
            let places = arguments.values(Some('o'), &["output-directory"]);
            places.iter().fold(changes, |found, path| found.and(walk.writes(path)))
        }
        "archive" => {
            if arguments.may_have("", &["exec"]) {
                return code;
            }
            let paths = arguments.values(Some('o'), &["output"]);
            let found = paths.iter().fold(reads, |found, path| found.and(walk.writes(path)));
            if arguments.may_have("", &["remote"]) { found.and(Class::Network) } else { found }
        }
        "fetch" | "pull" | "clone" | "ls-remote" | "push" => remote(walk, task, rest, reaches),
        // Deletes what could be put back, or is a name that settings gave to a command.
        "gc" | "prune" | "filter-branch" | "filter-repo" | "update-ref" | "replace" | "repack" => {
            destroys
        }
        _ => code,
    }
}

const LISTING: &[&str] = &[
    "list",
    "all",
    "remotes",
    "show-current",
    "contains",
    "merged",
    "no-merged",
    "points-at",
    "verbose",
];

fn remote(walk: &Walk<'_>, task: &str, rest: &[Word], reaches: Finding) -> Finding {
    let arguments = Arguments::of(rest);
    let valued: Valued =
        ("bojcuJ", &["branch", "depth", "origin", "jobs", "config", "upload-pack"]);
    let runs = ["upload-pack", "receive-pack", "exec", "template", "config"];
    let transport = |word: &Word| word.head().contains("::") || word.head().starts_with("--u");
    // `-u` of `push` sets an upstream; elsewhere it names a program.
    let named = task != "push" && task != "pull" && arguments.may_have("uc", &[]);
    if named || arguments.may_have("", &runs) || rest.iter().any(transport) {
        return Finding::from(Class::Execute).and(Class::Network);
    }
    match task {
        "push" => {
            let forced = arguments
                .may_have("fd", &["force", "force-with-lease", "delete", "mirror", "prune"]);
            let refs = arguments.plain(valued).into_iter().skip(1).any(|word| {
                word.head().starts_with(['+', ':'])
                    || word.literal().is_none() && word.head().is_empty()
            });
            if forced || refs { reaches.and(Class::Destructive) } else { reaches }
        }
        "clone" => {
            let plain = arguments.plain(valued);
            let here = Word::of("repository");
            let target = plain.get(1).copied().unwrap_or(&here);
            reaches.and(walk.writes(target))
        }
        "fetch" if arguments.may_have("f", &["force"]) => reaches.and(Class::Destructive),
        "fetch" | "ls-remote" => reaches,
        _ if arguments.may_have("f", &["force"]) => reaches.and(Class::Destructive),
        _ => reaches.and(Class::WriteInside),
    }
}
