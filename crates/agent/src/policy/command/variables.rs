//! Variables that change what commands do.

use super::{Class, Classes};

/// Names whose value changes what later commands are, load or run. One that ends in `*` stands for
/// all names that begin so.
const COMMANDING: [&str; 47] = [
    "PATH",
    "IFS",
    "ENV",
    "HOME",
    "SHELL",
    "PS4",
    "PS1",
    "PROMPT_COMMAND",
    "CDPATH",
    "SHELLOPTS",
    "BASH*",
    "LD_*",
    "DYLD_*",
    "GIT_*",
    "SSH_*",
    "MAINSTAY*",
    "PAGER",
    "MANPAGER",
    "EDITOR",
    "VISUAL",
    "BROWSER",
    "LESS*",
    "PYTHON*",
    "PERL*",
    "RUBY*",
    "NODE_*",
    "NPM_*",
    "JAVA_*",
    "_JAVA*",
    "JDK_*",
    "RUSTC*",
    "RUSTFLAGS",
    "CARGO*",
    "CC",
    "CXX",
    "MAKE*",
    "GREP_*",
    "TAR_*",
    "RIPGREP_*",
    "XDG_*",
    "ZDOTDIR",
    "FPATH",
    "DOCKER_*",
    "GCONV_PATH",
    "GLOBIGNORE",
    "TMPDIR",
    "OPENSSL_*",
];

/// Names that change nothing but how something looks or how much is said.
const HARMLESS: [&str; 22] = [
    "LC_*",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "COLUMNS",
    "LINES",
    "NO_COLOR",
    "CLICOLOR*",
    "FORCE_COLOR",
    "CI",
    "DEBUG",
    "VERBOSE",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "RUST_LIB_BACKTRACE",
    "NODE_ENV",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "CARGO_TERM_COLOR",
    "DEBIAN_FRONTEND",
    "GIT_TERMINAL_PROMPT",
];

/// Programs that show text. Naming one that shows it plainly is harmless.
const PAGERS: [&str; 4] = ["PAGER", "GIT_PAGER", "MANPAGER", "GH_PAGER"];

/// Names that are numbers: the shell calculates what they get.
const CALCULATED: [&str; 13] = [
    "RANDOM",
    "SRANDOM",
    "SECONDS",
    "OPTIND",
    "HISTCMD",
    "LINENO",
    "BASHPID",
    "PPID",
    "UID",
    "EUID",
    "SHLVL",
    "EPOCHSECONDS",
    "TMOUT",
];

fn among(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| match known.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == *known,
    })
}

fn is_harmless(name: &str, value: Option<&str>) -> bool {
    among(name, &HARMLESS) || PAGERS.contains(&name) && matches!(value, Some("" | "cat"))
}

/// What it does to give a variable a value that the shell keeps.
pub(super) fn assigned(name: &str, value: Option<&str>) -> Classes {
    let is_number = || value.is_some_and(|value| value.chars().all(|next| next.is_ascii_digit()));
    let commands = among(name, &COMMANDING) || CALCULATED.contains(&name) && !is_number();
    if is_harmless(name, value) || !commands { Classes::READ } else { Class::Execute.into() }
}

/// What it does to give a variable a value that commands get to see.
pub(super) fn exported(name: &str, value: Option<&str>) -> Classes {
    if is_harmless(name, value) { Classes::READ } else { Class::Execute.into() }
}

/// What it does to take a variable away from a command.
pub(super) fn unset(name: &str) -> Classes {
    let known = !name.is_empty() && !among(name, &COMMANDING);
    if known || among(name, &HARMLESS) { Classes::READ } else { Class::Execute.into() }
}

/// Whether a text that is calculated names a variable that changes what commands do.
pub(super) fn are_mentioned(text: &str) -> bool {
    let mut names = text.split(|next: char| next != '_' && !next.is_ascii_alphanumeric());
    names.any(|name| among(name, &COMMANDING))
}
