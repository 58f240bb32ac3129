//! A private PostgreSQL on demand, shared by all test processes of a run.
//!
//! Nextest runs every test in its own process, so the cluster belongs to none of them: the first
//! that needs it starts it, all who use it hold a lock, and a small supervisor stops it when
//! nobody has held that lock for a while. A test gets a schema of its own, not a server.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

mod binaries;
mod cluster;
mod private;
mod sharing;
mod supervisor;

pub use private::PrivateCluster;
pub use supervisor::IDLE_VARIABLE;

/// The database in which the tests' schemas live.
pub const DATABASE: &str = "mainstay_test";

/// A URL with the name of a schema that nobody has used; the product creates it.
pub fn fresh() -> String {
    format!("{}?schema={}", admin_url(), fresh_schema())
}

/// The name of a schema that nobody has used.
pub fn fresh_schema() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("t_{}_{number}_{:08x}", std::process::id(), fastrand::u32(..))
}

/// The URL of the test database, without a schema.
pub fn admin_url() -> String {
    url_of(&socket_directory())
}

/// The directory of the server's Unix socket.
pub fn socket_directory() -> PathBuf {
    sharing::cluster().socket_directory()
}

/// Runs SQL as the administrator and returns what `psql` prints, unaligned and without headers.
pub fn psql(sql: &str) -> String {
    run_psql(&socket_directory(), DATABASE, sql)
}

/// The path of one of PostgreSQL's own programs, such as `pgbench`.
pub fn program(name: &str) -> PathBuf {
    binaries::path(name)
}

fn url_of(socket_directory: &Path) -> String {
    let directory = socket_directory.to_str().expect("temporary directories have plain names");
    let host = directory.replace('%', "%25").replace('/', "%2F");
    format!("postgres://postgres@{host}/{DATABASE}")
}

fn run_psql(socket_directory: &Path, database: &str, sql: &str) -> String {
    let mut command = Command::new(binaries::path("psql"));
    command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "postgres"]);
    command.arg("-h").arg(socket_directory).args(["-d", database, "-c", sql]);
    binaries::forget_settings(&mut command);
    let output = binaries::checked_output(&mut command);
    output.trim_end_matches('\n').to_owned()
}
