//! Has the linker put the functions that ordinary work touches side by side: `hot.ld` names them.
#![allow(clippy::disallowed_methods, reason = "what cargo tells a build script are variables")]

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=hot.ld");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    // The names are those of optimised code on this platform.
    let has_them = is("OPT_LEVEL", "3")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ARCH", "x86_64");
    // A linker that somebody chose may not read scripts.
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let chosen = env::var_os("RUSTC_LINKER").is_some() || flags.contains("-fuse-ld=");
    if has_them
        && !chosen
        && let Some(directory) = env::var_os("OUT_DIR").map(PathBuf::from)
        && std::fs::copy("hot.ld", directory.join("hot.ld")).is_ok()
    {
        // A copy, because the tree may lie elsewhere when what was built is linked again.
        println!("cargo::rustc-link-arg-bins=-T");
        println!("cargo::rustc-link-arg-bins={}", directory.join("hot.ld").display());
    }
}
