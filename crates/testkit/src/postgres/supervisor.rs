//! The process that stops the clusters when nobody uses them any more.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{binaries, sharing};

/// Sets for how many seconds nobody must have used the clusters before they are stopped.
pub const IDLE_VARIABLE: &str = "TESTKIT_POSTGRES_IDLE";

/// Runs with the shared directory, the seconds, and then the words of `pg_ctl`. It looks once a second, and
/// looks again under the start lock: whoever holds that decides alone who is a user.
const SCRIPT: &str = r#"
directory=$1
patience=$2
shift 2
exec 8>>"$directory/supervisor"
flock --nonblock 8 || exit 0
idle=0
while [ -d "$directory" ]; do
    sleep 1
    flock --nonblock "$directory/users" true || { idle=0; continue; }
    idle=$((idle + 1))
    [ "$idle" -ge "$patience" ] || continue
    exec 9>>"$directory/start"
    flock 9
    if flock --nonblock "$directory/users" true; then
        for cluster in "$directory"/shared-* "$directory"/private-*; do
            [ -d "$cluster" ] && "$@" -D "$cluster/data" -m immediate stop
        done
        rm -rf "$directory"
        exit 0
    fi
    exec 9>&-
    idle=0
done
"#;

/// Starts a supervisor unless one lives. Two that start at once settle it by its lock.
pub(super) fn ensure(directory: &Path) {
    if sharing::open(&directory.join("supervisor")).try_lock().is_err() {
        return;
    }
    let status = Command::new("setsid")
        .args(["--fork", "sh", "-c", SCRIPT, "mainstay-postgres-supervisor"])
        .arg(directory)
        .arg(std::env::var(IDLE_VARIABLE).as_deref().unwrap_or("15"))
        .args(binaries::server_words("pg_ctl"))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("setsid can be started");
    assert!(status.success(), "The supervisor of PostgreSQL did not start.");
}
