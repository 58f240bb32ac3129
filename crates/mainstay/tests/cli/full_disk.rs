//! A disk without room: nothing half-made stays, and what was there is as it was.

use std::process::Command;

use mainstay_testkit::disk::on_small_disk;

use super::home::{BINARY, Home};
use super::restoring::old_with_new_backup;

/// Runs a script with a small, empty disk at `disk`.
fn on_disk(home: &Home, bytes: u64, script: &str) -> super::home::Ran {
    std::fs::create_dir(home.path("disk")).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(home.path(""));
    command.env("MAINSTAY", BINARY).env("MAINSTAY_HOME", home.path("home"));
    home.ran(&mut on_small_disk(bytes, &home.path("disk"), &command))
}

#[test]
fn a_backup_that_does_not_fit_leaves_nothing() {
    let home = Home::with_store();
    let script = "$MAINSTAY backup disk/out.db; code=$?; ls -A disk; exit $code";
    let ran = on_disk(&home, 48 << 10, script);
    ran.refused(1, "no space is left");
    assert_eq!(ran.stdout, "", "nothing half-made is left");
}

#[test]
fn a_copy_that_does_not_fit_leaves_nothing() {
    let home = Home::with_store();
    let script = "$MAINSTAY store copy --to disk/out.db; code=$?; ls -A disk; exit $code";
    let ran = on_disk(&home, 48 << 10, script);
    ran.refused(1, "no space is left");
    assert_eq!(ran.stdout, "", "nothing half-made is left");
}

#[test]
fn a_restore_that_does_not_fit_leaves_the_store_as_it_was() {
    let home = old_with_new_backup();
    let script = "cp home/store.db disk/store.db && $MAINSTAY --store disk/store.db restore backup
        code=$?; cmp home/store.db disk/store.db && ls -A disk
        $MAINSTAY --store disk/store.db store check; exit $code";
    // Room for the store and its side files, and not for another store.
    let size = std::fs::metadata(home.path("home/store.db")).unwrap().len();
    let ran = on_disk(&home, size + (96 << 10), script);
    ran.refused(1, "no space is left");
    assert_eq!(ran.stdout, "store.db\nstore.db.side\ndisk/store.db has no problems.\n");
}

#[test]
fn doctor_sees_a_disk_that_is_nearly_full() {
    let home = Home::with_store();
    let script = "cp home/store.db disk/store.db && chmod 600 disk/store.db
        $MAINSTAY --store disk/store.db doctor";
    let ran = on_disk(&home, 8 << 20, script);
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(ran.stdout.contains("problem  space: only 7."), "{ran}");
    assert!(ran.stdout.contains("next: df -h disk/store.db"), "{ran}");
}
