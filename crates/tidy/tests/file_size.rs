//! A file of the tree is small enough to clone and to read.

use mainstay_tidy::File;

const MOST_BYTES: usize = 1 << 20;

fn too_big(files: &[File]) -> Vec<String> {
    files
        .iter()
        .filter(|file| file.bytes.len() > MOST_BYTES)
        .map(|file| format!("{} has {} bytes; 1 MiB is the most", file.path, file.bytes.len()))
        .collect()
}

#[test]
fn no_file_is_over_a_mebibyte() {
    mainstay_tidy::assert_none(&too_big(&mainstay_tidy::tree().unwrap()));
}

#[test]
fn a_file_one_byte_over_is_found() {
    let files = [
        File { path: "full.db".to_owned(), bytes: vec![0; MOST_BYTES] },
        File { path: "over.db".to_owned(), bytes: vec![0; MOST_BYTES + 1] },
    ];
    let violations = too_big(&files);
    assert_eq!(violations.len(), 1);
    assert!(violations[0].starts_with("over.db"));
}
