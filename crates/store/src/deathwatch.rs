//! Wakes a standby the moment the process it waits for dies.

use std::sync::Arc;

use crate::hub::Hub;
use crate::identity::ProcessIdentity;

/// Watches until it is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    #[cfg(target_os = "linux")]
    _stop: std::io::PipeWriter,
}

/// Rings `topic` when `process` ends. `None` when it cannot be watched from here: then its lease's
/// expiry and the slow poll remain.
#[cfg(target_os = "linux")]
pub(crate) fn watch(process: &ProcessIdentity, hub: &Arc<Hub>, topic: &str) -> Option<Watch> {
    use crate::identity::Liveness;
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    let pid = Pid::from_raw(i32::try_from(process.pid).ok()?)?;
    if matches!(process.liveness(), Liveness::OutOfSight) {
        return None;
    }
    let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    // Asked again with the handle in hand: the number may have been reused just before.
    if process.liveness() == Liveness::Dead {
        hub.ring([topic].into_iter());
        return None;
    }
    let (stopped, stop) = std::io::pipe().ok()?;
    let hub = hub.clone();
    let topic = topic.to_owned();
    std::thread::Builder::new()
        .name("death-watch".to_owned())
        .spawn(move || {
            loop {
                let mut ends =
                    [PollFd::new(&handle, PollFlags::IN), PollFd::new(&stopped, PollFlags::IN)];
                match poll(&mut ends, None) {
                    Err(rustix::io::Errno::INTR) => {}
                    Err(_) => return,
                    Ok(_) if !ends[1].revents().is_empty() => return,
                    Ok(_) => return hub.ring([topic.as_str()].into_iter()),
                }
            }
        })
        .ok()?;
    Some(Watch { _stop: stop })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn watch(_process: &ProcessIdentity, _hub: &Arc<Hub>, _topic: &str) -> Option<Watch> {
    None
}
