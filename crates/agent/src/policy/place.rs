//! Where a path leads, seen from the workspace.

use std::path::{Component, Path, PathBuf};

/// Where a path leads once links and `..` are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathPlace {
    /// Into the workspace.
    Inside,
    /// To the workspace itself.
    Root,
    /// Into what git keeps in the workspace: its history, its settings, its hooks.
    Git,
    /// Into the place for temporary files, but not to the place itself.
    Temporary,
    /// Anywhere else.
    Outside,
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
        Ok(inner) if inner.components().any(|part| part.as_os_str() == ".git") => PathPlace::Git,
        Ok(_) => PathPlace::Inside,
        Err(_) if is_temporary(&path, &workspace) => PathPlace::Temporary,
        Err(_) => PathPlace::Outside,
    }
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
