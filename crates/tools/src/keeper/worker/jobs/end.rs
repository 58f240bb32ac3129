//! The end of a job: noticed, written down, told to whoever waits and to the session.

use std::io;
use std::time::Duration;

use super::{Jobs, Kept, Past, Said, Waiter};
use crate::keeper::shared::processes::{Snapshot, command_line, number_inside};
use crate::keeper::shared::protocol::Says;
use crate::keeper::shared::spool::Line;
use crate::keeper::shared::{Ended, Exit, Job, Left};
use crate::keeper::worker::kill::adopted;
use crate::keeper::worker::spool::Place;

/// How long the processes that a job leaves behind may take to go by themselves before it is said
/// that it left them.
const PARTING: Duration = Duration::from_millis(50);

impl Jobs {
    /// Moves one job on: kills it further, or notices that it ended.
    pub(super) fn step(&mut self, key: &str, now: Duration) {
        let Some(live) = self.live.get_mut(key) else { return };
        if let Some(killing) = live.killing.as_mut() {
            if !killing.is_due(now) && live.exit.is_none() {
                return;
            }
            let snapshot = Snapshot::take();
            let adopter = self.chambers.adopter();
            let owned = self.claims.owned(key, &snapshot, &self.live, self.held.as_ref(), adopter);
            // The borrow of all jobs is over; take this one again.
            let Some(live) = self.live.get_mut(key) else { return };
            let Some(killing) = live.killing.as_mut() else { return };
            let patience = killing.step(&owned, &snapshot, now);
            let gone = owned.is_empty() && live.exit.is_some();
            if gone || !patience {
                self.end(key, &owned, now);
            }
            return;
        }
        if live.exit.is_none() {
            return;
        }
        let left = self.left(key);
        let Some(live) = self.live.get_mut(key) else { return };
        let since = live.exit.as_ref().map_or(now, |(_, at)| *at);
        if left.is_empty() || (live.told.is_none() && now >= since + PARTING) {
            self.end(key, &left, now);
        }
    }

    /// What still runs of a job whose root has ended.
    fn left(&mut self, key: &str) -> Vec<i32> {
        let adopter = self.chambers.adopter();
        if !self.children || adopted(adopter).iter().all(|pid| self.claims.is_root(*pid)) {
            return Vec::new();
        }
        let snapshot = Snapshot::take();
        self.claims.owned(key, &snapshot, &self.live, self.held.as_ref(), adopter)
    }

    /// Tells how a job ended; it stays as long as something of it runs.
    fn end(&mut self, key: &str, left: &[i32], now: Duration) {
        let Some(live) = self.live.get_mut(key) else { return };
        let killed = live.killing.is_some();
        if live.told.is_none() {
            live.drain(&mut self.buffer);
            let (exit, at) = live.exit.clone().unwrap_or((Exit::Signal(libc::SIGKILL), now));
            let how = match &live.killing {
                Some(killing) => Exit::Killed(killing.why),
                None => exit,
            };
            let left = left.iter().map(|pid| Left {
                pid: *pid,
                inside: number_inside(*pid),
                command: command_line(*pid),
            });
            let left: Vec<_> = left.collect();
            let took = at.saturating_sub(live.started);
            let (output, errors) = live.shown();
            let ended = Ended { how, took, output, errors, left, rest: None };
            if !ended.left.is_empty() && !killed {
                return self.tell(key, ended);
            }
            if let Some(live) = self.live.remove(key) {
                self.bury(&live.job, live.root, ended, live.waiters);
                self.answer_stoppers(live.stoppers);
            }
        } else if left.is_empty() || killed {
            self.over(key);
        }
    }

    /// Tells the end of a job that left processes behind.
    fn tell(&mut self, key: &str, ended: Ended) {
        let _ = self.spool.write(&Line::Ended { key: key.to_owned(), ended: ended.clone() });
        let Some(live) = self.live.get_mut(key) else { return };
        for waiter in live.waiters.drain(..) {
            self.said.push(Said::Answer(waiter, Says::Ended(Box::new(ended.clone()))));
        }
        if live.job.background {
            self.said.push(news(&live.job, &ended));
        }
        live.told = Some(ended);
    }

    /// Notices that the last process that a job left behind is gone.
    fn over(&mut self, key: &str) {
        let Some(mut live) = self.live.remove(key) else { return };
        live.drain(&mut self.buffer);
        let Some(told) = live.told.take() else { return };
        // How it ended stays as it was told; only what it left behind was killed.
        let rest = live.killing.as_ref().map(|killing| killing.why);
        let (output, errors) = live.shown();
        let ended = Ended { rest, output, errors, left: Vec::new(), ..told };
        let place = self.spool.write(&Line::Ended { key: key.to_owned(), ended: ended.clone() });
        let _ = self.spool.write(&Line::Over { key: key.to_owned() });
        self.said.push(news(&live.job, &ended));
        self.remember(&live.job, live.root, place, ended);
        self.answer_stoppers(live.stoppers);
    }

    /// Writes down how a job ended and tells it.
    pub(super) fn bury(&mut self, job: &Job, pid: i32, ended: Ended, waiters: Vec<Waiter>) {
        let line = Line::Ended { key: job.key.clone(), ended };
        let place = self.spool.write(&line);
        let Line::Ended { ended, .. } = line else { return };
        for waiter in waiters {
            self.said.push(Said::Answer(waiter, Says::Ended(Box::new(ended.clone()))));
        }
        if job.background {
            self.said.push(news(job, &ended));
        }
        self.remember(job, pid, place, ended);
    }

    fn remember(&mut self, job: &Job, pid: i32, place: io::Result<Place>, ended: Ended) {
        let past = Past {
            number: self.past.len() as u64,
            session: job.session.clone(),
            command: if job.background { job.program.line() } else { String::new() },
            background: job.background,
            pid,
            ended: place.map_or_else(|_| Kept::Held(Box::new(ended)), Kept::Logged),
        };
        self.past.insert(job.key.clone(), past);
        self.trim();
    }

    fn answer_stoppers(&mut self, stoppers: Vec<Waiter>) {
        self.said.extend(stoppers.into_iter().map(|waiter| Said::Answer(waiter, Says::Done)));
    }

    /// Says again which background jobs of a session have ended.
    pub(in crate::keeper::worker) fn repeat_news(&self, session: &str) -> Vec<Says> {
        let past = self.past.iter().filter(|(_, past)| past.session == session && past.background);
        let past = past.filter_map(|(key, _)| Some((key, self.past_end(key)?)));
        let live = self.live.iter().filter(|(_, live)| live.job.session == session);
        let told = live.filter(|(_, live)| live.job.background);
        let told = told.filter_map(|(key, live)| Some((key, live.told.clone()?)));
        past.chain(told)
            .map(|(key, ended)| Says::News {
                key: key.clone(),
                session: session.to_owned(),
                ended: Box::new(ended),
            })
            .collect()
    }
}

fn news(job: &Job, ended: &Ended) -> Said {
    let says = Says::News {
        key: job.key.clone(),
        session: job.session.clone(),
        ended: Box::new(ended.clone()),
    };
    Said::News(job.session.clone(), says)
}
