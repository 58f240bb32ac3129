//! A module is named for its idea, never for the lack of one.

use mainstay_tidy::File;

const EMPTY_NAMES: &[&str] = &["utils", "util", "helpers", "helper", "common", "misc", "impl2"];

fn named_for_nothing(files: &[File]) -> Vec<String> {
    let mut violations = Vec::new();
    for file in files {
        let Some(text) = file.rust() else { continue };
        let stem = file.path.trim_end_matches(".rs");
        for name in stem.split('/').filter(|name| EMPTY_NAMES.contains(name)) {
            violations.push(format!("{}: `{name}` says nothing; name the idea", file.path));
        }
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(name) = module(line).filter(|name| EMPTY_NAMES.contains(name)) {
                let path = &file.path;
                violations.push(format!("{path}:{number}: `mod {name}` says nothing"));
            }
        }
    }
    violations
}

/// The name of the module that a line declares or opens.
fn module(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
    if words.next()? != "mod" {
        return None;
    }
    Some(words.next()?.trim_end_matches([';', '{']))
}

#[test]
fn no_module_is_named_for_nothing() {
    mainstay_tidy::assert_none(&named_for_nothing(&mainstay_tidy::tree().unwrap()));
}

#[test]
fn files_directories_and_inline_modules_are_found() {
    let bad = [
        File::new("crates/a/src/utils.rs", ""),
        File::new("crates/a/tests/common/mod.rs", ""),
        File::new("crates/a/src/lib.rs", "pub(crate) mod helpers {\n}"),
        File::new("crates/a/src/lib.rs", "mod misc;"),
    ];
    for file in bad {
        assert_eq!(named_for_nothing(std::slice::from_ref(&file)).len(), 1, "{}", file.path);
    }
    let good = [
        File::new("crates/a/src/lease.rs", "mod commonwealth;\n// a model of common sense"),
        File::new("docs/common.md", ""),
    ];
    mainstay_tidy::assert_none(&named_for_nothing(&good));
}
