//! The `process` tool.
