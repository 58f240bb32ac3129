//! A source file has one idea, and one idea fits on 800 lines.

use mainstay_tidy::File;

const MOST_LINES: usize = 800;

fn too_long(files: &[File]) -> Vec<String> {
    let mut violations = Vec::new();
    for file in files {
        let lines = file.rust().map_or(0, |text| text.lines().count());
        if lines > MOST_LINES {
            violations.push(format!(
                "{} has {lines} lines; split it by idea, {MOST_LINES} is the most",
                file.path
            ));
        }
    }
    violations
}

#[test]
fn no_source_file_is_longer_than_the_cap() {
    mainstay_tidy::assert_none(&too_long(&mainstay_tidy::tree().unwrap()));
}

#[test]
fn a_file_one_line_over_the_cap_is_found() {
    let files = [
        File::new("src/full.rs", &"\n".repeat(MOST_LINES)),
        File::new("src/over.rs", &"\n".repeat(MOST_LINES + 1)),
        File::new("over.md", &"\n".repeat(MOST_LINES + 1)),
    ];
    let violations = too_long(&files);
    assert_eq!(violations.len(), 1);
    assert!(violations[0].starts_with("src/over.rs has 801 lines"));
}
