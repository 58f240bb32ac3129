//! A process namespace for the commands of a keeper, whose end is theirs.
//!
//! Its first process does nothing but bury orphans, and the kernel kills it when the keeper's worker
//! is gone, however that came about; with it the kernel kills all that is in the namespace. No process
//! leaves one. A mount namespace goes with it, so that `/proc` shows the processes that are in it by
//! the numbers that they have there, with [a `/dev` of its own](super::devices). From outside they have
//! their usual numbers too. What processes share without files is apart as well.
//!
//! Who may (root) has a thread join it, and all that the thread starts is in it. Everybody else needs a
//! user namespace around it, which a thread cannot join: each command enters it on its way.
#![allow(unsafe_code, reason = "clone, mount, prctl and setns have no safe face here")]

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use rustix::fs::{Mode, OFlags};

use super::devices;
use super::network::Maps;
use super::view::View;

/// What the first process says where it has a `/dev` of its own.
const HAS_DEVICES: u8 = 1;

/// A process namespace.
pub(super) struct Enclosure {
    first: i32,
    processes: OwnedFd,
    /// Shared memory, semaphores and message queues that have no place among the files.
    shared: OwnedFd,
    mounts: OwnedFd,
    /// Its `/proc`.
    shown: OwnedFd,
    /// Its `/dev`, unless that is everybody's.
    devices: Option<OwnedFd>,
    /// The user namespace around it, where there is one.
    user: Option<OwnedFd>,
    _first: UnixStream,
}

/// What a process enters that is to be in an enclosure with a user namespace around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doors {
    pub(crate) user: RawFd,
    pub(crate) shared: RawFd,
    pub(crate) mounts: RawFd,
    pub(crate) processes: RawFd,
}

impl Doors {
    /// Enters, with this process and, through the last door, with all that it starts from now on. It
    /// allocates nothing.
    pub(crate) fn enter(self) -> bool {
        // SAFETY: the calls take numbers, and concern this process only.
        unsafe {
            libc::setns(self.user, libc::CLONE_NEWUSER) == 0
                && libc::setns(self.shared, libc::CLONE_NEWIPC) == 0
                && libc::setns(self.mounts, libc::CLONE_NEWNS) == 0
                && libc::setns(self.processes, libc::CLONE_NEWPID) == 0
        }
    }
}

impl Enclosure {
    /// Makes one, which lasts as long as the thread that calls this. Its first process writes a byte to
    /// `ends` whenever an orphan in it has ended.
    pub(super) fn make(ends: RawFd) -> io::Result<Self> {
        match Self::with(ends, None) {
            // Root without the privilege would have every privilege in a user namespace.
            Err(error) if rustix::process::geteuid().is_root() => Err(error),
            Err(_) => Self::with(ends, Some(&Maps::of_this_user())),
            made => made,
        }
    }

    fn with(ends: RawFd, maps: Option<&Maps>) -> io::Result<Self> {
        let (mut ours, theirs) = UnixStream::pair()?;
        let user = if maps.is_some() { libc::CLONE_NEWUSER } else { 0 };
        let flags = libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWIPC | user;
        let flags = flags | libc::SIGCHLD;
        // SAFETY: without a stack of its own the child has a copy of everything, as after a fork. It
        // makes system calls only, with what was made ready before, and never returns.
        let first = match unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } {
            -1 => return Err(io::Error::last_os_error()),
            // SAFETY: this is the process that was just made.
            0 => unsafe { be_first(theirs.as_raw_fd(), ends, maps) },
            child => i32::try_from(child).map_err(io::Error::other)?,
        };
        drop(theirs);
        let made = (|| {
            let mut word = [0_u8];
            ours.read_exact(&mut word)?;
            let open = |kind| File::open(format!("/proc/{first}/ns/{kind}")).map(OwnedFd::from);
            let (processes, shared, mounts) = (open("pid")?, open("ipc")?, open("mnt")?);
            let user = maps.map(|_| open("user")).transpose()?;
            let inside = |name| {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                rustix::fs::open(format!("/proc/{first}/root/{name}"), flags, Mode::empty())
            };
            let shown = inside("proc")?;
            let devices = if word == [HAS_DEVICES] { Some(inside("dev")?) } else { None };
            ours.write_all(&[0])?;
            Ok((processes, shared, mounts, shown, devices, user))
        })();
        let made = made.and_then(|(processes, shared, mounts, shown, devices, user)| {
            let made =
                Self { first, processes, shared, mounts, shown, devices, user, _first: ours };
            // What lets one make a namespace may not let one enter it.
            if made.can_be_entered() { Ok(made) } else { Err(io::Error::last_os_error()) }
        });
        made.inspect_err(|_| end(first))
    }

    fn can_be_entered(&self) -> bool {
        let doors = self.doors(None);
        // SAFETY: the child makes system calls only, with descriptors that are open, and ends.
        unsafe {
            match libc::fork() {
                -1 => false,
                0 => {
                    let entered = doors.map_or_else(|| self.join(None).is_ok(), Doors::enter);
                    libc::_exit(libc::c_int::from(!entered))
                }
                child => {
                    let mut status = 0;
                    libc::waitpid(child, &raw mut status, 0) == child && status == 0
                }
            }
        }
    }

    /// Whether one can be made here.
    pub(super) fn is_possible() -> bool {
        let nowhere = -1;
        Self::make(nowhere).is_ok_and(|made| {
            end(made.first);
            true
        })
    }

    /// Its `/proc`, from outside.
    pub(super) fn shown(&self) -> &OwnedFd {
        &self.shown
    }

    /// The number of its first process, to which orphans fall.
    pub(super) fn first(&self) -> i32 {
        self.first
    }

    /// Its `/dev`, from outside. Returns `None` if it is everybody's.
    pub(super) fn devices(&self) -> Option<&OwnedFd> {
        self.devices.as_ref()
    }

    /// Puts all that this thread will start into it, where that can be done; else each of them goes
    /// through the [`Doors`]. With a view they see the files as it has them. The thread starts no thread
    /// from now on.
    pub(super) fn join(&self, view: Option<&View>) -> io::Result<()> {
        if self.user.is_some() {
            return Ok(());
        }
        let (shared, processes) = (self.shared.as_raw_fd(), self.processes.as_raw_fd());
        let mounts = self.mounts_of(view);
        // SAFETY: the calls take numbers, the descriptors are open, and they concern this thread only.
        let joined = unsafe {
            libc::unshare(libc::CLONE_FS) == 0
                && libc::setns(shared, libc::CLONE_NEWIPC) == 0
                && libc::setns(mounts, libc::CLONE_NEWNS) == 0
                && libc::setns(processes, libc::CLONE_NEWPID) == 0
        };
        if joined { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// What a process enters to be in it, where joining is not enough.
    pub(super) fn doors(&self, view: Option<&View>) -> Option<Doors> {
        self.user.as_ref().map(|user| Doors {
            user: user.as_raw_fd(),
            shared: self.shared.as_raw_fd(),
            mounts: self.mounts_of(view),
            processes: self.processes.as_raw_fd(),
        })
    }

    fn mounts_of(&self, view: Option<&View>) -> RawFd {
        view.map_or(&self.mounts, View::mounts).as_raw_fd()
    }

    /// Enters its mounts, with this process only: to make others from them. It allocates nothing.
    pub(super) fn enter_mounts(&self) -> bool {
        let user = self.user().unwrap_or(-1);
        // SAFETY: the calls take numbers, and concern this process only.
        unsafe {
            (user < 0 || libc::setns(user, libc::CLONE_NEWUSER) == 0)
                && libc::setns(self.mounts.as_raw_fd(), libc::CLONE_NEWNS) == 0
        }
    }

    /// The user namespace around it, in which other namespaces for its processes are made.
    pub(super) fn user(&self) -> Option<RawFd> {
        self.user.as_ref().map(AsRawFd::as_raw_fd)
    }
}

/// Ends a first process that nobody else knows, with all that is in its namespace.
fn end(first: i32) {
    // SAFETY: it is a child of this process, and was not waited for.
    unsafe {
        libc::kill(first, libc::SIGKILL);
        libc::waitpid(first, std::ptr::null_mut(), 0);
    }
}

/// The life of the first process. It ends with the thread that made it.
///
/// # Safety
///
/// Only for a process that was just made, with memory of its own: it never returns.
unsafe fn be_first(maker: RawFd, ends: RawFd, maps: Option<&Maps>) -> ! {
    // SAFETY: all are system calls with numbers, whole structures and descriptors of this process.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
        // The maker has to be let look at its namespaces, and about itself it has to write.
        libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0);
        if !maps.is_none_or(Maps::write) || !mount_processes() {
            libc::_exit(1);
        }
        let word = if devices::cover() { HAS_DEVICES } else { 0 };
        // All but the two that stay. Where one is missing, two others are as good.
        let (low, high) = (maker.min(ends).max(2), maker.max(ends).max(2));
        libc::syscall(libc::SYS_close_range, 3, low - 1, 0);
        libc::syscall(libc::SYS_close_range, low + 1, high - 1, 0);
        libc::syscall(libc::SYS_close_range, high + 1, libc::c_uint::MAX, 0);
        let mut word = [word];
        // A maker that was gone before the kernel was told to watch it does not hear this.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        if libc::send(maker, word.as_ptr().cast(), 1, libc::MSG_NOSIGNAL) != 1
            || libc::read(maker, word.as_mut_ptr().cast(), 1) != 1
        {
            libc::_exit(1);
        }
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        let mut ended: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut ended);
        libc::sigaddset(&raw mut ended, libc::SIGCHLD);
        loop {
            while libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) > 0 {
                libc::write(ends, word.as_ptr().cast(), 1);
            }
            libc::sigwaitinfo(&raw const ended, std::ptr::null_mut());
        }
    }
}

/// Has `/proc` show the processes of this namespace, to those in it.
fn mount_processes() -> bool {
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    let (nothing, kind) = (c"none".as_ptr(), c"proc".as_ptr());
    let no_data = std::ptr::null();
    // SAFETY: the texts are whole; what is mounted outside goes on to appear here, not the reverse.
    unsafe {
        let follow = libc::MS_REC | libc::MS_SLAVE;
        libc::mount(nothing, c"/".as_ptr(), std::ptr::null(), follow, no_data) == 0
            && libc::mount(kind, c"/proc".as_ptr(), kind, flags, no_data) == 0
    }
}
