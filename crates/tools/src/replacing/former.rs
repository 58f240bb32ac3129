//! The file that was replaced, for a moment longer.
//!
//! A program that saves in place may have looked its name up before the exchange, and open it only after
//! it was removed. It is still there then, because it is open here; and the kernel makes the program
//! wait for us, because there is a lease on it. So what it writes is not lost: it takes the place of what
//! we put there, as if the program had opened that.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::thread::sleep;
use std::time::Duration;

use super::SlotTurn;
use super::exchange::{Content, Expected, New, Site, create, identity_at, replace};
use super::writers::Quiet;
use crate::files::hash;

/// A file that was replaced or removed. A link, or one too large to be compared, is not held on to.
#[derive(Default)]
pub(crate) struct Former {
    pub(super) file: Option<Quiet>,
}

/// Whether somebody wrote into a file after it was replaced.
pub(crate) enum GivenWay {
    /// Nobody did.
    NotNeeded,
    /// Somebody did, and what they wrote is at the site, unless somebody saved again since.
    Yes,
}

impl Former {
    /// Looks whether somebody wrote into the file since it was replaced, as late as can be, and lets them
    /// have the site then. `expected` is what the file was, and `new` what was put in its place. The
    /// caller syncs.
    pub(crate) fn give_way(
        self,
        site: &Site<'_>,
        expected: &Expected<'_>,
        new: Option<New<'_>>,
        slot: Option<&mut SlotTurn>,
    ) -> io::Result<GivenWay> {
        let Some(quiet) = self.file.filter(|quiet| !quiet.is_still()) else {
            return Ok(GivenWay::NotNeeded);
        };
        let mode = mode(quiet.file())?;
        let theirs = written(quiet.release())?;
        if matches!(expected.content, Content::Bytes(bytes, _) if bytes == theirs) {
            return Ok(GivenWay::NotNeeded);
        }
        let theirs_hash = hash(&theirs);
        let theirs = New::File { content: &theirs, hash: &theirs_hash, mode };
        match new {
            Some(New::File { content, hash, .. }) => {
                if let Ok(identity) = identity_at(&site.directory, site.name) {
                    let ours = Expected { identity, content: Content::Bytes(content, hash) };
                    replace(site, &ours, theirs, slot)?;
                }
            }
            Some(New::Link { .. }) => {}
            None => _ = create(site, theirs, slot)?,
        }
        Ok(GivenWay::Yes)
    }
}

fn mode(file: &File) -> io::Result<u32> {
    use std::os::unix::fs::PermissionsExt;
    Ok(file.metadata()?.permissions().mode() & 0o7777)
}

/// What is in a file when whoever is writing it is done, or has taken too long.
fn written(mut file: File) -> io::Result<Vec<u8>> {
    const PATIENCE: usize = 3_000;
    for _ in 0..PATIENCE {
        file = match Quiet::watch(file) {
            Ok(quiet) => {
                file = quiet.release();
                break;
            }
            Err(file) => file,
        };
        sleep(Duration::from_millis(1));
    }
    let mut content = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut content)?;
    Ok(content)
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::disallowed_methods, reason = "tests stand outside the product's seams")]
mod tests {
    use std::fs;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;

    use mainstay_testkit::process::wait_for;

    use super::super::Replacement;
    use super::*;

    #[test]
    fn what_is_written_into_a_file_after_it_was_replaced_takes_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        fs::write(&path, "old").unwrap();
        let found = fs::metadata(&path).unwrap();
        // It has looked the name up, and opens it for writing later.
        let late = File::open(&path).unwrap();
        let site = Site::of(&path).unwrap();
        let [hash, new_hash] = [b"old", b"new"].map(|bytes| hash(bytes));
        let identity = (found.dev(), found.ino());
        let expected = Expected { identity, content: Content::Bytes(b"old", &hash) };
        let new = New::File { content: b"new", hash: &new_hash, mode: 0o640 };
        let Ok(Replacement::Made(former)) = replace(&site, &expected, new, None) else {
            panic!("it was not replaced");
        };
        assert_eq!(fs::read(&path).unwrap(), b"new");
        let writer = std::thread::spawn(move || {
            fs::write(format!("/proc/self/fd/{}", late.as_raw_fd()), "theirs").unwrap();
        });
        let is_noticed = || !former.file.as_ref().unwrap().is_still();
        wait_for("somebody to open it", Duration::from_secs(60), is_noticed);
        let given = former.give_way(&site, &expected, Some(new), None).unwrap();
        assert!(matches!(given, GivenWay::Yes));
        writer.join().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
