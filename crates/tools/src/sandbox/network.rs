//! A network of their own for commands, in which they reach nobody but each other.
//!
//! Who may (root) takes a thread away from the network, and all that it starts with it. Everybody
//! else may in a user namespace, which a thread cannot enter; so a process that makes one and goes
//! leaves it behind, and each command enters it before it begins.
#![allow(unsafe_code, reason = "fork, unshare and ioctl have no safe face here")]

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use rustix::pipe::{PipeFlags, pipe_with};

use super::enclosure::Enclosure;

/// How commands are kept from the network.
#[derive(Clone)]
pub(super) enum Separation {
    /// This thread has a network of its own, and so has what it starts.
    Thread,
    /// What it starts enters these.
    Entered(Arc<Namespaces>),
    /// The kernel gives no namespaces.
    None,
}

/// A network and, unless it is that of an enclosure, the user namespace that it is in. They last as long
/// as somebody has them open.
pub(super) struct Namespaces {
    user: Option<OwnedFd>,
    network: OwnedFd,
}

/// Makes a network for this thread, or for what it will start in an enclosure or without one.
pub(super) fn separate(enclosure: Option<&Enclosure>) -> Separation {
    // SAFETY: the call takes a flag, and concerns this thread only.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0 {
        loopback_up();
        return Separation::Thread;
    }
    match Namespaces::make(enclosure.and_then(Enclosure::user)) {
        Ok(namespaces) => Separation::Entered(Arc::new(namespaces)),
        Err(_) => Separation::None,
    }
}

impl Separation {
    /// Whether there is one.
    pub(super) fn is_some(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// The user namespace that a command which this thread starts must enter, and the network.
    pub(super) fn to_enter(&self) -> (Option<RawFd>, Option<RawFd>) {
        match self {
            Self::Entered(namespaces) => {
                let user = namespaces.user.as_ref().map(AsRawFd::as_raw_fd);
                (user, Some(namespaces.network.as_raw_fd()))
            }
            Self::Thread | Self::None => (None, None),
        }
    }
}

impl Namespaces {
    fn make(within: Option<RawFd>) -> io::Result<Self> {
        let (mut ready, tells) =
            pipe_with(PipeFlags::CLOEXEC).map(|(one, two)| (File::from(one), two))?;
        let (waits, mut go) =
            pipe_with(PipeFlags::CLOEXEC).map(|(one, two)| (one, File::from(two)))?;
        let maps = Maps::of_this_user();
        // SAFETY: the child makes system calls only, with what was made ready before.
        let child = match unsafe { libc::fork() } {
            -1 => return Err(io::Error::last_os_error()),
            0 => {
                let made = make_inside(&maps, within);
                let word = [u8::from(made)];
                // SAFETY: the descriptors are open, the buffers have a byte; the child ends here.
                unsafe {
                    libc::write(tells.as_raw_fd(), word.as_ptr().cast(), 1);
                    let mut word = [0_u8];
                    libc::close(go.as_raw_fd());
                    libc::read(waits.as_raw_fd(), word.as_mut_ptr().cast(), 1);
                    libc::_exit(0);
                }
            }
            child => child,
        };
        drop((tells, waits));
        let mut word = [0_u8];
        let told = ready.read_exact(&mut word);
        let namespaces = match (told, word) {
            (Ok(()), [1]) => Self::of(child, within),
            (Ok(()), _) => Err(io::Error::from(io::ErrorKind::PermissionDenied)),
            (Err(error), _) => Err(error),
        };
        let _ = go.write_all(&[0]);
        // SAFETY: it is a child of this process, and nobody else waits for it meanwhile.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        namespaces
    }

    fn of(process: i32, within: Option<RawFd>) -> io::Result<Self> {
        let open = |kind| File::open(format!("/proc/{process}/ns/{kind}")).map(OwnedFd::from);
        let user = if within.is_none() { Some(open("user")?) } else { None };
        Ok(Self { user, network: open("net")? })
    }
}

/// What is written about the user of a namespace, made before the fork. The user stays who he is.
pub(super) struct Maps {
    user: String,
    group: String,
}

impl Maps {
    pub(super) fn of_this_user() -> Self {
        let user = rustix::process::geteuid().as_raw();
        let group = rustix::process::getegid().as_raw();
        Self { user: format!("{user} {user} 1"), group: format!("{group} {group} 1") }
    }

    /// In a child that is in a new user namespace: makes its user known there.
    pub(super) fn write(&self) -> bool {
        tell(c"/proc/self/setgroups", b"deny")
            && tell(c"/proc/self/uid_map", self.user.as_bytes())
            && tell(c"/proc/self/gid_map", self.group.as_bytes())
    }
}

/// In the child: makes the namespaces, within a user namespace or with one of their own.
fn make_inside(maps: &Maps, within: Option<RawFd>) -> bool {
    // The keeper lets nobody look into it, and would not be let write about itself. The child has
    // memory of its own.
    // SAFETY: the call takes numbers, and concerns the child only.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) };
    // SAFETY: the calls take numbers and a descriptor that is open, and concern the child only.
    let made = unsafe {
        match within {
            Some(user) => {
                libc::setns(user, libc::CLONE_NEWUSER) == 0
                    && libc::unshare(libc::CLONE_NEWNET) == 0
            }
            None => libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET) == 0 && maps.write(),
        }
    };
    if made {
        loopback_up();
    }
    made
}

fn tell(path: &std::ffi::CStr, words: &[u8]) -> bool {
    // SAFETY: the path and the words are whole; the descriptor is ours.
    unsafe {
        let file: RawFd = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if file < 0 {
            return false;
        }
        let written = libc::write(file, words.as_ptr().cast(), words.len());
        libc::close(file);
        written == words.len().cast_signed()
    }
}

/// Lets commands reach each other by 127.0.0.1. Without it they reach nobody.
fn loopback_up() {
    // SAFETY: the request is a whole structure with a name that ends, and the socket is ours.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if socket < 0 {
            return;
        }
        let mut request: libc::ifreq = std::mem::zeroed();
        for (place, letter) in request.ifr_name.iter_mut().zip(c"lo".to_bytes()) {
            *place = letter.cast_signed();
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        libc::ioctl(socket, libc::SIOCSIFFLAGS as _, &raw const request);
        libc::close(socket);
    }
}
