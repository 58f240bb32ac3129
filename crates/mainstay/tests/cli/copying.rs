//! `backup` and `store copy`: from engine to engine, verified, never over anything.

use mainstay_testkit::postgres;

use super::home::{Home, open, rows, steady};

#[test]
fn a_backup_holds_what_the_store_holds_and_is_one_private_file() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::with_store();
    let ran = home.run("backup copy.db").well();
    steady().bind(|| insta::assert_snapshot!("backup", ran));
    assert_eq!(home.names(""), ["copy.db", "home"]);
    let mode = std::fs::metadata(home.path("copy.db")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let copy = open(home.path("copy.db").to_str().unwrap());
    assert_eq!(rows(&copy), rows(&home.open_or_create()));
}

#[test]
fn a_backup_in_json_counts_its_tables() {
    let home = Home::with_store();
    let data = home.run("backup copy.db --json").well().json();
    assert_eq!(data["tables"]["events"], 20);
    assert_eq!(data["verified"], true);
    let bytes = std::fs::metadata(home.path("copy.db")).unwrap().len();
    assert_eq!(data["bytes"], bytes);
}

#[test]
fn nothing_is_written_over() {
    let home = Home::with_store();
    std::fs::write(home.path("taken"), "precious").unwrap();
    let before = home.files();
    home.run("backup taken").refused(1, "taken already contains data");
    home.run("store copy --to taken").refused(1, "already contains data");
    home.run("store copy --to home/store.db").refused(1, "already contains data");
    home.run("backup nowhere/file").refused(1, "nowhere");
    assert_eq!(home.files(), before);
}

#[test]
fn everything_goes_to_a_server_and_comes_back_the_same() {
    let home = Home::with_store();
    let url = postgres::fresh();
    let there = home.run(&format!("store copy --to {url} --json")).well().json();
    assert_eq!(there["tables"]["events"], 20);
    assert!(!there["to"].as_str().unwrap().is_empty());
    home.run(&format!("--store {url} store check")).well();
    home.run(&format!("--store {url} store copy --to back.db")).well();
    home.run("--store back.db store check").well();
    home.run(&format!("--store {url} backup backup.db")).well();

    let original = rows(&home.open_or_create());
    assert_eq!(rows(&open(&url)), original);
    for copy in ["back.db", "backup.db"] {
        assert_eq!(rows(&open(home.path(copy).to_str().unwrap())), original, "{copy}");
    }
    home.run(&format!("store copy --to {url}")).refused(1, "already contains data");
}

#[test]
fn a_copy_beside_other_users_says_so() {
    let home = Home::with_store();
    let _user = home.open_or_create();
    let ran = home.run("store copy --to copy.db");
    assert_eq!(ran.code, Some(0), "{ran}");
    let warning = format!("warning: process {} had the store open", std::process::id());
    assert!(ran.stderr.starts_with(&warning), "{ran}");
}

#[test]
fn a_copy_can_be_used_at_once() {
    let home = Home::with_store();
    let ran = home.run("store copy --to copy.db").well();
    steady().bind(|| insta::assert_snapshot!("copy", ran));
    home.run("--store copy.db doctor").well();
}
