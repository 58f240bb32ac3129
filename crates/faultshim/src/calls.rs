//! The functions that take libc's place, sorted by what they change.
//!
//! Variadic functions (`open`, `openat`, `fcntl`) are defined with their optional argument fixed.
//! On x86_64 and aarch64 Linux a variadic integer or pointer travels in the register it would have
//! as a named argument, so the definition serves both kinds of caller; where the caller passed
//! none, the register holds a leftover that is handed on and that the kernel ignores.

mod content;
mod locks;
mod looks;
mod names;
mod reads;
mod syncs;
mod writes;
