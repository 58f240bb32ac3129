//! What dead keepers left: processes, if the guard was killed too, and old directories.

use std::fs;
use std::path::Path;
use std::time::Duration;

use mainstay_store::{Id, Liveness, ProcessIdentity, wall_millis};
use rustix::process::Signal;

use super::launch::connect;
use crate::keeper::shared::marks::KEEPER_MARK;
use crate::keeper::shared::processes::{Process, Snapshot, mark, numbers, signal};
use crate::keeper::shared::spool::Record;

/// How long the directory of a dead keeper is kept for whoever resumes its work.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// A directory without a log belongs to a keeper that is about to start, or that never did.
const UNBORN: Duration = Duration::from_secs(60 * 60);
/// How far the start of a process may be from the time that its keeper wrote down.
const NEAR_MILLIS: u64 = 200;

/// How often, and how many times, it is looked again after a keeper that is dying.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS: u32 = 100;

/// Looks after all that is in a spool, except one keeper's.
pub(super) fn sweep(spool: &Path, own: &str) {
    for _ in 0..LOOKS {
        if sweep_once(spool, own) {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

/// True when nothing is left to do.
fn sweep_once(spool: &Path, own: &str) -> bool {
    let mut done = true;
    for entry in fs::read_dir(spool).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        // Nothing else lives here, and nothing else is touched.
        let Ok(id) = name.parse::<Id>() else { continue };
        if name == own {
            continue;
        }
        let age = wall_millis().saturating_sub(id.created_millis());
        let older_than = |limit: Duration| i128::from(age) > limit.as_millis().cast_signed();
        let gone = match Record::read(&entry.path()) {
            Ok(record) => match record.keeper.liveness() {
                Liveness::Alive | Liveness::Stopped => {
                    // One that takes no connection is on its way out.
                    done &= connect(&entry.path()).is_ok();
                    continue;
                }
                Liveness::OutOfSight => older_than(KEPT),
                Liveness::Dead => {
                    if record.over.len() < record.starting.len() {
                        done &= kill_leftovers(&name, &record);
                    }
                    older_than(KEPT)
                }
            },
            Err(_) => older_than(UNBORN),
        };
        if gone {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    done
}

/// Kills what a dead keeper left. True when nothing was there any more.
pub(super) fn clear(spool: &Path, name: &str) -> bool {
    match Record::read(&spool.join(name)) {
        Ok(record) => match record.keeper.liveness() {
            Liveness::Alive | Liveness::Stopped => false,
            Liveness::OutOfSight => true,
            Liveness::Dead => kill_leftovers(name, &record),
        },
        // Without a log no job was started.
        Err(_) => true,
    }
}

/// Kills every process that carries the keeper's mark, and every root that it wrote down, with all
/// below them. True when there was none.
fn kill_leftovers(name: &str, record: &Record) -> bool {
    debug_assert!(record.keeper.boot == ProcessIdentity::current().boot);
    let marked = numbers().filter(|pid| mark(*pid, KEEPER_MARK).as_deref() == Some(name));
    let over = |key: &String| record.over.contains(key);
    let roots = record.starting.iter().filter(|(key, _)| !over(key)).filter_map(|(_, root)| {
        let (pid, uptime) = (*root)?;
        let process = Process::of(pid)?;
        (process.start.abs_diff(uptime) < NEAR_MILLIS).then_some(pid)
    });
    let mut found: Vec<i32> = marked.chain(roots).collect();
    let snapshot = Snapshot::take();
    for pid in found.clone() {
        found.extend(snapshot.below(pid));
    }
    let found = snapshot.alive(found);
    found.iter().for_each(|pid| signal(*pid, Signal::KILL));
    found.is_empty()
}
