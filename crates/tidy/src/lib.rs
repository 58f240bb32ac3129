//! The source tree as data, for the checks under `tests/` that hold up the house rules.
//!
//! A check is a pure function from files to violations, each a sentence that says what to change. Its
//! file under `tests/` runs it on the real tree and shows, on a made-up one, that it can fail. This
//! crate must not know what any rule is.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// A file of the tree: its path from the root, with forward slashes, and what it holds.
#[derive(Debug, Clone)]
pub struct File {
    /// Path from the root of the repository.
    pub path: String,
    /// The bytes as they are on disk.
    pub bytes: Vec<u8>,
}

impl File {
    /// Makes up a file, for showing that a check can fail.
    pub fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), bytes: text.as_bytes().to_vec() }
    }

    /// The text. Returns `None` if this is a binary file.
    pub fn text(&self) -> Option<&str> {
        if self.bytes.contains(&0) { None } else { std::str::from_utf8(&self.bytes).ok() }
    }

    /// The text when the path ends in `.rs`.
    pub fn rust(&self) -> Option<&str> {
        if self.path.ends_with(".rs") { self.text() } else { None }
    }

    /// The text when the path ends in `.md`.
    pub fn markdown(&self) -> Option<&str> {
        if self.path.ends_with(".md") { self.text() } else { None }
    }
}

/// The root of the repository.
#[expect(clippy::disallowed_methods, reason = "cargo's variable, not one of ours")]
pub fn root() -> PathBuf {
    // Asked for when the test runs: the value at build time is another checkout's when two share a
    // target directory.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR");
    // This crate is two directories below the root.
    Path::new(&manifest.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into())).join("../..")
}

/// Every file of the tree: tracked, or new and not ignored.
pub fn tree() -> io::Result<Vec<File>> {
    let root = root();
    // An unpacked archive has no repository; it also holds nothing but the tree and build output.
    let paths = if root.join(".git").exists() { listed_by_git(&root)? } else { walked(&root)? };
    let mut files = Vec::new();
    for path in paths {
        match fs::read(root.join(&path)) {
            Ok(bytes) => files.push(File { path, bytes }),
            // Listed, but deleted from the working directory.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io::Error::new(error.kind(), format!("{path}: {error}"))),
        }
    }
    if files.is_empty() {
        return Err(io::Error::other(format!("no files under {}", root.display())));
    }
    Ok(files)
}

/// Panics with one violation a line, unless there is none.
#[track_caller]
pub fn assert_none(violations: &[String]) {
    assert!(violations.is_empty(), "{} to fix:\n{}", violations.len(), violations.join("\n"));
}

#[expect(clippy::disallowed_methods, reason = "git lists the tree for tests; no agent runs here")]
fn listed_by_git(root: &Path) -> io::Result<Vec<String>> {
    let output = std::process::Command::new("git")
        // The tree may belong to another user than the one who runs the tests.
        .args(["-c", "safe.directory=*", "ls-files", "-z"])
        .args(["--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| io::Error::new(error.kind(), format!("cannot run git: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("git ls-files failed: {said}")));
    }
    let listing = String::from_utf8(output.stdout).map_err(io::Error::other)?;
    Ok(listing.split_terminator('\0').map(str::to_owned).collect())
}

fn walked(root: &Path) -> io::Result<Vec<String>> {
    let mut paths = Vec::new();
    let mut pending = vec![String::new()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(root.join(&directory))? {
            let entry = entry?;
            let path = format!("{directory}{}", entry.file_name().to_string_lossy());
            if !entry.file_type()?.is_dir() {
                paths.push(path);
            } else if path != "target" {
                pending.push(format!("{path}/"));
            }
        }
    }
    Ok(paths)
}
