//! The shim's shared library, built when the first test of a process needs it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;

use crate::artifact;

/// The path of the library, up to date with its source.
pub(super) fn path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        artifact::build("The fault shim", &["--package", "mainstay-faultshim"], shared_library)
    })
}

fn shared_library(message: &Value) -> Option<PathBuf> {
    if message["target"]["name"] != "mainstay_faultshim" {
        return None;
    }
    let files = message["filenames"].as_array()?;
    files.iter().filter_map(Value::as_str).find(|name| name.ends_with(".so")).map(PathBuf::from)
}
