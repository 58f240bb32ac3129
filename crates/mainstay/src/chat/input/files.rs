//! The files of a workspace, for completion.

use std::path::Path;

use ignore::WalkBuilder;
use mainstay_tools::aside::aside;
use tokio::sync::mpsc::UnboundedSender;

/// So many are offered; a workspace with more is searched by name.
const MOST: usize = 20_000;

/// Looks for the files of a workspace, without those that git ignores, and sends them when found.
pub(crate) fn find(workspace: &Path, found: &UnboundedSender<Vec<String>>) {
    let (workspace, found) = (workspace.to_owned(), found.clone());
    // With the chat gone nobody wants them.
    drop(aside("files", move || found.send(list(&workspace))));
}

fn list(workspace: &Path) -> Vec<String> {
    let walk = WalkBuilder::new(workspace).max_depth(Some(12)).require_git(false).build();
    let entries = walk.flatten().skip(1).take(MOST);
    let mut files: Vec<String> = entries
        .filter_map(|entry| {
            let path = entry.path().strip_prefix(workspace).ok()?.to_str()?.to_owned();
            let directory = entry.file_type().is_some_and(|kind| kind.is_dir());
            Some(if directory { format!("{path}/") } else { path })
        })
        .filter(|path| !path.contains(char::is_whitespace))
        .collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_store::fsatomic::write;

    #[test]
    fn what_git_ignores_is_left_out() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(place.path().join("src")).unwrap();
        for (name, text) in [("src/a.rs", ""), ("b.log", ""), (".gitignore", "*.log\n")] {
            write(&place.path().join(name), text.as_bytes(), 0o600).unwrap();
        }
        assert_eq!(list(place.path()), ["src/", "src/a.rs"]);
    }
}
