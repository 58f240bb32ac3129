//! The shared PostgreSQL starts once, whoever asks, and stops by itself.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "test-only code stands outside the product's seams"
)]

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use mainstay_testkit::postgres::{self, PrivateCluster};
use mainstay_testkit::process::{Running, example, wait_for};

const LONG: Duration = Duration::from_secs(60);

/// Processes with a directory of their own for temporary files share a cluster of their own.
fn client(temporary: &std::path::Path) -> Command {
    let mut command = Command::new(example("postgres_client"));
    command.env("TMPDIR", temporary).env(postgres::IDLE_VARIABLE, "2");
    command
}

fn short_directory() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("pg").tempdir_in("/tmp").unwrap()
}

/// Waits for the supervisor, which removes the shared directory last.
fn wait_until_stopped(temporary: &std::path::Path) {
    wait_for("the supervisor to stop the cluster", LONG, || {
        std::fs::read_dir(temporary).unwrap().next().is_none()
    });
}

/// Waits for the server's process, which ends a moment after the signal or its last file.
fn wait_until_gone(pid: &str) {
    let process = std::path::Path::new("/proc").join(pid);
    wait_for("the server's process to be gone", LONG, || !process.exists());
}

#[test]
fn a_fresh_url_names_a_reachable_server_and_an_unused_schema() {
    let url = postgres::fresh();
    let (server, schema) = url.split_once("?schema=").unwrap();
    assert_eq!(server, postgres::admin_url());
    assert!(server.starts_with("postgres://postgres@%2F") && server.ends_with("/mainstay_test"));
    assert_ne!(postgres::fresh(), url);
    let count = postgres::psql(&format!(
        "SELECT count(*) FROM information_schema.schemata WHERE schema_name = '{schema}'"
    ));
    assert_eq!(count, "0");
    assert_eq!(postgres::psql("SHOW fsync"), "on");
}

#[test]
fn processes_that_start_at_once_share_one_cluster_which_stops_by_itself() {
    let temporary = short_directory();
    let mut clients: Vec<Running> =
        (0..6).map(|_| Running::spawn(&mut client(temporary.path()))).collect();
    let started: Vec<_> =
        clients.iter_mut().map(|client| client.next_line(LONG).unwrap()).collect();
    assert!(started.iter().all(|start| *start == started[0]), "{started:?}");
    drop(clients);
    wait_until_stopped(temporary.path());
    let (pid, _) = started[0].split_once(' ').unwrap();
    wait_until_gone(pid);
}

#[test]
fn a_start_that_is_killed_at_any_moment_hinders_no_later_one() {
    let temporary = short_directory();
    // Moments inside initdb, the start and the creation of the database, and after them.
    for milliseconds in [5, 50, 200, 500, 900, 1400, 2000] {
        let mut starter = Running::spawn(client(temporary.path()).process_group(0));
        std::thread::sleep(Duration::from_millis(milliseconds));
        starter.kill_and_wait();
    }
    let mut survivor = Running::spawn(&mut client(temporary.path()));
    survivor.next_line(LONG).unwrap();
    drop(survivor);
    wait_until_stopped(temporary.path());
}

#[test]
fn a_dead_cluster_is_replaced() {
    let temporary = short_directory();
    let mut first = Running::spawn(&mut client(temporary.path()));
    let start = first.next_line(LONG).unwrap();
    let (pid, _) = start.split_once(' ').unwrap();
    assert!(Command::new("kill").args(["-9", pid]).status().unwrap().success());
    wait_until_gone(pid);
    let mut second = Running::spawn(&mut client(temporary.path()));
    assert_ne!(second.next_line(LONG).unwrap(), start);
    drop((first, second));
    wait_until_stopped(temporary.path());
}

#[test]
fn a_private_cluster_keeps_its_rows_through_a_kill() {
    let cluster = PrivateCluster::start();
    cluster.psql("CREATE TABLE kept (number int)");
    cluster.psql("INSERT INTO kept VALUES (7)");
    cluster.kill();
    cluster.restart();
    assert_eq!(cluster.psql("SELECT number FROM kept"), "7");
}
