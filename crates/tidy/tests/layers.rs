//! A crate uses what is below it, never what is above or beside it.

use std::collections::BTreeSet;

use serde_json::Value;

/// The house, from the ground up. A crate stands here before it exists.
const ROWS: &[&[&str]] = &[
    &["mainstay-store", "mainstay-message"],
    &["mainstay-journal"],
    &["mainstay-llm", "mainstay-tools", "mainstay-memory"],
    &["mainstay-agent"],
    &["mainstay-schedule", "mainstay-board"],
    &["mainstay-server", "mainstay-channels", "mainstay"],
];

/// Edges within a row that are meant: the binary starts the other faces.
const BESIDE: &[(&str, &str)] =
    &[("mainstay", "mainstay-server"), ("mainstay", "mainstay-channels")];

/// Downward edges that are forbidden all the same: a provider's client knows nothing of sessions.
const UNKNOWN_TO: &[(&str, &str)] =
    &[("mainstay-llm", "mainstay-journal"), ("mainstay-llm", "mainstay-store")];

/// Crates that only tests use.
const FOR_TESTS: &[&str] = &["mainstay-testkit", "mainstay-faultshim", "mainstay-tidy"];

/// Packages that speak to a database. Only the store does.
const DRIVERS: &[&str] = &["rusqlite", "libsqlite3-sys", "tokio-postgres", "tokio-postgres-rustls"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Ends up in the product, or in its build script.
    Shipped,
    /// Only tests see it.
    Dev,
}

#[derive(Debug)]
struct Edge {
    from: String,
    to: String,
    kind: Kind,
}

fn row(package: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.contains(&package))
}

fn strangers(packages: &BTreeSet<String>) -> Vec<String> {
    packages
        .iter()
        .filter(|package| row(package).is_none() && !FOR_TESTS.contains(&package.as_str()))
        .map(|package| format!("{package} has no place in the house: add it to a row of this test"))
        .collect()
}

fn forbidden(edge: &Edge) -> Option<String> {
    let (from, to) = (edge.from.as_str(), edge.to.as_str());
    if DRIVERS.contains(&to) && from != "mainstay-store" {
        return Some(format!("{from} depends on {to}: only mainstay-store speaks to a database"));
    }
    if edge.kind == Kind::Dev || FOR_TESTS.contains(&from) {
        return None;
    }
    if FOR_TESTS.contains(&to) {
        return Some(format!("{from} depends on {to}: make it a dev-dependency"));
    }
    let (above, below) = (row(from)?, row(to)?);
    if UNKNOWN_TO.contains(&(from, to)) {
        return Some(format!("{from} depends on {to}, which it must not know"));
    }
    if above > below || BESIDE.contains(&(from, to)) {
        return None;
    }
    let place = if above == below { "beside" } else { "above" };
    Some(format!("{from} depends on {to}, which is {place} it"))
}

/// The packages of the workspace and what their manifests declare, from `cargo metadata`.
fn declared(metadata: &Value) -> Option<(BTreeSet<String>, Vec<Edge>)> {
    let mut packages = BTreeSet::new();
    let mut edges = Vec::new();
    for package in metadata["packages"].as_array()? {
        let from = package["name"].as_str()?;
        packages.insert(from.to_owned());
        for dependency in package["dependencies"].as_array()? {
            let kind =
                if dependency["kind"].as_str() == Some("dev") { Kind::Dev } else { Kind::Shipped };
            let to = dependency["name"].as_str()?.to_owned();
            edges.push(Edge { from: from.to_owned(), to, kind });
        }
    }
    Some((packages, edges))
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test asks cargo about the workspace")]
fn no_crate_depends_upwards_or_sideways() {
    let cargo = std::env::var_os("CARGO").expect("cargo sets CARGO for the tests it runs");
    // Without --no-deps cargo wants every package for every platform on disk, which a fresh machine
    // does not have.
    let output = std::process::Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline", "--locked"])
        .current_dir(mainstay_tidy::root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");

    let (packages, edges) = declared(&metadata).expect("metadata lists packages");
    assert!(packages.contains("mainstay-tidy"), "metadata covers the workspace");
    let mut violations = strangers(&packages);
    violations.extend(edges.iter().filter_map(forbidden));
    mainstay_tidy::assert_none(&violations);
}

#[test]
fn each_kind_of_forbidden_edge_is_found() {
    let shipped = [
        ("mainstay-store", "mainstay-journal", Some("above")),
        ("mainstay-journal", "mainstay-agent", Some("above")),
        ("mainstay-llm", "mainstay-tools", Some("beside")),
        ("mainstay-tools", "mainstay-llm", Some("beside")),
        ("mainstay-server", "mainstay", Some("beside")),
        ("mainstay-llm", "mainstay-store", Some("must not know")),
        ("mainstay-store", "mainstay-testkit", Some("dev-dependency")),
        ("mainstay-board", "rusqlite", Some("only mainstay-store")),
        ("mainstay-testkit", "tokio-postgres", Some("only mainstay-store")),
        ("mainstay-store", "rusqlite", None),
        ("mainstay-agent", "mainstay-store", None),
        ("mainstay", "mainstay-server", None),
        ("mainstay", "clap", None),
    ];
    for (from, to, expected) in shipped {
        let edge = Edge { from: from.to_owned(), to: to.to_owned(), kind: Kind::Shipped };
        match (forbidden(&edge), expected) {
            (Some(said), Some(part)) => assert!(said.contains(part), "{said}"),
            (None, None) => {}
            (got, _) => panic!("{from} -> {to}: {got:?}"),
        }
    }
}

#[test]
fn a_dev_dependency_may_point_anywhere_but_at_a_driver() {
    let dev = |to: &str| {
        forbidden(&Edge { from: "mainstay-llm".to_owned(), to: to.to_owned(), kind: Kind::Dev })
    };
    assert_eq!(dev("mainstay-testkit"), None);
    assert_eq!(dev("mainstay-agent"), None);
    assert!(dev("rusqlite").is_some());
}

#[test]
fn a_package_without_a_place_is_found() {
    let packages = ["mainstay-store", "mainstay-attic"].map(str::to_owned).into();
    let violations = strangers(&packages);
    assert_eq!(violations.len(), 1);
    assert!(violations[0].starts_with("mainstay-attic has no place"));
}

#[test]
fn kinds_are_read_from_metadata() {
    let metadata = serde_json::json!({ "packages": [{ "name": "a", "dependencies": [
        { "name": "b", "kind": null }, { "name": "c", "kind": "dev" }, { "name": "d", "kind": "build" },
    ]}]});
    let (packages, edges) = declared(&metadata).unwrap();
    assert_eq!(packages.len(), 1);
    let kinds: Vec<_> = edges.iter().map(|edge| (edge.to.as_str(), edge.kind)).collect();
    assert_eq!(kinds, [("b", Kind::Shipped), ("c", Kind::Dev), ("d", Kind::Shipped)]);
}
