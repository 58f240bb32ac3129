//! A cluster for one test, which may kill it.

use std::fs::File;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::cluster::Cluster;
use super::{run_psql, sharing, supervisor, url_of};
use crate::process::wait_for;

/// A PostgreSQL that belongs to one test; stopped and removed when it goes out of scope, or by the
/// supervisor where the test was killed.
pub struct PrivateCluster {
    cluster: Cluster,
    _users: File,
}

impl PrivateCluster {
    /// Creates and starts a cluster; that takes a few seconds.
    pub fn start() -> Self {
        let directory = sharing::directory();
        let start = sharing::lock_start(&directory);
        let users = sharing::open(&directory.join("users"));
        users.lock_shared().expect("a lock on our own file");
        supervisor::ensure(&directory);
        // As a user we keep the directory alive; the others need not wait for our start.
        drop(start);
        let name = format!("private-{:08x}", fastrand::u32(..));
        Self { cluster: Cluster::create(directory.join(name)), _users: users }
    }

    /// The URL of the test database, without a schema.
    pub fn admin_url(&self) -> String {
        url_of(&self.cluster.socket_directory())
    }

    /// The directory of the server's Unix socket.
    pub fn socket_directory(&self) -> std::path::PathBuf {
        self.cluster.socket_directory()
    }

    /// Runs SQL as the administrator and returns what `psql` prints.
    pub fn psql(&self, sql: &str) -> String {
        run_psql(&self.cluster.socket_directory(), super::DATABASE, sql)
    }

    /// Kills the server's first process, as the out-of-memory killer would; the others follow.
    pub fn kill(&self) {
        let pid = self.postmaster();
        kill_process(pid, Signal::KILL).expect("root or the owner may kill the server");
        wait_for("the killed server to be gone", Duration::from_secs(10), || {
            test_kill_process(pid).is_err()
        });
    }

    /// Starts the server again after [`Self::kill`]; waits for the old backends to be gone.
    pub fn restart(&self) {
        wait_for("the server to start again", Duration::from_secs(60), || self.cluster.try_start());
    }

    fn postmaster(&self) -> Pid {
        let pid = self.cluster.postmaster().and_then(Pid::from_raw);
        pid.expect("a running server leaves its process id")
    }
}

impl Drop for PrivateCluster {
    fn drop(&mut self) {
        self.cluster.remove();
    }
}
