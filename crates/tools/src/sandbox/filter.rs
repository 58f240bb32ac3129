//! System calls that no command in a sandbox makes: they lead around it, or to what is nobody's file.
//!
//! Landlock and namespaces are about files, processes and the network. What is left is refused by number:
//! rings that work past every other filter, the kernel's keyrings, its programs and its probes, and typing
//! into a terminal in its user's place. Everything else costs nothing: the kernel remembers by number that
//! the filter lets it pass.
#![allow(unsafe_code, reason = "seccomp has no safe face here")]

use std::io;

const LOAD_WORD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// Where a call's number, its architecture and the second of its arguments are in what a filter reads.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const REQUEST: u32 = if cfg!(target_endian = "big") { 28 } else { 24 };

const SET_MODE_FILTER: libc::c_uint = 1;
/// Without it some kernels make every process behind a filter slower.
const SPEC_ALLOW: libc::c_uint = 1 << 2;

/// Terminals are typed into by those who sit at them.
const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541c;

/// The numbers of an architecture.
struct Numbers {
    architecture: u32,
    ioctl: u32,
    refused: &'static [u32],
}

/// They have the same number everywhere. Whoever asks for one without need goes on without it.
const RINGS: [u32; 3] = [425, 426, 427];

#[cfg(target_arch = "x86_64")]
const ALL: &[Numbers] = &[
    Numbers {
        architecture: 0xc000_003e,
        ioctl: 16,
        // add_key, request_key, keyctl, perf_event_open, bpf, userfaultfd, kexec_load, kexec_file_load
        refused: &[248, 249, 250, 298, 321, 323, 246, 320],
    },
    Numbers { architecture: 0x4000_0003, ioctl: 54, refused: &[286, 287, 288, 336, 357, 374, 283] },
];
#[cfg(target_arch = "aarch64")]
const ALL: &[Numbers] = &[
    Numbers {
        architecture: 0xc000_00b7,
        ioctl: 29,
        refused: &[217, 218, 219, 241, 280, 282, 104, 294],
    },
    Numbers {
        architecture: 0x4000_0028,
        ioctl: 54,
        refused: &[309, 310, 311, 364, 386, 388, 347, 401],
    },
];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ALL: &[Numbers] = &[];

/// Programs of the third kind on `x86_64` have the same numbers with this bit, but for a few.
const X32: u32 = 0x4000_0000;
const X32_IOCTL: u32 = 514;
const X32_KEXEC: u32 = 528;

/// The filter, made ready.
pub(super) struct Filter(Vec<libc::sock_filter>);

impl Filter {
    pub(super) fn new() -> Self {
        let mut steps = vec![step(LOAD_WORD, ARCHITECTURE, 0, 0)];
        for numbers in ALL {
            let own = of(numbers);
            let length = u8::try_from(own.len()).unwrap_or(u8::MAX);
            steps.push(step(JUMP_IF_EQUAL, numbers.architecture, 0, length));
            steps.extend(own);
        }
        steps.push(step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0));
        Self(steps)
    }

    /// Puts it on this thread and on all that it will start, for ever.
    pub(super) fn put_on(&self) -> io::Result<()> {
        let length = u16::try_from(self.0.len()).map_err(io::Error::other)?;
        let program = libc::sock_fprog { len: length, filter: self.0.as_ptr().cast_mut() };
        rustix::thread::set_no_new_privs(true)?;
        // SAFETY: the program is whole, and the kernel copies it.
        let done = unsafe {
            libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, SPEC_ALLOW, &raw const program)
        };
        if done == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            // Where there are no filters, or none for us, the rest of the sandbox holds.
            Some(libc::EINVAL | libc::ENOSYS | libc::EPERM) => Ok(()),
            _ => Err(error),
        }
    }
}

/// The steps for calls of one architecture. They end in an answer.
fn of(numbers: &Numbers) -> Vec<libc::sock_filter> {
    let is_wide = cfg!(target_arch = "x86_64") && numbers.architecture == 0xc000_003e;
    let errors = |error: i32| libc::SECCOMP_RET_ERRNO | error.cast_unsigned();
    let mut steps = vec![step(LOAD_WORD, NUMBER, 0, 0)];
    let answer = |steps: &mut Vec<libc::sock_filter>, number: u32, error: i32| {
        steps.push(step(JUMP_IF_EQUAL, number, 0, 1));
        steps.push(step(RETURN, errors(error), 0, 0));
    };
    let bits: &[u32] = if is_wide { &[0, X32] } else { &[0] };
    for bit in bits {
        for number in RINGS {
            answer(&mut steps, number | bit, libc::ENOSYS);
        }
        for number in numbers.refused {
            answer(&mut steps, number | bit, libc::EPERM);
        }
    }
    if is_wide {
        answer(&mut steps, X32 | X32_KEXEC, libc::EPERM);
        steps.push(step(JUMP_IF_EQUAL, X32 | X32_IOCTL, 2, 0));
    }
    steps.push(step(JUMP_IF_EQUAL, numbers.ioctl, 1, 0));
    steps.push(step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0));
    steps.push(step(LOAD_WORD, REQUEST, 0, 0));
    for request in [TIOCSTI, TIOCLINUX] {
        answer(&mut steps, request, libc::EPERM);
    }
    steps.push(step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0));
    steps
}

fn step(code: u16, k: u32, jump_true: u8, jump_false: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt: jump_true, jf: jump_false, k }
}
