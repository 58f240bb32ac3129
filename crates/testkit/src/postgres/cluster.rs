//! One cluster in one directory: its data, its socket and its log.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::{DATABASE, binaries, run_psql};

/// `fsync` stays on: what these tests ask of the server is that it loses nothing.
const SETTINGS: &str = "
listen_addresses = ''
fsync = on
synchronous_commit = on
max_connections = 200
shared_buffers = 32MB
wal_level = minimal
max_wal_senders = 0
";

/// A cluster that was created, and may be running.
pub(super) struct Cluster {
    directory: PathBuf,
}

impl Cluster {
    /// The cluster in a directory.
    pub(super) fn at(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Creates and starts a cluster in a new directory.
    pub(super) fn create(directory: PathBuf) -> Self {
        let cluster = Self::at(directory);
        for directory in [&cluster.directory, &cluster.socket_directory()] {
            fs::create_dir(directory).expect("a new directory for the cluster");
            fs::set_permissions(directory, fs::Permissions::from_mode(0o700))
                .expect("our own directory");
            if binaries::runs_as_root() {
                let (user, group) = binaries::account();
                chown(directory, Some(user), Some(group)).expect("root may give a directory away");
            }
        }
        let mut initdb = binaries::server_command("initdb");
        initdb.arg("-D").arg(cluster.data());
        initdb.args(["-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C", "-N"]);
        binaries::checked_output(&mut initdb);
        let mut settings = OpenOptions::new()
            .append(true)
            .open(cluster.data().join("postgresql.conf"))
            .expect("initdb leaves a file of settings");
        let socket_directory = cluster.socket_directory();
        writeln!(settings, "{SETTINGS}unix_socket_directories = '{}'", socket_directory.display())
            .expect("the file of settings can be extended");
        cluster.start();
        run_psql(&socket_directory, "postgres", &format!("CREATE DATABASE {DATABASE}"));
        cluster
    }

    /// Starts the server and waits until it accepts connections. It leaves our session, so a
    /// signal to the test's process group does not reach it.
    pub(super) fn start(&self) {
        assert!(
            self.try_start(),
            "PostgreSQL did not start:\n{}",
            fs::read_to_string(self.directory.join("log")).unwrap_or_default()
        );
    }

    /// Starts the server, and says whether that succeeded: it does not while processes of a killed
    /// one are still there.
    pub(super) fn try_start(&self) -> bool {
        let mut command = binaries::server_command("pg_ctl");
        command.arg("-D").arg(self.data()).arg("-l").arg(self.directory.join("log"));
        // No pipes: the server inherits them and would hold them open for ever.
        command.args(["-w", "-t", "60", "start"]).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().expect("pg_ctl can be started").success()
    }

    /// Stops the server without a checkpoint; does nothing where none runs.
    pub(super) fn stop(&self) {
        let mut command = binaries::server_command("pg_ctl");
        command.arg("-D").arg(self.data()).args(["-m", "immediate", "-w", "-t", "60", "stop"]);
        // It fails where there is nothing to stop.
        let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }

    /// Stops the server and removes the directory as far as that is possible.
    pub(super) fn remove(&self) {
        self.stop();
        // A killed test's `initdb` may still be writing here; the supervisor removes the rest.
        let _ = fs::remove_dir_all(&self.directory);
    }

    /// Says whether a server listens.
    pub(super) fn is_alive(&self) -> bool {
        UnixStream::connect(self.socket_directory().join(".s.PGSQL.5432")).is_ok()
    }

    /// The process id of the server's first process.
    pub(super) fn postmaster(&self) -> Option<i32> {
        let text = fs::read_to_string(self.data().join("postmaster.pid")).ok()?;
        text.lines().next()?.parse().ok()
    }

    /// Where the cluster lies.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where its socket lies.
    pub(super) fn socket_directory(&self) -> PathBuf {
        self.directory.join("sock")
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }
}
