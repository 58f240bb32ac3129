//! Whose a process is, and how all processes of a job are ended.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use rustix::process::Signal;

use super::held::Held;
use super::live::Live;
use crate::keeper::shared::KillReason;
use crate::keeper::shared::brand::brand_of;
use crate::keeper::shared::marks::JOB_MARK;
use crate::keeper::shared::processes::{
    Process, Snapshot, children_of, mark, own_children, own_pid, signal, signal_group,
};

/// How long a process may take to end by itself after SIGTERM.
const POLITENESS: Duration = Duration::from_millis(250);
/// How often it is looked whether all are gone.
const LOOK: Duration = Duration::from_millis(20);
/// A process that SIGKILL does not end in this time hangs in the kernel.
const PATIENCE: Duration = Duration::from_secs(5);

/// A job on its way out.
pub(super) struct Killing {
    pub(super) why: KillReason,
    since: Duration,
    next: Duration,
    asked: bool,
}

impl Killing {
    pub(super) fn new(why: KillReason, now: Duration) -> Self {
        Self { why, since: now, next: now, asked: false }
    }

    pub(super) fn is_due(&self, now: Duration) -> bool {
        now >= self.next
    }

    pub(super) fn due(&self) -> Duration {
        self.next
    }

    /// Signals what is left of the job. False when there is no use in waiting longer.
    pub(super) fn step(&mut self, owned: &[i32], snapshot: &Snapshot, now: Duration) -> bool {
        let force = now >= self.since + POLITENESS;
        if force {
            // A group is killed at one instant, also one whose processes fork all the time.
            for group in snapshot.groups(owned) {
                signal_group(group, Signal::KILL);
            }
            owned.iter().for_each(|pid| signal(*pid, Signal::KILL));
        } else if !self.asked {
            self.asked = true;
            for pid in owned {
                signal(*pid, Signal::TERM);
                // A stopped process hears nothing else.
                signal(*pid, Signal::CONT);
            }
        }
        self.next = (now + LOOK).min(if force { now + LOOK } else { self.since + POLITENESS });
        now < self.since + PATIENCE
    }
}

/// Which children of the keeper belong to which job.
#[derive(Default)]
pub(super) struct Claims {
    roots: HashMap<i32, String>,
    /// Children that came by the death of their parents, with the time of their start: those that are
    /// reaped elsewhere may have their numbers used again.
    adopted: HashMap<i32, (u64, String)>,
}

impl Claims {
    pub(super) fn root(&mut self, pid: i32, key: &str) {
        self.roots.insert(pid, key.to_owned());
    }

    pub(super) fn is_root(&self, pid: i32) -> bool {
        self.roots.contains_key(&pid)
    }

    /// A child is gone; says whose root it was.
    pub(super) fn reaped(&mut self, pid: i32) -> Option<String> {
        self.adopted.remove(&pid);
        self.roots.remove(&pid)
    }

    /// The processes of a job that have not ended: its root and what descends from it, and what
    /// fell to the keeper.
    pub(super) fn owned(
        &mut self,
        key: &str,
        snapshot: &Snapshot,
        live: &BTreeMap<String, Live>,
        held: Option<&Held>,
        adopter: Option<i32>,
    ) -> Vec<i32> {
        let mut owned = Vec::new();
        let parents = std::iter::once(own_pid()).chain(adopter);
        let children = parents.flat_map(|parent| snapshot.children(parent));
        for pid in children.filter(|pid| Some(**pid) != adopter) {
            let Some(process) = snapshot.get(*pid) else { continue };
            let known = self.adopted.get(pid).filter(|(start, _)| *start == process.start);
            let owner = match self.roots.get(pid).or_else(|| known.map(|(_, owner)| owner)) {
                Some(owner) => Some(owner.clone()),
                // It belongs to none of them yet.
                None if held.is_some_and(|held| held.has(*pid)) => None,
                None => {
                    let found = owner(process, live);
                    if let Some(owner) = &found {
                        self.adopted.insert(*pid, (process.start, owner.clone()));
                    }
                    found
                }
            };
            if owner.as_deref() == Some(key) {
                owned.push(*pid);
                owned.extend(snapshot.below(*pid));
            }
        }
        snapshot.alive(owned)
    }
}

/// Whose an adopted process is: by its group, by its brand, by its mark, or because it can be
/// nobody else's.
fn owner(process: &Process, live: &BTreeMap<String, Live>) -> Option<String> {
    if let Some((key, _)) = live.iter().find(|(_, live)| live.group() == process.group) {
        return Some(key.clone());
    }
    if let Some(brand) = brand_of(process.pid)
        && let Some((key, _)) = live.iter().find(|(_, live)| live.brand == Some(brand))
    {
        return Some(key.clone());
    }
    if let Some(key) = mark(process.pid, JOB_MARK).filter(|key| live.contains_key(key)) {
        return Some(key);
    }
    let tick = Duration::from_millis(20);
    let start = Duration::from_millis(process.start);
    let mut candidates = live.iter().filter(|(_, live)| {
        let ended_before = live.exit.as_ref().is_some_and(|(_, at)| *at + tick < start);
        live.started <= start + tick && !ended_before
    });
    match (candidates.next(), candidates.next()) {
        (Some((key, _)), None) => Some(key.clone()),
        _ => None,
    }
}

/// The children of this process that nobody may have asked for, and those of the other one to which
/// orphans fall.
pub(super) fn adopted(adopter: Option<i32>) -> Vec<i32> {
    let mut found = own_children();
    if let Some(adopter) = adopter {
        found.retain(|pid| *pid != adopter);
        found.extend(children_of(adopter));
    }
    found
}

/// Kills everything that descends from a process, but for one.
pub(super) fn kill_all_below(pid: i32, spared: Option<i32>) {
    let snapshot = Snapshot::take();
    let mut below = snapshot.alive(snapshot.below(pid));
    below.retain(|pid| Some(*pid) != spared);
    for group in snapshot.groups(&below) {
        signal_group(group, Signal::KILL);
    }
    below.into_iter().for_each(|pid| signal(pid, Signal::KILL));
}
