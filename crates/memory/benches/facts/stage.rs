//! A store that grows, and what is measured on the way.

use std::path::PathBuf;
use std::time::Instant;

use mainstay_memory::facts::{self, Prepared, Query, Within};
use mainstay_memory::{MEMORY, Result};
use mainstay_store::{Location, Options, OwnerId, ReadTx, Schema, Store};
use tempfile::TempDir;

use crate::cold::{self, Cold};
use crate::sentences::{self, Random};

const BATCH: usize = 50;
/// Facts a commit on the way to a size.
const ON_THE_WAY: usize = 100;
/// Batches at the end of a size whose median counts.
const LAST_BATCHES: usize = 10;
const ALONE: usize = 50;
const QUESTIONS: usize = 100;
const COLD_QUESTIONS: usize = 15;

pub(crate) struct Stage {
    directory: TempDir,
    store: Store,
    owner: OwnerId,
    number: usize,
    longest_log: u64,
}

/// Times in milliseconds.
pub(crate) struct Figures {
    pub(crate) add_in_batch: f64,
    pub(crate) add_alone: f64,
    /// What the fastest quarter of them takes at most: what others do on the machine is not in it.
    pub(crate) quiet_add: f64,
    pub(crate) prepare: f64,
    pub(crate) recall: Spread,
    pub(crate) cold: Cold,
    pub(crate) asked: QuestionTimes,
    /// The share of questions that find the fact they were made of.
    pub(crate) found: f64,
    /// Of the file, for each fact.
    pub(crate) bytes: f64,
    /// In MiB.
    pub(crate) longest_log: f64,
}

/// What other questions take.
pub(crate) struct QuestionTimes {
    /// A search by the words that most facts have.
    pub(crate) common: Spread,
    pub(crate) probe: f64,
    pub(crate) related: f64,
    pub(crate) reason: f64,
    pub(crate) contradictions: f64,
}

pub(crate) struct Spread {
    pub(crate) median: f64,
    /// The median of the processor's time, without waiting for it or for the disk.
    pub(crate) computing: f64,
    /// The 95th percentile.
    pub(crate) slow: f64,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (store, owner) = opened(&Location::file(directory.path().join("store.db")));
        Self { directory, store, owner, number: 0, longest_log: 0 }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("store.db")
    }

    /// Adds facts until there are so many, and measures.
    pub(crate) fn grow(&mut self, size: usize) -> Figures {
        while self.number + ON_THE_WAY + LAST_BATCHES * BATCH + ALONE <= size {
            self.add(ON_THE_WAY);
        }
        let mut last = Vec::new();
        while self.number + BATCH + ALONE <= size {
            last.push(self.add(BATCH) / BATCH as f64);
        }
        let prepare = once(|| Prepared::new(&sentences::fact(usize::MAX)).unwrap());
        let mut alone = Vec::new();
        while self.number < size {
            alone.push(self.add(1) + prepare);
        }
        // Closing the store folds the log into the file.
        self.store = opened(&Location::file(self.directory.path().join("other.db"))).0;
        let bytes = std::fs::metadata(self.path()).unwrap().len() as f64 / size as f64;
        (self.store, self.owner) = opened(&Location::file(self.path()));
        let (recall, found, cold) = self.recall(size);
        Figures {
            add_in_batch: median(&mut last),
            quiet_add: quarter(&mut alone),
            add_alone: median(&mut alone),
            prepare,
            recall,
            cold,
            asked: self.ask(size),
            found,
            bytes,
            longest_log: self.longest_log as f64 / f64::from(1 << 20),
        }
    }

    /// Adds facts in one commit; answers how long the commit took.
    fn add(&mut self, count: usize) -> f64 {
        let numbers = self.number..self.number + count;
        let batch: Vec<Prepared> =
            numbers.map(|number| Prepared::new(&sentences::fact(number)).unwrap()).collect();
        self.number += count;
        let owner = self.owner;
        let taken = once(|| {
            let write = self.store.write(|tx| -> Result<()> {
                for fact in &batch {
                    facts::add_prepared(tx, owner, fact)?;
                }
                Ok(())
            });
            write.unwrap();
        });
        let log = self.directory.path().join("store.db-wal");
        let log = std::fs::metadata(log).map_or(0, |found| found.len());
        self.longest_log = self.longest_log.max(log);
        taken
    }

    fn recall(&self, size: usize) -> (Spread, f64, Cold) {
        let mut random = Random::new(7);
        let (mut times, mut computing) = (Vec::new(), Vec::new());
        let (mut found, mut asked) = (0, Vec::new());
        for _ in 0..QUESTIONS {
            let fact = sentences::fact(random.below(size as u64) as usize);
            let question = sentences::question(&fact, &mut random);
            let query = Query::new(&question, 0);
            let search = self.timed_twice(|tx| facts::search(tx, self.owner, &query));
            let (answer, taken, computed) = search;
            times.push(taken);
            computing.push(computed);
            found += usize::from(answer.iter().any(|found| found.fact.content == fact.content));
            asked.push(question);
        }
        let cold = cold::measure(&Location::file(self.path()), &asked[..COLD_QUESTIONS]);
        (spread(times, computing), found as f64 / QUESTIONS as f64, cold)
    }

    fn ask(&self, size: usize) -> QuestionTimes {
        let (mut probe, mut related, mut reason) = (Vec::new(), Vec::new(), Vec::new());
        let within = Within { limit: 5, ..Within::default() };
        let mut random = Random::new(11);
        while reason.len() < QUESTIONS / 2 {
            let fact = sentences::fact(random.below(size as u64) as usize);
            let Some([one, other]) = sentences::names(&fact) else { continue };
            let probed = self.timed(|tx| facts::probe(tx, self.owner, &one, &within));
            assert!(!probed.0.is_empty());
            probe.push(probed.1);
            related.push(self.timed(|tx| facts::related(tx, self.owner, &one, &within)).1);
            let names = [one.as_str(), other.as_str()];
            let reasoned = self.timed(|tx| facts::reason(tx, self.owner, &names, &within));
            assert!(reasoned.0.iter().any(|answer| answer.fact.content == fact.content));
            reason.push(reasoned.1);
        }
        let (mut common, mut computing) = (Vec::new(), Vec::new());
        for start in 0..QUESTIONS / 2 {
            let words: Vec<String> =
                (1..=6).map(|rank| sentences::word(rank + start as u64 % 4)).collect();
            let query = Query::new(words.join(" "), 0);
            let search = self.timed_twice(|tx| facts::search(tx, self.owner, &query));
            common.push(search.1);
            computing.push(search.2);
        }
        let contradictions = self.timed(|tx| facts::contradictions(tx, self.owner, &within)).1;
        QuestionTimes {
            common: spread(common, computing),
            probe: median(&mut probe),
            related: median(&mut related),
            reason: median(&mut reason),
            contradictions,
        }
    }

    fn timed<T>(&self, question: impl Fn(&mut ReadTx<'_>) -> Result<T>) -> (T, f64) {
        let (answer, taken, _) = self.timed_twice(question);
        (answer, taken)
    }

    /// Also answers the processor's time. The thread that asks is the one that reads.
    fn timed_twice<T>(&self, question: impl Fn(&mut ReadTx<'_>) -> Result<T>) -> (T, f64, f64) {
        let (start, before) = (Instant::now(), computed());
        let answer = self.store.read(question).unwrap();
        (answer, start.elapsed().as_secs_f64() * 1e3, computed() - before)
    }
}

fn opened(place: &Location) -> (Store, OwnerId) {
    let store = Store::open(place, Options::new(Schema::new(&[MEMORY]))).unwrap();
    let owner = store.write(|tx| tx.owner("ada")).unwrap();
    (store, owner)
}

fn once<T>(work: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e3
}

/// The processor's time of this thread so far.
fn computed() -> f64 {
    let said = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    said.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1e6
}

fn spread(mut times: Vec<f64>, mut computing: Vec<f64>) -> Spread {
    let (median, computing) = (median(&mut times), median(&mut computing));
    Spread { median, computing, slow: times[times.len() * 95 / 100] }
}

/// Sorts, and answers the one a quarter up.
fn quarter(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 4).copied().unwrap_or(0.0)
}

/// Sorts, and answers the one in the middle.
pub(crate) fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(0.0)
}
