//! Verbs: what a program does, judged by its name and arguments.

use super::arguments::Arguments;
use super::syntax::{Simple, Way, Word};
use super::walk::{Finding, StandardInput, Walk};
use super::{Class, Classes, builtins, files, git, interpreters, reach, wrappers};

/// Verbs that only look, whatever their arguments are.
const LOOKING: [&str; 91] = [
    "cat",
    "ls",
    "head",
    "tail",
    "wc",
    "grep",
    "egrep",
    "fgrep",
    "zgrep",
    "pwd",
    "echo",
    "true",
    "false",
    ":",
    "basename",
    "dirname",
    "realpath",
    "readlink",
    "stat",
    "du",
    "df",
    "diff",
    "cmp",
    "comm",
    "cut",
    "tr",
    "nl",
    "tac",
    "rev",
    "fold",
    "fmt",
    "paste",
    "join",
    "expand",
    "unexpand",
    "column",
    "od",
    "hexdump",
    "strings",
    "md5sum",
    "sha1sum",
    "sha224sum",
    "sha256sum",
    "sha384sum",
    "sha512sum",
    "b2sum",
    "cksum",
    "sum",
    "shasum",
    "md5",
    "seq",
    "cal",
    "uname",
    "whoami",
    "id",
    "groups",
    "uptime",
    "free",
    "ps",
    "pgrep",
    "pidof",
    "which",
    "whereis",
    "printenv",
    "locale",
    "nproc",
    "arch",
    "tty",
    "sleep",
    "yes",
    "jq",
    "zcat",
    "gzcat",
    "bzcat",
    "xzcat",
    "zstdcat",
    "base32",
    "numfmt",
    "factor",
    "expr",
    "tsort",
    "getconf",
    "lscpu",
    "lsblk",
    "size",
    "readelf",
    "vmstat",
    "who",
    "w",
    "logname",
    "sync",
];

/// Verbs that only look unless one of these options is given: letters, long names.
const LOOKING_UNLESS: [(&str, &str, &[&str], Class); 20] = [
    ("base64", "o", &["output"], Class::WriteOutside),
    ("rg", "z", &["pre", "hostname-bin", "search-zip"], Class::Execute),
    ("fd", "xX", &["exec", "exec-batch"], Class::Execute),
    ("fdfind", "xX", &["exec", "exec-batch"], Class::Execute),
    ("bat", "", &["pager", "config-file"], Class::Execute),
    ("batcat", "", &["pager", "config-file"], Class::Execute),
    ("lsof", "D", &[], Class::WriteOutside),
    ("nm", "", &["plugin"], Class::Execute),
    ("ag", "", &["pager"], Class::Execute),
    ("date", "s", &["set"], Class::Privilege),
    ("hostname", "Fb", &["file", "boot"], Class::Privilege),
    ("file", "C", &["compile"], Class::WriteOutside),
    ("tree", "o", &[], Class::WriteOutside),
    ("less", "oO", &["log-file", "LOG-FILE"], Class::WriteOutside),
    ("more", "", &[], Class::Read),
    ("iconv", "o", &["output"], Class::WriteOutside),
    ("objdump", "", &["plugin"], Class::Execute),
    ("tokei", "", &[], Class::Read),
    ("yq", "iIs", &["inplace", "in-place", "split-exp", "split-exp-file"], Class::WriteOutside),
    ("shellcheck", "", &[], Class::Read),
];

/// Programs that are known and run or build what the workspace holds. Asked for their version they
/// only look.
const BUILDING: [&str; 60] = [
    "cargo",
    "rustc",
    "rustfmt",
    "rustup",
    "npm",
    "pnpm",
    "yarn",
    "npx",
    "tsc",
    "eslint",
    "prettier",
    "jest",
    "vitest",
    "vite",
    "webpack",
    "rollup",
    "esbuild",
    "go",
    "gofmt",
    "pip",
    "pip3",
    "pytest",
    "ruff",
    "black",
    "mypy",
    "pyright",
    "isort",
    "flake8",
    "tox",
    "nox",
    "make",
    "cmake",
    "ninja",
    "meson",
    "ctest",
    "gcc",
    "g++",
    "cc",
    "c++",
    "clang",
    "clang++",
    "ld",
    "mvn",
    "gradle",
    "javac",
    "dotnet",
    "swift",
    "xcodebuild",
    "bazel",
    "just",
    "task",
    "rake",
    "bundle",
    "gem",
    "composer",
    "phpunit",
    "mix",
    "stack",
    "cabal",
    "zig",
];

/// Verbs after which nothing is as it was, or that a whole machine feels.
const DESTROYING: [&str; 28] = [
    "mkfs",
    "fdisk",
    "sfdisk",
    "gdisk",
    "parted",
    "wipefs",
    "mkswap",
    "swapoff",
    "shutdown",
    "reboot",
    "halt",
    "poweroff",
    "telinit",
    "init",
    "killall",
    "pkill",
    "killall5",
    "skill",
    "xkill",
    "cryptsetup",
    "lvremove",
    "vgremove",
    "pvremove",
    "zpool",
    "zfs",
    "mdadm",
    "blkdiscard",
    "hdparm",
];

/// Verbs that are for another user, the superuser first.
const RULING: [&str; 38] = [
    "useradd",
    "usermod",
    "userdel",
    "adduser",
    "deluser",
    "groupadd",
    "groupdel",
    "groupmod",
    "passwd",
    "chpasswd",
    "chsh",
    "visudo",
    "vipw",
    "mount",
    "umount",
    "losetup",
    "insmod",
    "rmmod",
    "modprobe",
    "iptables",
    "ip6tables",
    "nft",
    "ufw",
    "firewall-cmd",
    "setenforce",
    "chroot",
    "unshare",
    "nsenter",
    "setcap",
    "capsh",
    "setpriv",
    "kexec",
    "auditctl",
    "apparmor_parser",
    "update-rc.d",
    "chattr",
    "gpasswd",
    "newgrp",
];

/// Judges a verb that is written plainly.
pub(super) fn judge(
    walk: &mut Walk<'_>,
    name: &str,
    words: &[Word],
    input: &StandardInput,
) -> Finding {
    let Some(verb) = program(name) else { return by_path(name, words) };
    let arguments = Arguments::of(words);
    if is_mainstay(verb) {
        return Class::Control.into();
    }
    if LOOKING.contains(&verb) || verb == "[[" {
        return Class::Read.into();
    }
    if let Some((_, letters, names, class)) = LOOKING_UNLESS.iter().find(|rule| rule.0 == verb) {
        // A word alone is a new name or a new time.
        let sets = matches!(verb, "hostname" | "date")
            && words.iter().any(|word| !word.head().starts_with(['-', '+']))
            && !arguments.may_have("drfuI", &["date", "reference", "file"]);
        return if sets || arguments.may_have(letters, names) {
            Finding::from(*class)
        } else {
            Class::Read.into()
        };
    }
    if RULING.contains(&verb) {
        return Finding::from(Class::Privilege).and(Class::Execute);
    }
    if DESTROYING.contains(&verb) || verb.starts_with("mkfs.") {
        return Class::Destructive.into();
    }
    builtins::judge(walk, verb, words, input)
        .or_else(|| files::judge(walk, verb, words))
        .or_else(|| wrappers::judge(walk, verb, words, input))
        .or_else(|| interpreters::judge(walk, verb, words, input))
        .or_else(|| git::judge(walk, verb, words))
        .or_else(|| reach::judge(walk, verb, words))
        .unwrap_or_else(|| other(walk, verb, words))
}

/// The plain name of a program, where its path is one of the usual ones.
fn program(name: &str) -> Option<&str> {
    const USUAL: [&str; 6] =
        ["/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/opt/homebrew/bin/"];
    if !name.contains('/') {
        return Some(name);
    }
    USUAL.iter().find_map(|place| name.strip_prefix(place)).filter(|rest| !rest.contains('/'))
}

/// Whether a program is Mainstay, whatever the case of its letters.
fn is_mainstay(program: &str) -> bool {
    let lower = program.to_ascii_lowercase();
    lower == "mainstay" || lower.starts_with("mainstay-")
}

/// A program that lies in an unusual place.
fn by_path(name: &str, words: &[Word]) -> Finding {
    let base = name.rsplit('/').next().unwrap_or(name);
    if is_mainstay(base) || name.starts_with("/proc/") {
        return Finding::from(Class::Control).and(Class::Execute);
    }
    if interpreters::is_one(base) || wrappers::is_one(base) {
        return Finding::from(Class::Execute).and(dangerous_tail(words));
    }
    let finding = Finding::from(Class::Execute).and(dangerous_tail(words));
    if name.starts_with('/') || name.contains("..") || !is_plain(name) {
        finding
    } else {
        finding.remembered([name])
    }
}

/// A program that nothing is known of but its name.
fn other(walk: &mut Walk<'_>, verb: &str, words: &[Word]) -> Finding {
    let building = BUILDING.contains(&verb);
    if building && let [only] = words {
        let only = only.literal().unwrap_or_default();
        if matches!(only.as_str(), "--version" | "-V" | "-v" | "version" | "--help" | "-h" | "help")
        {
            return Class::Read.into();
        }
    }
    let mut finding = Finding::from(Class::Execute);
    finding.remembered = remembered(verb, words);
    if !building {
        let tail = dangerous_tail(words);
        if tail != Classes::READ {
            return finding.forgotten().and(tail);
        }
    }
    if let Some(more) = reach::packages(verb, words) {
        finding = finding.and(more);
    }
    if wrappers::runs_others(verb, words) {
        return wrappers::in_project(walk, verb, words);
    }
    finding
}

/// What the arguments would do if the verb ran them: many programs run others.
fn dangerous_tail(words: &[Word]) -> Classes {
    let mut classes = Classes::READ;
    for word in words.iter().take(32) {
        let Some(text) = word.literal() else { continue };
        // A payload or a path may hold the verb too.
        for piece in text.split(|next: char| next.is_whitespace() || ";|&()`'\"=".contains(next)) {
            let base = piece.rsplit('/').next().unwrap_or(piece);
            if is_mainstay(base) {
                classes = classes.with(Class::Control);
            } else if wrappers::is_privileged(base) {
                classes = classes.with(Class::Privilege);
            } else if DESTROYING.contains(&base) && base != "init" || base == "rm" || base == "dd" {
                classes = classes.with(Class::Destructive);
            }
        }
    }
    classes
}

/// What a text that cannot be judged would do, by the verbs that it mentions.
pub(super) fn mentioned(text: &str) -> Classes {
    let shortened: String = text.chars().take(20_000).collect();
    dangerous_tail(&[Word::of(shortened)])
}

/// The words that "always" remembers of a program: its name and what it is told to do.
pub(super) fn remembered(verb: &str, words: &[Word]) -> Option<Vec<String>> {
    if !is_plain(verb) || verb.starts_with('-') {
        return None;
    }
    let mut kept = vec![verb.to_owned()];
    let Some(first) = words.first() else { return Some(kept) };
    let first = first.literal()?;
    let is_subcommand = first.starts_with(|next: char| next.is_ascii_lowercase())
        && first.chars().all(|next| next.is_ascii_alphanumeric() || "-_:".contains(next));
    if !is_subcommand {
        // Options may name what is run as well.
        return (!first.starts_with('+') && is_plain(&first)).then_some(kept);
    }
    let names_script = matches!(verb, "npm" | "pnpm" | "yarn" | "bun" | "composer" | "go" | "gh")
        && !matches!(first.as_str(), "test" | "install" | "build" | "vet" | "ci" | "start");
    kept.push(first);
    if names_script {
        let script = words.get(1)?.literal().filter(|word| is_plain(word))?;
        if script.starts_with('-') {
            return None;
        }
        kept.push(script);
    }
    Some(kept)
}

/// Whether a word is nothing but letters, digits and the signs of names and paths.
pub(super) fn is_plain(word: &str) -> bool {
    !word.is_empty()
        && word.chars().all(|next| next.is_ascii_alphanumeric() || "-_./:@+=,".contains(next))
}

/// What a command writes to its output, where the line itself says it.
pub(super) fn output(simple: &Simple, documents: &[Word]) -> Option<Word> {
    let (verb, words) = simple.words.split_first()?;
    let verb = verb.literal()?;
    match program(&verb)? {
        "echo" => {
            let plain = words
                .iter()
                .skip_while(|word| word.literal().is_some_and(|text| text.starts_with('-')));
            let texts: Option<Vec<String>> = plain.map(Word::literal).collect();
            // Shells differ in which escapes they read.
            texts.map(|texts| texts.join(" ")).filter(|text| !text.contains('\\')).map(Word::of)
        }
        "printf" => match words {
            [format] => format.literal().filter(|text| !text.contains(['%', '\\'])).map(Word::of),
            [format, text] => {
                let format = format.literal()?;
                matches!(format.as_str(), "%s" | "%s\\n").then(|| text.literal())?.map(Word::of)
            }
            _ => None,
        },
        "cat" if words.is_empty() => {
            simple.redirects.iter().find_map(|redirect| match redirect.way {
                Way::Document(place) => documents.get(place).cloned(),
                Way::Words => Some(redirect.target.clone()),
                _ => None,
            })
        }
        _ => None,
    }
}
