//! A small disk is full for the command that runs on it, and for nobody else.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "test-only code stands outside the product's seams"
)]

use std::process::Command;

use mainstay_testkit::disk::on_small_disk;

#[test]
fn a_small_disk_fills_up_and_is_gone_afterwards() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.arg("-c").env("WHERE", directory.path());
    command.arg("head -c 300000 /dev/zero > \"$WHERE/file\"; stat -c %s \"$WHERE/file\"");
    let output = on_small_disk(128 * 1024, directory.path(), &command).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("No space left on device"), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "131072");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    assert!(!mounts.contains("mainstay-small-disk"));
}
