use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use super::*;

const KEY: &str = "sk-live-Zx81/Qm\"pT+77wLr=9vB";
const LONG: &str = "sk-proj-0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV1wX2yZ3";

fn redactor() -> Redactor {
    let redactor = Redactor::default();
    redactor.add("MY_KEY", KEY, Origin::Configured);
    redactor.add("LONG_KEY", LONG, Origin::Named);
    redactor
}

#[test]
fn a_secret_is_found_in_plain_and_in_its_encodings() {
    let redactor = redactor();
    let hexadecimal: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
    let percent: String = KEY
        .bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() || byte == b'-' {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect();
    let json = serde_json::to_string(KEY).unwrap();
    let twice = serde_json::to_string(&json).unwrap();
    let mut texts = vec![
        KEY.to_owned(),
        hexadecimal.to_uppercase(),
        hexadecimal,
        percent.replace("%2F", "%2f").replace("%2B", "%2b").replace("%3D", "%3d"),
        percent,
        json,
        twice,
    ];
    for before in ["", "a", "ab", "user:", "Authorization: Bearer "] {
        for after in ["", "\n", "xyz", " and more"] {
            let text = format!("{before}{KEY}{after}");
            texts.extend([STANDARD.encode(&text), URL_SAFE.encode(&text)]);
        }
    }
    for text in texts {
        let around = format!("before {text} after");
        let clean = redactor.text(&around).into_owned();
        assert!(clean.contains("[redacted: MY_KEY]"), "{text}: {clean}");
        // A letter or two that the neighbours share may stay.
        let left = clean.replace("[redacted: MY_KEY]", "");
        assert!(
            left.len() < "before  after".len() + text.len().saturating_sub(20),
            "{text}: {left}"
        );
        assert!(clean.starts_with("before ") && clean.ends_with(" after"));
    }
}

#[test]
fn what_was_cut_in_the_middle_shows_less_than_half() {
    let redactor = redactor();
    for cut in LONG.len() / 2..LONG.len() {
        let clean = redactor.text(&LONG[..cut]).into_owned();
        assert!(clean.starts_with("[redacted: LONG_KEY]"), "{clean}");
        let clean = redactor.text(&LONG[LONG.len() - cut..]).into_owned();
        assert!(clean.ends_with("[redacted: LONG_KEY]"), "{clean}");
    }
}

#[test]
fn short_plain_and_common_values_stay() {
    let redactor = Redactor::default();
    for value in [
        "",
        "x",
        "test",
        "12345678",
        "password",
        "not-needed",
        "sk-no-key-required",
        "aaaaaaaa11",
        "000000000000",
        "ollama",
    ] {
        redactor.add("NAME", value, Origin::Configured);
    }
    for value in
        ["/var/lib/keys/id_1", "https://example.com/x1", "hunter22", "ssh-agent", "enabled"]
    {
        redactor.add("NAME", value, Origin::Named);
    }
    assert_eq!(redactor.secrets(), []);
    redactor.add("NAME", "hunter22", Origin::Configured);
    assert_eq!(redactor.secrets().len(), 1);
}

#[test]
fn names_of_secrets_are_told_from_others() {
    for name in [
        "OPENAI_API_KEY",
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "DB_PASSWORD",
        "npm_config_authToken",
        "PGPASSWORD",
        "CI_JOB_TOKEN",
        "MYAPIKEY",
        "x-api-key",
    ] {
        assert!(names_a_secret(name), "{name}");
    }
    for name in
        ["PATH", "PWD", "OLDPWD", "HOME", "KEYBOARD", "LC_MONETARY", "PATIENCE", "XDG_SESSION_ID"]
    {
        assert!(!names_a_secret(name), "{name}");
    }
}

#[test]
fn a_secret_in_pieces_does_not_slip_and_everything_else_arrives() {
    let redactor = redactor();
    let encoded = STANDARD.encode(format!("a{KEY}"));
    let text = format!("süß {KEY}, {LONG}; {encoded} and sk-live-nothing {}", &KEY[..9]);
    let whole = redactor.text(&text).into_owned();
    for size in 1..text.len() {
        let mut flow = Flow::default();
        let mut told = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            told.extend(flow.push(&redactor, piece));
        }
        told.extend(flow.rest(&redactor));
        assert_eq!(String::from_utf8(told).unwrap(), whole, "pieces of {size}");
    }
}

#[test]
fn values_are_cleaned_everywhere_and_marks_are_known_again() {
    let redactor = redactor();
    let mut value = serde_json::json!({ "a": [KEY, 3, { KEY: format!("x{LONG}") }], "b": "plain" });
    assert!(redactor.value(&mut value));
    let text = value.to_string();
    assert!(!text.contains("sk-") && text.contains("plain"), "{text}");
    assert_eq!(redactor.mark_in(&text), Some("[redacted: MY_KEY]"));
    assert_eq!(redactor.mark_in("[redacted: OTHER] [redacted: "), None);
    assert!(!redactor.value(&mut serde_json::json!({ "a": "b" })));
    assert_eq!(Redactor::default().text(KEY), KEY);
}
