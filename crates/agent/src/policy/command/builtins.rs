//! Verbs of the shell itself.

use super::arguments::Arguments;
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
        | "times" | "dirs" | "type" | "caller" | "bg" | "fg" | "disown" | "getopts" | "suspend"
        | "logout" => read,
        "wait" => calculated(walk, words),
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
            if words.iter().any(
                |word| !matches!(word.literal().as_deref(), Some(text) if !text.contains("alias")),
            ) {
                Class::Execute.into()
            } else {
                read
            }
        }
        "test" | "[" | "let" => calculated(walk, words),
        "unset" => names(walk, words, false),
        "read" => {
            walk.takes_words();
            names(walk, words, false)
        }
        "mapfile" | "readarray" => {
            if Arguments::of(words).may_have("C", &[]) {
                Class::Execute.into()
            } else {
                walk.takes_words();
                names(walk, words, false)
            }
        }
        "export" => names(walk, words, true),
        "declare" | "typeset" | "local" | "readonly" => {
            let exports = words.iter().any(|word| {
                word.may_be_option()
                    && word.literal().is_none_or(|text| text.contains(['x', 'n', 'f']))
            });
            names(walk, words, exports)
        }
        "printf" => match words.first().map(Word::literal) {
            Some(Some(first)) if first.starts_with("-v") => names(walk, &words[1..], false),
            Some(None) if words[0].may_be_option() => Class::Execute.into(),
            _ => read,
        },
        "alias" => {
            if words.is_empty() {
                read
            } else {
                Finding::from(Class::Execute).and(Class::Destructive)
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
fn calculated(walk: &Walk<'_>, words: &[Word]) -> Finding {
    if words.iter().any(|word| walk.hides_code(word)) {
        Finding::from(Class::Execute).and(Class::Destructive)
    } else {
        Class::Read.into()
    }
}

/// Verbs that give values to variables.
fn names(walk: &mut Walk<'_>, words: &[Word], exports: bool) -> Finding {
    let mut classes = calculated(walk, words).classes;
    for word in words {
        let head = word.head();
        if head.starts_with('-') {
            continue;
        }
        let name = head.split(['=', '[', '+']).next().unwrap_or_default().to_owned();
        if name.is_empty() {
            // Nobody sees which variable it is.
            classes = classes.with(Class::Execute);
            continue;
        }
        let value = word.after(&format!("{name}="));
        let text = value.as_ref().and_then(Word::literal);
        let sets = value.is_some();
        classes = classes.and(if exports && sets {
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
