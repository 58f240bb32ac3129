//! Which files were read, and how they looked then.

/// Which files were read, and how they looked then.
#[derive(Clone, Debug, Default)]
pub struct Seen {}
