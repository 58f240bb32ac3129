//! The shim's shared library, built when the first test of a process needs it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

/// The path of the library, up to date with its source.
pub(super) fn path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(build)
}

/// Asks cargo, which knows whether there is anything to build and where the result lies.
fn build() -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--package", "mainstay-faultshim", "--message-format", "json"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap_or_else(|error| panic!("The fault shim cannot be built: {error}."));
    assert!(
        output.status.success(),
        "The fault shim cannot be built:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .find_map(|message: Value| shared_library(&message))
        .expect("cargo names the library it has built")
}

fn shared_library(message: &Value) -> Option<PathBuf> {
    if message["reason"] != "compiler-artifact" || message["target"]["name"] != "mainstay_faultshim"
    {
        return None;
    }
    let files = message["filenames"].as_array()?;
    files.iter().filter_map(Value::as_str).find(|name| name.ends_with(".so")).map(PathBuf::from)
}
