//! `git`, by what it is told to do.

use super::known::git::{SETTINGS, TASKS, Task};
use super::options::{Given, Options, is_listed};
use super::syntax::Word;
use super::walk::{Finding, Walk};
use super::{Class, Classes, verbs};
use crate::policy::place::PathPlace;

/// Judges `git`. Returns `None` for another verb.
pub(super) fn judge(walk: &mut Walk<'_>, verb: &str, words: &[Word]) -> Option<Finding> {
    if verb != "git" {
        return None;
    }
    let code = Finding::from(Class::Execute);
    let mut place = 0;
    let mut elsewhere = Classes::READ;
    let mut directories = Vec::new();
    loop {
        let Some(word) = words.get(place) else { return Some(Class::Read.into()) };
        let Some(text) = word.literal() else {
            // The value of an option may be hidden, a word of git's may not.
            let names_value = word.head().starts_with("--") && word.head().contains('=');
            if names_value && !word.may_split() {
                return Some(code);
            } else {
                return Some(code.and(Classes::FEARED));
            }
        };
        match text.as_str() {
            "--version" | "--help" | "-v" | "-h" | "--html-path" | "--exec-path" => {
                // With more words it opens a page of the manual.
                let alone = words.len() == place + 1;
                return Some(if alone { Class::Read.into() } else { code });
            }
            "--no-pager"
            | "-P"
            | "--no-optional-locks"
            | "--literal-pathspecs"
            | "--no-replace-objects" => place += 1,
            "-C" => {
                let path = words.get(place + 1).cloned().unwrap_or_else(Word::anything);
                elsewhere = elsewhere.and(match walk.place(&path) {
                    PathPlace::Inside | PathPlace::Root | PathPlace::Temporary => Classes::READ,
                    PathPlace::Git => Class::Execute.into(),
                    PathPlace::Outside => Class::WriteOutside.into(),
                });
                directories.push(path);
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
    if !finding.classes.has(Class::Execute) && place == 0 {
        finding.remembered = remembered(&task, rest, finding.classes);
    }
    // Its settings may name programs, which git runs even to look.
    if walk.is_made_repository(&directories) {
        finding = finding.and(Class::Execute).forgotten();
    }
    // Outside the workspace, looking is all that stays harmless.
    if finding.classes != Classes::READ && elsewhere != Classes::READ {
        finding = finding.and(elsewhere).forgotten();
    }
    Some(finding)
}

/// What "always" remembers: what git is told to do, and where it reaches the network all of the words.
fn remembered(task: &str, rest: &[Word], classes: Classes) -> Option<Vec<String>> {
    if classes.worst() > Class::Execute {
        return None;
    }
    let words: Vec<Word> = std::iter::once(Word::of(task)).chain(rest.iter().cloned()).collect();
    if classes.has(Class::Network) {
        return verbs::remembered("git", &words);
    }
    let has_second = TASKS.iter().any(|known| known.names.contains(&format!("{task}:")));
    let second = rest.first().and_then(Word::literal).filter(|_| has_second);
    let second = second.filter(|word| word.chars().all(|next| next.is_ascii_lowercase()));
    Some(["git".to_owned(), task.to_owned()].into_iter().chain(second).collect())
}

/// Settings that change how something looks, or who is named.
fn is_harmless(setting: &str) -> bool {
    let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
    let name = name.to_ascii_lowercase();
    name.starts_with("color.")
        || name.starts_with("advice.")
        || is_listed(SETTINGS, &name)
        || name == "core.pager" && matches!(value, "" | "cat")
}

/// The entry for a task, and the words that follow what names it.
fn find<'w>(task: &str, rest: &'w [Word]) -> Option<(&'static Task, &'w [Word])> {
    // Options may stand before the second word, as in `git remote -v add`.
    let second = rest.iter().position(|word| !word.head().starts_with('-'));
    let named = second.and_then(|place| rest[place].literal());
    let longer = named.as_ref().map(|named| format!("{task}:{named}"));
    let with = |name: &str| TASKS.iter().find(|known| is_listed(known.names, name));
    if let Some(known) = longer.and_then(|name| with(&name)) {
        // Nothing but what is shown may stand before it.
        let place = second.unwrap_or(0);
        let shown = rest[..place].iter().all(|word| {
            word.literal().is_some_and(|text| is_listed("-v --verbose -q --quiet", &text))
        });
        return shown.then(|| (known, &rest[place + 1..]));
    }
    match with(task) {
        Some(known) => Some((known, rest)),
        // Without a second word.
        None if second.is_none() || task == "stash" || task == "config" => {
            let known = with(&format!("{task}:"))?;
            let options_only = rest.first().is_none_or(|word| word.head().starts_with('-'));
            options_only.then_some((known, rest))
        }
        None => None,
    }
}

fn judge_task(walk: &Walk<'_>, task: &str, rest: &[Word]) -> Finding {
    let words = &walk.with_values(rest);
    let Some((known, rest)) = find(task, words) else { return unlisted(task, words) };
    let Ok(given) = Options::read_by(known.options, rest) else { return unlisted(task, words) };
    let code = Finding::from(Class::Execute);
    if given.hidden {
        return if known.class == Class::Read { code } else { code.and(Classes::FEARED) };
    }
    let (letters, names) = known.losing;
    let mut finding = if given.has(letters, names) {
        Finding::from(known.class).and(Class::Destructive)
    } else {
        Finding::from(class(task, known, &given))
    };
    for path in &given.written {
        finding = finding.and(walk.writes(path));
    }
    if known.brings_files {
        walk.note_any_write();
    }
    match task {
        "init" => given.plain.iter().fold(finding, |found, path| found.and(walk.writes(path))),
        "worktree" if known.class == Class::WriteInside => {
            given.plain.iter().take(1).fold(finding, |found, path| found.and(walk.writes(path)))
        }
        // A link leads to where it led from wherever it is.
        "mv" if walk.brings_links(&given.plain) => finding.and(Class::WriteOutside),
        "archive" if given.has("", "remote") => finding.and(Class::Network),
        "remote" | "submodule" if known.class == Class::Network => finding.and(Class::WriteInside),
        "fetch" | "pull" | "clone" | "ls-remote" | "push" => remote(walk, task, &given, finding),
        _ => finding,
    }
}

/// What an option or a task does that is not listed: settings may give it a meaning, and some of those
/// that are not listed lose what cannot be put back.
fn unlisted(task: &str, rest: &[Word]) -> Finding {
    let finding = verbs::unlisted(rest);
    let second = rest.iter().find(|word| !word.head().starts_with('-')).and_then(Word::literal);
    let longer = format!("{task}:{}", second.unwrap_or_default());
    let loses = TASKS.iter().any(|known| {
        known.class == Class::Destructive
            && (is_listed(known.names, task) || is_listed(known.names, &longer))
    });
    let reaches = is_listed("fetch pull clone ls-remote push remote submodule", task);
    let finding = if reaches { finding.and(Class::Network) } else { finding };
    // A force that is joined to something unknown is still one.
    let forces = |word: &Word| {
        is_listed("-f -D --force --hard --delete --mirror", &word.literal().unwrap_or_default())
    };
    if loses || rest.iter().any(forces) { finding.and(Class::Destructive) } else { finding }
}

/// The class of a task that does less with some options.
fn class(task: &str, known: &Task, given: &Given<'_>) -> Class {
    let lists = given.has("l", "list contains no-contains merged no-merged points-at show-current");
    match task {
        "branch" if given.has("DMCf", "force") => Class::Destructive,
        "branch" if given.has("dmctu", "delete move copy set-upstream-to unset-upstream") => {
            Class::WriteInside
        }
        "branch" if given.plain.is_empty() || lists || given.has("arv", "all remotes verbose") => {
            Class::Read
        }
        "tag" if given.has("df", "delete force") => Class::Destructive,
        "tag" if given.plain.is_empty() || lists || given.has("n", "") => Class::Read,
        "symbolic-ref" if given.plain.len() > 1 => Class::Execute,
        // Settings name programs that git runs.
        "config" => match given.has("l", "list get get-all get-regexp") {
            true => Class::Read,
            false if is_listed(known.names, "config:list") => Class::Read,
            false => Class::Execute,
        },
        "checkout" if takes_files(given) => Class::Destructive,
        "restore" if !given.has("S", "staged") || given.has("W", "worktree") => Class::Destructive,
        "clean" if given.has("n", "dry-run") && !given.has("f", "force") => Class::Read,
        "archive" => Class::Read,
        _ => known.class,
    }
}

/// Whether `checkout` takes files from the history: a path without a mark looks like a branch.
fn takes_files(given: &Given<'_>) -> bool {
    let creates = given.has("b", "orphan");
    let is_path = |word: &&Word| {
        word.literal().is_none_or(|text| text == "." || text.contains("./") || text.contains('.'))
    };
    !creates && (given.plain.iter().any(is_path) || given.plain.len() > 1)
}

fn remote(walk: &Walk<'_>, task: &str, given: &Given<'_>, reaches: Finding) -> Finding {
    // A transport of its own, or a repository whose hooks run here.
    let runs = |word: &&Word| {
        let head = word.head();
        let is_local = head.starts_with("file:")
            || head.contains('/') && !head.contains("://") && !head.contains(':');
        head.contains("::") || task == "push" && (is_local || head == ".")
    };
    if given.plain.iter().any(runs) {
        return reaches.and(Class::Execute);
    }
    match task {
        "push" => {
            let refs = given.plain.iter().skip(1).any(|word| {
                word.head().starts_with(['+', ':'])
                    || word.literal().is_none() && word.head().is_empty()
            });
            if refs { reaches.and(Class::Destructive) } else { reaches }
        }
        "clone" => {
            let here = Word::of("repository");
            let target = given.plain.get(1).copied().unwrap_or(&here);
            reaches.and(walk.writes(target))
        }
        "fetch" | "ls-remote" => reaches,
        _ => reaches.and(Class::WriteInside),
    }
}
