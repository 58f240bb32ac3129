//! Leases whose holder does not move.
//!
//! A holder that died needs nobody: whoever wants the lease takes it at once. One that is stopped,
//! or runs without renewing, keeps something from being done until somebody looks.

use mainstay_store::{Holder, Liveness, Store};

use super::finding::Finding;
use super::remedy;
use crate::paths::Paths;
use crate::wording;

/// Looks at every holder; one finding for each that is stuck, or one that all is well.
pub(super) fn stuck(store: &Store, paths: &Paths) -> Vec<Finding> {
    let holders = match store.lease_holders() {
        Ok(holders) => holders,
        Err(error) => return vec![remedy::problem("leases", &error, paths)],
    };
    judged(holders.iter().map(|holder| (holder, holder.process.liveness(), store.is_free(holder))))
}

fn judged<'a>(holders: impl Iterator<Item = (&'a Holder, Liveness, bool)>) -> Vec<Finding> {
    let mut held = 0;
    let mut left = 0;
    let mut findings = Vec::new();
    for (holder, liveness, free) in holders {
        let complaint = match (liveness, free) {
            (Liveness::Stopped, _) => "which is stopped",
            (Liveness::Alive, true) => "which is running but has not renewed it in time",
            (_, true) => {
                left += 1;
                continue;
            }
            (_, false) => {
                held += 1;
                continue;
            }
        };
        findings.push(Finding::warning(
            "leases",
            format!(
                "\"{}\" has been held since {} by {holder}, {complaint}",
                holder.resource,
                wording::time(holder.since)
            ),
            format!("ps -o pid,stat,lstart,args -p {}", holder.process.pid),
        ));
    }
    if findings.is_empty() {
        let mut message = format!("{held} held");
        if left > 0 {
            message.push_str(&format!(", {left} left by dead processes and free to take"));
        }
        findings.push(Finding::ok("leases", message));
    }
    findings
}
