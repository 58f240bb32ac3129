//! How long the log remembers: every job for ever, the outputs of the last ones.

use std::io;

use super::{Jobs, Kept, started};
use crate::keeper::shared::spool::Line;

/// A longer log is written anew.
pub(super) const LONG_LOG: u64 = 32 << 20;
/// How many of the last jobs keep their outputs then. An agent that resumes asks for the call that
/// it was at, or for a few that ran beside each other.
const WHOLE: usize = 128;

impl Jobs {
    /// Writes the log anew if it is long. That a job ran, and how it ended, stays: a key that is
    /// not in the log has not run.
    pub(super) fn trim(&mut self) {
        if self.spool.length() < self.long_log {
            return;
        }
        if self.rewrite().is_err() {
            // The old log is as good as it was.
            self.long_log = self.spool.length() * 2;
        } else {
            self.long_log = LONG_LOG.max(self.spool.length() * 2);
        }
    }

    fn rewrite(&mut self) -> io::Result<()> {
        let mut keys: Vec<(u64, String)> =
            self.past.iter().map(|(key, past)| (past.number, key.clone())).collect();
        keys.sort_unstable();
        let old = keys.len().saturating_sub(WHOLE);
        let mut rewriting = self.spool.rewrite()?;
        let mut places = Vec::new();
        let mut files = Vec::new();
        for (index, (_, key)) in keys.into_iter().enumerate() {
            let Some(mut ended) = self.past_end(&key) else { continue };
            if index < old {
                files.extend(ended.output.file.take());
                (ended.output.head, ended.output.tail, ended.output.kept) = Default::default();
                ended.errors = None;
            }
            rewriting.write(&Line::Starting { key: key.clone() })?;
            places.push((key.clone(), rewriting.write(&Line::Ended { key, ended })?));
        }
        for (key, live) in &self.live {
            let key = || key.clone();
            rewriting.write(&Line::Starting { key: key() })?;
            rewriting.write(&started(live))?;
            if let Some(ended) = live.told.clone() {
                rewriting.write(&Line::Ended { key: key(), ended })?;
            }
        }
        if let Some(held) = &self.held {
            rewriting.write(&Line::Starting { key: held.job.key.clone() })?;
        }
        self.spool.replace(rewriting)?;
        for (key, place) in places {
            if let Some(past) = self.past.get_mut(&key) {
                past.ended = Kept::Logged(place);
            }
        }
        for file in files {
            let _ = std::fs::remove_file(file);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::keeper::shared::spool::Record;
    use crate::keeper::worker::spool::Spool;
    use crate::keeper::{Ended, Exit, Job, Limits, Program, Shown, Streams};

    #[test]
    fn a_long_log_forgets_old_outputs_and_no_job() {
        let directory = tempfile::tempdir().unwrap();
        let spool = Spool::open(directory.path()).unwrap();
        let mut jobs = Jobs::new("test".to_owned(), spool).unwrap();
        jobs.long_log = 4 << 20;
        for number in 0..400 {
            let job = Job {
                key: format!("job-{number}"),
                session: "session".to_owned(),
                program: Program::Line(String::new()),
                directory: "/".into(),
                environment: Vec::new(),
                limits: Limits::default(),
                input: false,
                given: None,
                streams: Streams::Together,
                background: false,
                sandbox: None,
            };
            let output = Shown { head: vec![7; 12 << 10], total: 12 << 10, ..Shown::default() };
            let ended = Ended {
                how: Exit::Code(number % 256),
                took: Duration::ZERO,
                output,
                errors: None,
                left: Vec::new(),
                rest: None,
            };
            jobs.bury(&job, 1, ended, Vec::new());
        }
        assert!(jobs.spool.length() < 6 << 20, "{}", jobs.spool.length());
        let record = Record::read(directory.path()).unwrap();
        for number in 0..400 {
            let key = format!("job-{number}");
            for ended in [&record.ended[&key], &jobs.past_end(&key).unwrap()] {
                assert_eq!(ended.how, Exit::Code(number % 256));
                assert_eq!(ended.output.total, 12 << 10);
                let whole = ended.output.head.len() == 12 << 10;
                assert!(whole || number < 400 - i32::try_from(WHOLE).unwrap());
            }
        }
        assert!(record.ended["job-0"].output.head.is_empty());
    }
}
