//! Whether the kernel can hold commands in a box, told without making namespaces where that can be.
//!
//! Every run asks this before its first request. Trying costs a millisecond or two, because the kernel
//! makes a network and takes it down again; what the kernel says of itself costs a few microseconds. Where
//! that is not the whole truth (a filter of system calls, a container), it is tried. If it should be
//! wrong all the same, commands refuse to run and say why: a box is required where nobody is asked.
#![allow(unsafe_code, reason = "prctl has no safe face for this question")]

use std::fs;

use super::capabilities;
use super::landlock::Abi;
use super::support::{NetworkWay, Support};

/// Why the kernel cannot hold commands in a box, as half a sentence. Returns `None` if it can.
pub fn unheld() -> Option<String> {
    let landlock = Abi::of_kernel().0;
    if landlock >= 3 && !is_filtered() && has_namespaces() {
        return Support { landlock, network: NetworkWay::Namespace }.holds().err();
    }
    Support::of_kernel().holds().err()
}

/// Whether a filter may refuse what the kernel would allow.
fn is_filtered() -> bool {
    // SAFETY: the call takes a number and returns one.
    unsafe { libc::prctl(libc::PR_GET_SECCOMP) != 0 }
}

/// Whether this user is given namespaces, as far as the kernel's own settings say.
fn has_namespaces() -> bool {
    let setting = |path: &str| {
        let text = fs::read_to_string(path).ok()?;
        text.trim().parse::<u64>().ok()
    };
    if setting("/proc/sys/user/max_net_namespaces") == Some(0) {
        return false;
    }
    if rustix::process::geteuid().is_root() {
        return capabilities::may_administer();
    }
    // The last two are Debian's and Ubuntu's own; where there are none, nothing is restricted.
    setting("/proc/sys/user/max_user_namespaces").is_some_and(|most| most > 0)
        && setting("/proc/sys/kernel/unprivileged_userns_clone") != Some(0)
        && setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").unwrap_or(0) == 0
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_what_trying_finds() {
        assert_eq!(unheld(), Support::of_kernel().holds().err());
    }
}
