//! Verbs that read programs: shells, scripting languages, `sed` and `awk`.

use super::arguments::{Arguments, Valued};
use super::syntax::Word;
use super::verbs::{is_plain, mentioned};
use super::walk::{Finding, StandardInput, Walk};
use super::{Class, Classes};

const SHELLS: [&str; 9] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "rbash", "fish"];

const LANGUAGES: [&str; 31] = [
    "python",
    "python2",
    "python3",
    "pypy",
    "pypy3",
    "perl",
    "ruby",
    "node",
    "nodejs",
    "deno",
    "bun",
    "php",
    "lua",
    "luajit",
    "Rscript",
    "R",
    "tclsh",
    "osascript",
    "irb",
    "ipython",
    "julia",
    "scala",
    "groovy",
    "racket",
    "guile",
    "elixir",
    "erl",
    "sqlite3",
    "psql",
    "mysql",
    "ts-node",
];

const EDITORS: [&str; 8] = ["vi", "vim", "nvim", "ex", "emacs", "nano", "view", "pico"];

/// Whether a program is one that reads programs.
pub(super) fn is_one(verb: &str) -> bool {
    SHELLS.contains(&verb) || is_language(verb) || EDITORS.contains(&verb) || is_awk(verb)
}

fn is_language(verb: &str) -> bool {
    // `python3.12`
    let plain = verb.trim_end_matches(|next: char| next.is_ascii_digit() || next == '.');
    LANGUAGES.contains(&verb) || LANGUAGES.contains(&plain)
}

fn is_awk(verb: &str) -> bool {
    matches!(verb, "awk" | "gawk" | "mawk" | "nawk")
}

/// Judges an interpreter. Returns `None` if the verb is not one.
pub(super) fn judge(
    walk: &mut Walk<'_>,
    verb: &str,
    words: &[Word],
    input: &StandardInput,
) -> Option<Finding> {
    if SHELLS.contains(&verb) {
        // A payload may look like an option, and then is none for some shells.
        let options = words.iter().filter(|word| word.head().starts_with(['-', '+']));
        let said = mentioned(&options.map(Word::known).collect::<Vec<_>>().join(" "));
        return Some(shell(walk, words, input).and(said));
    }
    if is_awk(verb) {
        return Some(awk(words));
    }
    if is_language(verb) {
        return Some(language(verb, words, input));
    }
    EDITORS.contains(&verb).then(|| Finding::from(Class::Execute))
}

fn shell(walk: &mut Walk<'_>, words: &[Word], input: &StandardInput) -> Finding {
    let code = Finding::from(Class::Execute);
    let mut place = 0;
    let mut commands = false;
    while let Some(word) = words.get(place) {
        let Some(text) = word.literal() else {
            if commands || !word.may_be_option() {
                break;
            } else {
                return code.and(Class::Destructive);
            }
        };
        // A line may begin like an option.
        if commands
            && text.starts_with(['-', '+'])
            && !text.chars().skip(1).all(char::is_alphanumeric)
        {
            walk.payload(word);
        }
        match text.as_str() {
            "--version" | "--help" if words.len() == 1 => return Class::Read.into(),
            "--" | "-" => {
                place += 1;
                break;
            }
            "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file" => place += 2,
            _ if text.starts_with("--") => place += 1,
            _ if text.starts_with(['-', '+']) => {
                commands |= text.contains('c');
                // A name of an option follows the letter.
                place += 1 + usize::from(text.contains(['o', 'O']));
            }
            _ => break,
        }
    }
    let rc = Arguments::of(words).may_have("", &["rcfile", "init-file"]);
    let rest = words.get(place..).unwrap_or_default();
    if commands {
        let Some(line) = rest.first() else {
            // What was taken for an option may be the line.
            let taken = words.last().map(Word::known).unwrap_or_default();
            return super::feared(&taken).into();
        };
        walk.payload(line);
        return if rc { code } else { Class::Read.into() };
    }
    // A file is run; without one, what comes in.
    if let [script, ..] = rest
        && !words.iter().any(|word| word.literal().is_some_and(|text| is_input_option(&text)))
    {
        let from_input = script.literal().is_some_and(|path| path.starts_with("/dev/"));
        if !from_input {
            let mut finding = code;
            if let (0, Some(script)) = (place, script.literal().filter(|path| is_inner(path))) {
                finding = finding.remembered(["sh", &script]);
            }
            return finding;
        }
    }
    match input {
        StandardInput::Words(text) if text.literal().is_some() => {
            walk.payload(text);
            code
        }
        StandardInput::Nothing if rest.is_empty() => Class::Read.into(),
        StandardInput::File => code,
        _ => code.and(Class::Destructive),
    }
}

fn is_input_option(text: &str) -> bool {
    text.starts_with('-') && !text.starts_with("--") && text.contains('s')
}

/// Whether a path is plain and stays below where it starts.
fn is_inner(path: &str) -> bool {
    is_plain(path) && !path.starts_with(['/', '-']) && !path.contains("..")
}

fn language(verb: &str, words: &[Word], input: &StandardInput) -> Finding {
    let code = Finding::from(Class::Execute);
    let literals: Vec<String> =
        words.iter().map(|word| word.literal().unwrap_or_default()).collect();
    if let [only] = literals.as_slice()
        && matches!(only.as_str(), "--version" | "-V" | "--help")
    {
        return Class::Read.into();
    }
    // Programs in the line are not read, but some of their words are known too well.
    let mut classes = mentioned(&literals.join(" "));
    if let StandardInput::Words(text) = input {
        classes = classes.and(mentioned(&text.literal().unwrap_or_default()));
    }
    const TELLING: [&str; 5] = ["rmtree", "unlinkSync", "rmSync", "removedirs", "remove_dir_all"];
    if literals.iter().any(|text| TELLING.iter().any(|word| text.contains(word))) {
        classes = classes.with(Class::Destructive);
    }
    let finding = code.and(classes);
    match literals.as_slice() {
        [module, name, ..] if module == "-m" && verb.starts_with("py") && is_plain(name) => {
            let runs_others =
                matches!(name.as_str(), "pdb" | "timeit" | "trace" | "cProfile" | "code");
            if runs_others { finding } else { finding.remembered([verb, "-m", name]) }
        }
        [script, ..] if is_inner(script) && script.contains('.') => {
            finding.remembered([verb, script])
        }
        _ => finding,
    }
}

fn awk(words: &[Word]) -> Finding {
    let arguments = Arguments::of(words);
    let valued: Valued = ("FvWfmlieE", &["field-separator", "assign", "file", "source", "include"]);
    let loads = ["file", "exec", "load", "include", "source", "dump-variables", "profile", "debug"];
    if arguments.may_have("fElidopDe", &loads) || arguments.may_hide_options() {
        return Class::Execute.into();
    }
    let Some(program) = arguments.plain(valued).first().and_then(|word| word.literal()) else {
        return Class::Execute.into();
    };
    if awk_only_looks(&program) {
        Class::Read.into()
    } else {
        Finding::from(Class::Execute).and(mentioned(&program))
    }
}

/// Whether a program for `awk` has no way to run or to write anything.
fn awk_only_looks(program: &str) -> bool {
    if ["system", "@", "/inet", "fflush", "getline"].iter().any(|word| program.contains(word)) {
        return false;
    }
    if program.replace("||", "").contains('|') {
        return false;
    }
    // After `print` a greater-than sign leads to a file.
    program.split([';', '}', '\n']).all(|statement| {
        statement.find("print").is_none_or(|start| !statement[start..].contains('>'))
    })
}

/// `sed`, which writes with `-i` and with `w`, and runs with `e`.
pub(super) fn sed(walk: &Walk<'_>, arguments: &Arguments<'_>) -> Finding {
    let valued: Valued = ("efl", &["expression", "file", "line-length"]);
    if arguments.may_have("f", &["file"]) || arguments.may_hide_options() {
        return Class::Execute.into();
    }
    let mut scripts = arguments.values(Some('e'), &["expression"]);
    let mut plain = arguments.plain(valued);
    if scripts.is_empty() && !plain.is_empty() {
        scripts.push(plain.remove(0).clone());
    }
    let mut classes = Classes::READ;
    for script in &scripts {
        let Some(script) = script.literal() else { return Class::Execute.into() };
        match sed_writes(&script) {
            None => return Finding::from(Class::Execute).and(mentioned(&script)),
            Some(paths) => {
                for path in paths {
                    classes = classes.and(walk.writes(&Word::of(path)));
                }
            }
        }
    }
    if arguments.may_have("i", &["in-place"]) {
        for path in plain {
            classes = classes.and(walk.writes(path));
        }
        let finding = Finding::from(classes);
        return if classes.worst() == Class::WriteInside {
            finding.remembered(["sed"])
        } else {
            finding
        };
    }
    classes.into()
}

/// The files that a script for `sed` writes to. Returns `None` if it may run something or is not
/// understood.
fn sed_writes(script: &str) -> Option<Vec<String>> {
    let mut writes = Vec::new();
    let characters: Vec<char> = script.chars().collect();
    let mut at = 0;
    let line_end = |from: usize| {
        characters[from..]
            .iter()
            .position(|next| *next == '\n')
            .map_or(characters.len(), |n| from + n)
    };
    // The end of a pattern that begins at `from`, behind its delimiter.
    let closed = |from: usize, delimiter: char| {
        let mut place = from;
        let mut in_brackets = false;
        while let Some(next) = characters.get(place) {
            match next {
                '\\' => place += 1,
                '\n' => return None,
                '[' => in_brackets = true,
                ']' => in_brackets = false,
                // Whether brackets hide a delimiter depends on the `sed`: it is not understood.
                next if *next == delimiter && in_brackets => return None,
                next if *next == delimiter => return Some(place + 1),
                _ => {}
            }
            place += 1;
        }
        None
    };
    while let Some(&next) = characters.get(at) {
        match next {
            ' ' | '\t' | '\n' | ';' | '0'..='9' | '$' | ',' | '~' | '+' | '!' | '{' | '}' => {
                at += 1;
            }
            '/' => {
                at = closed(at + 1, '/')?;
                while matches!(characters.get(at), Some('I' | 'M')) {
                    at += 1;
                }
            }
            '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'l'
            | 'q' | 'Q' | 'F' => at += 1,
            'a' | 'i' | 'c' => {
                let mut end = line_end(at);
                while end < characters.len() && characters[end - 1] == '\\' {
                    end = line_end(end + 1);
                }
                at = end;
            }
            'r' | 'R' | '#' => at = line_end(at),
            'b' | 't' | 'T' | ':' => {
                let end = characters[at..].iter().position(|next| ";\n}".contains(*next));
                at = end.map_or(characters.len(), |end| at + end);
            }
            'w' | 'W' => {
                let end = line_end(at);
                writes.push(characters[at + 1..end].iter().collect::<String>().trim().to_owned());
                at = end;
            }
            's' | 'y' => {
                let delimiter = *characters.get(at + 1)?;
                if delimiter == '\\' || delimiter == '\n' {
                    return None;
                }
                at = closed(at + 2, delimiter)?;
                at = closed(at, delimiter)?;
                while let Some(&flag) = characters.get(at) {
                    match flag {
                        'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9' if next == 's' => at += 1,
                        'w' if next == 's' => {
                            let end = line_end(at);
                            let path: String = characters[at + 1..end].iter().collect();
                            writes.push(path.trim().to_owned());
                            at = end;
                        }
                        ' ' | '\t' | ';' | '\n' | '}' => break,
                        _ => return None,
                    }
                }
            }
            _ => return None,
        }
    }
    Some(writes)
}
