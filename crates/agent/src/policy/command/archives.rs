//! Archives and patches: what they hold decides what they write, and that is not in the line.

use super::options::Options;
use super::syntax::Word;
use super::walk::{StandardInput, Walk};
use super::{Class, Classes, verbs};

pub(super) fn tar(walk: &Walk<'_>, options: &Options, words: &[Word]) -> Classes {
    let words = new_style(options, words);
    let Ok(given) = options.read(&words) else { return verbs::unlisted(&words).classes };
    if given.hidden {
        return Class::Execute.into();
    }
    let mut classes = Classes::READ;
    let files: Vec<&Word> = given.values("f").chain(given.values("file")).collect();
    if files.iter().any(|file| file.head().contains(':')) {
        classes = classes.with(Class::Network);
    }
    if given.has("x", "extract get") {
        if given.has("O", "to-stdout") {
            return classes;
        }
        for place in given.values("C").chain(given.values("directory")) {
            classes = classes.and(walk.writes(place));
        }
        if given.has("P", "absolute-names") {
            classes = classes.with(Class::WriteOutside);
        }
        // It may hold hooks and settings of a repository, or links that lead out.
        walk.note_any_write();
        return classes.with(Class::WriteInside).with(Class::Execute);
    }
    if !given.has("t", "list") {
        if files.is_empty() {
            classes = classes.with(Class::WriteOutside);
        }
        for file in files.into_iter().filter(|file| file.literal().as_deref() != Some("-")) {
            classes = classes.and(walk.writes(file));
        }
    }
    classes
}

/// The words as with dashes: in `tar xfC FILE DIR` the values follow in the order of their letters.
fn new_style(options: &Options, words: &[Word]) -> Vec<Word> {
    let Some((first, rest)) = words.split_first() else { return Vec::new() };
    let Some(letters) = first.literal().filter(|text| !text.starts_with('-')) else {
        return words.to_vec();
    };
    let mut rest = rest.iter();
    let mut written = Vec::new();
    for letter in letters.chars() {
        written.push(Word::of(format!("-{letter}")));
        if options.letters.contains(&format!("{letter}:")) {
            written.push(rest.next().cloned().unwrap_or_else(Word::anything));
        }
    }
    written.extend(rest.cloned());
    written
}

pub(super) fn zip(walk: &Walk<'_>, verb: &str, options: &Options, words: &[Word]) -> Classes {
    let Ok(given) = options.read(words) else { return verbs::unlisted(words).classes };
    if given.hidden {
        return Class::Execute.into();
    }
    if verb == "unzip" {
        if given.has("lvtpzZ", "") {
            return Classes::READ;
        }
        walk.note_any_write();
        return Classes::from(Class::WriteInside).with(Class::Execute);
    }
    given.plain.first().map_or(Classes::READ, |target| walk.writes(target))
}

/// A patch changes what it names. Where it stands in the line, that can be read.
pub(super) fn patch(
    walk: &Walk<'_>,
    options: &Options,
    words: &[Word],
    input: &StandardInput,
) -> Classes {
    let Ok(given) = options.read(words) else { return verbs::unlisted(words).classes };
    let mut classes = Classes::from(Class::WriteInside);
    let text = match input {
        StandardInput::Words(text) if !given.has("i", "input") => text.literal(),
        _ => None,
    };
    let elsewhere = given.has("d", "directory") || given.hidden;
    let read = text.filter(|text| !elsewhere && given.plain.is_empty() && is_unified(text));
    let Some(text) = read else {
        walk.note_any_write();
        return classes.with(Class::Execute);
    };
    for line in text.lines() {
        let name = ["--- ", "+++ ", "Index: ", "rename to ", "copy to ", "diff "]
            .iter()
            .find_map(|mark| line.strip_prefix(mark));
        let Some(name) = name else { continue };
        // How many parts are stripped is for an option to say: each that is left is tried.
        for path in name.split_whitespace() {
            let parts: Vec<&str> = path.split('/').collect();
            for start in 0..parts.len().min(8) {
                let rest = parts[start..].join("/");
                let harmless = rest.is_empty() || path == "/dev/null";
                if !harmless {
                    classes = classes.and(walk.writes(&Word::of(rest)));
                }
            }
        }
    }
    classes
}

/// Whether a patch has nothing in it but differences of the usual kind: others are scripts for `ed`,
/// which runs commands.
fn is_unified(text: &str) -> bool {
    const STARTS: [&str; 14] = [
        " ",
        "+",
        "-",
        "@@ ",
        "\\ ",
        "diff ",
        "index ",
        "Index: ",
        "===",
        "new file mode ",
        "deleted file mode ",
        "rename ",
        "similarity index ",
        "copy ",
    ];
    text.contains("\n@@ ")
        && text
            .lines()
            .all(|line| line.is_empty() || STARTS.iter().any(|start| line.starts_with(start)))
}
