//! Server-sent events out of lines. All providers repeat the event's name inside its data, so only
//! the data is kept.

use super::TooLong;

/// Puts the `data` lines of an event together.
#[derive(Debug)]
pub(crate) struct Sse {
    data: Vec<u8>,
    /// Whether a `data` line came since the last event; its text may be empty.
    any: bool,
    first: bool,
    cap: usize,
}

impl Sse {
    pub(crate) fn new(cap: usize) -> Sse {
        Sse { data: Vec::new(), any: false, first: true, cap }
    }

    /// Takes a line. An empty one ends an event, whose data is returned.
    pub(crate) fn line(&mut self, line: &[u8]) -> Result<Option<Vec<u8>>, TooLong> {
        let line = if std::mem::take(&mut self.first) {
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
        } else {
            line
        };
        if line.is_empty() {
            return Ok(self.end());
        }
        let Some(data) = line.strip_prefix(b"data") else { return Ok(None) };
        let data = match data {
            [] => data,
            [b':', b' ', data @ ..] | [b':', data @ ..] => data,
            // A longer name that only begins like ours.
            _ => return Ok(None),
        };
        if self.any {
            self.data.push(b'\n');
        }
        if self.data.len() + data.len() > self.cap {
            return Err(TooLong);
        }
        self.any = true;
        self.data.extend_from_slice(data);
        Ok(None)
    }

    /// The event that was begun, if there is one. Called at the end too: some servers leave out the
    /// last empty line.
    pub(crate) fn end(&mut self) -> Option<Vec<u8>> {
        std::mem::take(&mut self.any).then(|| std::mem::take(&mut self.data))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Lines;
    use super::*;

    /// The events of these chunks, and the error that ended them.
    fn events(chunks: &[&[u8]], cap: usize) -> (Vec<String>, Option<TooLong>) {
        let mut lines = Lines::new(cap);
        let mut sse = Sse::new(cap);
        let mut found = Vec::new();
        let mut keep = |data: Option<Vec<u8>>| {
            found.extend(data.map(|data| String::from_utf8_lossy(&data).into_owned()));
        };
        for chunk in chunks {
            let fed = lines.feed(chunk, |line| sse.line(line).map(&mut keep));
            if let Err(error) = fed {
                return (found, Some(error));
            }
        }
        let rest = lines.rest();
        match if rest.is_empty() { Ok(None) } else { sse.line(&rest) } {
            Ok(data) => keep(data),
            Err(error) => return (found, Some(error)),
        }
        let last = sse.end();
        found.extend(last.map(|data| String::from_utf8_lossy(&data).into_owned()));
        (found, None)
    }

    #[test]
    fn fields_comments_and_line_ends_are_read_as_the_standard_says() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(events(&[text.as_bytes()], 100).0, expected, "{text:?}");
        };
        check("data: a\n\ndata:b\r\n\r\ndata:  c\r\r", &["a", "b", " c"]);
        check(": hello\nevent: x\nid: 1\nretry: 5\ndata: a\ndata: b\n\n", &["a\nb"]);
        check("\u{feff}data: a\n\n\n\n: only a comment\n\n", &["a"]);
        check("data\n\ndatabase: no\n\n", &[""]);
        check("data: without an end", &["without an end"]);
        check("data: [DONE]\n", &["[DONE]"]);
        check("", &[]);
    }

    #[test]
    fn lines_and_events_have_a_cap() {
        assert_eq!(events(&[b"data: 0123456789\n\n"], 8), (vec![], Some(TooLong)));
        assert_eq!(events(&[b"data: 01234", b"56789"], 12), (vec![], Some(TooLong)));
        assert_eq!(
            events(&[b"data: 12\ndata: 34\ndata: 56\ndata: 78\n"], 8),
            (vec![], Some(TooLong))
        );
        assert_eq!(events(&[b"data: 12\n\ndata: 34\n\n"], 8).0, ["12", "34"]);
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_events(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "data: ", "data:", "data", ": c", "event: e", "é😀", "{\"a\":1}", " ", "\n", "\r\n",
                    "\r", "\n\n", "[DONE]", "\u{feff}", "id",
                ]), 0..40),
            cuts in prop::collection::vec(0..400usize, 0..12),
            cap in 4..200usize,
        ) {
            let text = pieces.concat().into_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut < text.len()).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
            let bytes: Vec<&[u8]> = text.chunks(1).collect();
            prop_assert_eq!(events(&chunks, cap), events(&[&text], cap));
            prop_assert_eq!(events(&bytes, cap), events(&[&text], cap));
        }
    }
}
