//! Things of this workspace that tests run, built by cargo when the first test needs them.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// Asks cargo, which knows whether there is anything to build and where the result lies. `pick`
/// finds it in one of cargo's messages.
pub(crate) fn build(
    what: &str,
    arguments: &[&str],
    pick: impl Fn(&Value) -> Option<PathBuf>,
) -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--message-format", "json"])
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap_or_else(|error| panic!("Could not build {what}: {error}."));
    assert!(
        output.status.success(),
        "Could not build {what}:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|message: &Value| message["reason"] == "compiler-artifact")
        .find_map(|message| pick(&message))
        .unwrap_or_else(|| panic!("cargo does not say where {what} lies."))
}
