//! Ctrl-C: the exit code says so, and nothing half-made is left.

use std::net::TcpListener;
use std::process::Stdio;
use std::time::Duration;

use mainstay_testkit::process::{Running, Signal, wait_for};

use super::home::Home;

const LONG: Duration = Duration::from_secs(20);

#[test]
fn ctrl_c_while_waiting_for_a_server_ends_at_once() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let home = Home::new();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let url = format!("postgres://me@127.0.0.1:{port}/db");
        let mut command = home.command(["--store", &url, "store", "info"]);
        let mut running = Running::spawn(command.stderr(Stdio::null()));
        // It has come as far as waiting for an answer that never comes.
        let _connection = silent.accept().unwrap();
        running.signal(signal);
        assert_eq!(running.wait(LONG).code(), Some(130), "{signal:?}");
    }
}

#[test]
fn ctrl_c_in_the_middle_of_a_copy_leaves_nothing_half_made() {
    let home = Home::with_store();
    let store = home.open_or_create();
    for _ in 0..40 {
        store
            .write(|tx| {
                for number in 0..1000 {
                    tx.publish("many", &format!("event {number}"))?;
                }
                Ok::<_, mainstay_store::Error>(())
            })
            .unwrap();
    }
    drop(store);
    let mut command = home.command(["store", "copy", "--to", "out.db"]);
    let mut running = Running::spawn(command.stderr(Stdio::null()));
    wait_for("the copy to begin", LONG, || {
        home.names("").iter().any(|name| name.starts_with(".out.db.") && name.ends_with("-wal"))
    });
    running.signal(Signal::INT);
    assert_eq!(running.wait(LONG).code(), Some(130));
    assert_eq!(home.names(""), ["home"]);
    home.run("store check").well();
    home.run("store copy --to out.db").well();
}
