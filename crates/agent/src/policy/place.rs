//! Where a path leads, seen from the workspace.

use std::fs::DirEntry;
use std::path::{Component, Path, PathBuf};

/// Where a path leads once links and `..` are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathPlace {
    /// Into the workspace.
    Inside,
    /// To the workspace itself.
    Root,
    /// Into what git keeps in the workspace or in a temporary place: history, settings, hooks.
    Git,
    /// Into the place for temporary files, but not to the place itself.
    Temporary,
    /// Anywhere else.
    Outside,
}

/// What is done to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It gets other content, or is made.
    Written,
    /// Something is put there: into a directory, or in the place of what is there.
    Placed,
    /// It is taken away.
    Removed,
}

/// A longer path is no path; following it would take long.
const LONGEST: usize = 4096;
/// How many links are followed that lead to nothing.
const LINKS: u32 = 40;

/// Where a path leads, seen from the workspace, which it starts from if it is relative.
pub(super) fn locate(path: &Path, workspace: &Path) -> PathPlace {
    let Ok(workspace) = workspace.canonicalize() else { return PathPlace::Outside };
    let Some(path) = real(&workspace.join(path)) else { return PathPlace::Outside };
    match path.strip_prefix(&workspace) {
        Ok(inner) if inner.as_os_str().is_empty() => PathPlace::Root,
        Ok(inner) if is_in_git(inner) => PathPlace::Git,
        Ok(_) => PathPlace::Inside,
        // A repository there may be made by whoever writes there.
        Err(_) if is_temporary(&path, &workspace) => {
            if is_in_git(&path) {
                PathPlace::Git
            } else {
                PathPlace::Temporary
            }
        }
        Err(_) => PathPlace::Outside,
    }
}

/// What has to be writable for a change of a path: what it leads to, or the nearest directory above it
/// that exists, in which its parts are made. Returns `None` for the root of all, which is no answer.
pub(super) fn writable(path: &Path, change: Change) -> Option<PathBuf> {
    let path = match change {
        Change::Written => real(path)?,
        Change::Placed if path.is_dir() => real(path)?,
        // The name itself goes, and not what a link leads to.
        Change::Placed | Change::Removed => {
            real(path.parent().filter(|_| path.file_name().is_some())?)?
        }
    };
    let there = path.ancestors().find(|path| path.exists())?;
    (there.parent().is_some()).then(|| there.to_owned())
}

/// Whether a path leads into what git keeps. Some systems take capital letters for small ones.
fn is_in_git(path: &Path) -> bool {
    path.iter().any(|part| part.eq_ignore_ascii_case(".git"))
}

/// Whether sessions that begin in the workspace later are told what a file there says.
pub(super) fn instructs(path: &Path) -> bool {
    let mut parts = path.iter().map(|part| part.to_string_lossy().to_lowercase()).peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        let holds = [".agents", ".claude"].contains(&part.as_str());
        if holds && parts.peek().is_some_and(|next| next == "skills") {
            return true;
        }
        if is_last && ["agents.md", "claude.md"].contains(&part.as_str()) {
            return true;
        }
    }
    false
}

/// Whether git would take a directory for a part of a repository that is not the workspace's own, and
/// that commands could have made.
pub(super) fn in_made_repository(directory: &Path, workspace: &Path) -> bool {
    let Ok(workspace) = workspace.canonicalize() else { return false };
    let Some(directory) = real(&workspace.join(directory)) else { return false };
    let made = |place: &&Path| match place.strip_prefix(&workspace) {
        Ok(inner) => !inner.as_os_str().is_empty(),
        Err(_) => is_temporary(place, &workspace),
    };
    directory.ancestors().take_while(made).any(|place| place.join(".git").exists())
}

/// Whether something below a directory has such a name. What is beyond a bound may.
pub(super) fn holds(directory: &Path, is_wanted: impl Fn(&str) -> bool) -> bool {
    holds_entry(directory, |entry| is_wanted(&entry.file_name().to_string_lossy()))
}

/// Whether something below a directory is a link. What is beyond a bound may be.
pub(super) fn holds_link(directory: &Path) -> bool {
    holds_link_that(directory, |_| true)
}

/// Whether something below a directory is a link of this kind. What is beyond a bound may be.
pub(super) fn holds_link_that(directory: &Path, is_wanted: impl Fn(&Path) -> bool) -> bool {
    holds_entry(directory, |entry| {
        entry.file_type().is_ok_and(|kind| kind.is_symlink()) && is_wanted(&entry.path())
    })
}

fn holds_entry(directory: &Path, is_wanted: impl Fn(&DirEntry) -> bool) -> bool {
    const ENTRIES: usize = 20_000;
    let mut seen = 0;
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        let Ok(entries) = directory.read_dir() else { continue };
        for entry in entries.flatten() {
            seen += 1;
            if seen > ENTRIES || is_wanted(&entry) {
                return true;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                left.push(entry.path());
            }
        }
    }
    false
}

/// Whether a path is scratch. What lies beside a workspace that is in such a place itself is not.
fn is_temporary(path: &Path, workspace: &Path) -> bool {
    ["/tmp", "/var/tmp"].into_iter().any(|place| {
        let first = |path: &Path| {
            path.strip_prefix(place)
                .ok()
                .and_then(|inner| inner.iter().next().map(ToOwned::to_owned))
        };
        first(path).is_some_and(|name| first(workspace) != Some(name))
    })
}

/// The path without links, also where its last parts do not exist yet.
pub(super) fn real(path: &Path) -> Option<PathBuf> {
    followed(path, LINKS)
}

fn followed(path: &Path, links: u32) -> Option<PathBuf> {
    if path.as_os_str().len() > LONGEST {
        return None;
    }
    if let Ok(real) = path.canonicalize() {
        return Some(real);
    }
    // A link to nothing would be followed when it is written to.
    if path.symlink_metadata().is_ok() {
        let target = path.read_link().ok()?;
        return followed(&path.parent()?.join(target), links.checked_sub(1)?);
    }
    match path.components().next_back()? {
        Component::Normal(name) => Some(followed(path.parent()?, links)?.join(name)),
        Component::CurDir => followed(path.parent()?, links),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_in_circles_and_endless_paths_lead_outside() {
        let directory = tempfile::tempdir().unwrap();
        let workspace = directory.path();
        std::os::unix::fs::symlink("b", workspace.join("a")).unwrap();
        std::os::unix::fs::symlink("a", workspace.join("b")).unwrap();
        assert_eq!(locate(Path::new("a"), workspace), PathPlace::Outside);
        assert_eq!(locate(Path::new(&"x/".repeat(40_000)), workspace), PathPlace::Outside);
        assert_eq!(locate(Path::new("x/y/z"), workspace), PathPlace::Inside);
        assert_eq!(locate(Path::new("x/.git/hooks/y"), workspace), PathPlace::Git);
        assert_eq!(locate(Path::new("."), workspace), PathPlace::Root);
        assert_eq!(locate(Path::new("/tmp"), workspace), PathPlace::Outside);
    }
}
