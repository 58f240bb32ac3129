//! What dead keepers left: processes, if the guard was killed too, and directories.
//!
//! Whether a keeper is dead is told by the lock on its directory, which it and every agent that may ask
//! it hold. Nobody is asked for it: a connection would look like an agent that came and went.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mainstay_store::occupancy::vacated;
use mainstay_store::{Id, Liveness, wall_millis};
use rustix::process::Signal;

use super::kept::keeper_directory;
use crate::keeper::shared::Left;
use crate::keeper::shared::marks::KEEPER_MARK;
use crate::keeper::shared::processes::{
    Process, Snapshot, command_line, mark, number_inside, numbers, own_pid, signal,
};
use crate::keeper::shared::spool::{OUTPUT, Record, SOCKET};
use crate::keeper::shared::stamp::{Stamp, number_of, stamp_of};

/// How long the directory of a dead keeper is kept for whoever resumes its work.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How far the start of a process may be from the time that its keeper wrote down.
const NEAR_MILLIS: u64 = 200;

/// How often, and how many times, it is looked again after a keeper that is dying.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS: u32 = 100;

/// A keeper of which everything is gone but its directory, and maybe some processes.
struct Remains {
    name: String,
    directory: PathBuf,
    record: Option<Record>,
    /// Nobody takes it up meanwhile.
    _taken: fs::File,
}

/// What the keepers of a spool keep, and what outlived those that are dead.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Keepers that live, or of which an agent lives that may ask for what they wrote.
    pub keepers: Vec<KeeperFound>,
    /// Processes that outlived their keeper. Whoever clears up ends them.
    pub outlived: Vec<Left>,
}

/// A keeper that is not to be cleared up.
#[derive(Clone, Debug)]
pub struct KeeperFound {
    /// Its name.
    pub name: String,
    /// The number of its process.
    pub pid: u32,
    /// Whether that process is there.
    pub liveness: Liveness,
    /// How many jobs it has.
    pub jobs: usize,
}

/// Looks at all that is in a spool, and changes nothing.
pub fn survey(spool: &Path) -> Survey {
    let mut survey = Survey::default();
    for (name, directory) in directories(spool) {
        match Remains::of(name.clone(), &directory) {
            None => {
                let Ok(record) = Record::read(&directory) else { continue };
                survey.keepers.push(KeeperFound {
                    name,
                    pid: record.keeper.pid,
                    liveness: record.keeper.liveness(),
                    jobs: record.starting.len().saturating_sub(record.over.len()),
                });
            }
            Some(Remains { record: Some(record), .. })
                if record.keeper.liveness() == Liveness::Dead =>
            {
                let outlived = leftovers(&name, &record).into_iter().map(|pid| Left {
                    pid,
                    inside: number_inside(pid),
                    command: command_line(pid),
                });
                survey.outlived.extend(outlived);
            }
            Some(_) => {}
        }
    }
    survey
}

/// Looks after all that is in a spool, except one keeper's. What may be asked for stays.
pub(super) fn sweep(spool: &Path, own: &str) {
    for _ in 0..LOOKS {
        if sweep_once(spool, Some(own), &mut |_| true) {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

/// Ends what dead keepers left running, and removes what nobody will ask them for: `is_needed` says
/// whether a keeper with this name is written down for something that is not over.
pub fn clear_up(spool: &Path, mut is_needed: impl FnMut(&str) -> bool) {
    for _ in 0..LOOKS {
        if sweep_once(spool, None, &mut is_needed) {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    // It stays where others have something in it.
    let _ = fs::remove_dir(spool);
}

/// True when nothing is left to do.
fn sweep_once(spool: &Path, own: Option<&str>, is_needed: &mut dyn FnMut(&str) -> bool) -> bool {
    let mut done = true;
    for (name, directory) in directories(spool) {
        if own == Some(name.as_str()) {
            continue;
        }
        let Some(remains) = Remains::of(name, &directory) else {
            // One that nobody can connect to is on its way out.
            done &= own.is_none() || directory.join(SOCKET).exists() || !directory.exists();
            continue;
        };
        if !remains.end_processes() {
            done = false;
        } else if remains.is_old() || !is_needed(&remains.name) {
            let _ = fs::remove_dir_all(&remains.directory);
        } else {
            remains.remove_outputs();
        }
    }
    done
}

/// Wakes a keeper that is stopped.
pub(super) fn wake(spool: &Path, name: &str) {
    signal_keeper(spool, name, &[Liveness::Stopped], Signal::CONT);
}

/// Kills a keeper that does not answer. Its guard then kills what it kept.
pub(super) fn kill(spool: &Path, name: &str) {
    signal_keeper(spool, name, &[Liveness::Stopped, Liveness::Alive], Signal::KILL);
}

fn signal_keeper(spool: &Path, name: &str, states: &[Liveness], sent: Signal) {
    let Ok(record) = Record::read(&spool.join(name)) else { return };
    if states.contains(&record.keeper.liveness()) {
        signal(record.keeper.pid.cast_signed(), sent);
    }
}

/// Every keeper's directory. Nothing else lives in a spool, and nothing else is touched.
fn directories(spool: &Path) -> impl Iterator<Item = (String, PathBuf)> {
    fs::read_dir(spool).into_iter().flatten().flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        name.parse::<Id>().ok()?;
        Some((name, entry.path()))
    })
}

impl Remains {
    fn of(name: String, directory: &Path) -> Option<Self> {
        let taken = vacated(directory)?;
        let record = Record::read(directory).ok();
        Some(Self { name, directory: directory.to_owned(), record, _taken: taken })
    }

    /// True when nothing of it runs.
    fn end_processes(&self) -> bool {
        match &self.record {
            // Without a log no job was started.
            None => true,
            Some(record) => {
                record.keeper.liveness() != Liveness::Dead || is_over(&self.name, record)
            }
        }
    }

    /// Whether nobody is waited for any longer.
    fn is_old(&self) -> bool {
        let created = self.name.parse::<Id>().map_or(0, |id| id.created_millis());
        let age = wall_millis().saturating_sub(created);
        self.record.is_none() || i128::from(age) > KEPT.as_millis().cast_signed()
    }

    /// Long outputs are for whoever speaks with the keeper; what is told of a job is in the log.
    fn remove_outputs(&self) {
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(OUTPUT) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Whether all that a dead keeper started is gone; what is not is killed.
fn is_over(name: &str, record: &Record) -> bool {
    record.over.len() >= record.starting.len() || kill_leftovers(name, record)
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

/// Kills what a dead keeper left. True when there was nothing.
fn kill_leftovers(name: &str, record: &Record) -> bool {
    let found = leftovers(name, record);
    found.iter().for_each(|pid| signal(*pid, Signal::KILL));
    found.is_empty()
}

/// Every process that carries the keeper's mark or its stamp, and every root that it wrote down, with
/// all below them.
fn leftovers(name: &str, record: &Record) -> Vec<i32> {
    let snapshot = Snapshot::take();
    let number = number_of(name);
    let own = own_pid();
    let marked = numbers().filter(|pid| {
        *pid != own
            && (mark(*pid, KEEPER_MARK).as_deref() == Some(name)
                || match stamp_of(*pid) {
                    Stamp::Of(found) => found == number,
                    Stamp::Damaged => is_orphan(*pid, record, &snapshot),
                    Stamp::None => false,
                })
    });
    let over = |key: &String| record.over.contains(key);
    let roots = record.starting.iter().filter(|(key, _)| !over(key)).filter_map(|(_, root)| {
        let (pid, uptime) = (*root)?;
        let process = Process::of(pid)?;
        (process.start.abs_diff(uptime) < NEAR_MILLIS).then_some(pid)
    });
    let mut found: Vec<i32> = marked.chain(roots).collect();
    for pid in found.clone() {
        found.extend(snapshot.below(pid));
    }
    found.sort_unstable();
    found.dedup();
    snapshot.alive(found)
}

/// Whether a process of some keeper that hides whose it is was started in this one's time, and is below
/// no keeper that lives: those keep all that they started.
fn is_orphan(pid: i32, record: &Record, snapshot: &Snapshot) -> bool {
    let began = Process::begun(record.keeper.start);
    let young = |process: &Process| process.start + NEAR_MILLIS >= began;
    let mut above = snapshot.get(pid).filter(|process| young(process));
    if above.is_none() {
        return false;
    }
    while let Some(process) = above {
        if keeper_directory(process.pid).is_some_and(|directory| vacated(&directory).is_none()) {
            return false;
        }
        above = snapshot.get(process.parent);
    }
    true
}
