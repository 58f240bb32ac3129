//! Every crate says what it owns, and is held by the workspace's lints.

use mainstay_tidy::File;

fn violations(files: &[File]) -> Vec<String> {
    let mut violations = Vec::new();
    for file in files {
        let Some(directory) = file.path.strip_suffix("/Cargo.toml") else { continue };
        // Fuzz targets stay out of the workspace; each is a root of its own.
        if directory == "fuzz" {
            continue;
        }
        if !inherits_lints(file.text().unwrap_or_default()) {
            violations.push(format!("{}: add `[lints] workspace = true`", file.path));
        }
        let mut roots = files.iter().filter(|file| is_root(directory, &file.path)).peekable();
        if roots.peek().is_none() {
            violations.push(format!("{directory}: there is no crate root under src/"));
        }
        for root in roots.filter(|root| !is_documented(root.text().unwrap_or_default())) {
            violations.push(format!("{}: begin with `//!` and what the crate owns", root.path));
        }
    }
    violations
}

fn is_root(directory: &str, path: &str) -> bool {
    let below = path.strip_prefix(directory).and_then(|rest| rest.strip_prefix("/src/"));
    below.is_some_and(|name| {
        matches!(name, "lib.rs" | "main.rs") || (name.starts_with("bin/") && name.ends_with(".rs"))
    })
}

fn is_documented(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("#!["));
    lines.next().and_then(|line| line.strip_prefix("//!")).is_some_and(|doc| !doc.trim().is_empty())
}

fn inherits_lints(manifest: &str) -> bool {
    manifest
        .lines()
        .skip_while(|line| line.trim() != "[lints]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .any(|line| line.trim() == "workspace = true")
}

#[test]
fn every_crate_is_documented_and_linted() {
    mainstay_tidy::assert_none(&violations(&mainstay_tidy::tree().unwrap()));
}

#[test]
fn a_bare_crate_is_found() {
    let linted = "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n";
    let documented = "//! Owns nothing.\n";
    let check = |manifest: &str, root: &str, text: &str| {
        violations(&[File::new("crates/a/Cargo.toml", manifest), File::new(root, text)]).len()
    };
    assert_eq!(check(linted, "crates/a/src/lib.rs", documented), 0);
    assert_eq!(check(linted, "crates/a/src/main.rs", "#![no_main]\n\n//! Owns nothing.\n"), 0);

    let elsewhere = "[lints]\nrust.unused = \"warn\"\n[package]\nworkspace = true\n";
    assert_eq!(check(elsewhere, "crates/a/src/lib.rs", documented), 1);
    assert_eq!(check("[package]\n", "crates/a/src/lib.rs", documented), 1);
    assert_eq!(check(linted, "crates/a/src/lib.rs", "//!\nfn a() {}\n"), 1);
    assert_eq!(check(linted, "crates/a/src/bin/b.rs", "// Not a doc comment.\n"), 1);
    assert_eq!(check(linted, "crates/ab/src/lib.rs", documented), 1);
}
