//! A file system that can be frozen: whoever writes to it sleeps in the kernel and cannot be killed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::capability::Capability;

/// Thaws and unmounts when its time is over or its input ends, whichever comes first: a test that dies
/// leaves nothing frozen.
const WATCHMAN: &str = r#"timeout 120 cat > /dev/null
    fsfreeze --unfreeze "$1" 2> /dev/null
    umount --lazy "$1""#;

/// A disk of its own, mounted until it goes out of scope.
pub struct Freezer {
    watchman: Child,
    /// The image and the place where it is mounted.
    directory: TempDir,
}

impl Freezer {
    /// Mounts one; `None` where that cannot be done and may be missing.
    #[track_caller]
    pub fn mounted() -> Option<Self> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mounted = mount(directory.path());
        if !Capability::Freezer.require(mounted) {
            return None;
        }
        let watchman = Command::new("sh")
            .args(["-c", WATCHMAN, "watchman"])
            .arg(place(directory.path()))
            .stdin(Stdio::piped())
            .spawn()
            .expect("sh is installed");
        Some(Self { watchman, directory })
    }

    /// Where it is mounted.
    pub fn path(&self) -> PathBuf {
        place(self.directory.path())
    }

    /// Freezes it.
    pub fn freeze(&self) {
        assert!(
            run(Command::new("fsfreeze").arg("--freeze").arg(self.path())),
            "It is not frozen."
        );
    }

    /// Lets everybody go on.
    pub fn thaw(&self) {
        let thawed = run(Command::new("fsfreeze").arg("--unfreeze").arg(self.path()));
        assert!(thawed, "It is not thawed.");
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        drop(self.watchman.stdin.take());
        let _ = self.watchman.wait();
    }
}

fn place(directory: &Path) -> PathBuf {
    directory.join("disk")
}

fn mount(directory: &Path) -> bool {
    let image = directory.join("image");
    let file = std::fs::File::create(&image).expect("a file in a new directory");
    file.set_len(64 << 20).expect("a file without contents");
    std::fs::create_dir(place(directory)).expect("a directory in a new one");
    run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image))
        && run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(place(directory)))
}

fn run(command: &mut Command) -> bool {
    command.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
