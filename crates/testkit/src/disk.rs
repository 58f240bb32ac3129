//! Disks that are really full or read-only: a command with a mount of its own.

use std::path::Path;
use std::process::Command;

/// Mounts, then becomes the command. The mount is in a namespace that ends with the last process in it.
const SCRIPT: &str =
    r#"mount -t tmpfs -o "size=$1" mainstay-small-disk "$2" && shift 2 && exec "$@""#;

/// Wraps a command so that `directory` is an empty disk of this size for it and for nobody else.
///
/// What it writes there is gone when it ends, so the command must look at its own remains; a
/// shell script that does the work and then the check serves. Blocks have 4 KiB. Nothing can be
/// left mounted, whatever kills the command.
pub fn on_small_disk(bytes: u64, directory: &Path, command: &Command) -> Command {
    mounting(command, |wrapped| {
        wrapped.args([SCRIPT, "on-small-disk"]).arg(bytes.to_string()).arg(directory);
    })
}

/// Mounts a directory over itself, read-only: permission bits do not bind root, a mount does.
const READ_ONLY: &str =
    r#"mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@""#;

/// Wraps a command so that `directory` is on a read-only disk for it and for nobody else.
pub fn on_read_only_disk(directory: &Path, command: &Command) -> Command {
    mounting(command, |wrapped| {
        wrapped.args([READ_ONLY, "on-read-only-disk"]).arg(directory);
    })
}

/// Wraps a command in a shell with mounts of its own, whose script `script` adds.
fn mounting(command: &Command, script: impl FnOnce(&mut Command)) -> Command {
    let mut wrapped = Command::new("unshare");
    // Without root, a user namespace gives the right to mount.
    let root = rustix::process::geteuid().is_root();
    wrapped.arg(if root { "-m" } else { "-rm" });
    wrapped.args(["--", "sh", "-c"]);
    script(&mut wrapped);
    wrapped.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(name, value),
            None => wrapped.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        wrapped.current_dir(directory);
    }
    wrapped
}
