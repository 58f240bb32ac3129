//! The replacement itself: a new file and the old one exchange their names, and what comes out is
//! looked at.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, TryLockError};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use mainstay_store::fsatomic::{Draft, temporary_name};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::record::{KnownFile, Record};
use super::writers::Quiet;
use super::{Former, Identity, SlotTurn};
use crate::beneath::{self, Status};
use crate::files::{LARGE, Stop, hash, whole};
use crate::snapshot::escaped;

/// A file to be replaced: a name in a directory that is open.
pub(crate) struct Site<'a> {
    pub(super) directory: File,
    path: &'a Path,
    pub(super) name: &'a OsStr,
}

impl<'a> Site<'a> {
    /// The site of a path, which is real. No link is followed to it.
    pub(crate) fn of(path: &'a Path) -> io::Result<Self> {
        Self::in_directory(beneath::directory(path.parent().unwrap_or(path))?, path)
    }

    /// The same, with the directories that it takes, which get the mode that users expect.
    pub(crate) fn made(path: &'a Path) -> io::Result<Self> {
        Self::in_directory(beneath::made_parent(path, 0o777)?, path)
    }

    /// The site of a path whose directory is open.
    fn in_directory(directory: File, path: &'a Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Self { directory, path, name })
    }

    /// Makes the names in the directory durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.directory.sync_all()
    }
}

/// What was at the site when the new content was computed.
#[derive(Clone, Copy)]
pub(crate) struct Expected<'a> {
    pub(crate) identity: Identity,
    pub(crate) content: Content<'a>,
}

/// How it is told that a file is still the same.
#[derive(Clone, Copy)]
pub(crate) enum Content<'a> {
    /// By its bytes, whose SHA-256 is known.
    Bytes(&'a [u8], &'a str),
    /// By its size and the time of its last change: a link, or a file too large to be compared.
    Version(Version),
}

/// What differs when a file was changed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version(u64, i64, i64);

impl Version {
    pub(crate) fn of(found: impl Into<Status>) -> Self {
        let Status { size, modified, .. } = found.into();
        Self(size, modified.0, modified.1)
    }
}

/// What became of a replacement.
pub(crate) enum Replacement {
    /// The new content is there, and what was there before is removed.
    Made(Former),
    /// It is there, and the file system cannot exchange files: what somebody else saved in the very
    /// moment would be lost.
    Unguarded,
    /// Somebody else had changed the file; it is as they left it.
    Changed,
    /// The same, and one more saved in that moment: what one of them wrote has this name beside it.
    Kept(OsString),
}

/// What is to be at a site.
#[derive(Clone, Copy)]
pub(crate) enum New<'a> {
    /// A file, with the SHA-256 of its bytes.
    File {
        content: &'a [u8],
        hash: &'a str,
        mode: u32,
    },
    Link {
        target: &'a Path,
    },
}

/// Puts something new at a site where nothing is. Returns `false` if something is there. The caller
/// syncs.
pub(crate) fn create(
    site: &Site<'_>,
    new: New<'_>,
    slot: Option<&mut SlotTurn>,
) -> io::Result<bool> {
    let mut work = Work::begin(site, None, slot)?;
    let created = work.draft(new).and_then(|mut draft| match draft.place(site.name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        placed => placed.map(|()| true),
    });
    work.end(created)
}

/// Puts something new in the place of what is expected at a site. The caller syncs.
pub(crate) fn replace(
    site: &Site<'_>,
    expected: &Expected<'_>,
    new: New<'_>,
    slot: Option<&mut SlotTurn>,
) -> io::Result<Replacement> {
    let mut work = Work::begin(site, Some(expected), slot)?;
    let exchanged = work.draft(new).and_then(|draft| {
        let finished = match draft.file() {
            Some(file) => file.metadata()?,
            None => work.metadata(&work.temporary)?,
        };
        let known = match new {
            New::File { hash, .. } => Some(hash.to_owned()),
            New::Link { .. } => None,
        };
        work.note_placed(KnownFile { identity: identity(&finished), hash: known })?;
        work.exchange(draft, expected, &Ours { new, version: Version::of(&finished) })
    });
    work.end(exchanged)
}

/// Removes what is expected at a site. The caller syncs.
pub(crate) fn remove(
    site: &Site<'_>,
    expected: &Expected<'_>,
    slot: Option<&mut SlotTurn>,
) -> io::Result<Replacement> {
    let mut work = Work::begin(site, Some(expected), slot)?;
    work.record.removes = true;
    let removed = work.note().and_then(|()| work.take_away(expected));
    work.end(removed)
}

/// What is new, as it was finished.
struct Ours<'a> {
    new: New<'a>,
    version: Version,
}

/// A replacement under way.
struct Work<'a> {
    site: &'a Site<'a>,
    temporary: OsString,
    record: Record,
    slot: Option<&'a mut SlotTurn>,
    /// Whether something may be at the temporary name that is not ours to remove.
    open: bool,
    /// What was at the temporary name, open, so that nothing else can get its inode.
    pins: Vec<File>,
}

impl<'a> Work<'a> {
    fn begin(
        site: &'a Site<'a>,
        expected: Option<&Expected<'_>>,
        slot: Option<&'a mut SlotTurn>,
    ) -> io::Result<Self> {
        let temporary = temporary_name(site.name, "edit");
        let record = Record {
            directory: escaped(site.path.parent().unwrap_or(Path::new("/"))),
            directory_identity: identity(&site.directory.metadata()?),
            name: escaped(Path::new(site.name)),
            temporary: escaped(Path::new(&temporary)),
            placed: Vec::new(),
            removes: false,
            expected: expected.map(|expected| KnownFile {
                identity: expected.identity,
                hash: match &expected.content {
                    Content::Bytes(_, hash) => Some((*hash).to_owned()),
                    Content::Version(_) => None,
                },
            }),
        };
        Ok(Self { site, temporary, record, slot, open: false, pins: Vec::new() })
    }

    /// What is new, durable and without a name; or with the temporary one, which is noted then.
    fn draft(&mut self, new: New<'_>) -> io::Result<Draft> {
        self.note()?;
        let directory = self.site.directory.as_fd();
        match new {
            New::File { content, mode, .. } => {
                let mut draft = Draft::begin(directory, &self.temporary)?;
                draft.finish(content, mode)?;
                Ok(draft)
            }
            New::Link { target } => Draft::link(directory, target, &self.temporary),
        }
    }

    fn note(&mut self) -> io::Result<()> {
        match &mut self.slot {
            Some(slot) => slot.note(&self.record),
            None => Ok(()),
        }
    }

    fn note_placed(&mut self, placed: KnownFile) -> io::Result<()> {
        self.record.placed.push(placed);
        self.note()
    }

    /// Forgets the record, unless it is still needed.
    fn end<T>(self, result: io::Result<T>) -> io::Result<T> {
        if let Some(slot) = self.slot
            && !self.open
        {
            slot.clear()?;
        }
        result
    }

    fn exchange(
        &mut self,
        mut draft: Draft,
        expected: &Expected<'_>,
        ours: &Ours<'_>,
    ) -> io::Result<Replacement> {
        draft.lend_name(&self.temporary)?;
        self.pin()?;
        let _turn = DirectoryTurn::take(&self.site.directory);
        // Whatever was changed until now need not be put back.
        let Some(former) = self.if_expected(self.site.name, expected)? else {
            return Ok(Replacement::Changed);
        };
        match self.swap() {
            Ok(()) => {}
            // It was removed just now.
            Err(Errno::NOENT) => return Ok(Replacement::Changed),
            // Where nothing can be exchanged, the look is all there is.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                draft.replace(self.site.name, &self.temporary)?;
                return Ok(Replacement::Unguarded);
            }
            Err(error) => return Err(error.into()),
        }
        self.open = true;
        draft.keep();
        if self.is_same(&former, expected)? {
            self.remove()?;
            return Ok(Replacement::Made(former));
        }
        self.put_back(ours, former)
    }

    /// Takes what is at the site aside, and removes it if it is what is expected.
    fn take_away(&mut self, expected: &Expected<'_>) -> io::Result<Replacement> {
        let _turn = DirectoryTurn::take(&self.site.directory);
        let Some(former) = self.if_expected(self.site.name, expected)? else {
            return Ok(Replacement::Changed);
        };
        self.move_without_replacing(self.site.name, &self.temporary)?;
        self.open = true;
        if self.is_same(&former, expected)? {
            self.remove()?;
            return Ok(Replacement::Made(former));
        }
        match self.move_without_replacing(&self.temporary, self.site.name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.keep_beside(),
            moved => {
                moved?;
                self.open = false;
                Ok(Replacement::Changed)
            }
        }
    }

    /// Puts back what came out, at once: until then readers find the new file in its place. What is newest
    /// stays: if something else than what was put there comes out, somebody saved again, and that is put
    /// back in turn.
    fn put_back(&mut self, ours: &Ours<'_>, former: Former) -> io::Result<Replacement> {
        // Each time somebody must have saved within microseconds.
        const MOST: usize = 64;
        let new_file = self.record.placed[0].identity;
        let mut expected = new_file;
        let mut placed = self.pin()?;
        // Without a record of it: whoever finds the two exchanged puts back what is not ours.
        let mut swapped = self.swap();
        // Whoever waits to write into it may.
        drop(former);
        for _ in 0..MOST {
            match swapped {
                Ok(()) => {}
                // Somebody removed what was there, and meant the one that we hold. It comes back all the same:
                // what is there too much can be removed again.
                Err(Errno::NOENT) => {
                    self.move_without_replacing(&self.temporary, self.site.name)?;
                    self.open = false;
                    return Ok(Replacement::Changed);
                }
                Err(error) => return Err(error.into()),
            }
            let out = self.held()?;
            if out == expected {
                let untouched =
                    if out == new_file { self.is_untouched(ours)? } else { self.is_as_placed()? };
                if !untouched {
                    return self.keep_beside();
                }
                self.remove()?;
                return Ok(Replacement::Changed);
            }
            self.note_at_site(placed)?;
            expected = placed;
            placed = self.pin()?;
            let hash = hash_at(&self.site.directory, &self.temporary)?;
            self.note_placed(KnownFile { identity: placed, hash })?;
            swapped = self.swap();
        }
        Err(io::Error::from(io::ErrorKind::ResourceBusy))
    }

    /// Notes what was put back at the site, if it is still there.
    fn note_at_site(&mut self, identity: Identity) -> io::Result<()> {
        if self.record.placed.iter().any(|known| known.identity == identity) {
            return Ok(());
        }
        match identity_at(&self.site.directory, self.site.name) {
            Ok(now) if now == identity => {
                let hash = hash_at(&self.site.directory, self.site.name)?;
                self.note_placed(KnownFile { identity, hash })
            }
            _ => Ok(()),
        }
    }

    /// Whether what came out, after it had been put back for a moment, is what was put back.
    fn is_as_placed(&self) -> io::Result<bool> {
        let out = self.held()?;
        let known = self.record.placed.iter().find(|known| known.identity == out);
        let Some(hash) = known.and_then(|known| known.hash.as_ref()) else { return Ok(false) };
        let Ok(quiet) = Quiet::watch(open_to_read(&self.site.directory, &self.temporary)?) else {
            return Ok(false);
        };
        let now = hash_at(&self.site.directory, &self.temporary)?;
        Ok(now.as_ref() == Some(hash) && quiet.is_still())
    }

    fn keep_beside(&mut self) -> io::Result<Replacement> {
        let kept = kept_name(self.site.name);
        self.move_without_replacing(&self.temporary, &kept)?;
        self.open = false;
        Ok(Replacement::Kept(kept))
    }

    fn swap(&self) -> rustix::io::Result<()> {
        swap(&self.site.directory, &self.temporary, self.site.name)
    }

    /// Holds on to what has the temporary name.
    fn pin(&mut self) -> io::Result<Identity> {
        let pinned = open_at(&self.site.directory, &self.temporary, LOOK)?;
        let identity = identity(&pinned.metadata()?);
        self.pins.push(pinned);
        Ok(identity)
    }

    /// What has the temporary name.
    fn held(&self) -> io::Result<Identity> {
        identity_at(&self.site.directory, &self.temporary)
    }

    fn remove(&mut self) -> io::Result<()> {
        rustix::fs::unlinkat(&self.site.directory, &self.temporary, AtFlags::empty())?;
        self.open = false;
        Ok(())
    }

    fn move_without_replacing(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        move_without_replacing(&self.site.directory, from, to)
    }

    /// Looks whether what has a name is what is expected. A file is held on to: see [`Former`].
    fn if_expected(&self, name: &OsStr, expected: &Expected<'_>) -> io::Result<Option<Former>> {
        match identity_at(&self.site.directory, name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
            Ok(found) if found != expected.identity => return Ok(None),
            Ok(_) => {}
        }
        let found = match &expected.content {
            Content::Bytes(bytes, _) => with_content(&self.site.directory, name, bytes)?
                .map(|file| Former { file: Some(file) }),
            Content::Version(version) => (self.version(name)? == *version).then(Former::default),
        };
        Ok(found)
    }

    /// Whether what came out is the file that was looked at, and is still as it was then. While its lease
    /// is held nobody can have written into it, so its bytes need not be read again: the moment in which
    /// somebody's newer file is out of its place is two system calls long.
    fn is_same(&self, former: &Former, expected: &Expected<'_>) -> io::Result<bool> {
        match &former.file {
            Some(quiet) if quiet.is_leased() => {
                let same = self.held()? == identity(&quiet.file().metadata()?);
                Ok(same && quiet.is_still())
            }
            _ => Ok(self.if_expected(&self.temporary, expected)?.is_some()),
        }
    }

    /// Whether nobody wrote into the new file while it was at the site.
    fn is_untouched(&self, ours: &Ours<'_>) -> io::Result<bool> {
        let same_version = || Ok(self.version(&self.temporary)? == ours.version);
        match ours.new {
            New::Link { .. } => same_version(),
            New::File { content, .. } => {
                match with_content(&self.site.directory, &self.temporary, content) {
                    // Around what it hides, the sandbox lets nothing be read that is new.
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => same_version(),
                    untouched => Ok(untouched?.is_some()),
                }
            }
        }
    }

    fn version(&self, name: &OsStr) -> io::Result<Version> {
        self.metadata(name).map(|metadata| Version::of(&metadata))
    }

    fn metadata(&self, name: &OsStr) -> io::Result<Metadata> {
        open_at(&self.site.directory, name, LOOK)?.metadata()
    }
}

pub(super) fn swap(directory: &File, one: &OsStr, other: &OsStr) -> rustix::io::Result<()> {
    rustix::fs::renameat_with(directory, one, directory, other, RenameFlags::EXCHANGE)
}

pub(super) fn move_without_replacing(directory: &File, from: &OsStr, to: &OsStr) -> io::Result<()> {
    Ok(rustix::fs::renameat_with(directory, from, directory, to, RenameFlags::NOREPLACE)?)
}

/// A name beside a file for what somebody else made of it, which they will see.
pub(super) fn kept_name(name: &OsStr) -> OsString {
    let hidden = temporary_name(name, "kept");
    let bytes = std::os::unix::ffi::OsStrExt::as_bytes(hidden.as_os_str());
    let shown = bytes.strip_prefix(b".").unwrap_or(bytes);
    let shown = shown.strip_suffix(b".tmp").unwrap_or(shown);
    <OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(shown).to_owned()
}

/// A file, if it has exactly these bytes, and nobody is about to write others.
fn with_content(directory: &File, name: &OsStr, expected: &[u8]) -> io::Result<Option<Quiet>> {
    let Ok(quiet) = Quiet::watch(open_to_read(directory, name)?) else { return Ok(None) };
    if quiet.file().metadata()?.len() != expected.len() as u64 {
        return Ok(None);
    }
    let mut rest = expected;
    let mut buffer = vec![0; expected.len().clamp(1, 1 << 16)];
    let mut reader = quiet.file();
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok((rest.is_empty() && quiet.is_still()).then_some(quiet)),
            read => match rest.strip_prefix(&buffer[..read]) {
                Some(more) => rest = more,
                None => return Ok(None),
            },
        }
    }
}

/// The SHA-256 of what has a name, unless it is no file or too large.
pub(super) fn hash_at(directory: &File, name: &OsStr) -> io::Result<Option<String>> {
    if !open_at(directory, name, LOOK)?.metadata()?.is_file() {
        return Ok(None);
    }
    let content = whole(open_to_read(directory, name)?, LARGE, &Stop::default())?;
    Ok(content.map(|content| hash(&content)))
}

/// Opens something without its content: for a look, and so that its inode stays its own.
pub(super) const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

pub(super) fn open_to_read(directory: &File, name: &OsStr) -> io::Result<File> {
    open_at(directory, name, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC)
}

pub(super) fn open_at(directory: &File, name: &OsStr, flags: OFlags) -> io::Result<File> {
    Ok(File::from(rustix::fs::openat(directory, name, flags, Mode::empty())?))
}

#[allow(clippy::useless_conversion, clippy::cast_sign_loss, reason = "the types differ on macOS")]
pub(super) fn identity_at(directory: &File, name: &OsStr) -> io::Result<Identity> {
    let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok((found.st_dev as u64, found.st_ino.into()))
}

pub(super) fn identity(metadata: &Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

/// A lock on a directory, for the moment of an exchange: so processes of different homes exclude each
/// other too. Whoever holds it for longer locks for another purpose, and is not waited for.
pub(super) struct DirectoryTurn<'a>(Option<&'a File>);

impl<'a> DirectoryTurn<'a> {
    pub(super) fn take(directory: &'a File) -> Self {
        const STEP: Duration = Duration::from_micros(500);
        for _ in 0..400 {
            match directory.try_lock() {
                Ok(()) => return Self(Some(directory)),
                Err(TryLockError::WouldBlock) => sleep(STEP),
                Err(TryLockError::Error(_)) => break,
            }
        }
        Self(None)
    }
}

impl Drop for DirectoryTurn<'_> {
    fn drop(&mut self) {
        if let Some(directory) = self.0 {
            // Closing the directory would free it too.
            let _ = directory.unlock();
        }
    }
}
