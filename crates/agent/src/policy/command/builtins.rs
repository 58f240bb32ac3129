//! Verbs of the shell itself.

use super::arguments::Arguments;
use super::options::is_listed;
use super::parse::is_name;
use super::syntax::Word;
use super::walk::{Finding, StandardInput, Walk};
use super::{Class, Classes, variables};

/// Judges a builtin of the shell. Returns `None` if the verb is not one.
pub(super) fn judge(
    walk: &mut Walk<'_>,
    verb: &str,
    words: &[Word],
    input: &StandardInput,
) -> Option<Finding> {
    let read = Finding::from(Class::Read);
    Some(match verb {
        "cd" | "pushd" | "chdir" => {
            let target = words.iter().find(|word| !word.head().starts_with('-'));
            // Without a target it goes home, with `-` to where it came from.
            let back = words.iter().any(|word| word.literal().as_deref() == Some("-"));
            walk.go(target.filter(|_| !back));
            read
        }
        "popd" => {
            walk.go(None);
            read
        }
        "exit" | "return" | "break" | "continue" | "shift" | "jobs" | "umask" | "ulimit"
        | "times" | "dirs" | "type" | "caller" | "bg" | "fg" | "disown" | "suspend" | "logout" => {
            read
        }
        // The second word is the variable that it sets.
        "getopts" => names(walk, words.get(1..).unwrap_or_default(), Exported::No),
        "wait" => calculated(walk, verb, words).and(waits(walk, words)),
        "history" => {
            if words.is_empty() {
                read
            } else {
                Class::WriteOutside.into()
            }
        }
        "set" => {
            if words.iter().all(|word| word.literal().is_some_and(|text| is_set(&text))) {
                read
            } else {
                Class::Execute.into()
            }
        }
        "shopt" => {
            let known =
                |word: &Word| word.literal().is_some_and(|text| is_listed(SHELL_OPTIONS, &text));
            if words.iter().all(known) { read } else { Class::Execute.into() }
        }
        "test" | "[" | "let" => calculated(walk, verb, words),
        "unset" => names(walk, words, Exported::No),
        "read" => {
            walk.takes_words();
            names(walk, &without_values(words, "adinNptu"), Exported::No)
        }
        "mapfile" | "readarray" => {
            if Arguments::of(words).may_have("C", &[]) {
                Class::Execute.into()
            } else {
                walk.takes_words();
                names(walk, &without_values(words, "dnOsuc"), Exported::No)
            }
        }
        "export" => names(walk, words, Exported::Yes),
        "declare" | "typeset" | "local" | "readonly" => {
            let exports = words.iter().any(|word| {
                word.may_be_option()
                    && word.literal().is_none_or(|text| text.contains(['x', 'n', 'f']))
            });
            // Whatever such a variable gets is calculated, and of an array the places are.
            let calculates = words.iter().any(|word| {
                let text = word.literal().unwrap_or_default();
                text.starts_with('-') && text.contains(['i', 'a', 'A'])
            });
            if calculates {
                words.iter().for_each(|word| walk.calculates_with(word));
            }
            names(walk, words, if exports { Exported::Yes } else { Exported::No })
        }
        "printf" => printf(walk, words),
        "alias" => {
            if words.is_empty() {
                read
            } else {
                Finding::from(Class::Execute).and(Classes::FEARED)
            }
        }
        "unalias" => read,
        "hash" | "enable" | "complete" | "compgen" | "bind" => {
            if words.is_empty() {
                read
            } else {
                Class::Execute.into()
            }
        }
        "source" | "." => source(walk, words, input),
        "eval" => {
            run_joined(walk, words);
            read
        }
        "trap" => {
            match words {
                [] => {}
                [first, ..]
                    if matches!(first.literal().as_deref(), Some("-" | "" | "-l" | "-p")) => {}
                [first, ..] => walk.payload(first),
            }
            read
        }
        "kill" => kill(walk, words),
        _ => return None,
    })
}

/// Options of `shopt` that change neither which files wildcards find nor what words run.
const SHELL_OPTIONS: &str = "\
    -s -u -q -p nullglob failglob globstar nocaseglob nocasematch lastpipe inherit_errexit \
    checkwinsize huponexit xpg_echo";

/// Options of the shell that only make it stricter or say more.
fn is_set(text: &str) -> bool {
    const NAMES: [&str; 8] =
        ["pipefail", "errexit", "nounset", "noglob", "noclobber", "monitor", "nolog", "verbose"];
    match text.strip_prefix(['-', '+']) {
        Some(letters) => letters.chars().all(|letter| "euxofCvbmn-".contains(letter)),
        None => NAMES.contains(&text) || text == "xtrace",
    }
}

/// A test or a calculation: a place in an array that it is given may hold a command.
fn calculated(walk: &mut Walk<'_>, verb: &str, words: &[Word]) -> Finding {
    let asks = words.iter().any(may_ask_for_variable);
    for word in words.iter().filter(|word| word.literal().is_none()) {
        // `test` takes what it is given for numbers, but for the name of a variable.
        if verb == "let" || asks && matches!(verb, "test" | "[") {
            walk.calculates_with(word);
        }
    }
    if words.iter().any(|word| walk.hides_code(word)) {
        return Finding::from(Class::Execute).and(Classes::FEARED);
    }
    if verb == "let" && words.iter().any(|word| variables::are_mentioned(&word.known())) {
        Class::Execute.into()
    } else {
        Class::Read.into()
    }
}

/// Whether a word of a test is `-v`, or may be: what follows is a name, with a place in an array.
fn may_ask_for_variable(word: &Word) -> bool {
    match word.literal() {
        Some(text) => text == "-v",
        None => word.variable().is_some(),
    }
}

/// `wait -p NAME` puts a number into a variable.
fn waits(walk: &mut Walk<'_>, words: &[Word]) -> Classes {
    let place = words.iter().position(|word| word.head().starts_with("-p"));
    match place {
        Some(place) => {
            names(walk, words.get(place + 1..place + 2).unwrap_or_default(), Exported::No).classes
        }
        None => Classes::READ,
    }
}

/// Whether commands get to see the values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exported {
    Yes,
    No,
}

/// `printf`, which gives its text to a variable after `-v`.
fn printf(walk: &mut Walk<'_>, words: &[Word]) -> Finding {
    let Some(first) = words.first() else { return Class::Read.into() };
    match first.literal() {
        None if first.may_be_option() => Class::Execute.into(),
        Some(text) if text == "-v" => {
            let name = words.get(1..2).unwrap_or_default();
            // What it puts together may be a place in an array.
            if words.iter().skip(2).any(|word| word.known().contains('[')) {
                walk.takes_words();
            }
            names(walk, name, Exported::No)
        }
        Some(text) if text.starts_with("-v") => names(walk, &[Word::of(&text[2..])], Exported::No),
        _ => Class::Read.into(),
    }
}

/// The words without the values of these options, which are no names. `-a NAME` is one.
fn without_values(words: &[Word], valued: &str) -> Vec<Word> {
    let mut kept = Vec::new();
    let mut follows = false;
    for word in words {
        let is_value = std::mem::take(&mut follows);
        let text = word.literal().unwrap_or_default();
        if let Some(letters) = text.strip_prefix('-').filter(|_| !is_value) {
            // The first that takes a value takes the rest, or the next word.
            let takes = letters.char_indices().find(|(_, letter)| valued.contains(*letter));
            if let Some((place, letter)) = takes {
                let rest = &letters[place + 1..];
                follows = rest.is_empty() && letter != 'a';
                if letter == 'a' && !rest.is_empty() {
                    kept.push(Word::of(rest));
                }
            }
        } else if !is_value {
            kept.push(word.clone());
        }
    }
    kept
}

/// Verbs that give values to variables.
fn names(walk: &mut Walk<'_>, words: &[Word], exported: Exported) -> Finding {
    let mut classes = calculated(walk, "", words).classes;
    for word in words {
        let head = word.head();
        if head.starts_with('-') && word.literal().is_some() {
            continue;
        }
        let name = head.split(['=', '[', '+']).next().unwrap_or_default().to_owned();
        let is_whole = word.literal().is_some() || head.contains('=');
        if !is_name(&name) || !is_whole {
            // Nobody sees which variable it is.
            classes = classes.with(Class::Execute);
            continue;
        }
        // What stands in brackets is calculated.
        if variables::are_mentioned(
            head.split('=').next().unwrap_or_default().trim_start_matches(&name),
        ) {
            classes = classes.with(Class::Execute);
        }
        let value = word.after(&format!("{name}="));
        let text = value.as_ref().and_then(Word::literal);
        let sets = value.is_some();
        classes = classes.and(if exported == Exported::Yes && sets {
            variables::exported(&name, text.as_deref())
        } else {
            variables::assigned(&name, text.as_deref())
        });
        walk.assign(&name, value.unwrap_or_else(Word::anything));
    }
    classes.into()
}

fn source(walk: &mut Walk<'_>, words: &[Word], input: &StandardInput) -> Finding {
    let from_input = words.first().and_then(Word::literal).is_some_and(|path| {
        matches!(path.as_str(), "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0" | "-")
    });
    if let (true, StandardInput::Words(text)) = (from_input, input) {
        walk.payload(text);
    }
    Finding::from(Class::Execute)
}

/// Runs its words, joined by blanks, as a line.
fn run_joined(walk: &mut Walk<'_>, words: &[Word]) {
    match words {
        [] => {}
        [only] => walk.payload(only),
        words => match words.iter().map(Word::literal).collect::<Option<Vec<String>>>() {
            Some(texts) => walk.payload(&Word::of(texts.join(" "))),
            None => walk.payload(&Word::anything()),
        },
    }
}

fn kill(walk: &mut Walk<'_>, words: &[Word]) -> Finding {
    let asks = matches!(words.first().and_then(Word::literal).as_deref(), Some("-0" | "-l" | "-L"));
    if asks && words.iter().all(|word| word.literal().is_some() || !word.may_be_option()) {
        return Class::Read.into();
    }
    // What the line itself started is its own.
    let own = |word: &Word| {
        word.variable() == Some("!")
            || word.literal().is_some_and(|text| text.starts_with('%'))
            || word.variable().is_some_and(|name| walk.is_own_process(name))
    };
    let signal =
        |word: &Word| word.literal().is_some_and(|text| text.starts_with('-') && text != "-1");
    if words.iter().all(|word| signal(word) || own(word)) {
        Classes::from(Class::Execute).into()
    } else {
        Class::Destructive.into()
    }
}
