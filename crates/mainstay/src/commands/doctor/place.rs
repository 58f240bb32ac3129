//! The home, the store's file and the disk they are on.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use mainstay_store::FileSystem;
use mainstay_store::fsatomic::{PRIVATE_DIR, PRIVATE_FILE};

use super::finding::Finding;
use crate::paths::Paths;
use crate::wording;

const MEBIBYTE: u64 = 1 << 20;
/// Below this a turn may not find room for its next step.
const TOO_LITTLE: u64 = 64 * MEBIBYTE;
/// Below this somebody should look.
const LITTLE: u64 = 1024 * MEBIBYTE;
/// With smaller blocks a full disk can kill a process that has the write-ahead log mapped.
const SAFE_BLOCK: u64 = 4096;

/// The home is there and nobody else can look into it.
pub(super) fn home(home: &Path) -> Finding {
    let (shown, quoted) = (home.display(), wording::path(home));
    let found = match fs::metadata(home) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Finding::ok(
                "home",
                format!("{shown} does not exist yet; the first command that writes creates it"),
            );
        }
        Err(error) => {
            return Finding::problem(
                "home",
                format!("could not read {shown}: {error}"),
                format!("ls -ld {quoted}"),
            );
        }
    };
    if !found.is_dir() {
        return Finding::problem(
            "home",
            format!("{shown} is not a directory"),
            format!("ls -ld {quoted}"),
        );
    }
    let mode = found.permissions().mode() & 0o777;
    if mode == PRIVATE_DIR {
        return Finding::ok("home", format!("{shown} is private"));
    }
    let next = format!("chmod 700 {quoted}");
    if mode & PRIVATE_DIR == PRIVATE_DIR {
        let message = format!("other users can open {shown} (mode {mode:03o})");
        return Finding::warning("home", message, next);
    }
    Finding::problem("home", format!("its owner cannot open {shown} (mode {mode:03o})"), next)
}

/// The store's file, if there is one, is for its owner alone.
pub(super) fn permissions(file: &Path) -> Option<Finding> {
    let found = fs::metadata(file).ok().filter(fs::Metadata::is_file)?;
    let mode = found.permissions().mode() & 0o777;
    if mode == PRIVATE_FILE {
        return Some(Finding::ok("file", format!("{} is private", file.display())));
    }
    Some(Finding::warning(
        "file",
        format!("{} has mode {mode:03o} instead of 600", file.display()),
        format!("chmod 600 {}", wording::path(file)),
    ))
}

/// The nearest thing that exists, from the path upwards.
pub(super) fn nearest(path: &Path) -> &Path {
    let found = path.ancestors().find(|place| place.exists());
    found.filter(|place| !place.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The kind of file system can carry a store.
pub(super) fn file_system(system: &FileSystem, place: &Path, paths: &Paths) -> Finding {
    let (kind, shown, quoted) = (&system.kind, place.display(), wording::path(place));
    if system.read_only {
        return Finding::problem(
            "disk",
            format!("{shown} is mounted read-only"),
            format!("findmnt --target {quoted}"),
        );
    }
    if system.network {
        return Finding::problem(
            "disk",
            format!(
                "{shown} is on a network file system ({kind}), which is not safe for an SQLite \
                 store; use a local disk or PostgreSQL"
            ),
            paths.command("store copy --to PATH-ON-A-LOCAL-DISK"),
        );
    }
    if system.block_size < SAFE_BLOCK {
        return Finding::warning(
            "disk",
            format!(
                "{shown} ({kind}) has blocks of {} bytes; below {SAFE_BLOCK}, a full disk can \
                 kill a process",
                system.block_size
            ),
            paths.command("store copy --to PATH-ON-ANOTHER-DISK"),
        );
    }
    Finding::ok("disk", format!("{shown} is on {kind}"))
}

/// There is room for what comes.
pub(super) fn space(system: &FileSystem, place: &Path) -> Finding {
    let left = wording::size(system.free_bytes);
    let next = format!("df -h {}", wording::path(place));
    match system.free_bytes {
        free if free < TOO_LITTLE => {
            Finding::problem("space", format!("only {left} free on the store's disk"), next)
        }
        free if free < LITTLE => {
            Finding::warning("space", format!("{left} free on the store's disk"), next)
        }
        _ => Finding::ok("space", format!("{left} free")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Status;
    use super::*;
    use crate::paths::Globals;

    fn paths() -> Paths {
        let globals = Globals { home: Some("/h".into()), ..Globals::default() };
        Paths::resolve(&globals).unwrap()
    }

    fn disk() -> FileSystem {
        FileSystem {
            kind: "ext4".to_owned(),
            network: false,
            free_bytes: 10 * LITTLE,
            block_size: 4096,
            read_only: false,
        }
    }

    #[test]
    fn a_bad_disk_is_found_in_words() {
        let judge = |system: FileSystem| {
            let finding = file_system(&system, Path::new("/h"), &paths());
            (finding.status, finding.message, finding.next)
        };
        assert_eq!(judge(disk()).0, Status::Ok);

        let nfs = judge(FileSystem { kind: "nfs".to_owned(), network: true, ..disk() });
        assert_eq!(nfs.0, Status::Problem);
        assert!(nfs.1.contains("network file system (nfs)"), "{}", nfs.1);
        assert!(nfs.2.unwrap().starts_with("mainstay --home /h store copy --to"));

        assert_eq!(judge(FileSystem { read_only: true, ..disk() }).0, Status::Problem);
        assert_eq!(judge(FileSystem { block_size: 1024, ..disk() }).0, Status::Warning);
    }

    #[test]
    fn little_space_warns_and_less_alarms() {
        let judge = |free_bytes| {
            let finding = space(&FileSystem { free_bytes, ..disk() }, Path::new("/h"));
            (finding.status, finding.next)
        };
        assert_eq!(judge(LITTLE), (Status::Ok, None));
        assert_eq!(judge(LITTLE - 1), (Status::Warning, Some("df -h /h".to_owned())));
        assert_eq!(judge(TOO_LITTLE - 1), (Status::Problem, Some("df -h /h".to_owned())));
    }

    #[test]
    fn a_place_to_come_is_judged_by_what_is_there() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(nearest(&directory.path().join("a/b/store.db")), directory.path());
        assert_eq!(nearest(Path::new("store.db")), Path::new("."));
    }
}
