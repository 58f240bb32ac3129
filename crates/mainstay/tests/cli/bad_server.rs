//! Servers that are not there, refuse, or go away.

use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use mainstay_testkit::postgres::{self, PrivateCluster};
use mainstay_testkit::process::wait_for;
use mainstay_testkit::proxy::PgProxy;

use super::home::{Home, Ran, options};

#[test]
fn nobody_listens() {
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let home = Home::new();
    let url = format!("postgres://me:secret@127.0.0.1:{port}/db");
    let ran = home.run(&format!("--store {url} store info"));
    ran.refused(1, "could not reach the database server");
    assert!(!ran.stderr.contains("secret"), "{ran}");
    let ran = home.run(&format!("--store {url} doctor"));
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(
        ran.stdout.contains("problem  store: could not reach the database server 127.0.0.1"),
        "{ran}"
    );
    assert!(ran.stdout.contains(&format!("next: pg_isready -d postgres://me@127.0.0.1:{port}/db")));
    assert!(!ran.stdout.contains("secret"), "{ran}");
}

#[test]
fn a_server_that_hangs_up_before_a_word() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // It may be starting anew: whoever comes is heard and left.
    std::thread::spawn(move || {
        for caller in listener.incoming() {
            let _ = std::io::Read::read(&mut caller.unwrap(), &mut [0; 1024]);
        }
    });
    let home = Home::new();
    let url = format!("postgres://me@127.0.0.1:{port}/db?sslmode=disable");
    home.run(&format!("--store {url} store info"))
        .refused(1, "could not reach the database server");
}

#[test]
fn no_such_database_or_user() {
    let home = Home::with_store();
    let database = postgres::admin_url().replace(postgres::DATABASE, "no_such_database");
    let ran = home.run(&format!("--store {database} store info"));
    ran.refused(2, "database \"no_such_database\" does not exist");
    let user = postgres::admin_url().replace("postgres@", "nobody_we_know@");
    home.run(&format!("--store {user} store check")).refused(2, "nobody_we_know");
    home.run(&format!("store copy --to {user}")).refused(2, "nobody_we_know");
    home.run("--store postgres://me@no-such-host.invalid/db store info")
        .refused(1, "could not reach the database server");
}

#[test]
fn there_is_no_store_on_the_server() {
    let home = Home::new();
    let url = postgres::fresh();
    for line in ["store info", "store check", "backup out.db"] {
        home.run(&format!("--store {url} {line}")).refused(1, "there is no store at");
    }
    let schema = url.split_once("schema=").unwrap().1;
    let made = format!("SELECT count(*) FROM pg_namespace WHERE nspname = '{schema}'");
    assert_eq!(postgres::psql(&made), "0");
    assert_eq!(home.names(""), [""; 0]);
}

#[test]
fn a_server_that_was_killed() {
    let home = Home::new();
    let cluster = PrivateCluster::start();
    let url = cluster.admin_url();
    drop(mainstay_store::Store::open(&url.parse().unwrap(), options()).unwrap());
    home.run(&format!("--store {url} store info")).well();
    cluster.kill();
    home.run(&format!("--store {url} store info"))
        .refused(1, "could not reach the database server");
    home.run(&format!("--store {url} backup out.db"))
        .refused(1, "could not reach the database server");
    assert_eq!(home.names(""), [""; 0]);
    cluster.restart();
    home.run(&format!("--store {url} store check")).well();
}

#[test]
fn a_server_that_goes_away_in_the_middle_of_a_copy() {
    let home = Home::with_store();
    let store = home.open_or_create();
    for _ in 0..40 {
        store
            .write(|tx| {
                for number in 0..500 {
                    tx.publish("many", &format!("{number} {}", "y".repeat(500)))?;
                }
                Ok::<_, mainstay_store::Error>(())
            })
            .unwrap();
    }
    drop(store);
    let schema = postgres::fresh_schema();
    let proxy = PgProxy::start(&postgres::socket_directory());

    // Towards the server: nothing of the copy may be seen.
    let before = home.files();
    let url = proxy.url(&schema);
    let mut copy = home.command(["store", "copy", "--to", &url]);
    let rows_arrive = format!(
        "SELECT count(*) FROM pg_stat_activity
         WHERE application_name LIKE 'mainstay {schema} %' AND query LIKE 'INSERT%'"
    );
    let ran = cut_once(&home, &proxy, &mut copy, || postgres::psql(&rows_arrive) != "0");
    ran.refused(1, "could not reach the database server");
    let tables = format!("SELECT count(*) FROM pg_tables WHERE schemaname = '{schema}'");
    assert_eq!(postgres::psql(&tables), "0", "a copy appears as a whole or not at all");
    assert!(home.files() == before);

    // From the server: no file may stay.
    proxy.up();
    home.run(&format!("store copy --to {url}")).well();
    let mut back = home.command(["--store", &url, "store", "copy", "--to", "back.db"]);
    let rows_leave = || home.names("").iter().any(|name| name.starts_with(".back.db."));
    cut_once(&home, &proxy, &mut back, rows_leave)
        .refused(1, "could not reach the database server");
    assert!(home.files() == before);
}

/// Runs the command, and takes the server away when it has come as far as wanted.
fn cut_once(home: &Home, proxy: &PgProxy, command: &mut Command, come: impl Fn() -> bool) -> Ran {
    std::thread::scope(|scope| {
        let run = scope.spawn(|| home.ran(command));
        wait_for("the copy to be under way", Duration::from_secs(20), come);
        proxy.down();
        proxy.cut();
        run.join().unwrap()
    })
}
