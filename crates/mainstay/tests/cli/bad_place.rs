//! Places that cannot be written or do not make sense.

use std::fs;
use std::process::Command;

use mainstay_testkit::disk::on_read_only_disk;

use super::home::{Home, fill};

fn on_read_only(home: &Home, command: &Command) -> Command {
    on_read_only_disk(&home.path("home"), command)
}

#[test]
fn a_read_only_directory() {
    let home = Home::with_store();
    let before = home.files();
    for line in ["store info", "store check", "backup backup"] {
        let ran = home.ran(&mut on_read_only(&home, &home.command(line.split(' '))));
        assert_eq!(ran.code, Some(0), "{line}: {ran}");
        assert!(ran.stderr.contains("store.db is read-only"), "{line}: {ran}");
    }
    let ran = home.ran(&mut on_read_only(&home, &home.command(["restore", "backup"])));
    ran.refused(1, "ead-only");
    let ran = home.ran(&mut on_read_only(&home, &home.command(["doctor"])));
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(
        ran.stdout.contains("problem  disk: [DIR]/home/store.db is mounted read-only"),
        "{ran}"
    );
    fs::remove_file(home.path("backup")).unwrap();
    assert!(home.files() == before);
}

#[test]
fn a_backup_into_a_read_only_directory() {
    let home = Home::with_store();
    let command = home.command(["--store", "copy.db", "backup", "home/out.db"]);
    home.run("store copy --to copy.db").well();
    home.ran(&mut on_read_only(&home, &command)).refused(1, "ead-only");
}

#[test]
fn no_home_at_all() {
    let home = Home::new();
    let mut command = home.command(["doctor"]);
    command.env_remove("MAINSTAY_HOME").env_remove("HOME");
    home.ran(&mut command).refused(2, "no home directory");
    // What needs no home works without one.
    let mut command = home.command(["completions", "bash"]);
    command.env_remove("MAINSTAY_HOME").env_remove("HOME");
    home.ran(&mut command).well();
}

#[test]
fn a_store_that_is_not_there_is_not_made_by_looking() {
    let home = Home::new();
    for line in ["store info", "store check", "backup out.db", "store copy --to out.db"] {
        home.run(line).refused(1, "there is no store at [DIR]/home/store.db");
    }
    assert_eq!(home.names(""), [""; 0]);
}

#[test]
fn addresses_that_make_no_sense() {
    let home = Home::new();
    for (store, words) in [
        ("mysql://host/db", "\"mysql\" is not a kind of store"),
        ("postgres://host:port/db", "the store's address is wrong"),
        ("postgres://host/db?colour=red", "colour"),
        ("postgres://host/db?schema=Robert'); DROP", "must be at most"),
        ("sqlite:x?journal=off", "journal=wal"),
        ("sqlite:", "no path"),
        ("", "it is empty"),
    ] {
        home.ran(&mut home.command(["--store", store, "store", "info"])).refused(2, words);
        let mut by_variable = home.command(["doctor"]);
        by_variable.env("MAINSTAY_STORE", store);
        if !store.is_empty() {
            home.ran(&mut by_variable).refused(2, words);
        }
    }
    let store = Home::with_store();
    store.run("store copy --to mysql://host/db").refused(2, "is not a kind of store");
    assert_eq!(home.names(""), [""; 0]);
}

#[test]
fn errors_are_data_for_scripts() {
    let home = Home::new();
    let ran = home.run("store info --json");
    ran.refused(1, "there is no store");
    let error = &ran.json()["error"];
    assert_eq!(error["kind"], "failed");
    assert_eq!(error["message"], "there is no store at [DIR]/home/store.db");
    assert!(error["hints"][0].as_str().unwrap().starts_with("Check --store"));
    let usage = home.run("store copy --json");
    assert_eq!((usage.code, usage.json()["error"]["kind"].as_str()), (Some(2), Some("usage")));
}

#[test]
fn odd_names_are_just_names() {
    let home = Home::new();
    let odd = "a b'c ü?.db";
    fs::create_dir(home.path("it's")).unwrap();
    let place = home.path("it's").join(odd);
    let location = mainstay_store::Location::file(&place);
    let store = mainstay_store::Store::open(&location, super::home::options()).unwrap();
    fill(&store, "old");
    drop(store);
    let place = place.to_str().unwrap();
    home.ran(&mut home.command(["--store", place, "backup", "out ü.db"])).well();
    let ran = home.ran(&mut home.command(["--store", place, "restore", "out ü.db"])).well();
    let line = ran.stdout.lines().find_map(|line| line.strip_prefix("To go back to it: ")).unwrap();
    let directory = home.path("");
    let line = line.replace("[DIR]", directory.to_str().unwrap().trim_end_matches('/'));
    let mut shell = Command::new("sh");
    let line = line.replacen("mainstay", super::home::BINARY, 1);
    home.ran(shell.args(["-c", &line]).env("MAINSTAY_HOME", home.path("home"))).well();
}
