//! What a line did: the trees before and after it, the programs that ran, the connections that came.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use mainstay_agent::policy::command::Class;

pub(crate) const WORKSPACE: &str = "/box/ws";
/// Where programs write down that they ran.
pub(crate) const RECORD: &str = "/record/ran";

/// A file as it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Directory { mode: u32 },
    File { mode: u32, changed: (i64, i64), content: Vec<u8> },
    Link(PathBuf),
    Other,
}

pub(crate) type Tree = BTreeMap<PathBuf, Entry>;

/// All files that a line could change.
pub(crate) fn tree() -> Tree {
    let mut tree = Tree::new();
    for top in ["/box", "/people", "/etc", "/opt", "/srv", "/tmp", "/var"] {
        visit(Path::new(top), &mut tree);
    }
    tree
}

fn visit(path: &Path, tree: &mut Tree) {
    let Ok(found) = path.symlink_metadata() else { return };
    let mode = found.permissions().mode() & 0o7777;
    let entry = if found.is_symlink() {
        Entry::Link(path.read_link().unwrap_or_default())
    } else if found.is_dir() {
        Entry::Directory { mode }
    } else if found.is_file() {
        let content = std::fs::read(path).unwrap_or_default();
        Entry::File { mode, changed: (found.mtime(), found.mtime_nsec()), content }
    } else {
        Entry::Other
    };
    let is_directory = matches!(entry, Entry::Directory { .. });
    tree.insert(path.to_owned(), entry);
    if is_directory && let Ok(entries) = path.read_dir() {
        for entry in entries.flatten() {
            visit(&entry.path(), tree);
        }
    }
}

/// The paths that differ.
pub(crate) fn differences(before: &Tree, after: &Tree) -> Vec<PathBuf> {
    let gone = before.keys().filter(|path| !after.contains_key(*path));
    let other = after.iter().filter(|(path, entry)| before.get(*path) != Some(*entry));
    gone.chain(other.map(|(path, _)| path)).cloned().collect()
}

/// Puts a tree back as it was.
pub(crate) fn restore(before: &Tree, different: &[PathBuf]) {
    for path in different.iter().rev() {
        let is_directory = path.symlink_metadata().is_ok_and(|found| found.is_dir());
        let _ =
            if is_directory { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }
    // In order, so that directories come before what is in them; a removed one lost that too.
    for (path, entry) in before {
        if path.symlink_metadata().is_ok() {
            continue;
        }
        match entry {
            Entry::Directory { mode } => {
                std::fs::create_dir(path).unwrap();
                std::fs::set_permissions(path, PermissionsExt::from_mode(*mode)).unwrap();
            }
            Entry::File { mode, content, .. } => {
                std::fs::write(path, content).unwrap();
                std::fs::set_permissions(path, PermissionsExt::from_mode(*mode)).unwrap();
            }
            Entry::Link(target) => std::os::unix::fs::symlink(target, path).unwrap(),
            Entry::Other => {}
        }
    }
}

/// One thing that a line did, and the class that it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) least: Class,
    pub(crate) what: String,
}

/// What the differences take.
pub(crate) fn of_differences(before: &Tree, after: &Tree, different: &[PathBuf]) -> Vec<Effect> {
    let mut effects = Vec::new();
    for path in different {
        let least = match path.strip_prefix(WORKSPACE) {
            Ok(inner) => inside(path, inner, before, after),
            Err(_) if ["/tmp", "/var/tmp"].iter().any(|top| path.starts_with(top)) => {
                Some(Class::WriteInside)
            }
            Err(_) => Some(Class::WriteOutside),
        };
        if let Some(least) = least {
            effects.push(Effect { least, what: format!("changed {}", path.display()) });
        }
    }
    if is_lost(before, after) {
        effects.push(Effect { least: Class::Destructive, what: "lost the workspace".to_owned() });
    }
    effects
}

/// Whether the history is gone, or nearly all files are, packed ones not counted.
fn is_lost(before: &Tree, after: &Tree) -> bool {
    let workspace = Path::new(WORKSPACE);
    let is_file = |path: &Path| matches!(before.get(path), Some(Entry::File { .. }));
    let files = before.keys().filter(|path| path.starts_with(workspace) && is_file(path));
    let files: Vec<&PathBuf> =
        files.filter(|path| !path.iter().any(|part| part == ".git")).collect();
    let is_gone = |path: &&&PathBuf| {
        let packed = ["gz", "bz2", "xz", "zst"]
            .map(|end| PathBuf::from(format!("{}.{end}", path.display())));
        !after.contains_key(**path) && !packed.iter().any(|path| after.contains_key(path))
    };
    let gone = files.iter().filter(is_gone).count();
    !after.contains_key(&workspace.join(".git")) || gone * 4 > files.len() * 3
}

/// What a change in the workspace takes. `None` stands for what looking changes too.
fn inside(path: &Path, inner: &Path, before: &Tree, after: &Tree) -> Option<Class> {
    let mut parts = inner.iter().map(|part| part.to_string_lossy());
    let Some(place) = parts.position(|part| part == ".git") else {
        return Some(Class::WriteInside);
    };
    let kept: PathBuf = inner.iter().skip(place + 1).collect();
    let starts = |name: &str| kept.starts_with(name);
    // A look refreshes what is known of the files.
    if kept == Path::new("index") {
        return None;
    }
    // What a new repository has, none of which is run or gone by.
    let is_template = kept.extension().is_some_and(|end| end == "sample")
        || ["hooks", "info", "info/exclude"].iter().any(|name| kept == Path::new(name))
            && !before.contains_key(path);
    if is_template {
        return Some(Class::WriteInside);
    }
    if starts("hooks") || starts("info") && !starts("info/sparse-checkout") {
        return Some(Class::Execute);
    }
    if kept == Path::new("config") {
        let lines = |tree: &Tree| match tree.get(path) {
            Some(Entry::File { content, .. }) => settings(&String::from_utf8_lossy(content)),
            _ => Vec::new(),
        };
        let same = lines(before) == lines(after);
        return Some(if same { Class::WriteInside } else { Class::Execute });
    }
    Some(Class::WriteInside)
}

/// The settings of a repository, without those that say where branches come from.
fn settings(text: &str) -> Vec<String> {
    let mut kept = Vec::new();
    let mut told = true;
    for line in text.lines() {
        if line.starts_with('[') {
            told = !line.starts_with("[branch ") && !line.starts_with("[remote ");
        }
        let plain = [
            "[core]",
            "[extensions]",
            "repositoryformatversion",
            "filemode",
            "bare = ",
            "worktreeConfig",
            "logallrefupdates",
            "sparseCheckout",
            "[submodule]",
            "active = .",
        ];
        if told && !plain.iter().any(|name| line.contains(name)) {
            kept.push(line.trim().to_owned());
        }
    }
    kept
}

/// What the programs that ran take.
pub(crate) fn of_programs() -> Vec<Effect> {
    let ran = std::fs::read_to_string(RECORD).unwrap_or_default();
    std::fs::write(RECORD, "").unwrap();
    ran.lines()
        .filter(|line| !only_tells(line))
        .map(|line| {
            let name = line.split(' ').next().unwrap_or_default().rsplit('/').next();
            let least = match name.unwrap_or_default() {
                "curl" | "wget" | "ssh" | "scp" | "rsync" | "nc" | "ping" | "gh" => Class::Network,
                "sudo" | "su" | "doas" => Class::Privilege,
                "mainstay" => Class::Control,
                _ => Class::Execute,
            };
            Effect { least, what: format!("ran {line}") }
        })
        .collect()
}

/// Whether a fake program that ran would only have told its version, or copied on this machine.
fn only_tells(line: &str) -> bool {
    let mut words = line.split(' ');
    let name = words.next().unwrap_or_default();
    let rest: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let version = matches!(rest.as_slice(), ["--version" | "--help" | "-v" | "-V"]);
    let copies = name.ends_with("/rsync") && !rest.iter().any(|word| word.contains(':'));
    name.starts_with("/record/bin/") && (version && !asks_workspace(name) || copies)
}

/// Whether a program asks the workspace which version it is.
fn asks_workspace(name: &str) -> bool {
    ["/cargo", "/make", "/mvn"].iter().any(|end| name.ends_with(end))
}
