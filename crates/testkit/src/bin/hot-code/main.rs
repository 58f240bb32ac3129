//! Finds the functions that ordinary work touches, and writes the linker script that puts them side by
//! side:
//!
//!     hot-code target/release/mainstay crates/mainstay/hot.ld
//!
//! The kernel maps sixteen pages of a program for each one that is touched, so code that lies scattered
//! costs many times its size in memory. The program must have its symbols. See `scripts/hot-code`.
#![allow(clippy::disallowed_methods, reason = "a program of the tests")]

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod functions;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod scene;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod script;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod trace;

use std::process::ExitCode;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program, output] = arguments.as_slice() else {
        eprintln!("Usage: hot-code PROGRAM OUTPUT");
        return ExitCode::from(2);
    };
    match write(program, output) {
        Ok(words) => {
            eprintln!("{words}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("hot-code: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn write(program: &str, output: &str) -> std::io::Result<String> {
    if !rustix::process::geteuid().is_root() {
        return Err(std::io::Error::other(
            "run it as root: the keeper lets nobody else look into it",
        ));
    }
    let program = std::fs::canonicalize(program)?;
    let functions = functions::of(&program)?;
    let mut tracer = trace::Tracer::new(&program, functions.keys().copied().collect());
    scene::play(&program, &mut tracer)?;
    let (text, words) = script::of(&functions, &tracer.touched());
    std::fs::write(output, text)?;
    Ok(words)
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() -> ExitCode {
    eprintln!("hot-code: this works on Linux on x86-64 only");
    ExitCode::FAILURE
}
