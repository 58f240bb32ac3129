//! Where PostgreSQL's programs are, and as whom they run.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The path of one of PostgreSQL's programs.
pub(super) fn path(program: &str) -> PathBuf {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(find).join(program)
}

fn find() -> PathBuf {
    let configured =
        Command::new("pg_config").arg("--bindir").output().ok().map(|output| {
            PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
        });
    configured
        .into_iter()
        .chain(packaged())
        .find(|directory| directory.join("initdb").exists())
        .expect("PostgreSQL is not installed: run ./scripts/test, which installs it")
}

/// The directories of Debian's packages, the newest first.
fn packaged() -> Vec<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .collect();
    versions.sort_unstable();
    versions.into_iter().rev().map(|(_, path)| path.join("bin")).collect()
}

/// The words before a server program: PostgreSQL refuses to run as root.
pub(super) fn server_command(program: &str) -> Command {
    let mut words = server_words(program).into_iter();
    let mut command = Command::new(words.next().expect("a command has a name"));
    command.args(words).current_dir("/").stdin(Stdio::null());
    forget_settings(&mut command);
    command
}

/// The same as words, for a script.
pub(super) fn server_words(program: &str) -> Vec<String> {
    let program = path(program).to_str().expect("programs have plain names").to_owned();
    if !runs_as_root() {
        return vec![program];
    }
    ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        .map(str::to_owned)
        .into_iter()
        .chain([program])
        .collect()
}

/// Says whether the tests run as root, and the server must not.
pub(super) fn runs_as_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The user and group ids of the account `postgres`.
pub(super) fn account() -> (u32, u32) {
    let accounts = std::fs::read_to_string("/etc/passwd").expect("the list of accounts");
    let fields: Vec<&str> = accounts
        .lines()
        .find(|line| line.starts_with("postgres:"))
        .expect("no account `postgres`: run ./scripts/test, which installs PostgreSQL")
        .split(':')
        .collect();
    (fields[2].parse().expect("a user id"), fields[3].parse().expect("a group id"))
}

/// Takes away what the environment tells of another server.
pub(super) fn forget_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"PG") {
            command.env_remove(name);
        }
    }
}

/// Runs a command to its end; panics with what it said where it fails.
pub(super) fn checked_output(command: &mut Command) -> String {
    let output =
        command.output().unwrap_or_else(|error| panic!("Could not start {command:?}: {error}."));
    assert!(
        output.status.success(),
        "{command:?} failed: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
