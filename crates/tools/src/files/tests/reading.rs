//! `read_file`.

use std::fs;

use mainstay_message::Image;
use serde_json::json;

use super::{Place, assert_fails, assert_says, assert_works, data};
use crate::files::text::hash;
use crate::{Fact, Piece};

#[tokio::test]
async fn lines_are_numbered_and_the_file_is_remembered() {
    let place = Place::new();
    let path = place.file("a.txt", "one\ntwo\n");
    let outcome = place.call("read_file", json!({ "path": "a.txt" })).await;
    assert_works(&outcome);
    assert_eq!(data(&outcome), "1\tone\n2\ttwo\n");
    let expected = Fact::File {
        path: path.to_str().unwrap().to_owned(),
        hash: hash(b"one\ntwo\n"),
        changed: false,
    };
    assert_eq!(outcome.facts, [expected]);
    assert_eq!(place.workplace.seen.last(&path).unwrap().hash, hash(b"one\ntwo\n"));
}

#[tokio::test]
async fn a_part_is_read_with_offset_and_limit_and_the_way_on_is_told() {
    let place = Place::new();
    place.file("a.txt", "1\n2\n3\n4\n5");
    let part = place.call("read_file", json!({ "path": "a.txt", "offset": 2, "limit": 2 })).await;
    assert_eq!(data(&part), "2\t2\n3\t3\n");
    assert_says(&part, "lines 2 to 3 of 5. Read on with offset 4.");
    let rest = place.call("read_file", json!({ "path": "a.txt", "offset": 4 })).await;
    assert_eq!(data(&rest), "4\t4\n5\t5\n");
    assert_says(&rest, "lines 4 to the last, 5.");
    let past = place.call("read_file", json!({ "path": "a.txt", "offset": 9 })).await;
    assert_fails(&past, "has only 5 lines");
}

#[tokio::test]
async fn what_is_shown_is_capped_in_lines_and_in_bytes() {
    let place = Place::new();
    let lines: String = (1..=5_000).map(|line| format!("{line}\n")).collect();
    place.file("many", &lines);
    let outcome = place.call("read_file", json!({ "path": "many" })).await;
    assert_eq!(data(&outcome).lines().count(), 2_000);
    assert_says(&outcome, "lines 1 to 2000 of 5000. Read on with offset 2001.");
    assert_eq!(outcome.facts.len(), 1);

    place.file("wide", format!("{}\n", "x".repeat(1_000)).repeat(100));
    let outcome = place.call("read_file", json!({ "path": "wide" })).await;
    assert!(data(&outcome).len() <= 48 << 10);
    assert_says(&outcome, "lines 1 to 48 of 100. Read on with offset 49.");

    place.file("long", "y".repeat(3 << 20));
    let outcome = place.call("read_file", json!({ "path": "long" })).await;
    assert!(data(&outcome).len() < 2_100);
    assert!(data(&outcome).contains("[… 3145728 bytes in all]"));
}

#[tokio::test]
async fn a_huge_file_is_read_in_part_and_not_remembered() {
    let place = Place::new();
    let path = place.file("huge", "first\n");
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(70 << 20).unwrap();
    let outcome = place.call("read_file", json!({ "path": "huge", "limit": 1 })).await;
    // Its first bytes hold NULs.
    assert_fails(&outcome, "binary file of 70 MiB");
    let text = format!("{}\n", "z".repeat(99)).repeat(680_000);
    place.file("text", text);
    let outcome =
        place.call("read_file", json!({ "path": "text", "offset": 600_000, "limit": 1 })).await;
    assert!(data(&outcome).starts_with("600000\tzzz"));
    assert_says(&outcome, "Read on with offset 600001.");
    assert_eq!(outcome.facts, []);
}

#[tokio::test]
async fn empty_files_marks_line_ends_and_odd_bytes_are_told() {
    let place = Place::new();
    place.file("empty", "");
    assert_says(&place.call("read_file", json!({ "path": "empty" })).await, "is empty");
    place.file("windows", "\u{FEFF}a\r\nb\r\n");
    let outcome = place.call("read_file", json!({ "path": "windows" })).await;
    assert_eq!(data(&outcome), "1\ta\n2\tb\n");
    assert_says(&outcome, "CRLF");
    place.file("latin", b"caf\xe9\n");
    let outcome = place.call("read_file", json!({ "path": "latin" })).await;
    assert_eq!(data(&outcome), "1\tcaf\u{FFFD}\n");
    assert_says(&outcome, "not UTF-8");
}

#[tokio::test]
async fn what_is_no_text_is_told_as_such() {
    let place = Place::new();
    place.file("program", b"\x7fELF\0\0");
    assert_fails(
        &place.call("read_file", json!({ "path": "program" })).await,
        "binary file of 6 bytes",
    );
    fs::create_dir(place.path("directory")).unwrap();
    assert_fails(&place.call("read_file", json!({ "path": "directory" })).await, "Use `list`");
    assert_fails(
        &place.call("read_file", json!({ "path": "nothing" })).await,
        "nothing does not exist",
    );
    assert_fails(&place.call("read_file", json!({ "path": "" })).await, "empty");
    assert_fails(
        &place.call("read_file", json!({ "path": "program/x" })).await,
        "Could not resolve",
    );
}

#[tokio::test]
async fn pictures_come_as_pictures_by_their_first_bytes() {
    let place = Place::new();
    for (bytes, media_type) in [
        (&b"\x89PNG\r\n\x1a\nrest"[..], "image/png"),
        (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        (b"GIF89a\0rest", "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
    ] {
        place.file("picture.txt", bytes);
        let outcome = place.call("read_file", json!({ "path": "picture.txt" })).await;
        let Some(Piece::Image(Image { media_type: found, base64 })) = outcome.pieces.last() else {
            panic!("{media_type}: {outcome:?}");
        };
        assert_eq!(found, media_type);
        use base64::Engine;
        let decoded = base64::engine::general_purpose::STANDARD.decode(base64).unwrap();
        assert_eq!(decoded, bytes);
        assert_eq!(outcome.facts.len(), 1);
    }
    let mut big = b"\x89PNG\r\n\x1a\n".to_vec();
    big.resize(5 << 20, 7);
    place.file("big.png", &big);
    assert_works(&place.call("read_file", json!({ "path": "big.png" })).await);
    big.push(7);
    place.file("big.png", &big);
    assert_fails(&place.call("read_file", json!({ "path": "big.png" })).await, "Make it smaller");
}
