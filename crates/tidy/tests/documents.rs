//! The documents name what there is, and the two that a newcomer reads first stay short.
//!
//! What stands in backticks is checked: a type (`CamelCase`, two humps at least), a path (`module::Name`),
//! a call (`name()`), a file (`src/name.rs`, `crates/…`) and a directory (`name/`). Where links lead is
//! checked by `links.rs`.

use std::collections::BTreeSet;

use mainstay_tidy::File;

/// The pages at the root; all below `docs/` are pages too.
const PAGES: &[&str] = &["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
/// The most bytes of a page: what is read in a few minutes.
const MOST_BYTES: &[(&str, usize)] = &[("README.md", 10 * 1024), ("ARCHITECTURE.md", 15 * 1024)];
/// Names of others: tools as Claude Code calls them, and a function of SQLite.
const FOREIGN: &[&str] = &["WebFetch", "WebSearch", "TodoWrite", "bm25"];
/// Where a path from the root may begin.
const ROOTS: &[&str] = &["crates/", "docs/", "fuzz/", "scripts/", ".config/"];

const KEYWORDS: &[&str] =
    &["struct", "enum", "trait", "type", "fn", "const", "static", "mod", "macro_rules!"];

fn too_long(files: &[File]) -> Vec<String> {
    let mut violations = Vec::new();
    for (path, most) in MOST_BYTES {
        match files.iter().find(|file| file.path == *path).map(|file| file.bytes.len()) {
            Some(bytes) if bytes <= *most => {}
            Some(bytes) => violations.push(format!(
                "{path} has {bytes} bytes; {most} is the most. Move something to a page under docs/"
            )),
            None => violations.push(format!("there is no {path}")),
        }
    }
    violations
}

fn gone(files: &[File]) -> Vec<String> {
    let code = Code::of(files);
    let mut violations = Vec::new();
    for file in files.iter().filter(|file| is_page(&file.path)) {
        for span in spans(file.markdown().unwrap_or_default()) {
            if let Some(missing) = code.missing(&span) {
                violations.push(format!("{}: `{span}` names {missing}", file.path));
            }
        }
    }
    violations
}

fn is_page(path: &str) -> bool {
    PAGES.contains(&path) || path.starts_with("docs/") && path.ends_with(".md")
}

/// What stands in backticks, outside of blocks of code. A span may go on in the next line.
fn spans(text: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    let mut fenced = false;
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        if is_fence || fenced || line.trim().is_empty() || line.starts_with("    ") {
            paragraphs.push(String::new());
        } else if let Some(paragraph) = paragraphs.last_mut() {
            paragraph.push_str(line);
            paragraph.push('\n');
        }
    }
    let code = |paragraph: &String| {
        paragraph.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
    };
    paragraphs.iter().flat_map(code).collect()
}

/// What the code has names for.
struct Code<'f> {
    /// Each between slashes.
    paths: Vec<String>,
    declared: BTreeSet<&'f str>,
}

impl<'f> Code<'f> {
    fn of(files: &'f [File]) -> Self {
        let mut declared = BTreeSet::new();
        // This crate speaks of names that are made up.
        for file in files.iter().filter(|file| !file.path.starts_with("crates/tidy/")) {
            if let Some(text) = file.rust() {
                declared.extend(items(text));
                declared.extend(variants(text));
                // A file is a module, and so is its directory.
                declared.extend(file.path.trim_end_matches(".rs").split('/'));
            }
        }
        Self { paths: files.iter().map(|file| format!("/{}/", file.path)).collect(), declared }
    }

    /// What a span names that is not there. Returns `None` if it is there, or if the span is no name.
    fn missing(&self, span: &str) -> Option<String> {
        if span.contains(|c: char| c.is_whitespace() || "*…<>{}$".contains(c)) {
            return None;
        }
        if ROOTS.iter().any(|root| span.starts_with(root)) || span.ends_with(".rs") {
            return (!self.has_path(span)).then(|| "a path that is not in the tree".to_owned());
        }
        if let Some(directory) = span.strip_suffix('/') {
            let is_name = directory.split('/').all(is_identifier);
            return (is_name && !self.has_path(directory))
                .then(|| "a directory that is not in the tree".to_owned());
        }
        let (name, is_call) = match span.split_once('(') {
            Some((name, _)) if span.ends_with(')') => (name, true),
            _ => (span, false),
        };
        // A method is looked for by its own name: what it is called on is a value.
        let name = if is_call { name.rsplit('.').next().unwrap_or(name) } else { name };
        let segments: Vec<&str> = name.split("::").collect();
        let names_something = segments.iter().all(|segment| is_identifier(segment))
            && (is_call || segments.len() > 1 || is_camel_case(name));
        if !names_something {
            return None;
        }
        let unknown = segments.into_iter().find(|segment| !self.knows(segment))?;
        Some(format!("{unknown}, which the code does not declare"))
    }

    fn knows(&self, name: &str) -> bool {
        let of_a_crate = name.strip_prefix("mainstay_").unwrap_or(name);
        self.declared.contains(of_a_crate) || FOREIGN.contains(&name)
    }

    /// Whether a file or directory has this path, from the root or from some directory on.
    fn has_path(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let wanted = format!("/{path}/");
        self.paths.iter().any(|known| known.contains(&wanted))
    }
}

fn is_identifier(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_camel_case(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.chars().filter(char::is_ascii_uppercase).count() > 1
        && word.contains(|c: char| c.is_ascii_lowercase())
        && !word.contains('_')
}

/// The names that items are declared by.
fn items(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim_start().starts_with("//")).flat_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let named = |pair: &[&'_ str]| KEYWORDS.contains(&pair[0]);
        words.windows(2).filter(|pair| named(pair)).map(|pair| leading(pair[1])).collect::<Vec<_>>()
    })
}

/// The names of variants: in the lines of an enum that are indented once.
fn variants(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    // How far the enum is indented whose lines these are.
    let mut inside: Option<usize> = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        match inside {
            Some(depth) if indent == depth && line.trim() == "}" => inside = None,
            Some(depth) if indent == depth + 4 => found.push(leading(line.trim_start())),
            Some(_) => {}
            None if line.split_whitespace().any(|word| word == "enum") => {
                let body = line.split_once('{').map_or("", |(_, body)| body);
                found
                    .extend(body.trim_end_matches('}').split(',').map(|name| leading(name.trim())));
                inside = line.ends_with('{').then_some(indent);
            }
            None => {}
        }
    }
    found.retain(|name| !name.is_empty());
    found
}

/// The identifier that a word begins with.
fn leading(word: &str) -> &str {
    word.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default()
}

#[test]
fn every_name_in_the_documents_is_there() {
    mainstay_tidy::assert_none(&gone(&mainstay_tidy::tree().unwrap()));
}

#[test]
fn the_first_pages_are_short() {
    mainstay_tidy::assert_none(&too_long(&mainstay_tidy::tree().unwrap()));
}

#[test]
fn a_page_one_byte_over_is_found() {
    let page = |path: &str, bytes: usize| File { path: path.to_owned(), bytes: vec![b'a'; bytes] };
    let fits = [page("README.md", 10_240), page("ARCHITECTURE.md", 15_360)];
    mainstay_tidy::assert_none(&too_long(&fits));
    assert_eq!(too_long(&[page("README.md", 10_241), page("ARCHITECTURE.md", 15_360)]).len(), 1);
    assert_eq!(too_long(&[page("README.md", 10_240), page("ARCHITECTURE.md", 15_361)]).len(), 1);
    assert_eq!(too_long(&[]).len(), 2);
}

#[test]
fn names_that_are_gone_are_found_and_others_are_not() {
    let code = "pub struct OpenShop;\n// struct SoldOut;\npub enum Event {\n    TheEnd { why: u8 },\n    \
                /// Said.\n    Said,\n}\nenum Two { FirstOne, Other }\npub(crate) async fn run_call(x: u8) {}\n";
    let tree = |path: &str, text: &str| {
        [File::new("crates/agent/src/turn/runner.rs", code), File::new(path, text)]
    };
    let dead = [
        "`ClosedShop`",
        "`SoldOut`",
        "`agent::ClosedShop`",
        "`nowhere::OpenShop`",
        "`Event::TheBeginning`",
        "`stop_call()`",
        "`runner.stop_call(x)`",
        "`turn::stop_call()`",
        "`crates/agent/src/calls.rs`",
        "`crates/agent/src/calls`",
        "`src/turn/walker.rs`",
        "`walker.rs`",
        "`calls/`",
        "a span that goes on: `one\ntwo` and `ClosedShop`",
    ];
    for text in dead {
        for page in ["README.md", "docs/page.md", "docs/design/page.md"] {
            assert_eq!(gone(&tree(page, text)).len(), 1, "{page}: {text}");
        }
        mainstay_tidy::assert_none(&gone(&tree("notes/page.md", text)));
    }
    let live = [
        "`OpenShop`, `TheEnd`, `FirstOne`, `Event::Said`, `Two::Other`, `agent::OpenShop`",
        "`mainstay_agent::turn::runner::OpenShop`, `run_call()`, `calls.run_call(x)`, `turn::run_call`",
        "`crates/agent`, `crates/agent/src/turn/`, `src/turn/runner.rs`, `runner.rs`, `turn/`",
        "`WebFetch`, `bm25()`, `README`, `Said`, `camelCase`, `[policy]`, `~/.ssh/`, `/tmp/`, `rm -rf x/`",
        "ClosedShop without backticks",
        "```\n`ClosedShop`\n```",
        "    `ClosedShop`",
    ];
    for text in live {
        assert_eq!(gone(&tree("docs/page.md", text)), [""; 0], "{text}");
    }
}
