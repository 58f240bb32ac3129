//! The classification of command lines, as a table and as properties.

mod properties;
mod table;
