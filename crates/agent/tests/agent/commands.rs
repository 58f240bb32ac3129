//! The classification of command lines, as a table and as properties.

mod beyond;
mod differential;
mod properties;
mod table;
