//! What a command left behind that would run outside, and that nothing could keep it from making.

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, unlinkat};

use super::Sandbox;

/// Removes what must not be there, and answers what that was.
pub(crate) fn remove_planted(sandbox: &Sandbox) -> Vec<&Path> {
    let planted = sandbox.absent.iter().filter(|path| path.symlink_metadata().is_ok());
    planted.filter(|path| is_removed(path)).map(PathBuf::as_path).collect()
}

/// Removes a file. A link on the way is not followed: it would be removed elsewhere.
fn is_removed(path: &Path) -> bool {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return false };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let links = ResolveFlags::NO_SYMLINKS;
    let above = rustix::fs::openat2(CWD, above, flags, Mode::empty(), links);
    above.is_ok_and(|above| unlinkat(above, name, AtFlags::empty()).is_ok())
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests stand outside the product's seams")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_was_planted_is_removed_and_nothing_that_a_link_leads_to() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        for name in ["git", "elsewhere"] {
            fs::create_dir(root.join(name)).unwrap();
            fs::write(root.join(name).join("commondir"), "/tmp\n").unwrap();
        }
        symlink("elsewhere", root.join("link")).unwrap();
        let absent = ["git/commondir", "git/other", "link/commondir"].map(|path| root.join(path));
        let sandbox = Sandbox { absent: absent.to_vec(), ..Sandbox::default() };
        assert_eq!(remove_planted(&sandbox), [root.join("git/commondir")]);
        assert!(!root.join("git/commondir").exists() && root.join("elsewhere/commondir").exists());
        assert!(remove_planted(&sandbox).is_empty());
    }
}
