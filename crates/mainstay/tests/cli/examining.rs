//! `doctor`, `store info` and `store check` on homes and stores of every state of health.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use mainstay_memory::facts::{self, NewFact};
use mainstay_store::{Acquired, params};
use mainstay_testkit::postgres;

use super::home::{Home, Ran, fill, options, steady};

fn snapshot(name: &str, ran: &Ran) {
    steady().bind(|| insta::assert_snapshot!(name, ran));
}

#[test]
fn doctor_finds_a_fresh_home_well_and_creates_nothing() {
    let home = Home::new();
    snapshot("doctor_fresh", &home.run("doctor").well());
    snapshot("doctor_fresh_json", &home.run("doctor --json").well());
    assert_eq!(home.names(""), [""; 0]);
}

#[test]
fn doctor_finds_a_good_store_well() {
    let home = Home::with_store();
    let before = home.files();
    snapshot("doctor_well", &home.run("doctor").well());
    assert_eq!(home.files(), before);
}

#[test]
fn info_shows_what_the_store_holds() {
    let home = Home::with_store();
    snapshot("info", &home.run("store info").well());
    snapshot("info_json", &home.run("store info --json").well());
}

#[test]
fn info_names_who_has_the_store_open() {
    let home = Home::with_store();
    let _user = home.open_or_create();
    let ran = home.run("store info").well();
    assert!(ran.stdout.contains(&format!("process {}", std::process::id())), "{ran}");
}

#[test]
fn permissions_that_let_others_in_are_found_with_the_command_that_closes_them() {
    let home = Home::with_store();
    let set = |place: &str, mode| {
        fs::set_permissions(home.path(place), Permissions::from_mode(mode)).unwrap();
    };
    set("home", 0o755);
    set("home/store.db", 0o644);
    let ran = home.run("doctor");
    snapshot("doctor_open_home", &ran);
    // Following the advice helps.
    for line in ran.stdout.lines().filter_map(|line| line.trim().strip_prefix("next: ")) {
        let line = line.replace("[DIR]", home.path("").to_str().unwrap());
        assert!(Command::new("sh").args(["-c", &line]).status().unwrap().success(), "{line}");
    }
    home.run("doctor").well();
}

#[test]
fn a_home_that_is_a_file_is_found() {
    let home = Home::new();
    fs::write(home.path("home"), "not a directory").unwrap();
    let ran = home.run("doctor");
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(ran.stdout.contains("problem  home: [DIR]/home is not a directory"), "{ran}");
}

#[test]
fn a_store_that_was_made_in_rollback_mode_is_a_warning() {
    let home = Home::with_store();
    home.run("store copy --to sqlite:rollback.db?journal=rollback").well();
    let ran = home.run("--store rollback.db doctor");
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(ran.stdout.contains("warning  journal: rollback mode"), "{ran}");
    assert!(ran.stdout.contains("next: mainstay --store rollback.db store copy --to"), "{ran}");
}

#[test]
fn a_clock_that_went_back_is_found() {
    let home = Home::with_store();
    let hour = 3_600_000;
    let later = |tx: &mut mainstay_store::WriteTx<'_>| {
        tx.execute("UPDATE events SET at = at + ?1", params![hour]).map(drop)
    };
    home.open_or_create().write(later).unwrap();
    let ran = home.run("doctor");
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(ran.stdout.contains("problem  clock: it says"), "{ran}");
}

#[test]
fn a_gap_in_what_must_be_dense_is_found_by_doctor_and_check() {
    let home = Home::with_store();
    let lose = |tx: &mut mainstay_store::WriteTx<'_>| {
        tx.execute("DELETE FROM events WHERE number = 5", params![]).map(drop)
    };
    home.open_or_create().write(lose).unwrap();
    snapshot("check_gap", &home.run("store check"));
    snapshot("check_gap_json", &home.run("store check --json"));
    let ran = home.run("doctor");
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(ran.stdout.contains("problem  content: the events of topic"), "{ran}");
    assert!(ran.stdout.contains("next: mainstay store check"), "{ran}");
}

#[test]
fn a_fact_that_nothing_leads_to_is_found_by_check() {
    let home = Home::with_store();
    let new = NewFact { content: "tea is green".to_owned(), ..NewFact::default() };
    let remember = |tx: &mut mainstay_store::WriteTx<'_>| {
        let owner = tx.owner("local")?;
        facts::add(tx, owner, &new)
    };
    home.open_or_create().write(remember).unwrap();
    home.run("store check").well();
    let lose = |tx: &mut mainstay_store::WriteTx<'_>| {
        tx.execute("DELETE FROM fact_terms WHERE term = 'tea'", params![]).map(drop)
    };
    home.open_or_create().write(lose).unwrap();
    let ran = home.run("store check");
    assert_eq!(ran.code, Some(1), "{ran}");
    let words = "problem: facts of local: the word \"tea\" should lead to 1 facts and leads to 0";
    assert!(ran.stdout.contains(words), "{ran}");
}

#[test]
fn a_stopped_holder_of_a_lease_is_named_and_a_dead_one_is_not() {
    let home = Home::with_store();
    let lease = |resource: &str| {
        let store = home.open_or_create();
        match store.try_acquire(resource, Duration::from_secs(600)).unwrap() {
            Acquired::Got(lease) => (store, lease),
            Acquired::Held(holder) => panic!("held by {holder}"),
        }
    };
    let _live = lease("session/live");
    // Rows that name other processes: one that is stopped, and one that is gone.
    let mut stopped = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
    let pid = stopped.id();
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &pid.to_string()]).status().unwrap();
        assert!(sent.success());
    };
    signal("-STOP");
    let stat = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = || {
        stat().rsplit_once(')').unwrap().1.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    mainstay_testkit::process::wait_for("the process to stop", Duration::from_secs(10), || {
        fields()[0] == "T"
    });
    let mut identity = mainstay_store::ProcessIdentity::current().clone();
    identity.pid = pid;
    identity.start = fields()[19].parse().unwrap();
    let mut gone = identity.clone();
    gone.start += 1;
    home.open_or_create()
        .write(|tx| {
            for (resource, holder) in [("session/stopped", &identity), ("session/gone", &gone)] {
                tx.execute(
                    "INSERT INTO leases VALUES (?1, ?2, 1, 0, 600000, 9000000000000, ?3)",
                    params![resource, holder.to_string(), tx.now()],
                )?;
            }
            Ok::<_, mainstay_store::Error>(())
        })
        .unwrap();
    let ran = home.run("doctor");
    signal("-KILL");
    stopped.wait().unwrap();
    assert_eq!(ran.code, Some(1), "{ran}");
    let warnings: Vec<&str> =
        ran.stdout.lines().filter(|line| line.starts_with("warning")).collect();
    assert_eq!(warnings.len(), 1, "{ran}");
    assert!(warnings[0].contains("\"session/stopped\"") && warnings[0].contains("is stopped"));
    assert!(ran.stdout.contains(&format!("next: ps -o pid,stat,lstart,args -p {pid}")), "{ran}");

    // Now it is dead, and whoever wants its lease just takes it.
    let ran = home.run("doctor").well();
    assert!(ran.stdout.contains("leases: 1 held, 2 left by dead processes"), "{ran}");
}

#[test]
fn doctor_and_info_know_a_server() {
    let home = Home::new();
    let url = postgres::fresh();
    let absent = home.run(&format!("--store {url} doctor")).well();
    assert!(absent.stdout.contains("ok       store: no store at"), "{absent}");
    fill(&mainstay_store::Store::open(&url.parse().unwrap(), options()).unwrap(), "old");
    let ran = home.run(&format!("--store {url} doctor")).well();
    for words in ["engine: PostgreSQL", "sync: the server syncs", "quick check found no problems"] {
        assert!(ran.stdout.contains(words), "no \"{words}\" in {ran}");
    }
    let info = home.run(&format!("--store {url} store info --json")).well().json();
    assert_eq!(info["engine"], "postgres");
    assert_eq!(info["tables"]["events"], 20);
    home.run(&format!("--store {url} store check")).well();
}

#[test]
fn a_server_that_does_not_sync_is_a_problem() {
    let cluster = postgres::PrivateCluster::start();
    let url = cluster.admin_url();
    drop(mainstay_store::Store::open(&url.parse().unwrap(), options()).unwrap());
    cluster.psql("ALTER SYSTEM SET fsync = off");
    cluster.psql("SELECT pg_reload_conf()");
    mainstay_testkit::process::wait_for("the setting", Duration::from_secs(10), || {
        cluster.psql("SHOW fsync") == "off"
    });
    let ran = Home::new().run(&format!("--store {url} doctor"));
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(ran.stdout.contains("problem  sync: the server does not sync"), "{ran}");
}
