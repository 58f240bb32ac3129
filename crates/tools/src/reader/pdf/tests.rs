//! PDF files made here, well and badly.

use super::*;

/// A PDF file with these objects, numbered from one; the first is the catalogue.
fn file(objects: &[String]) -> Vec<u8> {
    let mut bytes = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for (number, object) in (1..).zip(objects) {
        places.push(bytes.len());
        bytes.extend(format!("{number} 0 obj\n{object}\nendobj\n").bytes());
    }
    let table = bytes.len();
    bytes.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).bytes());
    for place in places {
        bytes.extend(format!("{place:010} 00000 n \n").bytes());
    }
    let size = objects.len() + 1;
    bytes.extend(
        format!("trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n").bytes(),
    );
    bytes
}

fn stream(content: &str) -> String {
    format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len())
}

/// A file with one page for each content, in one font.
fn pages(contents: &[&str], font: &str, more: &[String]) -> Vec<u8> {
    let count = contents.len();
    let kids: Vec<String> = (0..count).map(|page| format!("{} 0 R", 4 + page)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{}] /Count {count} >>", kids.join(" ")),
        font.to_owned(),
    ];
    for page in 0..count {
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {} 0 R /Resources \
             << /Font << /F1 3 0 R >> /XObject << /X1 {} 0 R >> >> >>",
            4 + count + page,
            4 + 2 * count,
        ));
    }
    objects.extend(contents.iter().map(|content| stream(content)));
    objects.extend(more.iter().cloned());
    file(&objects)
}

const HELVETICA: &str =
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>";

fn text(contents: &str) -> String {
    let found = read(pages(&[contents], HELVETICA, &[]), Pages::ALL).unwrap();
    found.pages[0].1.clone()
}

#[test]
fn words_lines_and_paragraphs_follow_from_where_glyphs_stand() {
    let drawn = text(
        "BT /F1 12 Tf 72 700 Td (Hello) Tj 40 0 Td (World) Tj 0 -14 Td (next line) Tj \
         0 -40 Td (paragraph) Tj ET",
    );
    // The second piece moves by 40 from the first one's beginning, the third from the second's.
    assert_eq!(drawn, "Hello World\nnext line\n\nparagraph");
    assert_eq!(text("BT /F1 10 Tf [(Ker) -20 (ning) -600 (gap)] TJ ET"), "Kerning gap");
    assert_eq!(text("BT /F1 10 Tf 12 TL (a) Tj T* (b) Tj (c) ' ET"), "a\nb\nc");
    assert_eq!(text("BT /F1 10 Tf 0 1 -1 0 50 50 Tm (up) Tj 0 -12 Td (there) Tj ET"), "up\nthere");
    assert_eq!(text("BT /F1 12 Tf (na\\357ve \\223q\\224) Tj ET"), "naïve “q”");
}

#[test]
fn pages_are_counted_and_a_range_of_them_is_read() {
    let contents: Vec<String> =
        (1..=5).map(|page| format!("BT /F1 12 Tf 72 700 Td (page {page}) Tj ET")).collect();
    let contents: Vec<&str> = contents.iter().map(String::as_str).collect();
    let file = pages(&contents, HELVETICA, &[]);
    let found = read(file.clone(), Pages { first: 2, count: 2 }).unwrap();
    assert_eq!((found.total, found.pages.len()), (5, 2));
    assert_eq!(found.pages, [(2, "page 2".to_owned()), (3, "page 3".to_owned())]);
    let past = read(file, Pages { first: 9, count: 1 }).unwrap();
    assert_eq!((past.total, past.pages.len()), (5, 0));
}

#[test]
fn glyphs_are_known_by_differences_and_by_tables() {
    let differing =
        "<< /Type /Font /Subtype /Type1 /Encoding << /Differences [65 /eacute /ffi /uni20AC] >> >>";
    let found = read(pages(&["BT /F1 9 Tf (ABC) Tj ET"], differing, &[]), Pages::ALL).unwrap();
    assert_eq!(found.pages[0].1, "éffi€");

    let composite = "<< /Type /Font /Subtype /Type0 /Encoding /Identity-H /ToUnicode 7 0 R \
                     /DescendantFonts [<< /DW 500 /W [1 [600 600] 3 9 400] >>] >>";
    let table = stream(
        "1 begincodespacerange <0000> <FFFF> endcodespacerange 1 beginbfrange <0001> <0009> <3042> endbfrange",
    );
    let content = "BT /F1 9 Tf <000100020009> Tj ET";
    // The objects of one page are 4 and 5; 6 stands for the form, 7 is the table.
    let more = ["<< >>".to_owned(), table];
    let found = read(pages(&[content], composite, &more), Pages::ALL).unwrap();
    assert_eq!(found.pages[0].1, "あぃお");
}

#[test]
fn text_in_forms_is_read_and_a_form_that_draws_itself_ends() {
    let inner = "BT /F1 12 Tf (inside) Tj ET /X1 Do";
    let form = format!(
        "<< /Type /XObject /Subtype /Form /Length {} /Resources << /Font << /F1 3 0 R >> \
         /XObject << /X1 6 0 R >> >> >>\nstream\n{inner}\nendstream",
        inner.len()
    );
    let found = read(pages(&["/X1 Do"], HELVETICA, &[form]), Pages::ALL).unwrap();
    assert!(found.pages[0].1.contains("inside"), "{found:?}");
}

#[test]
fn a_file_without_text_says_why() {
    let found = read(pages(&["0 0 10 10 re f"], HELVETICA, &[]), Pages::ALL).unwrap();
    assert!(found.is_blank() && found.text().contains("probably scanned"), "{found:?}");
    let nameless =
        "<< /Type /Font /Subtype /Type0 /Encoding /Identity-H /DescendantFonts [<< >>] >>";
    let found = read(pages(&["BT /F1 9 Tf <00010002> Tj ET"], nameless, &[]), Pages::ALL).unwrap();
    assert!(found.is_blank() && found.text().contains("do not say"), "{found:?}");
}

#[test]
fn damaged_files_are_read_as_far_as_they_go_or_refused_and_never_break_the_reader() {
    assert!(read(b"%PDF-1.4 nothing more".to_vec(), Pages::ALL).unwrap_err().contains("damaged"));
    let whole = pages(&["BT /F1 12 Tf 72 700 Td (Hello) Tj ET"], HELVETICA, &[]);
    for length in (0..whole.len()).step_by(7) {
        let _ = read(whole[..length].to_vec(), Pages::ALL);
    }
    for place in 0..whole.len() {
        let mut changed = whole.clone();
        changed[place] ^= 0x15;
        let _ = read(changed, Pages::ALL);
    }
}
