//! Verbs: what a program does, judged by its name and arguments.

use super::known::always::{SHAPES, Vary};
use super::known::looking::{Operands, VERSION_ELSEWHERE, WHATEVER_IS_GIVEN, WITH_OPTIONS};
use super::options::{Options, is_listed};
use super::syntax::{Simple, Way, Word};
use super::walk::{Finding, StandardInput, Walk};
use super::{Class, Classes, builtins, files, git, interpreters, reach, wrappers};

/// Programs that are known and run or build what the workspace holds. Their arguments are no commands.
const BUILDING: &str = "\
    cargo rustc rustfmt rustup npm pnpm yarn npx tsc eslint prettier jest vitest vite webpack \
    rollup esbuild go gofmt pip pip3 pytest ruff black mypy pyright isort flake8 tox nox make \
    cmake ninja meson ctest gcc g++ cc c++ clang clang++ ld mvn gradle javac dotnet swift \
    xcodebuild bazel just task rake bundle gem composer phpunit mix stack cabal zig";

/// Verbs after which nothing is as it was, or that a whole machine feels.
const DESTROYING: &str = "\
    mkfs fdisk sfdisk gdisk parted wipefs mkswap swapoff shutdown reboot halt poweroff telinit \
    init killall pkill killall5 skill xkill cryptsetup lvremove vgremove pvremove zpool zfs \
    mdadm blkdiscard hdparm";

/// Verbs that are for another user, the superuser first.
const RULING: &str = "\
    useradd usermod userdel adduser deluser groupadd groupdel groupmod passwd chpasswd chsh \
    visudo vipw mount umount losetup insmod rmmod modprobe iptables ip6tables nft ufw \
    firewall-cmd setenforce chroot unshare nsenter setcap capsh setpriv kexec auditctl \
    apparmor_parser update-rc.d chattr gpasswd newgrp";

/// Judges a verb that is written plainly.
pub(super) fn judge(
    walk: &mut Walk<'_>,
    name: &str,
    words: &[Word],
    input: &StandardInput,
) -> Finding {
    let Some(verb) = program(name) else { return by_path(name, words) };
    if is_mainstay(verb) {
        return Class::Control.into();
    }
    if says_version(verb, words) || is_listed(WHATEVER_IS_GIVEN, verb) {
        return Class::Read.into();
    }
    let looking = WITH_OPTIONS.iter().find(|(names, ..)| is_listed(names, verb));
    if let Some((_, options, operands)) = looking {
        return look(walk, verb, words, options, *operands);
    }
    if matches!(verb, "date" | "hostname") {
        return date_or_name(verb, words);
    }
    if is_listed(RULING, verb) {
        return Finding::from(Class::Privilege).and(Class::Execute);
    }
    if is_listed(DESTROYING, verb) || verb.starts_with("mkfs.") {
        return Class::Destructive.into();
    }
    builtins::judge(walk, verb, words, input)
        .or_else(|| files::judge(walk, verb, words, input))
        .or_else(|| wrappers::judge(walk, verb, words, input))
        .or_else(|| interpreters::judge(walk, verb, words, input))
        .or_else(|| git::judge(walk, verb, words))
        .or_else(|| reach::judge(walk, verb, words))
        .unwrap_or_else(|| other(walk, verb, words))
}

/// Whether a program that ignores the workspace is asked for its version or its options.
fn says_version(verb: &str, words: &[Word]) -> bool {
    let [only] = words else { return false };
    let plain = verb.trim_end_matches(|next: char| next.is_ascii_digit() || next == '.');
    let known = is_listed(VERSION_ELSEWHERE, verb) || plain == "python";
    match only.literal().as_deref() {
        Some("--version" | "--help") => known,
        Some("-V") => known && !matches!(verb, "node" | "nodejs" | "npm"),
        Some("-v") => is_listed("node nodejs npm php", verb),
        Some("-version") => is_listed("java javac", verb),
        _ => false,
    }
}

/// A program that looks, with the options that are listed for it.
fn look(
    walk: &Walk<'_>,
    verb: &str,
    words: &[Word],
    options: &Options,
    operands: Operands,
) -> Finding {
    let words = &walk.with_values(words);
    let Ok(given) = options.read(words) else { return unlisted(words) };
    let starts = |sign: char| given.plain.iter().any(|word| word.head().starts_with(sign));
    let odd = match operands {
        Operands::Any => false,
        Operands::Objects => starts('@'),
        Operands::Pages => starts('+'),
        // `xxd` reads the first letter only, and takes the rest for nothing or for a number.
        Operands::SecondWritten if verb == "xxd" => words.iter().any(|word| {
            let head = word.head();
            head.starts_with('-')
                && head.len() > 2
                && !head.chars().skip(2).all(|next| next.is_ascii_digit())
        }),
        Operands::SecondWritten => false,
    };
    if odd || given.hidden && operands != Operands::SecondWritten {
        return unlisted(words);
    }
    let mut classes = Classes::READ;
    for path in &given.written {
        classes = classes.and(walk.writes(path));
    }
    if operands == Operands::SecondWritten {
        // Some read no options behind the first file: what looks like one is the second.
        let first = given.first_plain;
        if words.iter().skip(first).any(|word| word.head().starts_with('-') && word.head() != "-") {
            classes = classes.with(Class::WriteInside);
        }
        if let Some(output) = given.plain.get(1) {
            classes = classes.and(walk.writes(output));
        }
        if given.hidden || given.plain.iter().any(|word| word.may_split()) {
            classes = classes.with(Class::WriteOutside);
        }
    }
    classes.into()
}

/// `date` and `hostname`, which set what they are given without a sign before it.
fn date_or_name(verb: &str, words: &[Word]) -> Finding {
    let options = match verb {
        "date" => Options {
            letters: "uRI?d:r:f:",
            names: "date= utc universal rfc-email rfc-3339= iso-8601? reference= file= debug",
        },
        _ => Options {
            letters: "fsiIdAy",
            names: "fqdn long short ip-address all-ip-addresses domain",
        },
    };
    let shows = |word: &&Word| verb == "date" && word.head().starts_with('+');
    match options.read(words) {
        Ok(given) if !given.hidden && given.plain.iter().all(shows) => Class::Read.into(),
        _ => unlisted(words).and(Class::Privilege),
    }
}

/// What a program does with an option that is listed nowhere: it runs code.
pub(super) fn unlisted(words: &[Word]) -> Finding {
    Finding::from(Class::Execute).and(dangerous_tail(words))
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
        Finding { remembered: remembered(name, words), ..finding }
    }
}

/// A program that nothing is known of but its name.
fn other(walk: &mut Walk<'_>, verb: &str, words: &[Word]) -> Finding {
    let building = is_listed(BUILDING, verb);
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
            } else if is_listed(DESTROYING, base) && base != "init" || base == "rm" || base == "dd"
            {
                classes = classes.with(Class::Destructive);
            }
        }
    }
    classes
}

/// What a text that cannot be judged would do, by the verbs that it mentions.
pub(super) fn mentioned(text: &str) -> Classes {
    let shortened: String = text.chars().take(20_000).collect();
    // A shell takes these away, and a verb may have them in it.
    let unquoted = shortened.replace(['\\', '\'', '"'], "");
    // A redirection or a brace ends a word, and none is needed before the next.
    let unquoted = unquoted.replace(['<', '>', '{', '}'], " ");
    dangerous_tail(&[Word::of(shortened), Word::of(unquoted)])
}

/// The words that "always" remembers of a command: all of them, but for those that may vary without a
/// change of what is run. Returns `None` if one of them is not in the line.
pub(super) fn remembered(verb: &str, words: &[Word]) -> Option<Vec<String>> {
    if !is_plain(verb) || verb.starts_with('-') {
        return None;
    }
    let texts: Option<Vec<String>> = words.iter().map(Word::literal).collect();
    let all: Vec<String> = std::iter::once(verb.to_owned()).chain(texts?).collect();
    if all.iter().any(|word| word.contains(char::is_control)) {
        return None;
    }
    let shape = SHAPES.iter().find_map(|(starts, options, vary)| {
        let start = starts.split('|').find(|start| {
            let mut start = start.split(' ');
            all.iter().all(|word| start.next().is_none_or(|wanted| wanted == word))
                && start.next().is_none()
        })?;
        Some((start.split(' ').count(), options, vary))
    });
    let Some((length, options, vary)) = shape else { return Some(all) };
    let Ok(given) = options.read(&words[length - 1..]) else { return Some(all) };
    let plain: Vec<String> = given.plain.iter().filter_map(|word| word.literal()).collect();
    let inner = |word: &String| !word.starts_with('/') && !word.contains("..");
    let mut kept = all[..length].to_vec();
    match vary {
        Vary::Names if plain.iter().all(inner) => {}
        Vary::Names | Vary::Options => kept.extend(plain),
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
