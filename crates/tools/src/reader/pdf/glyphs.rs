//! The text of glyphs by their names, and the encodings that fonts use.

use encoding_rs::{MACINTOSH, UTF_16BE, WINDOWS_1252};

/// Names that are no letters, or not only. Letters are named after themselves, numbers by `uni`.
const NAMES: &[(&str, &str)] = &[
    ("space", " "),
    ("nbspace", " "),
    ("exclam", "!"),
    ("quotedbl", "\""),
    ("numbersign", "#"),
    ("dollar", "$"),
    ("percent", "%"),
    ("ampersand", "&"),
    ("quotesingle", "'"),
    ("parenleft", "("),
    ("parenright", ")"),
    ("asterisk", "*"),
    ("plus", "+"),
    ("comma", ","),
    ("hyphen", "-"),
    ("sfthyphen", "-"),
    ("period", "."),
    ("slash", "/"),
    ("zero", "0"),
    ("one", "1"),
    ("two", "2"),
    ("three", "3"),
    ("four", "4"),
    ("five", "5"),
    ("six", "6"),
    ("seven", "7"),
    ("eight", "8"),
    ("nine", "9"),
    ("colon", ":"),
    ("semicolon", ";"),
    ("less", "<"),
    ("equal", "="),
    ("greater", ">"),
    ("question", "?"),
    ("at", "@"),
    ("bracketleft", "["),
    ("backslash", "\\"),
    ("bracketright", "]"),
    ("asciicircum", "^"),
    ("underscore", "_"),
    ("grave", "`"),
    ("braceleft", "{"),
    ("bar", "|"),
    ("braceright", "}"),
    ("asciitilde", "~"),
    ("quoteleft", "‘"),
    ("quoteright", "’"),
    ("quotedblleft", "“"),
    ("quotedblright", "”"),
    ("quotesinglbase", "‚"),
    ("quotedblbase", "„"),
    ("guillemotleft", "«"),
    ("guillemotright", "»"),
    ("guilsinglleft", "‹"),
    ("guilsinglright", "›"),
    ("endash", "–"),
    ("emdash", "—"),
    ("minus", "−"),
    ("ellipsis", "…"),
    ("bullet", "•"),
    ("periodcentered", "·"),
    ("dagger", "†"),
    ("daggerdbl", "‡"),
    ("section", "§"),
    ("paragraph", "¶"),
    ("copyright", "©"),
    ("registered", "®"),
    ("trademark", "™"),
    ("degree", "°"),
    ("plusminus", "±"),
    ("multiply", "×"),
    ("divide", "÷"),
    ("fraction", "⁄"),
    ("onehalf", "½"),
    ("onequarter", "¼"),
    ("threequarters", "¾"),
    ("onesuperior", "¹"),
    ("twosuperior", "²"),
    ("threesuperior", "³"),
    ("perthousand", "‰"),
    ("Euro", "€"),
    ("sterling", "£"),
    ("yen", "¥"),
    ("cent", "¢"),
    ("currency", "¤"),
    ("florin", "ƒ"),
    ("exclamdown", "¡"),
    ("questiondown", "¿"),
    ("ordfeminine", "ª"),
    ("ordmasculine", "º"),
    ("brokenbar", "¦"),
    ("logicalnot", "¬"),
    ("mu", "μ"),
    ("ff", "ff"),
    ("fi", "fi"),
    ("fl", "fl"),
    ("ffi", "ffi"),
    ("ffl", "ffl"),
    ("germandbls", "ß"),
    ("AE", "Æ"),
    ("ae", "æ"),
    ("OE", "Œ"),
    ("oe", "œ"),
    ("Oslash", "Ø"),
    ("oslash", "ø"),
    ("Lslash", "Ł"),
    ("lslash", "ł"),
    ("Eth", "Ð"),
    ("eth", "ð"),
    ("Thorn", "Þ"),
    ("thorn", "þ"),
    ("dotlessi", "ı"),
    ("dotlessj", "ȷ"),
    ("notequal", "≠"),
    ("lessequal", "≤"),
    ("greaterequal", "≥"),
    ("approxequal", "≈"),
    ("infinity", "∞"),
    ("summation", "∑"),
    ("product", "∏"),
    ("integral", "∫"),
    ("radical", "√"),
    ("partialdiff", "∂"),
    ("element", "∈"),
    ("arrowright", "→"),
    ("arrowleft", "←"),
    ("arrowup", "↑"),
    ("arrowdown", "↓"),
    ("alpha", "α"),
    ("beta", "β"),
    ("gamma", "γ"),
    ("delta", "δ"),
    ("epsilon", "ε"),
    ("zeta", "ζ"),
    ("eta", "η"),
    ("theta", "θ"),
    ("kappa", "κ"),
    ("lambda", "λ"),
    ("nu", "ν"),
    ("xi", "ξ"),
    ("pi", "π"),
    ("rho", "ρ"),
    ("sigma", "σ"),
    ("tau", "τ"),
    ("phi", "φ"),
    ("chi", "χ"),
    ("psi", "ψ"),
    ("omega", "ω"),
    ("Gamma", "Γ"),
    ("Delta", "Δ"),
    ("Theta", "Θ"),
    ("Lambda", "Λ"),
    ("Pi", "Π"),
    ("Sigma", "Σ"),
    ("Phi", "Φ"),
    ("Psi", "Ψ"),
    ("Omega", "Ω"),
];

/// Marks on letters, each with the letters that have them and what they are then.
const MARKED: &[(&str, &str)] = &[
    ("grave", "AÀEÈIÌOÒUÙaàeèiìoòuù"),
    ("acute", "AÁCĆEÉIÍNŃOÓSŚUÚYÝZŹaácćeéiínńoósśuúyýzź"),
    ("circumflex", "AÂEÊIÎOÔUÛaâeêiîoôuû"),
    ("tilde", "AÃNÑOÕaãnñoõ"),
    ("dieresis", "AÄEËIÏOÖUÜYŸaäeëiïoöuüyÿ"),
    ("ring", "AÅUŮaåuů"),
    ("cedilla", "CÇSŞTŢcçsştţ"),
    ("caron", "CČDĎEĚNŇRŘSŠTŤZŽcčdďeěnňrřsštťzž"),
    ("ogonek", "AĄEĘaąeę"),
    ("breve", "AĂGĞaăgğ"),
    ("macron", "AĀEĒIĪOŌUŪaāeēiīoōuū"),
    ("dotaccent", "EĖIİZŻeėzż"),
    ("hungarumlaut", "OŐUŰoőuű"),
];

/// The text of a glyph by its name. Returns `None` if the name says nothing.
pub(super) fn text(name: &str) -> Option<String> {
    // A variant of a glyph shows the same.
    let name = match name.split_once('.') {
        Some(("", _)) => return None,
        Some((name, _)) => name,
        None => name,
    };
    if let Some((_, text)) = NAMES.iter().find(|(known, _)| *known == name) {
        return Some((*text).to_owned());
    }
    let mut letters = name.chars();
    let first = letters.next()?;
    let rest = letters.as_str();
    if rest.is_empty() && first.is_ascii_alphabetic() {
        return Some(first.to_string());
    }
    if let Some((_, marked)) = MARKED.iter().find(|(mark, _)| *mark == rest) {
        let letters: Vec<char> = marked.chars().collect();
        return letters
            .chunks_exact(2)
            .find(|pair| pair[0] == first)
            .map(|pair| pair[1].to_string());
    }
    let number = |digits: &str| {
        let code = u32::from_str_radix(digits, 16).ok()?;
        char::from_u32(code).map(String::from)
    };
    if let Some(digits) = name.strip_prefix("uni").filter(|digits| digits.len() >= 4) {
        return number(digits.get(..4)?);
    }
    if let Some(digits) = name.strip_prefix('u').filter(|digits| (4..=6).contains(&digits.len())) {
        return number(digits);
    }
    // A ligature is named by its parts.
    let parts: Vec<&str> = name.split('_').collect();
    if parts.len() > 1 && parts.iter().all(|part| !part.is_empty() && !part.contains('.')) {
        return parts.into_iter().map(text).collect();
    }
    None
}

/// The encoding of fonts that name none.
pub(super) fn standard() -> Box<[String; 256]> {
    let mut texts = by_encoding(WINDOWS_1252);
    texts[0x27] = "’".to_owned();
    texts[0x60] = "‘".to_owned();
    // What this encoding has above ASCII, in its order.
    let upper: &[(usize, &str)] = &[
        (0xa1, "¡¢£⁄¥ƒ§¤'“«‹›ﬁﬂ"),
        (0xb1, "–†‡·"),
        (0xb6, "¶•‚„”»…‰"),
        (0xbf, "¿"),
        (0xd0, "—"),
        (0xe1, "Æ"),
        (0xe3, "ª"),
        (0xe8, "ŁØŒº"),
        (0xf1, "æ"),
        (0xf5, "ı"),
        (0xf8, "łøœß"),
    ];
    for text in texts.iter_mut().skip(0x80) {
        text.clear();
    }
    for (first, letters) in upper {
        for (code, letter) in (*first..).zip(letters.chars()) {
            texts[code] = match letter {
                'ﬁ' => "fi".to_owned(),
                'ﬂ' => "fl".to_owned(),
                letter => letter.to_string(),
            };
        }
    }
    texts
}

/// An encoding by its name. Returns `None` if nobody knows it.
pub(super) fn named_encoding(name: &[u8]) -> Option<Box<[String; 256]>> {
    match name {
        b"WinAnsiEncoding" => Some(by_encoding(WINDOWS_1252)),
        b"MacRomanEncoding" => Some(by_encoding(MACINTOSH)),
        b"StandardEncoding" => Some(standard()),
        _ => None,
    }
}

fn by_encoding(encoding: &'static encoding_rs::Encoding) -> Box<[String; 256]> {
    Box::new(std::array::from_fn(|code| {
        let byte = [u8::try_from(code).unwrap_or(0)];
        let text = encoding.decode_without_bom_handling(&byte).0;
        text.chars().filter(|letter| !letter.is_control()).collect()
    }))
}

/// A text outside of pages, such as a title: UTF-16 or UTF-8 with a mark, or nearly Latin-1.
pub(super) fn text_string(bytes: &[u8]) -> String {
    let text = match bytes {
        [0xfe, 0xff, rest @ ..] => UTF_16BE.decode_without_bom_handling(rest).0,
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest),
        bytes => WINDOWS_1252.decode_without_bom_handling(bytes).0,
    };
    let text: String = text.chars().filter(|letter| !letter.is_control()).take(300).collect();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glyphs_are_known_by_their_names() {
        let cases = [
            ("A", Some("A")),
            ("eacute", Some("é")),
            ("Scaron", Some("Š")),
            ("ffi", Some("ffi")),
            ("uni20AC", Some("€")),
            ("u1F600", Some("😀")),
            ("a.swash", Some("a")),
            ("f_f_i", Some("ffi")),
            ("underscore", Some("_")),
            (".notdef", None),
            ("g123", None),
            ("uniD800", None),
            ("", None),
            ("_", None),
        ];
        for (name, expected) in cases {
            assert_eq!(text(name).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn titles_are_read_in_their_encodings() {
        assert_eq!(text_string(b"\xfe\xff\0H\0\xe9"), "Hé");
        assert_eq!(text_string(b"caf\xe9\n"), "café");
        assert_eq!(standard()[0xae], "fi");
        assert_eq!(named_encoding(b"MacRomanEncoding").unwrap()[0x8e], "é");
    }
}
