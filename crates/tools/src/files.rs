//! Tools that look at files and change them.

mod seen;

pub use seen::Seen;
