//! Characters that are written by name or number.

use std::borrow::Cow;

/// The names that pages use; any other stays as it is written.
const NAMED: &[(&str, &str)] = &[
    ("amp", "&"),
    ("lt", "<"),
    ("gt", ">"),
    ("quot", "\""),
    ("apos", "'"),
    ("nbsp", "\u{a0}"),
    ("ndash", "–"),
    ("mdash", "—"),
    ("hellip", "…"),
    ("lsquo", "‘"),
    ("rsquo", "’"),
    ("sbquo", "‚"),
    ("ldquo", "“"),
    ("rdquo", "”"),
    ("bdquo", "„"),
    ("laquo", "«"),
    ("raquo", "»"),
    ("lsaquo", "‹"),
    ("rsaquo", "›"),
    ("bull", "•"),
    ("middot", "·"),
    ("copy", "©"),
    ("reg", "®"),
    ("trade", "™"),
    ("sect", "§"),
    ("para", "¶"),
    ("deg", "°"),
    ("plusmn", "±"),
    ("times", "×"),
    ("divide", "÷"),
    ("minus", "−"),
    ("ne", "≠"),
    ("le", "≤"),
    ("ge", "≥"),
    ("asymp", "≈"),
    ("infin", "∞"),
    ("micro", "µ"),
    ("frac12", "½"),
    ("frac14", "¼"),
    ("frac34", "¾"),
    ("sup1", "¹"),
    ("sup2", "²"),
    ("sup3", "³"),
    ("euro", "€"),
    ("pound", "£"),
    ("yen", "¥"),
    ("cent", "¢"),
    ("larr", "←"),
    ("uarr", "↑"),
    ("rarr", "→"),
    ("darr", "↓"),
    ("harr", "↔"),
    ("iexcl", "¡"),
    ("iquest", "¿"),
    ("ordf", "ª"),
    ("ordm", "º"),
    ("shy", ""),
    ("zwnj", ""),
    ("zwj", ""),
    ("ensp", " "),
    ("emsp", " "),
    ("thinsp", " "),
    ("alpha", "α"),
    ("beta", "β"),
    ("gamma", "γ"),
    ("delta", "δ"),
    ("epsilon", "ε"),
    ("lambda", "λ"),
    ("mu", "μ"),
    ("pi", "π"),
    ("sigma", "σ"),
    ("omega", "ω"),
    ("Delta", "Δ"),
    ("Omega", "Ω"),
    ("Sigma", "Σ"),
    ("szlig", "ß"),
    ("AElig", "Æ"),
    ("aelig", "æ"),
    ("OElig", "Œ"),
    ("oelig", "œ"),
    ("Oslash", "Ø"),
    ("oslash", "ø"),
    ("Aring", "Å"),
    ("aring", "å"),
    ("Ccedil", "Ç"),
    ("ccedil", "ç"),
    ("ETH", "Ð"),
    ("eth", "ð"),
    ("THORN", "Þ"),
    ("thorn", "þ"),
    ("Scaron", "Š"),
    ("scaron", "š"),
];

/// Letters with one of these marks are written as letter and mark.
const MARKS: &[(&str, char)] = &[
    ("grave", '\u{300}'),
    ("acute", '\u{301}'),
    ("circ", '\u{302}'),
    ("tilde", '\u{303}'),
    ("uml", '\u{308}'),
];

/// The longest name.
const LONGEST: usize = 10;

/// The text with its entities put in.
pub(super) fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut decoded = String::with_capacity(text.len());
    let mut parts = text.split('&');
    decoded.push_str(parts.next().unwrap_or_default());
    for part in parts {
        match entity(part) {
            Some((character, rest)) => {
                decoded.push_str(&character);
                decoded.push_str(rest);
            }
            None => {
                decoded.push('&');
                decoded.push_str(part);
            }
        }
    }
    Cow::Owned(decoded)
}

/// The entity that begins here, after its `&`, and what follows it.
fn entity(text: &str) -> Option<(Cow<'static, str>, &str)> {
    if let Some(number) = text.strip_prefix('#') {
        let (digits, base) = match number.strip_prefix(['x', 'X']) {
            Some(digits) => (digits, 16),
            None => (number, 10),
        };
        let end = digits.find(|digit: char| !digit.is_digit(base)).unwrap_or(digits.len());
        let code = u32::from_str_radix(&digits[..end], base).ok()?;
        let character = match code {
            // What old pages mean by these is Windows' set.
            0x80..=0x9f => windows(u8::try_from(code).ok()?),
            code => {
                char::from_u32(code).filter(|character| *character != '\0').unwrap_or('\u{fffd}')
            }
        };
        let rest = &digits[end..];
        return Some((character.to_string().into(), rest.strip_prefix(';').unwrap_or(rest)));
    }
    let end = text.bytes().take(LONGEST).position(|byte| !byte.is_ascii_alphanumeric())?;
    let (name, rest) = text.split_at(end);
    let rest = rest.strip_prefix(';')?;
    if let Some((_, character)) = NAMED.iter().find(|(known, _)| *known == name) {
        return Some(((*character).into(), rest));
    }
    let letter = name.chars().next()?;
    let mark = MARKS.iter().find(|(mark, _)| *mark == &name[1..])?.1;
    Some((accented(letter, mark)?.to_string().into(), rest))
}

fn windows(byte: u8) -> char {
    let bytes = [byte];
    let (text, _) = encoding_rs::WINDOWS_1252.decode_without_bom_handling(&bytes);
    text.chars().next().unwrap_or('\u{fffd}')
}

/// A letter with its mark, as one character of Latin-1.
fn accented(letter: char, mark: char) -> Option<char> {
    let letters = match mark {
        '\u{300}' => "AÀEÈIÌOÒUÙaàeèiìoòuù",
        '\u{301}' => "AÁEÉIÍOÓUÚYÝaáeéiíoóuúyý",
        '\u{302}' => "AÂEÊIÎOÔUÛaâeêiîoôuû",
        '\u{303}' => "AÃNÑOÕaãnñoõ",
        _ => "AÄEËIÏOÖUÜaäeëiïoöuüyÿ",
    };
    let mut letters = letters.chars();
    while let (Some(plain), Some(marked)) = (letters.next(), letters.next()) {
        if plain == letter {
            return Some(marked);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_put_in_and_what_is_none_stays() {
        let cases = [
            ("a &amp; b", "a & b"),
            ("&lt;b&gt; &#65;&#x42;&#X43 d", "<b> ABC d"),
            ("&auml;&Eacute;&ntilde;&szlig;", "äÉñß"),
            ("&#150; &#x2014;", "– —"),
            ("&#0; &#xD800; &#99999999;", "\u{fffd} \u{fffd} \u{fffd}"),
            ("AT&T &unknown; &; & &#; &#x;", "AT&T &unknown; &; & &#; &#x;"),
            ("&amp;lt;", "&lt;"),
            ("&é;", "&é;"),
        ];
        for (text, expected) in cases {
            assert_eq!(decode(text), expected, "{text}");
        }
    }
}
