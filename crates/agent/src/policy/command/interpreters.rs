//! Verbs that read programs: shells and scripting languages.

use super::known::wrapping::SHELL;
use super::parse::{Dialect, Parser, ParserState};
use super::syntax::{Command, Word};
use super::verbs::{is_plain, mentioned};
use super::walk::{Finding, StandardInput, Walk};
use super::{Class, Classes, awk, verbs};

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

/// Whether a line starts nothing but a shell that reads lines from its input, as they stand there.
pub(super) fn reads_lines(line: &str) -> bool {
    let mut state = ParserState { fuel: 1000, ..ParserState::default() };
    let (script, error) = Parser::new(line, Dialect::Bash, 0, &mut state).all();
    let [list] = script.as_slice() else { return false };
    let [(_, pipeline)] = list.parts.as_slice() else { return false };
    let [Command::Simple(simple)] = pipeline.as_slice() else { return false };
    let plain = simple.redirects.is_empty() && simple.assignments.is_empty() && error.is_none();
    let Some((verb, words)) = simple.words.split_first().filter(|_| plain) else { return false };
    let name = verb.literal().unwrap_or_default();
    let name = name.strip_prefix("/usr").unwrap_or(&name);
    let is_shell = matches!(name.strip_prefix("/bin/").unwrap_or(name), "sh" | "bash" | "dash");
    let options = SHELL.read(words);
    // An interactive one expands `!` by what was typed in others.
    is_shell
        && options
            .is_ok_and(|given| given.plain.is_empty() && !given.hidden && !given.has("cio", ""))
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
        return Some(shell(walk, verb, words, input).and(said));
    }
    if is_awk(verb) {
        return Some(awk::judge(words));
    }
    if is_language(verb) {
        return Some(language(verb, words, input));
    }
    EDITORS.contains(&verb).then(|| Finding::from(Class::Execute))
}

fn shell(walk: &mut Walk<'_>, verb: &str, words: &[Word], input: &StandardInput) -> Finding {
    let code = Finding::from(Class::Execute);
    let mut place = 0;
    let mut commands = false;
    while let Some(word) = words.get(place) {
        let Some(text) = word.literal() else {
            if commands || !word.may_be_option() {
                break;
            } else {
                return code.and(Classes::FEARED);
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
    // An option that is not listed may name a file that is run first.
    let options = words.get(..place).unwrap_or_default();
    let rc = SHELL.read(options).is_err();
    let rest = words.get(place..).unwrap_or_default();
    if commands {
        let Some(line) = rest.first() else {
            // What was taken for an option may be the line.
            let taken = words.last().map(Word::known).unwrap_or_default();
            return super::feared(&taken).into();
        };
        // The words behind it are values that the line calls by number.
        for word in rest.iter().skip(1) {
            walk.assign("1", word.clone());
        }
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
            if place == 0 && script.literal().is_some_and(|path| is_inner(&path)) {
                finding.remembered = verbs::remembered(verb, words);
            }
            return finding;
        }
    }
    match input {
        StandardInput::Words(text) if text.literal().is_some() => {
            walk.payload(text);
            code
        }
        StandardInput::Nothing if rest.is_empty() && rc => code,
        StandardInput::Nothing if rest.is_empty() => Class::Read.into(),
        StandardInput::File => code,
        _ => code.and(Classes::FEARED),
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
            if runs_others {
                finding
            } else {
                Finding { remembered: verbs::remembered(verb, words), ..finding }
            }
        }
        [script, ..] if is_inner(script) && script.contains('.') => {
            Finding { remembered: verbs::remembered(verb, words), ..finding }
        }
        _ => finding,
    }
}
