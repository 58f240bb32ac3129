//! What a line says of where it writes outside the workspace, and whether it is feared only because it
//! cannot be read.

use std::path::{Path, PathBuf};

use mainstay_agent::policy::command::{Class, judge};

use super::table;

/// A line, and what has to be writable for it. `None` stands for a line that does not say it.
const OUTSIDE: [(&str, Option<&[&str]>); 42] = [
    ("ls", Some(&[])),
    ("cargo test", Some(&[])),
    ("echo x > notes", Some(&[])),
    ("echo x > /tmp/scratch", Some(&[])),
    ("echo x > /srv/a", Some(&["/srv"])),
    ("echo x > /srv/file", Some(&["/srv/file"])),
    ("cargo test > /srv/a", Some(&["/srv"])),
    ("touch /opt/x /srv/x", Some(&["/opt", "/srv"])),
    ("cp a /srv/", Some(&["/srv"])),
    ("cp a /srv/file", Some(&["/srv/file"])),
    ("mv a /srv/file", Some(&["/srv"])),
    ("mv /srv/file .", Some(&["/srv"])),
    ("mv a /srv/dir", Some(&["/srv/dir"])),
    ("mkdir -p /srv/dir/new/deep", Some(&["/srv/dir"])),
    ("rm /srv/file", Some(&["/srv"])),
    ("rm -rf /srv/dir", Some(&["/srv"])),
    ("find /srv/dir -name '*.o' -delete", Some(&["/srv"])),
    ("sed -i s/a/b/ /srv/file", Some(&["/srv"])),
    ("cd /srv && touch x", Some(&["/srv"])),
    ("cd /srv; touch x", Some(&["/srv"])),
    ("sh -c 'echo x > /srv/a' > /opt/log", Some(&["/opt", "/srv"])),
    ("OUT=/srv/a; echo x > $OUT", Some(&["/srv"])),
    ("echo x > /srv/link", Some(&["/opt"])),
    ("rm /srv/link", Some(&["/srv"])),
    ("cp a ~/b", Some(&["~"])),
    ("echo x > \"$HOME\"/b", Some(&["~"])),
    ("tee ~/b < a", Some(&["~"])),
    ("git push --force", Some(&[])),
    ("kill 1", Some(&[])),
    // The line does not say it.
    ("echo x > $OUT", None),
    ("HOME=/etc; cp a ~/b", None),
    ("cp a ~other/b", None),
    ("rm -rf $X", None),
    ("cp a /srv/* ", None),
    ("cd; touch x", None),
    ("cd \"$X\" && touch y", None),
    ("ln -s /srv here; echo x > here/a", None),
    ("echo x > /not/there/at/all", None),
    ("apt install x > /srv/a", None),
    ("tar xPf a.tar -C /srv", None),
    ("find -L /srv/dir -name x -delete", None),
    ("eval \"$X\"", None),
];

/// The places that the lines name, as they are on this machine: below a directory of the test.
fn in_place(line: &str, place: &Path) -> String {
    let here = |name: &str| place.join(name).display().to_string();
    line.replace("/srv", &here("srv")).replace("/opt", &here("opt"))
}

#[test]
fn a_line_says_what_has_to_be_writable_for_it_or_that_it_does_not_know() {
    // Not below /tmp, which is a place of its own.
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let place = place.path().canonicalize().unwrap();
    for directory in ["srv/dir", "opt", "work"] {
        std::fs::create_dir_all(place.join(directory)).unwrap();
    }
    std::fs::write(place.join("srv/file"), "").unwrap();
    std::os::unix::fs::symlink("../opt/new", place.join("srv/link")).unwrap();
    let home = std::env::home_dir().unwrap().canonicalize().unwrap();
    let mut wrong = Vec::new();
    for (line, expected) in OUTSIDE {
        let judged = judge(&in_place(line, &place), &place.join("work"));
        let found = judged.outside_paths().map(|mut paths| {
            paths.sort();
            paths
        });
        let expected: Option<Vec<PathBuf>> = expected.map(|paths| {
            let real = |path: &&str| match *path {
                "~" => home.clone(),
                path => PathBuf::from(in_place(path, &place)),
            };
            paths.iter().map(real).collect()
        });
        if found != expected {
            wrong.push(format!("{line}: {found:?}, not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_line_of_the_table_that_writes_outside_says_where_or_that_it_does_not_know() {
    let workspace = table::workspace();
    for (class, line) in table::lines() {
        let judged = judge(&line, workspace.path());
        let told = judged.outside_paths();
        if class == Class::WriteOutside {
            assert_ne!(told.as_deref(), Some([].as_slice()), "{line}");
        }
        for path in told.unwrap_or_default() {
            assert!(path.is_absolute() && path.exists(), "{line}: {path:?}");
            assert!(path.parent().is_some(), "{line} would open everything");
            assert_eq!(path.canonicalize().unwrap(), path, "{line}");
        }
    }
}

#[test]
fn what_cannot_be_read_is_told_from_what_destroys() {
    let workspace = table::workspace();
    let cases = [
        ("ls", false),
        ("cargo test", false),
        ("echo x > /etc/motd", false),
        ("curl https://example.org", false),
        // Nobody can read these.
        ("$(cat verbs)", true),
        ("eval \"$X\"", true),
        ("echo \"unfinished", true),
        ("$1 a b", true),
        ("cat x | sh", true),
        ("git $X", true),
        ("env $X", true),
        ("find $X -name a", true),
        ("ls\u{202e}", true),
        // These destroy, or are of a worse kind.
        ("rm -rf /", false),
        ("rm -rf $X", false),
        ("git push --force", false),
        ("kill 1", false),
        ("mkfs.ext4 /dev/sda1", false),
        ("echo x > /dev/sda", false),
        ("$(cat verbs); rm -rf .git", false),
        ("eval \"$X\"; git push --force", false),
        ("echo \"unfinished; rm -rf /", false),
        ("f() { f | f & }; f", false),
        ("sudo $X", false),
        ("eval \"$X\"; mainstay approve 1", false),
        ("python3 -c 'import shutil; shutil.rmtree(\"/\")'", false),
    ];
    for (line, expected) in cases {
        let judged = judge(line, workspace.path());
        assert_eq!(judged.is_only_unclear(), expected, "{line}: {judged:?}");
    }
}
