//! `sed`, which writes with `-i` and with `w`, and runs with `e`.

use super::options::Options;
use super::syntax::Word;
use super::walk::{Finding, Walk};
use super::{Class, Classes, verbs};

const OPTIONS: Options = Options {
    letters: "nErsuze:l:i?",
    names: "quiet silent regexp-extended separate unbuffered null-data posix debug sandbox \
            follow-symlinks expression= line-length= in-place?",
};

/// Judges `sed`. A script that is not in the line, or that is not understood, is code.
pub(super) fn judge(walk: &Walk<'_>, words: &[Word]) -> Finding {
    let words = &walk.with_values(words);
    let Ok(given) = OPTIONS.read(words) else { return verbs::unlisted(words) };
    if given.hidden {
        return verbs::unlisted(words);
    }
    let mut files = given.plain.clone();
    let mut scripts: Vec<&Word> = given.values("e").chain(given.values("expression")).collect();
    if scripts.is_empty() && !files.is_empty() {
        scripts.push(files.remove(0));
    }
    // Pieces of a script are lines of it, and one may go on in the next.
    let pieces: Option<Vec<String>> = scripts.iter().map(|script| script.literal()).collect();
    let Some(script) = pieces.map(|pieces| pieces.join("\n")) else {
        return verbs::unlisted(words);
    };
    let Some(paths) = sed_writes(&script) else {
        return Finding::from(Class::Execute).and(verbs::mentioned(&script));
    };
    let written = paths.into_iter().map(Word::of);
    let mut classes = written.fold(Classes::READ, |classes, path| classes.and(walk.writes(&path)));
    if !given.has("i", "in-place") {
        return classes.into();
    }
    // A new file takes the place of each.
    for path in &files {
        classes = classes.and(walk.removes(path));
    }
    // The name of a copy that is kept may lead to another directory.
    let copies = given.values("i").chain(given.values("in-place"));
    if copies.into_iter().any(|name| name.literal().is_none_or(|name| name.contains(['/', '*']))) {
        classes = classes.with(Class::WriteOutside);
    }
    let finding = Finding::from(classes);
    if classes.worst() == Class::WriteInside { finding.remembered(["sed"]) } else { finding }
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
                    // Whether the second of two hides the end of the line depends on the `sed`.
                    if characters[end - 2] == '\\' {
                        return None;
                    }
                    end = line_end(end + 1);
                }
                at = end;
            }
            'r' | 'R' | '#' => at = line_end(at),
            'b' | 't' | 'T' | ':' => {
                let end = characters[at..].iter().position(|next| ";\n}".contains(*next));
                let end = end.map_or(characters.len(), |end| at + end);
                // To some a blank ends a label, and to others a brace is one of its letters.
                let label: String = characters[at + 1..end].iter().collect();
                if label.trim().contains([' ', '\t']) || characters.get(end) == Some(&'}') {
                    return None;
                }
                at = end;
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
