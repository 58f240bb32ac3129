//! Every environment variable of ours is in one registry, and a document explains it: the page on configuration
//! those of the product, CONTRIBUTING.md those of the tests.

use std::collections::BTreeSet;

use mainstay_tidy::File;

// Without their underscores these do not look like variables to the check itself.
const PRODUCT: &str = "MAINSTAY";
const TESTS: &str = concat!("MAINSTAY", "_TEST");
const FAULTS: &str = "FAULTSHIM";

const PRODUCT_REGISTRY: &str = "crates/mainstay/src/env.rs";
const FAULTS_REGISTRY: &str = "crates/faultshim/src/";
const TESTS_REGISTRY: &str = "crates/testkit/src/capability.rs";
const PAGE: &str = "docs/configuration.md";
const CONTRIBUTING: &str = "CONTRIBUTING.md";

fn violations(files: &[File]) -> Vec<String> {
    let texts = || files.iter().filter_map(|file| Some((file.path.as_str(), file.text()?)));
    let quoted_in = |registry: &str, prefix: &str| -> BTreeSet<&str> {
        let registry = texts().filter(|(path, _)| *path == registry);
        registry
            .flat_map(|(_, text)| names(text, prefix).into_iter().filter(|name| quoted(text, name)))
            .collect()
    };
    let product = quoted_in(PRODUCT_REGISTRY, PRODUCT);
    let tests = quoted_in(TESTS_REGISTRY, TESTS);
    let faults: BTreeSet<_> = texts()
        .filter(|(path, _)| path.starts_with(FAULTS_REGISTRY))
        .flat_map(|(_, text)| names(text, FAULTS))
        .collect();

    let mut violations = Vec::new();
    for (path, text) in texts() {
        let of_tests = names(text, TESTS);
        for name in of_tests.difference(&tests) {
            violations.push(format!("{path}: {name} is not registered in {TESTS_REGISTRY}"));
        }
        for name in
            names(text, PRODUCT).difference(&product).filter(|name| !of_tests.contains(*name))
        {
            violations.push(format!("{path}: {name} is not registered in {PRODUCT_REGISTRY}"));
        }
        for name in names(text, FAULTS).difference(&faults) {
            violations.push(format!("{path}: {name} is not read under {FAULTS_REGISTRY}"));
        }
    }
    for (document, prefix, registered) in [(PAGE, PRODUCT, &product), (CONTRIBUTING, TESTS, &tests)]
    {
        match texts().find(|(path, _)| *path == document) {
            Some((_, text)) => {
                for name in registered.difference(&names(text, prefix)) {
                    violations.push(format!("{document} does not mention {name}"));
                }
            }
            None => violations.push(format!("there is no {document} to explain the variables")),
        }
    }
    violations
}

/// The whole names in a text that begin with a prefix and an underscore. A name that ends in an
/// underscore is a way of speaking about many.
fn names<'t>(text: &'t str, prefix: &str) -> BTreeSet<&'t str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| {
            word.strip_prefix(prefix)
                .and_then(|rest| rest.strip_prefix('_'))
                .is_some_and(|rest| !rest.is_empty() && !rest.ends_with('_'))
                && !word.contains(|c: char| c.is_ascii_lowercase())
        })
        .collect()
}

fn quoted(text: &str, name: &str) -> bool {
    text.contains(&format!("\"{name}\""))
}

#[test]
fn every_variable_is_registered_and_explained() {
    mainstay_tidy::assert_none(&violations(&mainstay_tidy::tree().unwrap()));
}

#[test]
fn an_unregistered_or_unexplained_variable_is_found() {
    let home = format!("{PRODUCT}_HOME");
    let ghost = format!("{PRODUCT}_GHOST");
    let kill = format!("{FAULTS}_KILL_AT");
    let registry = File::new(PRODUCT_REGISTRY, &format!("(\"{home}\", \"where all state is\")"));
    let shim = File::new("crates/faultshim/src/plan.rs", &format!("c\"{kill}\""));
    let readme = File::new(PAGE, &format!("Set `{home}` to move it; all are {PRODUCT}_*."));
    let allow = format!("{TESTS}_ALLOW");
    let tests = File::new(TESTS_REGISTRY, &format!("const ALLOW: &str = \"{allow}\";"));
    let contributing = File::new(CONTRIBUTING, &format!("Set `{allow}` to skip."));
    let used = File::new("scripts/test", &format!("{home}=x {kill}=3 {allow}=y run"));
    let whole = [registry, shim, tests, readme, contributing, used];
    mainstay_tidy::assert_none(&violations(&whole));

    let with = |path: &str, text: &str| {
        let mut files: Vec<_> = whole.iter().filter(|file| file.path != path).cloned().collect();
        files.push(File::new(path, text));
        violations(&files)
    };
    assert_eq!(
        with("a.rs", &ghost),
        [format!("a.rs: {ghost} is not registered in {PRODUCT_REGISTRY}")]
    );
    assert_eq!(with("a.md", &format!("{FAULTS}_GHOST")).len(), 1);
    assert_eq!(with(PAGE, "nothing"), [format!("docs/configuration.md does not mention {home}")]);
    assert_eq!(
        with("a.rs", &format!("{TESTS}_GHOST")),
        [format!("a.rs: {TESTS}_GHOST is not registered in {TESTS_REGISTRY}")]
    );
    assert_eq!(
        with(CONTRIBUTING, "nothing"),
        [format!("CONTRIBUTING.md does not mention {allow}")]
    );
    // A comment in the registry's file does not register.
    assert_eq!(with("a.rs", &home).len(), 0);
    assert!(!with(PRODUCT_REGISTRY, &format!("// {home}")).is_empty());
    assert!(violations(&[]).iter().any(|said| said.contains("there is no README.md")));
}
