//! What the kernel can do for the sandbox of commands and file tools.

use mainstay_tools::sandbox::{ProcessWay, Support};

use super::finding::Finding;

/// The kernel can hold commands to the sandbox; what it cannot hold is said.
pub(super) fn support(support: &Support, way: ProcessWay) -> Finding {
    if support.missing().is_some() {
        return Finding::warning(
            "sandbox",
            "this kernel has no landlock (Linux 5.13 or later, with landlock enabled), so commands \
             and file tools run without a sandbox; the policy still decides what is allowed",
            "uname -r",
        );
    }
    let version = support.landlock;
    let losses = support.losses(way);
    if losses.is_empty() {
        return Finding::ok(
            "sandbox",
            format!("landlock {version} and namespaces: fully supported"),
        );
    }
    Finding::ok("sandbox", format!("landlock {version}, partly supported: {}", losses.join("; ")))
}

#[cfg(test)]
mod tests {
    use mainstay_tools::sandbox::NetworkWay;

    use super::super::finding::Status;
    use super::*;

    #[test]
    fn each_loss_of_an_older_kernel_is_named() {
        let with = |landlock, network, way| support(&Support { landlock, network }, way);
        let of = |landlock, network| with(landlock, network, ProcessWay::Namespace);
        assert_eq!(of(0, NetworkWay::Open).status, Status::Warning);
        assert!(of(7, NetworkWay::Namespace).message.contains("fully supported"));
        let old = of(1, NetworkWay::Open).message;
        for loss in ["moved", "emptied", "devices", "signal", "network"] {
            assert!(old.contains(loss), "{loss}: {old}");
        }
        let plain = with(7, NetworkWay::Namespace, ProcessWay::Stamp).message;
        assert!(plain.contains("git's configuration"), "{plain}");
    }
}
