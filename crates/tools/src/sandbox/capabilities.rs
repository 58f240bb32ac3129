//! What root may do besides files: landlock does not ask, so it is taken away.
#![allow(unsafe_code, reason = "capget, capset and prctl have no safe face here")]

use std::io;

/// What is kept: to own, change and run files of any user, and to open low ports. With the rest one
/// could mount, load modules, open disks and enter the namespaces of others.
const KEPT: u64 = 1 << 0 // CHOWN
    | 1 << 1 // DAC_OVERRIDE
    | 1 << 3 // FOWNER
    | 1 << 4 // FSETID
    | 1 << 5 // KILL
    | 1 << 6 // SETGID
    | 1 << 7 // SETUID
    | 1 << 10 // NET_BIND_SERVICE
    | 1 << 13 // NET_RAW
    | 1 << 18; // SYS_CHROOT
const SETPCAP: u64 = 1 << 8;
const LAST: u32 = 63;
const VERSION_3: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Whether this thread may make namespaces without a user namespace around them.
pub(super) fn may_administer() -> bool {
    const SYS_ADMIN: u32 = 1 << 21;
    let header = Header { version: VERSION_3, pid: 0 };
    let mut sets = [Sets::default(); 2];
    // SAFETY: this version of the call fills two structures.
    let known = unsafe { libc::syscall(libc::SYS_capget, &raw const header, sets.as_mut_ptr()) };
    known == 0 && sets[0].effective & SYS_ADMIN != 0
}

/// Takes from this thread, and from all that it will start, what nobody needs in a sandbox. Does
/// nothing for those who have none.
pub(super) fn reduce() -> io::Result<()> {
    let header = Header { version: VERSION_3, pid: 0 };
    let mut sets = [Sets::default(); 2];
    // SAFETY: this version of the call fills two structures.
    if unsafe { libc::syscall(libc::SYS_capget, &raw const header, sets.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let permitted = u64::from(sets[0].permitted) | u64::from(sets[1].permitted) << 32;
    if permitted & !KEPT == 0 {
        return Ok(());
    }
    if permitted & SETPCAP != 0 {
        for capability in (0..=LAST).filter(|number| KEPT & (1 << number) == 0) {
            // One that the kernel does not know cannot be had either.
            // SAFETY: the call takes numbers only.
            unsafe { libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(capability), 0, 0, 0) };
        }
    }
    let (low, high) = (KEPT & u64::from(u32::MAX), KEPT >> 32);
    for (set, kept) in sets.iter_mut().zip([low, high]) {
        let kept = u32::try_from(kept).unwrap_or(0);
        set.effective &= kept;
        set.permitted &= kept;
        set.inheritable &= kept;
    }
    // SAFETY: this version of the call reads two structures.
    if unsafe { libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
