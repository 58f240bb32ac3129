//! A module with children is `name.rs` beside `name/`, never `name/mod.rs`.
//!
//! With both forms in one tree a reader looks in two places, and an editor full of tabs called
//! `mod.rs` says nothing.

use mainstay_tidy::File;

fn called_mod(files: &[File]) -> Vec<String> {
    let named = |path: &str| path == "mod.rs" || path.ends_with("/mod.rs");
    files
        .iter()
        .filter(|file| named(&file.path))
        .map(|file| match file.path.strip_suffix("/mod.rs") {
            Some(module) => format!("{}: name it {module}.rs", file.path),
            None => format!("{}: name the module", file.path),
        })
        .collect()
}

#[test]
fn no_file_is_called_mod() {
    mainstay_tidy::assert_none(&called_mod(&mainstay_tidy::tree().unwrap()));
}

#[test]
fn a_file_called_mod_is_found_wherever_it_is() {
    let tree = ["mod.rs", "crates/a/src/b/mod.rs", "crates/a/tests/b/mod.rs"];
    let found = called_mod(&tree.map(|path| File::new(path, "")));
    assert_eq!(found.len(), 3);
    assert_eq!(found[1], "crates/a/src/b/mod.rs: name it crates/a/src/b.rs");
    let good = ["crates/a/src/b.rs", "crates/a/src/b/mode.rs", "crates/a/src/mod_rs.md"];
    mainstay_tidy::assert_none(&called_mod(&good.map(|path| File::new(path, ""))));
}
