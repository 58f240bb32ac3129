//! The statements of a query's text, as far as finding a COMMIT among them needs.

/// Says whether one of the statements is COMMIT or END.
pub(super) fn commits(sql: &[u8]) -> bool {
    let mut rest = sql;
    loop {
        rest = skip_blanks(rest);
        if [&b"commit"[..], b"end"].into_iter().any(|word| starts_with_word(rest, word)) {
            return true;
        }
        match after_statement(rest) {
            Some(next) => rest = next,
            None => return false,
        }
    }
}

fn starts_with_word(text: &[u8], word: &[u8]) -> bool {
    let Some((start, rest)) = text.split_at_checked(word.len()) else { return false };
    let ended = rest.first().is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
    start.eq_ignore_ascii_case(word) && ended
}

/// What follows the next semicolon that is not inside quotes or a comment.
fn after_statement(mut text: &[u8]) -> Option<&[u8]> {
    loop {
        match text {
            [] => return None,
            [b';', rest @ ..] => return Some(rest),
            [quote @ (b'\'' | b'"'), rest @ ..] => text = after(rest, &[*quote]),
            [b'-', b'-', ..] | [b'/', b'*', ..] => text = skip_blanks(text),
            [b'$', rest @ ..] => text = after_dollar_quote(rest),
            [_, rest @ ..] => text = rest,
        }
    }
}

/// Skips white space and comments.
fn skip_blanks(mut text: &[u8]) -> &[u8] {
    loop {
        text = match text {
            [blank, rest @ ..] if blank.is_ascii_whitespace() => rest,
            [b'-', b'-', rest @ ..] => after(rest, b"\n"),
            [b'/', b'*', rest @ ..] => after(rest, b"*/"),
            _ => return text,
        }
    }
}

/// Skips a `$tag$ … $tag$`, given what follows the first dollar; a parameter such as `$1` is none.
fn after_dollar_quote(text: &[u8]) -> &[u8] {
    let tag = text.iter().take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'_').count();
    if text.get(tag) != Some(&b'$') {
        return text;
    }
    let closing = [b"$", &text[..=tag]].concat();
    after(&text[tag + 1..], &closing)
}

fn after<'text>(text: &'text [u8], end: &[u8]) -> &'text [u8] {
    let found = text.windows(end.len()).position(|window| window == end);
    found.map_or(&[], |start| &text[start + end.len()..])
}

#[cfg(test)]
mod tests {
    use super::commits;

    #[test]
    fn a_commit_is_found_as_a_statement_and_nowhere_else() {
        for sql in [
            "COMMIT",
            " commit ;",
            "/* why */ Commit and chain",
            "END",
            "INSERT INTO t VALUES ('it''s; fine'); COMMIT",
            "DO $$ BEGIN x; END $$; -- done\ncommit",
            "SELECT $1; COMMIT",
        ] {
            assert!(commits(sql.as_bytes()), "{sql}");
        }
        for sql in [
            "",
            "BEGIN",
            "SELECT 'x; COMMIT'",
            "SELECT 1 -- ; COMMIT",
            "SELECT \"a; commit\" FROM t",
            "DO $body$ BEGIN x; END; COMMIT; $body$",
            "INSERT INTO commits VALUES (1); ENDOW",
            "SELECT /* ; commit */ 1",
        ] {
            assert!(!commits(sql.as_bytes()), "{sql}");
        }
    }
}
