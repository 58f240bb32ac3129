//! `restore`: into an empty place, or beside what was there.

use mainstay_testkit::postgres;

use super::home::{BINARY, Home, fill, mark, open, options, rows, steady};

/// A home whose store is marked `old`, with a backup in `backup` that is marked `new`.
pub(crate) fn old_with_new_backup() -> Home {
    let home = Home::with_store();
    let place = home.path("source.db");
    let source =
        mainstay_store::Store::open(&mainstay_store::Location::file(&place), options()).unwrap();
    fill(&source, "new");
    source.backup_to(&home.path("backup"), &mut |_| {}).unwrap();
    home
}

#[test]
fn a_backup_comes_back_into_a_fresh_home() {
    let home = Home::with_store();
    home.run("backup saved").well();
    let fresh = Home::new();
    std::fs::copy(home.path("saved"), fresh.path("saved")).unwrap();
    let ran = fresh.run("restore saved").well();
    steady().bind(|| insta::assert_snapshot!("restore_fresh", ran));
    assert_eq!(rows(&fresh.open_or_create()), rows(&home.open_or_create()));
    fresh.run("doctor").well();
    assert!(fresh.files()[&fresh.path("saved")] == home.files()[&home.path("saved")]);
}

#[test]
fn what_was_there_is_kept_and_the_way_back_works() {
    let home = old_with_new_backup();
    let ran = home.run("restore backup").well();
    steady().bind(|| insta::assert_snapshot!("restore_over", ran));
    assert_eq!(mark(&home.open_or_create()), "new");

    let way_back =
        ran.stdout.lines().find_map(|line| line.strip_prefix("To go back to it: mainstay "));
    let way_back =
        way_back.unwrap().replace("[DIR]", home.path("").to_str().unwrap().trim_end_matches('/'));
    let aside = way_back.split(' ').next_back().unwrap().to_owned();
    assert_eq!(mark(&open(&aside)), "old");
    home.run(&way_back).well();
    assert_eq!(mark(&home.open_or_create()), "old");
    assert_eq!(mark(&open(&aside)), "old");
}

#[test]
fn a_store_that_others_have_open_is_not_replaced() {
    let home = old_with_new_backup();
    let user = home.open_or_create();
    let ran = home.run("restore backup");
    ran.refused(4, &format!("is in use by process {}", std::process::id()));
    fill(&user, "still");
    drop(user);
    assert_eq!(mark(&home.open_or_create()), "still");
    home.run("restore backup").well();
}

#[test]
fn a_damaged_store_is_moved_aside_as_it_is() {
    let home = old_with_new_backup();
    let mut bytes = std::fs::read(home.store()).unwrap();
    bytes.truncate(5000);
    std::fs::write(home.store(), &bytes).unwrap();
    home.run("restore backup").well();
    assert_eq!(mark(&home.open_or_create()), "new");
    let aside = home.names("home").into_iter().find(|name| name.contains("before-restore"));
    let kept = std::fs::read(home.path("home").join(aside.unwrap())).unwrap();
    assert!(kept == bytes, "the damaged bytes are kept");
}

#[test]
fn what_is_no_backup_is_refused_before_anything_is_touched() {
    let home = old_with_new_backup();
    std::fs::write(home.path("text"), "a letter, not a database, and long enough".repeat(9))
        .unwrap();
    std::fs::write(home.path("empty"), "").unwrap();
    let mut cut = std::fs::read(home.path("backup")).unwrap();
    cut.truncate(cut.len() / 2);
    std::fs::write(home.path("cut"), cut).unwrap();
    let before = home.files();
    home.run("restore text").refused(1, "text is not a Mainstay store");
    home.run("restore empty").refused(1, "empty is an empty file");
    home.run("restore cut").refused(1, "cut is damaged");
    home.run("restore nowhere").refused(1, "no backup at nowhere");
    home.run("restore home").refused(1, "it is a directory");
    home.run("restore home/store.db").refused(1, "is the store itself");
    assert!(home.files() == before, "a refused restore changes nothing");
}

#[test]
fn a_backup_comes_back_on_a_server_and_the_old_schema_is_kept() {
    let home = old_with_new_backup();
    let url = postgres::fresh();
    let store = mainstay_store::Store::open(&url.parse().unwrap(), options()).unwrap();
    fill(&store, "old");
    home.run(&format!("--store {url} restore backup")).refused(4, "is in use by");
    drop(store);
    let schema = url.split_once("schema=").unwrap().1;
    let clients = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'mainstay {schema} %'"
    );
    mainstay_testkit::process::wait_for(
        "the server to see us leave",
        std::time::Duration::from_secs(10),
        || postgres::psql(&clients) == "0",
    );
    let data = home.run(&format!("--store {url} restore backup --json")).well().json();
    assert_eq!(mark(&open(&url)), "new");
    let aside = data["aside"].as_str().unwrap().strip_prefix("schema ").unwrap().to_owned();
    assert_eq!(postgres::psql(&format!("SELECT max(name) FROM {aside}.owners")), "old");

    let way_back = data["way_back"].as_str().unwrap().replacen("mainstay", BINARY, 1);
    let mut shell = std::process::Command::new("sh");
    let line = way_back.replace("FILE", "again");
    home.ran(shell.args(["-c", &line]).current_dir(home.path("")).env("HOME", home.path("")))
        .well();
    assert_eq!(mark(&open(home.path("again").to_str().unwrap())), "old");
}
