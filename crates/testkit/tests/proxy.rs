//! The proxy loses exactly what it was told to lose.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "test-only code stands outside the product's seams"
)]

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use mainstay_testkit::postgres;
use mainstay_testkit::process::{Running, wait_for};
use mainstay_testkit::proxy::{Fate, PgProxy};

const WAIT: Duration = Duration::from_secs(10);

/// A table of its own for a test.
fn table() -> String {
    let name = postgres::fresh_schema();
    postgres::psql(&format!("CREATE TABLE {name} (number int)"));
    name
}

fn rows(table: &str) -> String {
    postgres::psql(&format!("SELECT count(*) FROM {table}"))
}

fn proxy() -> PgProxy {
    PgProxy::start(&postgres::socket_directory())
}

/// One transaction in simple queries, as a driver's `commit()` sends them.
fn transaction(proxy: &PgProxy, table: &str) -> Command {
    let mut command = Command::new(postgres::program("psql"));
    command.args([&proxy.admin_url(), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", "BEGIN", "-c"]);
    command.arg(format!("INSERT INTO {table} VALUES (1)")).args(["-c", "COMMIT"]);
    command.stderr(Stdio::piped());
    command
}

fn commit(proxy: &PgProxy, table: &str) -> Output {
    transaction(proxy, table).output().unwrap()
}

/// Some transactions with prepared statements, as the extended protocol sends them.
fn commit_prepared(proxy: &PgProxy, table: &str, count: u32) -> bool {
    let mut script = tempfile::NamedTempFile::new().unwrap();
    write!(script, "BEGIN;\nINSERT INTO {table} VALUES (1);\nCOMMIT;\n").unwrap();
    let mut command = Command::new(postgres::program("pgbench"));
    command.args(["-n", "-M", "prepared", "-t", &count.to_string(), "-f"]).arg(script.path());
    command.arg(proxy.admin_url()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().unwrap().success()
}

#[test]
fn without_a_decision_everything_passes() {
    let (proxy, table) = (proxy(), table());
    assert!(commit(&proxy, &table).status.success());
    assert!(commit_prepared(&proxy, &table, 3));
    assert_eq!(rows(&table), "4");
    assert_eq!(proxy.commits(), 4);
    assert_eq!(proxy.happened(), 0);
    wait_for("the connections to be gone", WAIT, || proxy.connections() == 0);
}

#[test]
fn a_lost_answer_leaves_a_commit_that_the_client_does_not_know_of() {
    let (proxy, table) = (proxy(), table());
    proxy.at_commit(2, Fate::LoseAnswer);
    assert!(commit(&proxy, &table).status.success());
    assert!(!commit(&proxy, &table).status.success());
    assert_eq!((rows(&table).as_str(), proxy.happened()), ("2", 1));
    assert!(commit(&proxy, &table).status.success());
}

#[test]
fn a_lost_request_leaves_no_commit() {
    let (proxy, table) = (proxy(), table());
    proxy.at_commit(1, Fate::LoseRequest);
    assert!(!commit(&proxy, &table).status.success());
    assert_eq!((rows(&table).as_str(), proxy.happened()), ("0", 1));
}

#[test]
fn prepared_statements_commit_too() {
    let (proxy, table) = (proxy(), table());
    proxy.at_commit(3, Fate::LoseAnswer);
    assert!(!commit_prepared(&proxy, &table, 5));
    assert_eq!((rows(&table).as_str(), proxy.happened()), ("3", 1));
    proxy.at_commit(2, Fate::LoseRequest);
    assert!(!commit_prepared(&proxy, &table, 5));
    assert_eq!((rows(&table).as_str(), proxy.happened()), ("4", 2));
}

#[test]
fn silence_commits_and_leaves_the_client_waiting() {
    let (proxy, table) = (proxy(), table());
    proxy.at_commit(1, Fate::GoSilent);
    let mut client = Running::spawn(&mut transaction(&proxy, &table));
    wait_for("the server to have committed", WAIT, || proxy.happened() == 1);
    assert_eq!(rows(&table), "1");
    assert!(client.is_running());
    proxy.cut();
    assert!(!client.wait(WAIT).success());
}

#[test]
fn a_cut_ends_every_live_connection_and_no_later_one() {
    let (proxy, table) = (proxy(), table());
    let mut sleeper = Command::new(postgres::program("psql"));
    sleeper.args([&proxy.admin_url(), "-X", "-c", "SELECT pg_sleep(100)"]).stderr(Stdio::null());
    let mut sleepers = [Running::spawn(&mut sleeper), Running::spawn(&mut sleeper)];
    wait_for("two connections", WAIT, || proxy.connections() == 2);
    proxy.cut();
    for sleeper in &mut sleepers {
        assert!(!sleeper.wait(WAIT).success());
    }
    assert!(commit(&proxy, &table).status.success());
}

#[test]
fn while_it_is_down_nobody_connects() {
    let (proxy, table) = (proxy(), table());
    proxy.down();
    assert!(!commit(&proxy, &table).status.success());
    proxy.up();
    assert!(commit(&proxy, &table).status.success());
    assert_eq!(rows(&table), "1");
}
