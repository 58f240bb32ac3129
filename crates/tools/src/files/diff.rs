//! Shows a change.

use std::time::Duration;

use similar::TextDiff;

use super::text::clip;

const SHOWN_BYTES: usize = 4 << 10;
const LINE_BYTES: usize = 300;

/// The change as a unified diff with a line around each place, shortened where it is long.
pub(super) fn diff(old: &[u8], new: &[u8]) -> String {
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let (old_lines, new_lines): (Vec<&str>, Vec<&str>) =
        (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let diff = TextDiff::configure()
        // After this time the rest counts as replaced: still true, only longer.
        .timeout(Duration::from_millis(300))
        .newline_terminated(true)
        .diff_slices(&old_lines, &new_lines);
    let full = diff.unified_diff().context_radius(1).to_string();
    let mut shown = String::new();
    for (at, line) in full.lines().enumerate() {
        let (line, left) = clip(line, LINE_BYTES);
        if shown.len() + line.len() > SHOWN_BYTES {
            shown.push_str(&format!("[… {} more lines]\n", full.lines().count() - at));
            break;
        }
        shown.push_str(line);
        shown.push_str(if left > 0 { " […]\n" } else { "\n" });
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_change_is_shown_whole() {
        let expected = "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n";
        assert_eq!(diff(b"a\nb\nc\nd\n", b"a\nx\nc\nd\n"), expected);
    }

    #[test]
    fn a_long_change_is_cut_and_says_so() {
        let new: String = (0..9_000).map(|line| format!("line {line}\n")).collect();
        let shown = diff(b"", new.as_bytes());
        assert!(shown.len() < SHOWN_BYTES + 100);
        assert!(shown.ends_with(" more lines]\n"));
        let wide = diff(b"", "x".repeat(100_000).as_bytes());
        assert!(wide.len() < 2 * LINE_BYTES);
    }
}
