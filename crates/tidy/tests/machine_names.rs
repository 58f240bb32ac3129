//! The tree names no one's machine and no package registry's host.

use mainstay_tidy::File;

// All split, so that this file passes its own check.
const HOMES: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
const HOSTS: &[&str] = &[
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("registry.npmjs", ".org"),
    concat!("deb.debian", ".org"),
];

/// Cargo writes this file, and the name of its index into it.
const WRITTEN_BY_CARGO: &str = "Cargo.lock";

fn named(files: &[File]) -> Vec<String> {
    let mut violations = Vec::new();
    for file in files.iter().filter(|file| file.path != WRITTEN_BY_CARGO) {
        for (number, line) in (1..).zip(file.text().unwrap_or_default().lines()) {
            for home in HOMES.iter().filter(|home| holds_path(line, home)) {
                violations.push(format!("{}:{number}: {home}… is one machine's path", file.path));
            }
            for host in HOSTS.iter().filter(|host| line.contains(*host)) {
                violations.push(format!("{}:{number}: {host} is a registry's host", file.path));
            }
        }
    }
    violations
}

/// Whether an absolute path with a name below `home` begins somewhere in the line.
fn holds_path(line: &str, home: &str) -> bool {
    line.match_indices(home).any(|(at, _)| {
        let goes_on =
            |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '~' | '}' | ']');
        let before = line[..at].chars().next_back();
        let after = line[at + home.len()..].chars().next();
        !before.is_some_and(goes_on) && after.is_some_and(|c| c.is_alphanumeric() || c == '.')
    })
}

#[test]
fn no_file_names_a_machine_or_a_registry() {
    mainstay_tidy::assert_none(&named(&mainstay_tidy::tree().unwrap()));
}

#[test]
fn paths_and_hosts_are_found() {
    for needle in HOSTS {
        assert_eq!(named(&[File::new("a.md", &format!("from https://{needle}/x"))]).len(), 1);
        mainstay_tidy::assert_none(&named(&[File::new(WRITTEN_BY_CARGO, needle)]));
    }
    for home in HOMES {
        assert_eq!(named(&[File::new("a.rs", &format!("\"{home}anna\""))]).len(), 1, "{home}");
        assert_eq!(named(&[File::new("a.sh", &format!("cd {home}.config"))]).len(), 1, "{home}");
        let innocent =
            [format!("crates{home}anna"), format!("{home}{{name}}"), format!("~{home}x")];
        for text in innocent {
            mainstay_tidy::assert_none(&named(&[File::new("a.rs", &text)]));
        }
    }
}
