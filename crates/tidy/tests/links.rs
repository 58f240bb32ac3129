//! Every relative link in the documents leads somewhere.

use std::collections::BTreeSet;

use mainstay_tidy::File;

fn broken(files: &[File]) -> Vec<String> {
    let mut violations = Vec::new();
    for (path, text) in files.iter().filter_map(|file| Some((&file.path, file.markdown()?))) {
        for target in targets(&prose(text)) {
            if let Some(why) = unresolved(files, path, &target) {
                violations.push(format!("{path}: `{target}` {why}"));
            }
        }
    }
    violations
}

fn unresolved(files: &[File], from: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (relative, anchor) = match target.split_once('#') {
        Some((relative, anchor)) => (relative, Some(anchor)),
        None => (target, None),
    };
    let Some(path) = resolve(from, relative) else {
        return Some("leads out of the tree".to_owned());
    };
    let file = files.iter().find(|file| file.path == path);
    let is_directory =
        || path.is_empty() || files.iter().any(|file| file.path.starts_with(&format!("{path}/")));
    match (file, anchor) {
        (None, None) if is_directory() => None,
        (None, _) => Some(format!("names {path}, which is not in the tree")),
        (Some(_), None) => None,
        (Some(file), Some(anchor)) => match file.markdown() {
            Some(text) if anchors(text).contains(anchor) => None,
            Some(_) => Some(format!("names a heading that {path} does not have")),
            None => Some("has an anchor into a file without headings".to_owned()),
        },
    }
}

/// The path from the root that a link means. Returns `None` if it climbs out or is absolute.
fn resolve(from: &str, relative: &str) -> Option<String> {
    if relative.is_empty() {
        return Some(from.to_owned());
    }
    if relative.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// The text without its code, in which brackets are not links.
fn prose(text: &str) -> String {
    let mut kept = String::new();
    for line in outside_fences(text) {
        // Odd pieces between backticks are code.
        for piece in line.split('`').step_by(2) {
            kept.push_str(piece);
        }
        kept.push('\n');
    }
    kept
}

fn outside_fences(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// Where inline links and reference definitions lead.
fn targets(prose: &str) -> Vec<String> {
    let inline = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|cut| cut.0);
    let references = prose.lines().filter_map(|line| {
        let (label, target) = line.trim_start().strip_prefix('[')?.split_once("]: ")?;
        (!label.starts_with('^')).then_some(target)
    });
    // What follows a space is the link's title.
    inline
        .chain(references)
        .filter_map(|target| target.split_whitespace().next())
        .map(|target| target.trim_matches(['<', '>']).to_owned())
        .collect()
}

/// The anchors that the headings of a document make, as forges spell them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for line in outside_fences(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let slug: String = title
            .trim()
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        // Repeated headings are numbered from one.
        let free = (1..).map(|n| format!("{slug}-{n}")).find(|name| !anchors.contains(name));
        anchors.insert(if anchors.contains(&slug) { free.unwrap_or(slug) } else { slug });
    }
    anchors
}

#[test]
fn every_relative_link_resolves() {
    mainstay_tidy::assert_none(&broken(&mainstay_tidy::tree().unwrap()));
}

#[test]
fn dead_links_are_found_and_live_ones_are_not() {
    let tree = |text: &str| {
        vec![
            File::new("docs/page.md", text),
            File::new(
                "docs/other.md",
                "# The `store`, opened\n## Twice\n## Twice\n```\n# code\n```\n",
            ),
            File::new("src/lib.rs", ""),
        ]
    };
    let dead = [
        "[a](missing.md)",
        "[a](../src/missing.rs)",
        "[a](other.md#missing)",
        "[a](other.md#code)",
        "[a](#missing)",
        "[a](/docs/other.md)",
        "[a](../../other.md)",
        "[a](../src/lib.rs#L1)",
        "![a](picture.png \"title\")",
        "[a]: missing.md",
    ];
    for text in dead {
        assert_eq!(broken(&tree(text)).len(), 1, "{text}");
    }
    let live = [
        "[a](other.md)",
        "[a](./other.md \"title\")",
        "[a](../src/lib.rs) and [b](../src/)",
        "[a](other.md#the-store-opened) [b](other.md#twice-1)",
        "# Here\n[a](#here)",
        "[a](https://example.org/missing.md)",
        "`[a](missing.md)`",
        "```\n[a](missing.md)\n```",
        "[^1]: missing.md",
    ];
    for text in live {
        assert_eq!(broken(&tree(text)), [""; 0], "{text}");
    }
}
