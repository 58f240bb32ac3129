//! From the shared subset of SQL to the server's.

/// Replaces `?1` by `$1`, outside of quotes.
pub(super) fn translated(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut quote = None;
    let mut characters = sql.chars().peekable();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), close) if open == close => quote = None,
            (None, '?') if characters.peek().is_some_and(char::is_ascii_digit) => {
                out.push('$');
                continue;
            }
            _ => {}
        }
        out.push(character);
    }
    out
}

/// A string literal.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_translated_and_quoted_text_is_not() {
        assert_eq!(
            translated("SELECT '?1', \"?2\", ?1, ?23 FROM t WHERE a = ?2 AND b = 'it''s ?3'"),
            "SELECT '?1', \"?2\", $1, $23 FROM t WHERE a = $2 AND b = 'it''s ?3'"
        );
    }
}
