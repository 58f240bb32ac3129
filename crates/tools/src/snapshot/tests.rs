//! Trees that are changed and put back.
#![allow(clippy::disallowed_methods, reason = "tests may do as they like")]

use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use super::*;
use crate::Workplace;
use crate::keeper::{Keeper, Launch};

/// A workspace, its manifest and the objects that were kept.
struct Place {
    directory: tempfile::TempDir,
    manifest: Manifest,
    objects: HashMap<String, Vec<u8>>,
    limits: Limits,
    /// How many bytes the last scan handed over.
    given: usize,
}

impl Place {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            manifest: Manifest::default(),
            objects: HashMap::new(),
            limits: Limits::default(),
            given: 0,
        }
    }

    fn workplace(&self) -> Workplace {
        let keeper = Keeper::new(Launch {
            program: "/nonexistent".into(),
            arguments: Vec::new(),
            spool: self.directory.path().join("keepers"),
            grace: std::time::Duration::ZERO,
        });
        let mut workplace = Workplace::new(self.directory.path(), keeper);
        workplace.forbidden = vec![self.directory.path().join("home")];
        workplace
    }

    fn scan(&mut self) -> Scanned {
        let workplace = self.workplace();
        let objects = &mut self.objects;
        let mut new = Vec::new();
        let scanned =
            Scan::run(&workplace, &mut self.manifest, &self.limits, &mut |hash, bytes| {
                new.push(hash.clone());
                objects.insert(hash, bytes);
                Ok(())
            })
            .unwrap();
        self.given = new.iter().map(|hash| self.objects[hash].len()).sum();
        self.manifest.keep(new);
        scanned
    }

    /// The listing of a directory in another one.
    fn listing_of(&self, object: &str, name: &str) -> String {
        let listing = Listing::decode(&self.objects[object]).unwrap();
        listing.0.into_iter().find(|item| item.name == name.as_bytes()).unwrap().listing
    }

    fn put(&self, path: &str, content: &str) {
        let path = self.directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn states(&self, object: &str, at: &Path, states: &mut HashMap<String, State>) {
        let listing = Listing::decode(&self.objects[object]).unwrap();
        for Item { name, state, listing, .. } in listing.0 {
            let path = at.join(std::ffi::OsStr::from_bytes(&name));
            states.insert(escaped(&path), state);
            if !listing.is_empty() {
                self.states(&listing, &path, states);
            }
        }
    }

    /// Every path of a tree and what is there.
    fn all(&self, tree: &Scanned) -> std::collections::BTreeMap<String, State> {
        let mut states = HashMap::new();
        self.states(&tree.root, &tree.workspace, &mut states);
        states.into_iter().collect()
    }

    /// Takes every step from one tree to another.
    fn go_back(&self, from: &Scanned, to: &Scanned) -> Restored {
        self.go_back_while(from, to, || {})
    }

    /// The same, with something that happens each time a content was fetched.
    fn go_back_while(&self, from: &Scanned, to: &Scanned, meanwhile: impl Fn()) -> Restored {
        let (mut before, mut after) = (HashMap::new(), HashMap::new());
        self.states(&to.root, &to.workspace, &mut before);
        self.states(&from.root, &from.workspace, &mut after);
        let mut paths: Vec<_> = before.keys().chain(after.keys()).cloned().collect();
        paths.sort();
        paths.dedup();
        let state = |states: &HashMap<String, State>, path: &str| {
            states.get(path).cloned().unwrap_or(State::Absent)
        };
        let steps: Vec<PathChange> = paths
            .into_iter()
            .map(|path| PathChange { from: state(&after, &path), to: state(&before, &path), path })
            .filter(|step| step.from != step.to)
            .collect();
        let steps = with_closed_directories(steps);
        restore(&self.workplace(), &steps, &mut |hash| {
            meanwhile();
            Ok(self.objects[hash].clone())
        })
    }
}

#[test]
fn what_somebody_saves_while_files_are_put_back_is_left() {
    let mut place = Place::new();
    place.put("changed", "first");
    place.put("removed", "first");
    let first = place.scan();
    place.put("changed", "second");
    fs::remove_file(place.directory.path().join("removed")).unwrap();
    let second = place.scan();
    let save = || {
        place.put("changed", "theirs");
        place.put("removed", "theirs");
    };
    let restored = place.go_back_while(&second, &first, save);
    assert_eq!(restored.left.len(), 2, "{restored:?}");
    assert!(restored.left.iter().all(|(_, why)| why.contains("just now")), "{restored:?}");
    for name in ["changed", "removed"] {
        assert_eq!(fs::read_to_string(place.directory.path().join(name)).unwrap(), "theirs");
    }
}

#[test]
fn a_second_look_reads_only_what_changed() {
    let mut place = Place::new();
    place.put("a/one", "first");
    place.put("a/two", &"x".repeat(100_000));
    place.scan();
    // Files that were just written are read again until their times prove something.
    std::thread::sleep(std::time::Duration::from_millis(60));
    let first = place.scan();
    assert_eq!(place.scan().root, first.root);
    assert_eq!(place.given, 0);
    // Another process knows it from the listings.
    place.manifest = Manifest::default();
    for (object, inside) in [(first.root.clone(), ""), (place.listing_of(&first.root, "a"), "a")] {
        let listing = Listing::decode(&place.objects[&object]).unwrap();
        place.manifest.take_in(Path::new(inside), &listing);
    }
    place.manifest.keep([first.root.clone()]);
    place.objects.retain(|_, bytes| bytes.len() < 1_000);
    assert_eq!(place.scan().root, first.root);
    assert_eq!(place.given, 0, "it was read again");
    place.put("a/one", "other");
    let second = place.scan();
    assert_ne!(second.root, first.root);
    assert!(place.given < 1_000, "{} bytes", place.given);
}

#[test]
fn kinds_modes_links_and_odd_names_are_put_back() {
    let mut place = Place::new();
    let at = place.directory.path().to_owned();
    place.put("plain", "one");
    place.put("script", "#!/bin/sh");
    fs::set_permissions(at.join("script"), fs::Permissions::from_mode(0o4751)).unwrap();
    place.put("tree/deep/leaf", "leaf");
    fs::create_dir(at.join("empty")).unwrap();
    symlink("nowhere", at.join("link")).unwrap();
    let odd = at.join(std::ffi::OsStr::from_bytes(b"\xff\n%odd"));
    fs::write(&odd, "odd").unwrap();
    place.put("locked/inside", "inside");
    fs::set_permissions(at.join("locked"), fs::Permissions::from_mode(0o555)).unwrap();
    let before = place.scan();

    fs::write(at.join("plain"), "two").unwrap();
    fs::set_permissions(at.join("script"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::remove_dir_all(at.join("tree")).unwrap();
    fs::write(at.join("tree"), "now a file").unwrap();
    fs::remove_dir(at.join("empty")).unwrap();
    fs::remove_file(at.join("link")).unwrap();
    fs::create_dir_all(at.join("link/is/a/tree")).unwrap();
    fs::rename(&odd, at.join("renamed")).unwrap();
    fs::set_permissions(at.join("locked"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(at.join("locked/inside")).unwrap();
    fs::set_permissions(at.join("locked"), fs::Permissions::from_mode(0o555)).unwrap();
    let after = place.scan();

    let restored = place.go_back(&after, &before);
    assert_eq!(restored.left, []);
    let now = place.scan();
    assert_eq!(place.all(&now), place.all(&before));
    assert_eq!(fs::read(&odd).unwrap(), b"odd");
    // And it can be taken forward again.
    assert_eq!(place.go_back(&before, &after).left, []);
    let now = place.scan();
    assert_eq!(place.all(&now), place.all(&after));
}

#[test]
fn what_is_not_kept_is_said() {
    let mut place = Place::new();
    let at = place.directory.path().to_owned();
    place.limits.file = 1_000;
    place.limits.ignored_bytes = 100;
    place.limits.secret = Some(std::sync::Arc::new(|bytes: &[u8]| bytes.starts_with(b"sk-")));
    place.put(".git/HEAD", "ref");
    place.put(".gitignore", "built/\nsmall/\n");
    place.put("built/object", &"x".repeat(200));
    place.put("small/object", "x");
    place.put("huge", &"x".repeat(2_000));
    place.put(".env", "sk-secret");
    place.put("home/store.db", "never opened");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let scanned = place.scan();
    let left: Vec<(String, Omission)> =
        scanned.left.iter().map(|left| (escaped(&left.path), left.why)).collect();
    let expected = [
        (".env", Omission::Secret),
        (".git", Omission::Git),
        ("built", Omission::Ignored),
        ("home", Omission::Closed),
        ("huge", Omission::Large),
        ("pipe", Omission::Special),
    ];
    assert_eq!(left, expected.map(|(path, why)| (path.to_owned(), why)));
    assert!(!place.objects.values().any(|bytes| bytes.starts_with(b"sk-")));
}

#[test]
fn a_huge_workspace_is_bounded_and_stays_comparable() {
    let mut place = Place::new();
    place.limits.entries = 30;
    for number in 0..100 {
        place.put(&format!("{:02}/{number}", number / 10), "x");
    }
    let first = place.scan();
    assert!(first.left.iter().any(|left| left.why == Omission::Limit), "{first:?}");
    let second = place.scan();
    assert_eq!(place.all(&first), place.all(&second));
    place.put("00/0", "changed");
    let third = place.scan();
    assert_ne!(place.all(&third), place.all(&first));
}

#[test]
fn a_workspace_may_be_looked_at_often_and_is_bounded_in_bytes() {
    let mut place = Place::new();
    place.limits.bytes = 1_000;
    for number in 0..20 {
        place.put("a", &format!("{number:03}").repeat(100));
        assert_eq!(place.scan().left, [], "what was read before counts");
    }
    place.put("b", &"b".repeat(800));
    let left = place.scan().left;
    assert_eq!(left, [Left { path: "b".into(), why: Omission::Limit }]);
}

#[test]
fn a_file_that_somebody_else_changed_is_left() {
    let mut place = Place::new();
    place.put("a", "one");
    place.put("b", "one");
    let before = place.scan();
    place.put("a", "two");
    place.put("b", "two");
    let after = place.scan();
    place.put("a", "three");
    let restored = place.go_back(&after, &before);
    assert_eq!(restored.left.len(), 1, "{restored:?}");
    assert_eq!(fs::read(place.directory.path().join("a")).unwrap(), b"three");
    assert_eq!(fs::read(place.directory.path().join("b")).unwrap(), b"one");
}

#[test]
fn what_is_behind_a_link_by_now_is_said_and_left_alone() {
    let mut place = Place::new();
    let at = place.directory.path().canonicalize().unwrap();
    place.put("d/changed", "first");
    let first = place.scan();
    for name in ["d/changed", "d/added", "elsewhere/changed", "elsewhere/added"] {
        place.put(name, "second");
    }
    let second = place.scan();
    fs::rename(at.join("d"), at.join("moved")).unwrap();
    std::os::unix::fs::symlink("elsewhere", at.join("d")).unwrap();
    let restored = place.go_back(&second, &first);
    let link = format!("{} is a link now; left alone", at.join("d").display());
    for name in ["d/changed", "d/added"] {
        assert!(restored.left.contains(&(at.join(name), link.clone())), "{restored:?}");
    }
    assert_eq!(fs::read_to_string(at.join("moved/changed")).unwrap(), "second");
    // A directory that is among what comes back is there again, and what was in it.
    let third = place.scan();
    let restored = place.go_back(&third, &first);
    assert_eq!(restored.left, []);
    assert_eq!(fs::read_to_string(at.join("d/changed")).unwrap(), "first");
    assert!(!at.join("d").is_symlink());
}
