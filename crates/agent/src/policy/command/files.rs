//! Verbs that change files, judged by where their paths lead.

use super::arguments::{Arguments, Valued};
use super::syntax::Word;
use super::walk::{Finding, Walk};
use super::{Class, Classes, interpreters, wrappers};
use crate::policy::place::PathPlace;

const NO_VALUES: Valued = ("", &[]);

/// Judges a verb that changes files. Returns `None` if it is not one.
pub(super) fn judge(walk: &mut Walk<'_>, verb: &str, words: &[Word]) -> Option<Finding> {
    let arguments = Arguments::of(words);
    let classes = match verb {
        "mkdir" => all(walk, &arguments, ("m", &["mode"])),
        "touch" => all(walk, &arguments, ("dtr", &["date", "reference", "time"])),
        "truncate" => all(walk, &arguments, ("sr", &["size", "reference"])),
        "rmdir" | "unlink" | "mkfifo" | "tee" => all(walk, &arguments, NO_VALUES),
        "rm" => remove(walk, &arguments),
        "shred" => all(walk, &arguments, ("ns", &["iterations", "size"])),
        "cp" | "mv" | "ln" | "install" => copy(walk, verb, &arguments),
        "chmod" | "chown" | "chgrp" => mode(walk, verb, &arguments),
        "dd" => dd(walk, words),
        "find" => return Some(find(walk, words)),
        "sed" | "gsed" => return Some(interpreters::sed(walk, &arguments)),
        "sort" => sort(walk, &arguments),
        "uniq" | "xxd" => {
            let valued: Valued = match verb {
                "uniq" => ("fsw", &["skip-fields", "skip-chars", "check-chars"]),
                _ => ("cgolnNsR", &["cols", "len", "seek", "groupsize", "offset", "name"]),
            };
            let plain = arguments.plain(valued);
            let output = plain.get(1).map_or(Classes::READ, |output| walk.writes(output));
            if plain.iter().any(|word| word.may_split()) {
                output.with(Class::WriteOutside)
            } else {
                output
            }
        }
        "csplit" => {
            let odd = arguments.may_hide_options()
                || arguments.may_have("fb", &["prefix", "suffix-format"]);
            if odd { Class::WriteOutside.into() } else { walk.writes(&Word::of("xx00")) }
        }
        "split" => {
            let prefix =
                arguments.plain(("abClnt", &["lines", "bytes", "number", "suffix-length"]));
            let runs = arguments.may_have("", &["filter"]);
            let here = Word::of("x");
            let classes = walk.writes(prefix.get(1).copied().unwrap_or(&here));
            if runs { classes.with(Class::Execute) } else { classes }
        }
        "mktemp" => {
            if arguments.may_hide_options() || arguments.may_have("p", &["tmpdir"]) {
                Class::WriteOutside.into()
            } else {
                all(walk, &arguments, ("", &["suffix"])).with(Class::WriteInside)
            }
        }
        "patch" => patch(walk, &arguments),
        "tar" | "bsdtar" | "gtar" => tar(walk, words),
        "zip" | "unzip" | "7z" | "cpio" | "ar" => archive(walk, verb, words),
        "gzip" | "gunzip" | "bzip2" | "bunzip2" | "xz" | "unxz" | "zstd" | "unzstd" => {
            let names_others = arguments.may_have(
                "oD",
                &["files", "files0", "filelist", "output-dir-flat", "output-dir-mirror"],
            );
            if names_others || arguments.may_hide_options() {
                Class::WriteOutside.into()
            } else if arguments.may_have("clt", &["stdout", "list", "test"]) {
                Classes::READ
            } else {
                all(walk, &arguments, ("S", &["suffix"]))
            }
        }
        _ => return None,
    };
    let mut finding = Finding::from(classes);
    if super::verbs::is_plain(verb) && classes.worst() == Class::WriteInside {
        finding = finding.remembered([verb]);
    }
    Some(finding)
}

/// Writes to each of its paths.
fn all(walk: &Walk<'_>, arguments: &Arguments<'_>, valued: Valued) -> Classes {
    let plain = arguments.plain(valued);
    plain.iter().fold(Classes::READ, |classes, path| classes.and(walk.writes(path)))
}

fn remove(walk: &Walk<'_>, arguments: &Arguments<'_>) -> Classes {
    let deep = arguments.may_have("rRd", &["recursive", "dir", "no-preserve-root"]);
    let mut classes = Classes::READ;
    for path in arguments.plain(NO_VALUES) {
        let unsure =
            path.literal().is_none() && (path.may_be_option() || path.variable().is_some());
        classes = classes.and(match walk.place(path) {
            _ if deep && unsure => Class::Destructive.into(),
            PathPlace::Inside | PathPlace::Temporary => Class::WriteInside.into(),
            // Everything in the workspace, or its history.
            PathPlace::Root if deep => Class::Destructive.into(),
            PathPlace::Root => Class::WriteInside.into(),
            PathPlace::Git => Class::Destructive.into(),
            PathPlace::Outside if deep => Class::Destructive.into(),
            PathPlace::Outside => walk.writes(path),
        });
    }
    classes
}

fn copy(walk: &Walk<'_>, verb: &str, arguments: &Arguments<'_>) -> Classes {
    let valued: Valued = ("tSgmo", &["target-directory", "suffix", "mode", "owner", "group"]);
    let mut plain = arguments.plain(valued);
    let mut classes = Classes::READ;
    let targets = arguments.values(Some('t'), &["target-directory"]);
    if targets.is_empty() {
        match plain.pop() {
            // A link to the last part of its target is made here.
            Some(only) if plain.is_empty() && verb == "ln" => {
                classes = classes.and(walk.writes(&Word::of(".")));
                plain.push(only);
            }
            Some(target) if !plain.is_empty() && !target.may_split() => {
                classes = classes.and(walk.writes(target));
            }
            _ => classes = classes.with(Class::WriteOutside),
        }
    }
    for target in &targets {
        classes = classes.and(walk.writes(target));
    }
    if plain.iter().any(|path| path.may_be_option()) {
        classes = classes.with(Class::WriteOutside);
    }
    // What is moved is gone from where it was.
    if verb == "mv" {
        for path in &plain {
            classes = classes.and(match walk.place(path) {
                PathPlace::Root | PathPlace::Git => Class::Destructive.into(),
                _ => walk.writes(path),
            });
        }
    }
    // A link that leads outside makes an outside place look like an inside one.
    if verb == "ln" && plain.iter().any(|path| walk.place(path) == PathPlace::Outside) {
        classes = classes.with(Class::WriteOutside);
    }
    // The settings and hooks of another repository come along.
    let git = |path: &&Word| {
        path.literal().is_some_and(|text| text.split('/').any(|part| part == ".git"))
    };
    if verb != "mv" && plain.iter().any(git) {
        classes = classes.with(Class::Execute);
    }
    if verb == "install" && arguments.may_have("", &["strip-program"]) {
        classes = classes.with(Class::Execute);
    }
    classes
}

fn mode(walk: &Walk<'_>, verb: &str, arguments: &Arguments<'_>) -> Classes {
    let mut plain = arguments.plain(("", &["reference", "from"]));
    // `chmod -x file` takes away; it is no option.
    let mode = if plain.is_empty() || arguments.may_have("", &["reference"]) {
        None
    } else {
        Some(plain.remove(0))
    };
    let deep = arguments.may_have("R", &["recursive"]);
    let mut classes = Classes::READ;
    if plain.iter().any(|path| path.may_be_option()) {
        classes = classes.with(Class::WriteOutside);
    }
    for path in plain {
        classes = classes.and(match walk.place(path) {
            PathPlace::Outside if deep => Class::Destructive.into(),
            _ => walk.writes(path),
        });
    }
    // Whoever runs such a file becomes its owner.
    let owner = mode.is_some_and(|mode| match mode.literal() {
        Some(mode) if verb == "chmod" => {
            let numeric = mode.len() > 3 && mode.starts_with(['2', '4', '6', '7']);
            mode.contains('s') || numeric && mode.chars().all(|next| next.is_ascii_digit())
        }
        Some(_) => false,
        None => verb == "chmod",
    });
    if owner { classes.with(Class::Privilege) } else { classes }
}

fn dd(walk: &Walk<'_>, words: &[Word]) -> Classes {
    let mut classes = Classes::READ;
    for word in words {
        match word.after("of=") {
            Some(path) => classes = classes.and(walk.writes(&path)),
            None if word.head().contains('=') && !word.may_split() => {}
            None => classes = classes.with(Class::Destructive),
        }
    }
    classes
}

fn sort(walk: &Walk<'_>, arguments: &Arguments<'_>) -> Classes {
    let mut classes = Classes::READ;
    for path in arguments.values(Some('o'), &["output"]) {
        classes = classes.and(walk.writes(&path));
    }
    if arguments.may_have("", &["compress-program"]) {
        classes = classes.with(Class::Execute);
    }
    if arguments.may_hide_options() { classes.with(Class::Execute) } else { classes }
}

fn patch(walk: &Walk<'_>, arguments: &Arguments<'_>) -> Classes {
    if arguments.may_hide_options() || arguments.may_have("", &["get"]) {
        return Class::Execute.into();
    }
    let mut classes = walk.writes(&Word::of("."));
    for path in arguments.values(Some('d'), &["directory"]) {
        classes = classes.and(walk.writes(&path));
    }
    for path in arguments.values(Some('o'), &["output"]) {
        classes = classes.and(walk.writes(&path));
    }
    if arguments.may_have("rBzY", &["reject-file", "prefix", "suffix", "basename-prefix"]) {
        classes = classes.with(Class::WriteOutside);
    }
    if let Some(path) = arguments.plain(("pidoFDrBzY", &["strip", "input", "directory"])).first() {
        classes = classes.and(walk.writes(path));
    }
    classes
}

fn tar(walk: &Walk<'_>, words: &[Word]) -> Classes {
    let arguments = Arguments::of(words);
    let runs = [
        "to-command",
        "use-compress-program",
        "checkpoint-action",
        "rsh-command",
        "info-script",
        "new-volume-script",
        "rmt-command",
    ];
    // Files that are written beside the archive.
    let beside = ["listed-incremental", "index-file", "volno-file", "one-top-level"];
    if arguments.may_hide_options() || arguments.may_have("IF", &runs) {
        return Class::Execute.into();
    }
    let first = words.first().and_then(Word::literal).unwrap_or_default();
    let clustered = if first.starts_with("--") { "" } else { first.trim_start_matches('-') };
    if !first.starts_with('-') && clustered.contains(['I', 'F']) {
        return Class::Execute.into();
    }
    let mut classes = Classes::READ;
    if arguments.may_have("g", &beside) || clustered.contains('g') {
        classes = classes.with(Class::WriteOutside);
    }
    let has =
        |letter: char, name: &str| clustered.contains(letter) || arguments.may_have("", &[name]);
    let deletes = arguments.may_have("", &["delete", "remove-files"]);
    // Old style: `tar xf FILE`.
    let mut files = arguments.values(Some('f'), &["file"]);
    if !first.starts_with('-') && clustered.contains('f') {
        files.extend(words.get(1).cloned());
    }
    let remote = files.iter().any(|file| file.head().contains(':'));
    if remote {
        classes = classes.with(Class::Network);
    }
    if has('x', "extract") || has('x', "get") {
        let mut places = arguments.values(Some('C'), &["directory"]);
        if places.is_empty() {
            places.push(Word::of("."));
        }
        for place in &places {
            classes = classes.and(walk.writes(place));
        }
        // Old style, the values of several letters follow one after the other.
        if has('P', "absolute-names") || !first.starts_with('-') && clustered.contains('C') {
            classes = classes.with(Class::WriteOutside);
        }
    } else if !has('t', "list") || deletes {
        for file in files.iter().filter(|file| file.literal().as_deref() != Some("-")) {
            classes = classes.and(walk.writes(file));
        }
        if files.is_empty() || deletes {
            classes = classes.with(Class::WriteOutside);
        }
    }
    classes
}

fn archive(walk: &Walk<'_>, verb: &str, words: &[Word]) -> Classes {
    let arguments = Arguments::of(words);
    if arguments.may_hide_options() {
        return Class::Execute.into();
    }
    if verb == "unzip" && !arguments.may_have(":", &[]) {
        if arguments.may_have("lvtpzZ", &[]) {
            return Classes::READ;
        }
        let mut places = arguments.values(Some('d'), &[]);
        if places.is_empty() {
            places.push(Word::of("."));
        }
        return places.iter().fold(Classes::READ, |all, place| all.and(walk.writes(place)));
    }
    if verb == "zip"
        && !arguments.may_have("TmO", &["unzip-command", "move", "test", "out"])
        && !arguments.may_have("b", &["temp-path", "logfile-path", "lf"])
    {
        let target = arguments.plain(("bitnxPs", &[])).first().copied();
        return target.map_or(Classes::READ, |target| walk.writes(target));
    }
    Class::Execute.into()
}

/// `find` looks, unless it is told to do something with what it finds.
fn find(walk: &mut Walk<'_>, words: &[Word]) -> Finding {
    let is_start = |word: &&Word| !word.head().starts_with(['-', '(', '!']);
    let mut starts: Vec<&Word> = words.iter().take_while(is_start).collect();
    let here = Word::of(".");
    if starts.is_empty() {
        starts.push(&here);
    }
    if starts.len() > 100 || Arguments::of(words).may_hide_options() {
        return Finding::from(Class::Execute).and(Class::Destructive);
    }
    let literals: Vec<String> =
        words.iter().map(|word| word.literal().unwrap_or_default()).collect();
    let filtered = literals.iter().any(|text| {
        matches!(
            text.as_str(),
            "-name"
                | "-iname"
                | "-path"
                | "-ipath"
                | "-wholename"
                | "-regex"
                | "-iregex"
                | "-empty"
        )
    });
    let mut finding = Finding::from(Class::Read);
    let mut next = 0;
    while let Some(text) = literals.get(next) {
        let place = next;
        next += 1;
        match text.as_str() {
            "-delete" => {
                for start in &starts {
                    finding = finding.and(match walk.place(start) {
                        PathPlace::Inside | PathPlace::Temporary | PathPlace::Root if filtered => {
                            Class::WriteInside
                        }
                        PathPlace::Temporary | PathPlace::Inside => Class::WriteInside,
                        _ => Class::Destructive,
                    });
                }
            }
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                let path = words.get(place + 1).cloned().unwrap_or_else(Word::anything);
                finding = finding.and(walk.writes(&path));
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let rest = &words[place + 1..];
                let end = rest
                    .iter()
                    .position(|word| matches!(word.literal().as_deref(), Some(";" | "+")))
                    .unwrap_or(rest.len());
                next = place + 1 + end;
                for start in &starts {
                    let found = wrappers::with_found(&rest[..end], start, filtered);
                    let inner = walk.verb(&found, &super::walk::StandardInput::Nothing);
                    finding = finding.and(inner.classes);
                }
            }
            _ => {}
        }
    }
    finding
}
