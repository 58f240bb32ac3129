//! Where a path leads once links and `..` are followed.

use std::path::{Component, Path, PathBuf};

/// Whether a path lies in the workspace once links and `..` are followed.
pub(super) fn is_inside(path: &Path, workspace: &Path) -> bool {
    let Ok(workspace) = workspace.canonicalize() else { return false };
    real(&workspace.join(path)).is_some_and(|path| path.starts_with(&workspace))
}

/// The path without links, also where its last parts do not exist yet.
pub(super) fn real(path: &Path) -> Option<PathBuf> {
    if let Ok(real) = path.canonicalize() {
        return Some(real);
    }
    // A link to nothing would be followed when it is written to.
    if path.symlink_metadata().is_ok() {
        let target = path.read_link().ok()?;
        return real(&path.parent()?.join(target));
    }
    match path.components().next_back()? {
        Component::Normal(name) => Some(real(path.parent()?)?.join(name)),
        Component::CurDir => real(path.parent()?),
        _ => None,
    }
}
