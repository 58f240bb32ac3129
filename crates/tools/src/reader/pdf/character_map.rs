//! Tables from codes to text, as fonts carry them.

/// The most ranges of a table.
const MOST: usize = 100_000;

/// Which text each code stands for.
#[derive(Debug, Default)]
pub(super) struct CharacterMap {
    /// Lengths of codes, with the first and the last of each.
    spaces: Vec<(usize, u32, u32)>,
    /// First code, last code and the text of the first, in UTF-16; sorted.
    ranges: Vec<(u32, u32, Vec<u16>)>,
}

impl CharacterMap {
    /// Reads a table.
    pub(super) fn read(program: &[u8]) -> Self {
        let mut map = Self::default();
        let mut waiting: Vec<Token> = Vec::new();
        for word in tokens(program) {
            let Token::Name(name) = &word else {
                if waiting.len() <= 3 * MOST {
                    waiting.push(word);
                }
                continue;
            };
            match *name {
                b"endcodespacerange" => map.take_spaces(&waiting),
                b"endbfchar" => map.take_single(&waiting),
                b"endbfrange" => map.take_ranges(&waiting),
                // The list goes on within its brackets.
                b"[" | b"]" => {
                    waiting.push(word);
                    continue;
                }
                _ => {}
            }
            waiting.clear();
        }
        map.ranges.sort_by_key(|(first, ..)| *first);
        map
    }

    /// The text of a code. Returns `None` if the table does not have it.
    pub(super) fn text(&self, code: u32) -> Option<String> {
        let after = self.ranges.partition_point(|(first, ..)| *first <= code);
        let (first, last, text) = self.ranges[..after].last()?;
        if code > *last {
            return None;
        }
        let mut text = text.clone();
        // The last unit counts on.
        if let Some(unit) = text.last_mut() {
            *unit = unit.wrapping_add(u16::try_from(code - first).ok()?);
        }
        Some(String::from_utf16_lossy(&text))
    }

    /// How many bytes the code at the beginning has.
    pub(super) fn length(&self, bytes: &[u8]) -> Option<usize> {
        (1..=4.min(bytes.len())).find(|length| {
            let code = bytes[..*length].iter().fold(0, |code, byte| code << 8 | u32::from(*byte));
            self.spaces
                .iter()
                .any(|(of, first, last)| of == length && (*first..=*last).contains(&code))
        })
    }

    fn take_spaces(&mut self, words: &[Token]) {
        for pair in words.chunks_exact(2) {
            if let [Token::Bytes(first), Token::Bytes(last)] = pair
                && first.len() == last.len()
                && self.spaces.len() < MOST
            {
                self.spaces.push((first.len(), number(first), number(last)));
            }
        }
    }

    fn take_single(&mut self, words: &[Token]) {
        for pair in words.chunks_exact(2) {
            if let [Token::Bytes(code), Token::Bytes(text)] = pair {
                self.add(number(code), number(code), text);
            }
        }
    }

    fn take_ranges(&mut self, words: &[Token]) {
        let mut words = words.iter();
        while let (Some(Token::Bytes(first)), Some(Token::Bytes(last)), Some(to)) =
            (words.next(), words.next(), words.next())
        {
            let (first, last) = (number(first), number(last));
            match to {
                Token::Bytes(text) => self.add(first, last, text),
                Token::Name(b"[") => {
                    let mut code = first;
                    for word in words.by_ref() {
                        let Token::Bytes(text) = word else { break };
                        self.add(code, code, text);
                        code = code.saturating_add(1);
                    }
                }
                _ => {}
            }
        }
    }

    fn add(&mut self, first: u32, last: u32, text: &[u8]) {
        if self.ranges.len() >= MOST || last < first || text.len() > 64 {
            return;
        }
        let text = match text {
            [one] => vec![u16::from(*one)],
            text => {
                text.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect()
            }
        };
        self.ranges.push((first, last, text));
    }
}

#[derive(Debug)]
enum Token<'p> {
    Bytes(Vec<u8>),
    /// An operator, a name, a number: only some operators matter.
    Name(&'p [u8]),
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// The words of a program: strings of digits in angles, and the rest.
fn tokens(program: &[u8]) -> impl Iterator<Item = Token<'_>> {
    let mut rest = program;
    std::iter::from_fn(move || {
        loop {
            let [first, after @ ..] = rest else { return None };
            match first {
                b'<' if after.first() != Some(&b'<') => {
                    let end = after.iter().position(|byte| *byte == b'>').unwrap_or(after.len());
                    let digits = &after[..end];
                    rest = after.get(end + 1..).unwrap_or_default();
                    return Some(Token::Bytes(hexadecimal(digits)));
                }
                b'[' | b']' => {
                    let word = &rest[..1];
                    rest = after;
                    return Some(Token::Name(word));
                }
                b'%' => {
                    let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                    rest = &rest[end.unwrap_or(rest.len())..];
                }
                byte if byte.is_ascii_alphanumeric() || *byte == b'/' => {
                    let ends =
                        |byte: &u8| !(byte.is_ascii_alphanumeric() || b"-_.+*".contains(byte));
                    let end = after.iter().position(ends).map_or(rest.len(), |at| at + 1);
                    let word = &rest[..end];
                    rest = &rest[end..];
                    // How many follow is said before each list; nobody needs it.
                    if !word.iter().all(u8::is_ascii_digit) {
                        return Some(Token::Name(word));
                    }
                }
                _ => rest = after,
            }
        }
    })
}

fn hexadecimal(digits: &[u8]) -> Vec<u8> {
    let digits: Vec<u8> = digits
        .iter()
        .filter_map(|digit| {
            char::from(*digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
        })
        .collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_in_single_entries_ranges_and_lists() {
        let map = CharacterMap::read(
            b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap
            1 begincodespacerange <0000> <FFFF> endcodespacerange
            2 beginbfchar <0003> <0020> <0010> <00660066> endbfchar % ff
            2 beginbfrange <0024> <0026> <0041>
            <0030> <0032> [<0061> <D83DDE00> <0063>] endbfrange endcmap",
        );
        let texts = [
            (0x03, Some(" ")),
            (0x10, Some("ff")),
            (0x24, Some("A")),
            (0x26, Some("C")),
            (0x27, None),
            (0x31, Some("😀")),
            (0x32, Some("c")),
            (0x02, None),
        ];
        for (code, text) in texts {
            assert_eq!(map.text(code).as_deref(), text, "{code:x}");
        }
        assert_eq!(map.length(&[0, 3, 0]), Some(2));
        assert_eq!(CharacterMap::default().length(&[1]), None);
    }

    #[test]
    fn nonsense_is_an_empty_table() {
        for program in
            [&b"<<<<"[..], b"endbfchar", b"<", b"[ <00", b"beginbfrange <1> [ endbfrange", b"\xff%"]
        {
            assert!(CharacterMap::read(program).ranges.is_empty());
        }
    }
}
