//! A virtual screen for tests.

use std::num::NonZeroU16;

/// A screen of so many rows and columns, with some scrollback.
pub(crate) fn screen(rows: u16, columns: u16) -> vt100::Parser {
    let size = |number| NonZeroU16::new(number).unwrap();
    vt100::Parser::new(size(rows), size(columns), 1_000)
}

/// What can be read on it, down to the last row that is used.
pub(crate) fn shown(parser: &vt100::Parser) -> Vec<String> {
    let (_, columns) = parser.screen().size();
    let rows: Vec<String> = parser.screen().rows(0, columns.into()).collect();
    let used = rows.iter().rposition(|row| !row.trim().is_empty()).map_or(0, |last| last + 1);
    rows[..used].iter().map(|row| row.trim_end().to_owned()).collect()
}
