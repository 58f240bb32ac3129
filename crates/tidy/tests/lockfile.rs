//! The dependencies are few and come from one place.

const MOST_PACKAGES: usize = 400;

/// The public index, as cargo writes it. Split, because no other file may name it.
const INDEX: &str =
    concat!("source = \"registry+https://github.com/rust-lang/crates", ".io-index\"");

fn violations(lockfile: &str) -> Vec<String> {
    let packages = lockfile.lines().filter(|line| *line == "[[package]]").count();
    let mut violations = Vec::new();
    if packages > MOST_PACKAGES {
        violations.push(format!("{packages} locked packages; {MOST_PACKAGES} is the most"));
    }
    for line in lockfile.lines().filter(|line| line.starts_with("source = ") && *line != INDEX) {
        violations.push(format!("`{line}` is not the public index, which everyone can reach"));
    }
    violations
}

#[test]
fn the_locked_packages_are_few_and_public() {
    let files = mainstay_tidy::tree().unwrap();
    let lockfile = files.iter().find(|file| file.path == "Cargo.lock").expect("Cargo.lock is kept");
    mainstay_tidy::assert_none(&violations(lockfile.text().expect("Cargo.lock is text")));
}

#[test]
fn one_package_too_many_is_found() {
    let locked = |packages| violations(&"[[package]]\nname = \"a\"\n".repeat(packages));
    assert_eq!(locked(MOST_PACKAGES).len(), 0);
    assert_eq!(locked(MOST_PACKAGES + 1).len(), 1);
}

#[test]
fn another_source_is_found() {
    assert_eq!(violations(INDEX).len(), 0);
    assert_eq!(violations("source = \"git+https://example.org/a#0123\"").len(), 1);
    assert_eq!(violations("source = \"registry+https://mirror.example.org/index\"").len(), 1);
}
