//! PDF files through `read_file`, read by a process of its own.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a panic is a test's error")]

use std::path::Path;
use std::time::Duration;

use mainstay_testkit::process::{example, wait_for};
use mainstay_testkit::web::{Page, Visit, WebServer};
use mainstay_tools::keeper::Launch;
use mainstay_tools::{
    Fact, Fetch, Grant, Invocation, Keeper, Outcome, Piece, Reader, Web, Workplace, file_tools,
};
use serde_json::{Value, json};

fn workplace(directory: &Path) -> Workplace {
    // Nothing here starts it.
    let keeper = Keeper::new(Launch {
        program: "/nonexistent".into(),
        arguments: Vec::new(),
        spool: "/nonexistent".into(),
        grace: Duration::ZERO,
    });
    let reader = Reader { program: example("agent"), arguments: vec!["reader".into()] };
    Workplace { reader: Some(reader), ..Workplace::new(directory, keeper) }
}

async fn read(directory: &Path, arguments: Value) -> Outcome {
    let workplace = workplace(directory);
    let call = Invocation {
        id: "c",
        session: "s",
        arguments: &arguments,
        workplace: &workplace,
        grant: Grant::NONE,
        target: None,
    };
    let tool = file_tools().into_iter().find(|tool| tool.spec().name == "read_file").unwrap();
    tool.run(call, None).await
}

fn text(outcome: &Outcome) -> String {
    let words = outcome.pieces.iter().map(|piece| match piece {
        Piece::Said(words) | Piece::Data(words) | Piece::Instructions(words) => words.as_str(),
        Piece::Image(_) => "[image]",
    });
    words.collect::<Vec<_>>().join("\n")
}

/// A PDF file with one page for each stream: what stands in its dictionary, and its bytes.
fn pdf(streams: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut objects: Vec<Vec<u8>> = Vec::new();
    let count = streams.len();
    let kids: Vec<String> = (0..count).map(|page| format!("{} 0 R", 4 + page)).collect();
    objects.push(b"<< /Type /Catalog /Pages 2 0 R >>".to_vec());
    let kids = kids.join(" ");
    objects.push(format!("<< /Type /Pages /Kids [{kids}] /Count {count} >>").into_bytes());
    objects.push(b"<< /Type /Font /Subtype /Type1 /Encoding /WinAnsiEncoding >>".to_vec());
    for page in 0..count {
        let content = 4 + count + page;
        objects.push(
            format!(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {content} 0 R \
                 /Resources << /Font << /F1 3 0 R >> >> >>"
            )
            .into_bytes(),
        );
    }
    for (entries, bytes) in streams {
        let head = format!("<< {entries} /Length {} >>\nstream\n", bytes.len());
        objects.push([head.as_bytes(), bytes, b"\nendstream"].concat());
    }
    let mut file = b"%PDF-1.5\n".to_vec();
    let mut places = Vec::new();
    for (number, object) in (1..).zip(&objects) {
        places.push(file.len());
        file.extend(format!("{number} 0 obj\n").bytes().chain(object.iter().copied()));
        file.extend(b"\nendobj\n");
    }
    let table = file.len();
    file.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).bytes());
    for place in places {
        file.extend(format!("{place:010} 00000 n \n").bytes());
    }
    let size = objects.len() + 1;
    let end = format!("trailer << /Size {size} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF");
    file.extend(end.bytes());
    file
}

fn pages(count: usize, words: impl Fn(usize) -> String) -> Vec<u8> {
    let streams: Vec<(&str, Vec<u8>)> = (1..=count)
        .map(|page| ("", format!("BT /F1 12 Tf 72 700 Td ({}) Tj ET", words(page)).into_bytes()))
        .collect();
    pdf(&streams)
}

#[tokio::test]
async fn a_document_is_read_by_page_and_remembered() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.pdf"), pages(3, |page| format!("text of {page}")))
        .unwrap();
    let outcome = read(directory.path(), json!({ "path": "a.pdf" })).await;
    assert!(!outcome.failed, "{outcome:?}");
    let words = text(&outcome);
    assert!(words.contains("a PDF file with 3 pages."), "{words}");
    assert!(words.contains("--- page 1 ---\ntext of 1\n--- page 2 ---\ntext of 2\n"), "{words}");
    assert!(matches!(&outcome.facts[..], [Fact::File { changed: false, .. }]), "{outcome:?}");
    let part = read(directory.path(), json!({ "path": "a.pdf", "offset": 2, "limit": 1 })).await;
    let words = text(&part);
    assert!(words.contains("pages 2 to 2 of 3. Read on with offset 3."), "{words}");
    assert!(words.contains("text of 2") && !words.contains("text of 3"), "{words}");
    let past = read(directory.path(), json!({ "path": "a.pdf", "offset": 9 })).await;
    assert!(past.failed && text(&past).contains("has only 3 pages"), "{past:?}");
}

#[tokio::test]
async fn a_long_document_is_shown_in_whole_pages() {
    let directory = tempfile::tempdir().unwrap();
    let long = pages(8, |page| format!("{page} {}", "word ".repeat(2_000)));
    std::fs::write(directory.path().join("long.pdf"), long).unwrap();
    let outcome = read(directory.path(), json!({ "path": "long.pdf" })).await;
    let words = text(&outcome);
    assert!(words.contains("pages 1 to 4 of 8. Read on with offset 5."), "{}", &words[..200]);
    assert!(words.len() < 50_000);
}

/// Two gibibytes of zeros, packed into thirteen mebibytes: each thirteen bits say "the last byte, 258
/// times".
fn two_gibibytes() -> Vec<u8> {
    let mut bits: Vec<bool> = Vec::new();
    // The last block, in the fixed code; then a zero.
    bits.extend([true, true, false]);
    bits.extend("00110000".bytes().map(|bit| bit == b'1'));
    let again = "1100010100000".bytes().map(|bit| bit == b'1');
    // Thirteen bits eight times are thirteen bytes.
    let mut packed = vec![0x78, 0x9c];
    let cycle: Vec<bool> = again.cycle().take(13 * 8).collect();
    bits.extend(&cycle[..13]);
    bits.extend(&cycle[..8]);
    let rest: Vec<bool> = cycle[8..].iter().chain(&cycle[..8]).copied().collect();
    let bytes = |bits: &[bool]| -> Vec<u8> {
        let byte =
            |bits: &[bool]| bits.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
        bits.chunks(8).map(byte).collect()
    };
    packed.extend(bytes(&bits));
    packed.extend(bytes(&rest).repeat(1 << 20));
    packed
}

#[tokio::test]
async fn slow_hostile_documents_cost_a_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let bomb = pdf(&[("/Filter /FlateDecode", two_gibibytes())]);
    let deep = pdf(&[("", b"[".repeat(2 << 20))]);
    let nested = [b"%PDF-1.4\n1 0 obj\n".as_slice(), &b"<< /A ".repeat(5_000)].concat();
    let loops =
        b"%PDF-1.4\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj 2 0 obj << /Type /Pages \
        /Kids [2 0 R 2 0 R 2 0 R] /Count 3 >> endobj trailer << /Root 1 0 R >>";
    let noise: Vec<u8> = b"%PDF-1.7\n"
        .iter()
        .copied()
        .chain((0..200_000_u32).map(|n| ((n * 7919) >> 5) as u8))
        .collect();
    let cases: [(&str, Vec<u8>); 6] = [
        ("bomb", bomb),
        ("deep", deep),
        ("nested", nested),
        ("loops", loops.to_vec()),
        ("noise", noise),
        ("short", b"%PDF-".to_vec()),
    ];
    for (name, bytes) in cases {
        std::fs::write(directory.path().join(name), bytes).unwrap();
        let outcome = read(directory.path(), json!({ "path": name })).await;
        let words = text(&outcome);
        let told = outcome.failed || words.contains("No text");
        assert!(told && words.len() < 400, "{name}: {words}");
        let broke = words.contains("it crashed the document reader");
        assert_eq!(broke, name == "bomb", "{name}: {words}");
    }
    std::fs::write(directory.path().join("scan.pdf"), pdf(&[("", b"0 0 9 9 re f".to_vec())]))
        .unwrap();
    let outcome = read(directory.path(), json!({ "path": "scan.pdf" })).await;
    assert!(
        text(&outcome).contains("No text: there is no text in it; it is probably scanned."),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_call_that_is_dropped_takes_its_reader_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let slow = pdf(&[("", b"q Q ".repeat(2 << 20))]);
    std::fs::write(directory.path().join("slow.pdf"), slow).unwrap();
    let running = || {
        // A child belongs to the thread that started it.
        let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let children =
            threads.map(|thread| std::fs::read_to_string(thread.path().join("children")));
        children.flatten().any(|children| {
            children.split_whitespace().any(|child| {
                let line = std::fs::read_to_string(format!("/proc/{child}/cmdline"));
                line.unwrap_or_default().contains("\0reader\0")
            })
        })
    };
    tokio::select! {
        outcome = read(directory.path(), json!({ "path": "slow.pdf" })) => panic!("{outcome:?}"),
        () = async {
            while !running() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        } => {}
    }
    wait_for("the end of the reader", Duration::from_secs(5), || !running());
}

#[tokio::test]
async fn a_fetched_document_is_text_too() {
    let server = WebServer::start(|_: &Visit| {
        Page::new("application/octet-stream", pages(2, |page| format!("from afar {page}")))
    });
    let directory = tempfile::tempdir().unwrap();
    let workplace = workplace(directory.path());
    let arguments = json!({ "urls": [server.url("/x.pdf")] });
    let call = Invocation {
        id: "c",
        session: "s",
        arguments: &arguments,
        workplace: &workplace,
        grant: Grant::NONE,
        target: None,
    };
    let tool = Fetch::new(Web::new(&[server.place()]).unwrap());
    let outcome = mainstay_tools::Tool::run(&tool, call, None).await;
    assert!(text(&outcome).contains("--- page 2 of 2 ---\nfrom afar 2"), "{outcome:?}");
}
