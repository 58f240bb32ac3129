//! Verbs that change files, judged by where their paths lead.

use super::known::changing::{Effect, PROGRAMS};
use super::options::{Given, is_listed};
use super::syntax::Word;
use super::walk::{Finding, StandardInput, Walk};
use super::{Class, Classes, archives, find, sed, verbs};
use crate::policy::place::PathPlace;

/// Judges a verb that changes files. Returns `None` if it is not one.
pub(super) fn judge(
    walk: &mut Walk<'_>,
    verb: &str,
    words: &[Word],
    input: &StandardInput,
) -> Option<Finding> {
    match verb {
        "dd" => return Some(remembered(verb, dd(walk, words))),
        "find" => return Some(find::judge(walk, words)),
        "sed" | "gsed" => return Some(sed::judge(walk, words)),
        _ => {}
    }
    let (_, options, effect) = PROGRAMS.iter().find(|(names, ..)| is_listed(names, verb))?;
    let words = &walk.with_values(words);
    let read = match verb {
        "tar" | "bsdtar" | "gtar" => {
            return Some(remembered(verb, archives::tar(walk, options, words)));
        }
        "zip" | "unzip" => {
            return Some(remembered(verb, archives::zip(walk, verb, options, words)));
        }
        "patch" => return Some(remembered(verb, archives::patch(walk, options, words, input))),
        "chmod" => {
            let (mode, rest) = without_mode(words);
            let given = options.read(&rest);
            return Some(match given {
                Ok(given) => remembered(verb, permits(walk, verb, mode, &given)),
                Err(_) => unlisted(*effect, words),
            });
        }
        _ => options.read(words),
    };
    let Ok(given) = read else { return Some(unlisted(*effect, words)) };
    let mut classes = match effect {
        Effect::Writes => all(walk, &given.plain),
        Effect::Removes => removes(walk, &given),
        Effect::Copies => copies(walk, verb, &given),
        Effect::Permits => permits(walk, verb, None, &given),
        Effect::Reads => Classes::READ,
        Effect::Packs => packs(walk, &given),
        Effect::Splits => {
            let here = Word::of("x");
            walk.writes(given.plain.get(1).copied().unwrap_or(&here))
        }
        Effect::SplitsHere => walk.writes(&Word::of("xx00")),
        Effect::MakesTemporary => all(walk, &given.plain).with(Class::WriteInside),
    };
    for path in &given.written {
        classes = classes.and(walk.writes(path));
    }
    // What was there before cannot be read any more.
    if verb == "shred" && given.plain.iter().any(|path| walk.names_everything(path)) {
        classes = classes.with(Class::Destructive);
    }
    // A wildcard brings options only where a file is named like one.
    let names_only = matches!(effect, Effect::Writes | Effect::Removes | Effect::Permits);
    let brings = |word: &&Word| word.may_be_option() && !walk.matches_plain_names(word);
    if given.hidden && (!names_only || given.splits || given.plain.iter().any(brings)) {
        classes = classes.with(hidden(verb, *effect));
    }
    Some(remembered(verb, classes))
}

/// What an option does that stands in no table.
fn unlisted(effect: Effect, words: &[Word]) -> Finding {
    let finding = verbs::unlisted(words);
    if effect == Effect::Removes { finding.and(Class::Destructive) } else { finding }
}

/// What an option that nobody sees may do at worst.
fn hidden(verb: &str, effect: Effect) -> Class {
    match effect {
        Effect::Writes | Effect::Permits | Effect::MakesTemporary => Class::WriteOutside,
        Effect::Copies if verb != "install" => Class::WriteOutside,
        Effect::Removes => Class::WriteOutside,
        // These have options that run something.
        Effect::Copies | Effect::Reads | Effect::Packs | Effect::Splits | Effect::SplitsHere => {
            Class::Execute
        }
    }
}

fn remembered(verb: &str, classes: Classes) -> Finding {
    let finding = Finding::from(classes);
    if classes.worst() == Class::WriteInside { finding.remembered([verb]) } else { finding }
}

/// Writes to each of its paths.
fn all(walk: &Walk<'_>, paths: &[&Word]) -> Classes {
    paths.iter().fold(Classes::READ, |classes, path| classes.and(walk.writes(path)))
}

fn removes(walk: &Walk<'_>, given: &Given<'_>) -> Classes {
    let deep = given.has("rRd", "recursive dir");
    let mut classes = Classes::READ;
    for path in &given.plain {
        let unsure =
            path.literal().is_none() && (path.may_be_option() || path.variable().is_some());
        walk.note_write(path);
        classes = classes.and(match walk.place(path) {
            PathPlace::Outside if deep && unsure => walk.removes(path).with(Class::Destructive),
            _ if deep && (unsure || walk.is_repository(path)) => Class::Destructive.into(),
            PathPlace::Inside | PathPlace::Temporary => Class::WriteInside.into(),
            // Everything in the workspace, or its history.
            PathPlace::Root if deep => Class::Destructive.into(),
            PathPlace::Root => Class::WriteInside.into(),
            PathPlace::Git => Class::Destructive.into(),
            PathPlace::Outside if deep => walk.removes(path).with(Class::Destructive),
            PathPlace::Outside => walk.removes(path),
        });
    }
    classes
}

fn copies(walk: &mut Walk<'_>, verb: &str, given: &Given<'_>) -> Classes {
    let mut sources = given.plain.clone();
    let mut classes = Classes::READ;
    if verb == "install" {
        if given.values("m").chain(given.values("mode")).any(lends_owner) {
            classes = classes.with(Class::Privilege);
        }
        if given.has("d", "directory") {
            return classes.and(all(walk, &sources));
        }
    }
    let mut target = None;
    if given.written.is_empty() {
        match sources.pop() {
            // A link to the last part of its target is made here.
            Some(only) if sources.is_empty() && verb == "ln" => {
                classes = classes.and(walk.writes(&Word::of(".")));
                sources.push(only);
            }
            Some(last) if !sources.is_empty() => {
                let opens = verb == "cp";
                classes = classes.and(if opens { walk.writes(last) } else { walk.places(last) });
                target = Some(last);
                // The last of several may be one of the sources.
                if last.may_split() {
                    classes = classes.with(Class::WriteOutside);
                }
            }
            _ => classes = classes.with(Class::WriteOutside),
        }
    }
    // What is moved is gone from where it was.
    if verb == "mv" && given.plain.iter().any(|path| walk.names_everything(path)) {
        classes = classes.with(Class::Destructive);
    }
    if verb == "mv" {
        for path in &sources {
            classes = classes.and(match walk.place(path) {
                PathPlace::Root | PathPlace::Git => Class::Destructive.into(),
                _ => walk.removes(path),
            });
        }
    }
    let place = target.or(given.written.first()).cloned().unwrap_or_else(|| Word::of("."));
    let links = verb == "ln" || given.has("ls", "link symbolic-link");
    // A link that leads outside makes an outside place look like an inside one, and one to what git
    // keeps makes that look like any file.
    if links {
        for path in &sources {
            match walk.place(path) {
                PathPlace::Outside => classes = classes.with(Class::WriteOutside),
                PathPlace::Git => classes = classes.with(Class::Execute),
                PathPlace::Inside | PathPlace::Root | PathPlace::Temporary => {}
            }
        }
        walk.note_link(&place, &sources);
    }
    let deep = verb == "mv" || given.has("aRr", "archive recursive");
    if deep || given.has("dP", "no-dereference") {
        walk.note_brought(&place, &sources);
    }
    for path in &sources {
        walk.note_copy(path);
        // The settings and hooks of another repository come along.
        if verb != "mv" && walk.names_git(path) || deep && walk.holds_git(path) {
            classes = classes.with(Class::Execute);
        }
    }
    classes
}

/// Takes the mode away that looks like an option, as in `chmod -x file`.
fn without_mode(words: &[Word]) -> (Option<Word>, Vec<Word>) {
    let is_mode = |word: &Word| {
        word.literal().is_some_and(|text| {
            text.len() > 1
                && text.starts_with('-')
                && text.chars().skip(1).all(|next| "rwxXstugoa=+-,".contains(next))
                && !text.starts_with("--")
        })
    };
    let mode = words.iter().find(|word| is_mode(word)).cloned();
    let rest = words.iter().filter(|word| !is_mode(word)).cloned().collect();
    (mode, rest)
}

/// Whether whoever runs a file with this mode becomes its owner.
fn lends_owner(mode: &Word) -> bool {
    mode.literal().is_none_or(|mode| {
        let numeric = mode.chars().all(|next| next.is_ascii_digit());
        let plain = mode.trim_start_matches('0');
        mode.contains('s') || numeric && plain.len() > 3 && !plain.starts_with('1')
    })
}

fn permits(walk: &Walk<'_>, verb: &str, mode: Option<Word>, given: &Given<'_>) -> Classes {
    let mut plain = given.plain.clone();
    let named = mode.is_some() || given.has("", "reference");
    let mode = match mode {
        None if !named && !plain.is_empty() => Some(plain.remove(0).clone()),
        mode => mode,
    };
    let deep = given.has("R", "recursive");
    let mut classes = Classes::READ;
    if plain.iter().any(|path| path.may_be_option()) {
        classes = classes.with(Class::WriteOutside);
    }
    for path in plain {
        classes = classes.and(match walk.place(path) {
            PathPlace::Outside if deep => Class::Destructive.into(),
            // A hook is run once it may be.
            PathPlace::Root if deep => Class::Execute.into(),
            _ => walk.writes(path),
        });
    }
    if verb == "chmod" && mode.as_ref().is_some_and(lends_owner) {
        classes.with(Class::Privilege)
    } else {
        classes
    }
}

fn packs(walk: &Walk<'_>, given: &Given<'_>) -> Classes {
    // A later option may turn a list or a test into something else.
    let only_asks =
        given.has("lt", "list test") && !given.has("dz", "decompress uncompress compress");
    if only_asks || given.has("c", "stdout to-stdout") {
        return Classes::READ;
    }
    let deep = given.has("r", "recursive");
    let roots = given.plain.iter().any(|path| walk.place(path) == PathPlace::Root);
    let classes = all(walk, &given.plain);
    if deep && roots { classes.with(Class::Destructive) } else { classes }
}

/// What `dd` is told in words of its own.
fn dd(walk: &Walk<'_>, words: &[Word]) -> Classes {
    const KNOWN: &str = "if bs ibs obs cbs count skip seek iseek oseek conv iflag oflag status";
    let mut classes = Classes::READ;
    for word in words {
        let head = word.head();
        let name = head.split('=').next().unwrap_or_default();
        match word.after("of=") {
            Some(path) => classes = classes.and(walk.writes(&path)),
            None if head.contains('=') && is_listed(KNOWN, name) && !word.may_split() => {}
            None => classes = classes.with(Class::Destructive),
        }
    }
    classes
}
