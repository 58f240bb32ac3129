//! A decision counts if a person is proven to have made it, not because a row says so.

use std::os::unix::fs::PermissionsExt as _;

use mainstay_store::{Location, Options, Schema, Store, params};
use mainstay_testkit::model::rounds;
use serde_json::json;

use crate::approving::{counting, put_counter, put_script, waiting};
use crate::world::World;

fn world(times: usize) -> World {
    let world = World::new(counting(times));
    put_counter(&world.workspace());
    world
}

/// Writes to the store as somebody who has found a way to it.
fn forge(world: &World, sql: &str) {
    let place = Location::file(world.home().join("store.db"));
    let store = Store::open(&place, Options::new(Schema::default())).unwrap();
    assert_ne!(store.write(|tx| tx.execute(sql, params![])).unwrap(), 0, "{sql}");
}

#[test]
fn a_row_that_somebody_else_wrote_is_no_decision_and_is_asked_again() {
    let world = world(1);
    let session = world.run(&["run", "--json", "count"]).ended_with(3).session();
    forge(
        &world,
        "UPDATE approvals SET state = 'once', decided_by = 'me', decided_at = asked_at + 1",
    );
    let parked = world.run(&["resume", &session, "--json"]).ended_with(3);
    assert_eq!(world.file("count"), "");
    // A seal of another decision is none for this one, and neither is one that was made up.
    let again = parked.event("parked")["requests"][0]["id"].as_str().unwrap().to_owned();
    world.run(&["deny", &again]).ended_with(0);
    forge(&world, "UPDATE approvals SET state = 'once', said = NULL WHERE state = 'denied'");
    world.run(&["resume", &session]).ended_with(3);
    forge(&world, "UPDATE approvals SET state = 'always', seal = '00' WHERE state = 'open'");
    world.run(&["resume", &session]).ended_with(3);
    assert_eq!(world.file("count"), "");
    let ids = waiting(&world.run(&["approvals", "--json"]).ended_with(0));
    world.run(&["approve", &ids[0]]).ended_with(0);
    world.run(&["resume", &session]).ended_with(0);
    assert_eq!(world.file("count"), "0\n");
    let mode = world.home().join("decisions.key").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn always_holds_with_its_proof_alone_and_from_before_there_was_one() {
    let world = world(2);
    let session = world.run(&["run", "--json", "count"]).ended_with(3).session();
    let ids = waiting(&world.run(&["approvals", "--json"]).ended_with(0));
    world.run(&["approve", &ids[0], "--always", "--resume"]).ended_with(3);
    // The second call has other words, and somebody makes the rule cover them.
    forge(&world, "UPDATE approval_rules SET rule = replace(rule, '\"0\"', '\"1\"')");
    world.run(&["resume", &session]).ended_with(3);
    assert_eq!(world.file("count"), "0\n");
    // A home from before has rules without a proof, and no secret yet.
    forge(&world, "UPDATE approval_rules SET seal = NULL");
    std::fs::remove_file(world.home().join("decisions.key")).unwrap();
    world.run(&["resume", &session]).ended_with(0);
    assert_eq!(world.file("count"), "0\n1\n");
}

#[test]
fn who_decides_with_another_secret_decides_nothing() {
    let world = world(1);
    let session = world.run(&["run", "--json", "count"]).ended_with(3).session();
    let ids = waiting(&world.run(&["approvals", "--json"]).ended_with(0));
    let key = world.home().join("decisions.key");
    let kept = std::fs::read(&key).unwrap();
    std::fs::write(&key, [7; 32]).unwrap();
    world.run(&["approve", &ids[0]]).ended_with(0);
    std::fs::write(&key, kept).unwrap();
    world.run(&["resume", &session]).ended_with(3);
    assert_eq!(world.file("count"), "");
    std::fs::write(&key, "x").unwrap();
    let told = world.run(&["approve", &ids[0]]).ended_with(2);
    assert!(told.stderr.contains("decisions.key is damaged"), "{told:#?}");
}

#[test]
fn without_a_sandbox_a_copy_in_other_namespaces_still_carries_the_mark() {
    let world = World::new(rounds(1, |_| ("shell", json!({ "command": "./sneak.sh" }))));
    let call = format!("./copy --home {} approve 0", world.home().display());
    // Where the kernel has no such namespace, nothing ran there.
    let ways = [
        format!("env -i {call}"),
        format!("env -i setsid -w {call}"),
        format!("env -i unshare -Ur true && env -i unshare -Ur {call} || echo '{REFUSED}'"),
        format!("env -i unshare -Urpf true && env -i unshare -Urpfm {call} || echo '{REFUSED}'"),
        format!("ulimit -x 1000; ulimit -m 1000; env -i {call}"),
        format!("( (sleep 0.1; env -i setsid -w {call} 2> orphan; touch over) & )"),
        "while [ ! -e over ]; do sleep 0.02; done".to_owned(),
    ];
    let copied = format!("cp {} copy\n", env!("CARGO_BIN_EXE_mainstay"));
    let lines: Vec<String> = ways.iter().map(|way| format!("({way}) 2>&1")).collect();
    put_script(&world.workspace(), "sneak.sh", &(copied + &lines.join("\n")));
    world.configure_more("[sandbox]\nmode = \"off\"\n");
    world.run(&["run", "--yes", "sneak"]).ended_with(0);
    let read = world.model.asked().pop().unwrap().results().pop().unwrap().1;
    assert!(read.matches(REFUSED).count() >= 5, "{read}");
    assert!(!read.contains("no request"), "{read}");
    assert!(world.file("orphan").contains(REFUSED), "{}", world.file("orphan"));
}

const REFUSED: &str = "is for humans only";
