//! Verbs that run other verbs: what they run is judged.

use super::arguments::Arguments;
use super::known::wrapping::{PROGRAMS, XARGS};
use super::options::is_listed;
use super::syntax::{Word, WordPart};
use super::verbs::is_plain;
use super::walk::{Finding, StandardInput, Walk};
use super::{Class, Classes, variables, verbs};

/// Verbs that run others in ways of their own: what they are given is feared as a whole.
const ODD: [&str; 24] = [
    "watch",
    "strace",
    "ltrace",
    "gdb",
    "lldb",
    "script",
    "flock",
    "parallel",
    "entr",
    "at",
    "batch",
    "systemd-run",
    "proot",
    "fakeroot",
    "firejail",
    "bwrap",
    "perf",
    "valgrind",
    "rlwrap",
    "expect",
    "tmux",
    "screen",
    "start-stop-daemon",
    "dbus-run-session",
];

const PRIVILEGED: [&str; 9] =
    ["sudo", "su", "doas", "pkexec", "runuser", "sudoedit", "gosu", "su-exec", "run0"];

/// Whether a verb makes another user of whoever runs it.
pub(super) fn is_privileged(verb: &str) -> bool {
    PRIVILEGED.contains(&verb)
}

/// Whether a verb runs what it is given.
pub(super) fn is_one(verb: &str) -> bool {
    matches!(verb, "env" | "xargs" | "command" | "exec")
        || is_privileged(verb)
        || ODD.contains(&verb)
        || PROGRAMS.iter().any(|(names, ..)| is_listed(names, verb))
}

/// Judges a verb that runs other commands. Returns `None` if it is not one.
pub(super) fn judge(
    walk: &mut Walk<'_>,
    verb: &str,
    words: &[Word],
    input: &StandardInput,
) -> Option<Finding> {
    let arguments = Arguments::of(words);
    if verb == "command" && is_asked(words) {
        return Some(Class::Read.into());
    }
    if let Some((_, options, own)) = PROGRAMS.iter().find(|(names, ..)| is_listed(names, verb)) {
        let Ok(given) = options.read_own(words) else {
            return Some(feared_verb(walk, words, input));
        };
        let rest = given.plain.get(*own..).unwrap_or_default();
        let rest: Vec<Word> = rest.iter().map(|word| (*word).clone()).collect();
        // What nobody sees may be an option, and one of the program's own words may be several.
        let odd = !options_are_plain(&words[..given.first_plain])
            || given.plain.iter().take(*own).any(|word| word.may_split());
        let mut finding = match (odd, rest.is_empty()) {
            (true, _) => feared(words),
            (false, true) => Class::Read.into(),
            (false, false) => walk.verb(&rest, input),
        };
        for path in &given.written {
            finding = finding.and(walk.writes(path));
        }
        return Some(if verb == "exec" { finding.forgotten() } else { finding });
    }
    Some(match verb {
        "env" => env(walk, words, input),
        "xargs" => xargs(walk, words),
        verb if is_privileged(verb) => {
            let first = arguments.first_plain(("ugpCTRDhr", &["user", "group", "prompt", "chdir"]));
            let inner = match first {
                Some(first) if verb != "su" => walk.verb(&words[first..], input).classes,
                _ => Classes::READ,
            };
            for payload in arguments.values(Some('c'), &["command"]) {
                if verb == "su" || verb == "runuser" {
                    walk.payload(&payload);
                }
            }
            Finding::from(inner).and(Class::Privilege).and(Class::Execute)
        }
        "crontab" => {
            let lists = |word: &Word| word.literal().as_deref() == Some("-l");
            if !words.is_empty() && words.iter().all(lists) {
                Class::Read.into()
            } else if arguments.may_have("r", &[]) {
                Class::Destructive.into()
            } else {
                Finding::from(Class::Execute).and(Class::WriteOutside)
            }
        }
        verb if ODD.contains(&verb) => {
            for payload in arguments.values(Some('c'), &["command"]) {
                walk.payload(&payload);
            }
            feared_verb(walk, words, input)
        }
        _ => return None,
    })
}

/// Whether `command` only says what a name stands for.
fn is_asked(words: &[Word]) -> bool {
    let asks = |word: &Word| {
        word.literal().is_some_and(|text| matches!(text.as_str(), "-v" | "-V" | "-pv" | "-pV"))
    };
    words.first().is_some_and(asks)
        && words.iter().skip(1).all(|word| word.literal().is_some() || !word.may_split())
}

/// A verb after options that are not known: each word may be the verb.
fn feared_verb(walk: &mut Walk<'_>, words: &[Word], input: &StandardInput) -> Finding {
    let mut finding = feared(words);
    for (place, word) in words.iter().enumerate().take(8) {
        if word.literal().is_some_and(|text| text.starts_with(char::is_alphabetic)) {
            finding = finding.and(walk.verb(&words[place..], input).classes);
            break;
        }
    }
    finding
}

/// Whether nothing among the options may turn out to be something else.
fn options_are_plain(words: &[Word]) -> bool {
    words.iter().all(|word| word.literal().is_some() || !word.may_split())
}

/// A verb that runs something which cannot be told apart from its options.
fn feared(words: &[Word]) -> Finding {
    let texts: Vec<String> = words.iter().map(|word| word.literal().unwrap_or_default()).collect();
    Finding::from(verbs::mentioned(&texts.join(" "))).and(Class::Execute)
}

fn env(walk: &mut Walk<'_>, words: &[Word], input: &StandardInput) -> Finding {
    let mut classes = Classes::READ;
    let mut place = 0;
    while let Some(word) = words.get(place) {
        let head = word.head();
        let Some(text) = word.literal().or_else(|| head.contains('=').then(|| head.clone())) else {
            return feared(words).and(Classes::FEARED);
        };
        if matches!(text.as_str(), "-" | "-i" | "--ignore-environment") {
            // What keeps programs from running others may stand in the environment.
            classes = classes.with(Class::Execute);
            place += 1;
        } else if text == "-0" || text == "--null" || text == "--" {
            place += 1;
        } else if text == "-u" || text == "-C" || text == "--unset" || text == "--chdir" {
            if text.contains(['C', 'c']) {
                walk.go(words.get(place + 1));
            } else {
                let name = words.get(place + 1).and_then(Word::literal).unwrap_or_default();
                classes = classes.and(variables::unset(&name));
            }
            place += 2;
        } else if let Some(name) = text.strip_prefix("--unset=").or_else(|| text.strip_prefix("-u"))
        {
            classes = classes.and(variables::unset(name));
            place += 1;
        } else if text.starts_with('-') {
            // `-S` splits a text into words; others are not known.
            let rest = words[place..].iter().map(|word| word.literal().unwrap_or_default());
            let joined = rest.collect::<Vec<_>>().join(" ");
            let split = joined.trim_start_matches("--split-string=").trim_start_matches("-S");
            let all = words[place..].iter().all(|word| word.literal().is_some());
            walk.payload(&if all { Word::of(split.trim()) } else { Word::anything() });
            return feared(words);
        } else if let Some((name, _)) = text.split_once('=') {
            let value = word.literal().and(text.split_once('=').map(|(_, value)| value));
            classes = classes.and(variables::exported(name, value));
            place += 1;
        } else {
            break;
        }
    }
    match words.get(place..) {
        Some(rest) if !rest.is_empty() => {
            let finding = walk.verb(rest, input);
            if classes == Classes::READ { finding } else { finding.and(classes).forgotten() }
        }
        // Alone it shows the environment.
        _ => Class::Read.into(),
    }
}

fn xargs(walk: &mut Walk<'_>, words: &[Word]) -> Finding {
    let Ok(options) = XARGS.read_own(words) else {
        return feared_verb(walk, words, &StandardInput::Nothing).and(Classes::FEARED);
    };
    let first = options.first_plain;
    if !options_are_plain(&words[..first]) {
        return feared(words).and(Classes::FEARED);
    }
    if options.plain.is_empty() {
        // Without a verb it echoes.
        return Class::Read.into();
    }
    let mut marks: Vec<String> = options
        .values("I")
        .chain(options.values("replace"))
        .chain(options.values("i"))
        .map(|mark| mark.literal().unwrap_or_default())
        .filter(|mark| !mark.is_empty())
        .collect();
    if options.has("i", "replace") {
        marks.push("{}".to_owned());
    }
    let mut inner: Vec<Word> = words[first..]
        .iter()
        .map(|word| match word.literal() {
            Some(text) if marks.iter().any(|mark| text.contains(mark)) => replaced(&text, &marks),
            _ => word.clone(),
        })
        .collect();
    inner.push(Word::anything());
    walk.verb(&inner, &StandardInput::Nothing).forgotten()
}

/// A word in which a mark stands for something that is not known.
fn replaced(text: &str, marks: &[String]) -> Word {
    let mut parts = Vec::new();
    let found = marks.iter().find(|mark| text.contains(mark.as_str()));
    for (place, piece) in text.split(found.map_or("{}", String::as_str)).enumerate() {
        if place > 0 {
            parts.push(WordPart::Unknown { quoted: true });
        }
        if !piece.is_empty() {
            parts.push(WordPart::Quoted(piece.to_owned()));
        }
    }
    Word { parts }
}

/// The words of `find -exec`, with what it finds below `start` for its braces.
pub(super) fn with_found(words: &[Word], start: &Word, filtered: bool) -> Vec<Word> {
    words
        .iter()
        .map(|word| match word.literal() {
            Some(text) if text == "{}" => {
                let mut found = start.clone();
                if filtered {
                    found.parts.push(WordPart::Quoted("/{}".to_owned()));
                }
                found
            }
            Some(text) if text.contains("{}") => Word::anything(),
            _ => word.clone(),
        })
        .collect()
}

/// Whether a program of a project runs the rest of its words as a verb.
pub(super) fn runs_others(verb: &str, words: &[Word]) -> bool {
    let first = words.first().and_then(Word::literal).unwrap_or_default();
    matches!(
        (verb, first.as_str()),
        ("poetry" | "uv" | "pipenv" | "pdm" | "hatch" | "rye" | "pixi" | "conda", "run")
            | ("bundle" | "npm" | "pnpm" | "yarn" | "mise" | "direnv" | "asdf" | "opam", "exec")
            | ("pnpm", "dlx")
            | ("nix", "shell" | "develop")
    )
}

/// Judges what a program of a project runs.
pub(super) fn in_project(walk: &mut Walk<'_>, verb: &str, words: &[Word]) -> Finding {
    let code = Finding::from(Class::Execute);
    let (Some(first), Some(rest)) = (words.first().and_then(Word::literal), words.get(1..)) else {
        return code;
    };
    let Some(start) = Arguments::of(rest).first_plain(("", &[])) else { return code };
    let inner = walk.verb(&rest[start..], &StandardInput::Nothing);
    let mut finding = code.and(inner.classes);
    if let (0, Some(words)) = (start, inner.remembered)
        && is_plain(&first)
    {
        finding.remembered = Some([verb.to_owned(), first].into_iter().chain(words).collect());
    }
    finding
}
