//! What the commands of a sandbox see of the files: a mount namespace in which everything is read-only
//! but where they may write.
//!
//! Landlock says what is read, written, made and moved. It does not see modes, owners, times and
//! attributes, and it cannot say "all of this directory but that file". Mounts can do both, so a view
//! lies on top where the kernel gives one. It is made once for a sandbox, from that of its enclosure.
#![allow(unsafe_code, reason = "clone, unshare and umount have no safe face here")]

use std::collections::BTreeMap;
use std::ffi::{CString, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::enclosure::Enclosure;
use super::listening;
use super::mounts;
use super::{Network, Sandbox};

/// The stack of whoever makes a view. It has no deep calls.
const STACK: usize = 128 << 10;
const DEVICES: &str = "/dev";

/// A mount namespace. It lasts as long as this, and as whatever is in it.
pub(super) struct View {
    mounts: OwnedFd,
}

/// What becomes of a place in a view. All the others are read-only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Writable,
    /// Read, and neither changed, moved nor replaced.
    ReadOnly,
    /// Changed, and neither moved nor replaced: something below it is read-only.
    Held,
}

/// What is to be done to make a view.
struct Plan {
    /// From the root down.
    parts: Vec<(CString, Part)>,
    /// Devices that are put into the `/dev` of the enclosure.
    devices: Vec<CString>,
    /// Sockets that are covered, so that nobody outside is reached through them.
    covered: Vec<CString>,
    /// Whether everything else is read-only.
    is_closed: bool,
}

impl View {
    /// Makes one. Returns `None` if the kernel does not let us.
    pub(super) fn make(sandbox: &Sandbox, enclosure: &Enclosure) -> io::Result<Option<Self>> {
        let plan = Plan::of(sandbox, enclosure.devices())?;
        let mut making = Making { plan: &plan, enclosure, made: Err(libc::EIO) };
        making.run()?;
        match making.made {
            Ok(mounts) => Ok(Some(Self { mounts })),
            // Who may not mount, or has no such calls, goes without. Anything else has another cause,
            // which a command may have brought about.
            Err(libc::EPERM | libc::ENOSYS) => Ok(None),
            Err(error) => Err(io::Error::from_raw_os_error(error)),
        }
    }

    pub(super) fn mounts(&self) -> &OwnedFd {
        &self.mounts
    }
}

impl Plan {
    fn of(sandbox: &Sandbox, devices: Option<&OwnedFd>) -> io::Result<Self> {
        let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from);
        let mut wanted = Vec::new();
        if let Some(devices) = devices {
            let below = sandbox.write.iter().filter_map(|path| path.strip_prefix(DEVICES).ok());
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let missing = below.filter(|name| {
                !name.as_os_str().is_empty()
                    && rustix::fs::openat(devices, *name, flags, Mode::empty()).is_err()
            });
            for name in missing {
                wanted.push(text(&Path::new(DEVICES).join(name))?);
            }
        }
        let covered = match sandbox.network {
            Network::Closed => listening::sockets(),
            Network::Open => Vec::new(),
        };
        let parts = parts(sandbox, devices.is_some()).into_iter();
        Ok(Self {
            parts: parts.map(|(path, part)| Ok((text(&path)?, part))).collect::<io::Result<_>>()?,
            devices: wanted,
            covered: covered.iter().map(|path| text(path)).collect::<io::Result<_>>()?,
            is_closed: !sandbox.write.iter().any(|path| path.parent().is_none()),
        })
    }

    /// Makes the mounts of this process what the plan says.
    fn carry_out(&self) -> io::Result<()> {
        if !self.devices.is_empty() {
            self.add_devices()?;
        }
        let mut writable = Vec::new();
        for (path, part) in &self.parts {
            // Before anything is made read-only, which its copies would be too.
            if *part == Part::Writable
                && let Some(place) = found(mounts::open_place(path))?
            {
                writable.push((path, identity(&place)?, mounts::copy(place.as_raw_fd())?));
            }
        }
        if self.is_closed {
            mounts::make_read_only(mounts::open_place(c"/")?.as_raw_fd())?;
        }
        for (path, part) in &self.parts {
            // What is copied and where it is mounted is one descriptor: there is nothing to exchange.
            let Some(place) = found(mounts::open_place(path))? else { continue };
            let own;
            let tree = match part {
                Part::Writable => {
                    let same = identity(&place)?;
                    let copied = writable.iter().find(|(of, was, _)| *of == path && *was == same);
                    let Some((_, _, tree)) = copied else { continue };
                    tree
                }
                Part::ReadOnly => {
                    own = mounts::copy(place.as_raw_fd())?;
                    mounts::make_read_only(own.as_raw_fd())?;
                    &own
                }
                Part::Held => {
                    own = mounts::copy(place.as_raw_fd())?;
                    &own
                }
            };
            // It may be gone again, and is then as good as not there.
            found(mounts::mount_at(tree, place.as_raw_fd()))?;
        }
        self.cover_sockets()
    }

    /// Puts nothing in the place of sockets. One that is gone by now needs no cover.
    fn cover_sockets(&self) -> io::Result<()> {
        for path in &self.covered {
            let Some(place) = found(mounts::open_place(path))? else { continue };
            let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&place)?.st_mode);
            if kind == rustix::fs::FileType::Socket {
                let nothing = mounts::copy(mounts::open_place(c"/dev/null")?.as_raw_fd())?;
                found(mounts::mount_at(&nothing, place.as_raw_fd()))?;
            }
        }
        Ok(())
    }

    /// Puts devices of the machine into the `/dev` of the enclosure, which covers theirs.
    fn add_devices(&self) -> io::Result<()> {
        let root = c"/dev";
        let cover = mounts::copy(mounts::open_place(root)?.as_raw_fd())?;
        // SAFETY: the text is whole. These mounts are this process's own.
        if unsafe { libc::umount2(root.as_ptr(), libc::MNT_DETACH) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let mut devices = Vec::new();
        for path in &self.devices {
            if let Some(place) = found(mounts::open_place(path))? {
                let is_directory =
                    rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&place)?.st_mode)
                        .is_dir();
                devices.push((path, is_directory, mounts::copy(place.as_raw_fd())?));
            }
        }
        mounts::mount_at(&cover, mounts::open_place(root)?.as_raw_fd())?;
        for (path, is_directory, tree) in &devices {
            make_room(path, *is_directory);
            if let Some(place) = found(mounts::open_place(path))? {
                mounts::mount_at(tree, place.as_raw_fd())?;
            }
        }
        Ok(())
    }
}

/// Makes what a device is mounted on. What is there already is as good.
fn make_room(path: &CString, is_directory: bool) {
    let path = Path::new(std::ffi::OsStr::from_bytes(path.as_bytes()));
    let above: Vec<&Path> = path.ancestors().skip(1).take_while(|at| *at != DEVICES).collect();
    let directories = above.into_iter().rev().chain(is_directory.then_some(path));
    for directory in directories {
        let _ = rustix::fs::mkdir(directory, Mode::from_raw_mode(0o755));
    }
    if !is_directory {
        let flags = OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        drop(rustix::fs::open(path, flags, Mode::from_raw_mode(0o444)));
    }
}

/// A place that is not there is left out, and so is one that a link leads to.
fn found<T>(opened: io::Result<T>) -> io::Result<Option<T>> {
    match opened {
        Ok(place) => Ok(Some(place)),
        Err(error) => match error.raw_os_error() {
            // The last: a directory that the user may not look into.
            Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP | libc::EACCES) => Ok(None),
            _ => Err(error),
        },
    }
}

/// Which file it is.
fn identity(place: &OwnedFd) -> io::Result<(u64, u64)> {
    let found = rustix::fs::fstat(place)?;
    Ok((found.st_dev as u64, found.st_ino as u64))
}

/// What becomes of which place, from the root down. What its surroundings are anyway is left out.
fn parts(sandbox: &Sandbox, has_devices: bool) -> Vec<(PathBuf, Part)> {
    let write = sandbox.write.iter().filter(|path| !has_devices || !path.starts_with(DEVICES));
    let mut parts: BTreeMap<&Path, Part> =
        write.map(|path| (path.as_path(), Part::Writable)).collect();
    if has_devices {
        parts.insert(Path::new(DEVICES), Part::Writable);
    }
    let written: Vec<&Path> = parts.keys().copied().collect();
    let is_in_written = |place: &&PathBuf| written.iter().any(|write| place.starts_with(write));
    for place in sandbox.except.iter().filter(is_in_written) {
        parts.entry(place).or_insert(Part::ReadOnly);
    }
    for place in sandbox.hide.iter().filter(is_in_written) {
        parts.insert(place, Part::ReadOnly);
    }
    for place in &sandbox.keep {
        let around = place.ancestors().skip(1);
        // From the place up to what may be written: a directory that is moved away could be replaced.
        let Some(depth) = around.clone().position(|path| written.contains(&path)) else { continue };
        parts.insert(place, Part::ReadOnly);
        for path in around.take(depth) {
            parts.entry(path).or_insert(Part::Held);
        }
    }
    let is_needed = |(path, part): &(&Path, Part)| {
        let around = path.ancestors().skip(1).find_map(|path| parts.get(path));
        match part {
            Part::Writable => !matches!(around, Some(Part::Writable | Part::Held)),
            Part::ReadOnly => matches!(around, Some(Part::Writable | Part::Held)),
            Part::Held => true,
        }
    };
    let all = parts.iter().map(|(path, part)| (*path, *part)).filter(is_needed);
    all.filter(|(path, _)| path.parent().is_some())
        .map(|(path, part)| (path.to_owned(), part))
        .collect()
}

/// A view that is being made by a process which borrows this thread's memory and files.
struct Making<'a> {
    plan: &'a Plan,
    enclosure: &'a Enclosure,
    /// The mounts, or what went wrong.
    made: Result<OwnedFd, c_int>,
}

impl Making<'_> {
    /// A thread cannot enter a user namespace, and this one is to keep its mounts.
    fn run(&mut self) -> io::Result<()> {
        let mut stack: Vec<u128> = Vec::with_capacity(STACK / size_of::<u128>());
        // SAFETY: the child has a stack of its own and everything else in common with this thread, which
        // waits until it has gone: so the child may do what the thread could have done meanwhile. No
        // handler of ours runs in it, because all signals are blocked.
        unsafe {
            let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            libc::sigprocmask(libc::SIG_BLOCK, &raw const all, &raw mut before);
            let shared = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES;
            let pid = libc::clone(
                make,
                stack.as_mut_ptr().add(stack.capacity()).cast(),
                shared | libc::SIGCHLD,
                std::ptr::from_mut(self).cast(),
            );
            let error = (pid == -1).then(io::Error::last_os_error);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
            if let Some(error) = error {
                return Err(error);
            }
            // It has ended, or whoever reaps all was faster.
            libc::waitpid(pid, std::ptr::null_mut(), 0);
        }
        Ok(())
    }
}

extern "C" fn make(making: *mut c_void) -> c_int {
    // SAFETY: it is what `run` gave, and whoever owns it waits.
    let making = unsafe { &mut *making.cast::<Making<'_>>() };
    let made = (|| {
        // By the outer `/proc`: in that of the enclosure this process is not seen.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let own = rustix::fs::open(c"/proc/self/ns", flags, Mode::empty())?;
        // SAFETY: the call takes a flag, and concerns this process only.
        if !making.enclosure.enter_mounts() || unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
            return Err(io::Error::last_os_error());
        }
        making.plan.carry_out()?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&own, c"mnt", flags, Mode::empty())?)
    })();
    making.made = made.map_err(|error: io::Error| error.raw_os_error().unwrap_or(libc::EIO));
    // SAFETY: the child ends here, and runs nothing of the process that it borrowed from.
    unsafe { libc::_exit(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(write: &[&str], except: &[&str], keep: &[&str], expected: &[(&str, Part)]) {
        let paths = |texts: &[&str]| texts.iter().map(PathBuf::from).collect::<Vec<_>>();
        let sandbox = Sandbox {
            write: paths(write),
            except: paths(except),
            keep: paths(keep),
            hide: paths(&["/w/.ssh", "/etc/shadow"]),
            ..Sandbox::default()
        };
        let expected: Vec<_> =
            expected.iter().map(|(path, part)| (PathBuf::from(path), *part)).collect();
        assert_eq!(parts(&sandbox, false), expected);
    }

    #[test]
    fn what_is_kept_is_read_only_and_what_it_is_in_stays_in_its_place() {
        use Part::{Held, ReadOnly, Writable};
        check(&["/a", "/a/b"], &[], &[], &[("/a", Writable)]);
        check(&["/w"], &[], &[], &[("/w", Writable), ("/w/.ssh", ReadOnly)]);
        check(
            &["/r"],
            &[],
            &["/r/.git/config", "/r/.git/modules/m/config", "/elsewhere/config"],
            &[
                ("/r", Writable),
                ("/r/.git", Held),
                ("/r/.git/config", ReadOnly),
                ("/r/.git/modules", Held),
                ("/r/.git/modules/m", Held),
                ("/r/.git/modules/m/config", ReadOnly),
            ],
        );
        check(
            &["/t", "/t/home/work"],
            &["/t/home"],
            &["/t/home/work/.git/config"],
            &[
                ("/t", Writable),
                ("/t/home", ReadOnly),
                ("/t/home/work", Writable),
                ("/t/home/work/.git", Held),
                ("/t/home/work/.git/config", ReadOnly),
            ],
        );
        check(
            &["/", "/w"],
            &["/t"],
            &[],
            &[("/etc/shadow", ReadOnly), ("/t", ReadOnly), ("/w/.ssh", ReadOnly)],
        );
    }
}
