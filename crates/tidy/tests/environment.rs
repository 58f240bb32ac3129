//! Every environment variable of ours is in one registry, and the page on configuration explains it.

use std::collections::BTreeSet;

use mainstay_tidy::File;

// Without their underscores these do not look like variables to the check itself.
const PRODUCT: &str = "MAINSTAY";
const FAULTS: &str = "FAULTSHIM";

const PRODUCT_REGISTRY: &str = "crates/mainstay/src/env.rs";
const FAULTS_REGISTRY: &str = "crates/faultshim/src/";
const PAGE: &str = "docs/configuration.md";

fn violations(files: &[File]) -> Vec<String> {
    let texts = || files.iter().filter_map(|file| Some((file.path.as_str(), file.text()?)));
    let product: BTreeSet<_> = texts()
        .filter(|(path, _)| *path == PRODUCT_REGISTRY)
        .flat_map(|(_, text)| names(text, PRODUCT).into_iter().filter(|name| quoted(text, name)))
        .collect();
    let faults: BTreeSet<_> = texts()
        .filter(|(path, _)| path.starts_with(FAULTS_REGISTRY))
        .flat_map(|(_, text)| names(text, FAULTS))
        .collect();

    let mut violations = Vec::new();
    for (path, text) in texts() {
        for name in names(text, PRODUCT).difference(&product) {
            violations.push(format!("{path}: {name} is not registered in {PRODUCT_REGISTRY}"));
        }
        for name in names(text, FAULTS).difference(&faults) {
            violations.push(format!("{path}: {name} is not read under {FAULTS_REGISTRY}"));
        }
    }
    match texts().find(|(path, _)| *path == PAGE) {
        Some((_, page)) => {
            for name in product.difference(&names(page, PRODUCT)) {
                violations.push(format!("{PAGE} does not mention {name}"));
            }
        }
        None => violations.push(format!("there is no {PAGE} to explain the variables")),
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
    let page = File::new(PAGE, &format!("Set `{home}` to move it; all are {PRODUCT}_*."));
    let used = File::new("scripts/test", &format!("{home}=x {kill}=3 run"));
    let whole = [registry, shim, page, used];
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
    // A comment in the registry's file does not register.
    assert_eq!(with("a.rs", &home).len(), 0);
    assert!(!with(PRODUCT_REGISTRY, &format!("// {home}")).is_empty());
    assert!(violations(&[]).iter().any(|said| said.contains("there is no docs/configuration.md")));
}
