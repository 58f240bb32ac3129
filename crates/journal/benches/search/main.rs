//! Search over a million entries: how long a question takes, and whether what is appended and what is
//! indexed takes longer as the index grows. Ends with 1 when a bar does not hold.
//!
//! `cargo bench -p mainstay-journal --bench search -- 50000` tries a smaller one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    missing_docs,
    reason = "a benchmark's error is a panic"
)]

mod texts;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use mainstay_journal::search::{self, Asked, Filter, Sort, Who, catch_up};
use mainstay_journal::{JOURNAL, SEARCH, SessionId, TurnId, TurnRef, entry, session, turn};
use mainstay_store::{Clock, Location, Options, OwnerId, Schema, Store, SystemClock};

use texts::Texts;

const ENTRIES: usize = 1_000_000;
/// With so few the speed of a small index is measured.
const SMALL: usize = 10_000;
const IN_SESSION: usize = 250;

/// The median question over everything.
const ANSWER: Duration = Duration::from_millis(50);
/// What an append, and a batch of the index, may take with all entries, against few.
const APPEND_RATIO: f64 = 1.5;
const INDEX_RATIO: f64 = 2.5;

/// Time as it passes for somebody who begins a dozen sessions a day.
struct Year(AtomicI64);

const BETWEEN_SESSIONS: i64 = 2 * 60 * 60 * 1000;

impl Clock for Year {
    fn wall_millis(&self) -> i64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    fn uptime_millis(&self) -> i64 {
        SystemClock.uptime_millis()
    }
}

struct Bench {
    store: Store,
    clock: Arc<Year>,
    owner: OwnerId,
    texts: Texts,
    entries: usize,
    current: Option<TurnRef>,
}

fn main() {
    let wanted = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(ENTRIES);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut bench = Bench::new(&path);
    let mut small = Bench::new(&directory.path().join("small.db"));
    small.fill(SMALL.min(wanted));
    small.index();

    let began = Instant::now();
    bench.fill(wanted);
    println!("{} entries written in {:.0} s", bench.entries, began.elapsed().as_secs_f64());
    let before = size(&path);
    let began = Instant::now();
    bench.index();
    let took = began.elapsed().as_secs_f64();
    println!("indexed in {took:.0} s, {:.0} entries a second", bench.entries as f64 / took);
    let after = size(&path);
    println!("entries {:.0} MB, index {:.0} MB", before / 1e6, (after - before) / 1e6);

    // In turns: whatever else the machine does happens to both.
    let (mut few, mut all) = (Vec::new(), Vec::new());
    for number in 0..400 {
        few.push(small.append(number));
        all.push(bench.append(number));
    }
    let append_ratio = ratio("an append", median(few), median(all));
    small.index();
    bench.index();
    let (mut few, mut all) = (Vec::new(), Vec::new());
    for _ in 0..40 {
        few.push(small.batch());
        all.push(bench.batch());
    }
    let index_ratio = ratio("100 entries to the index", median(few), median(all));
    let median = bench.questions();

    let mut missed = Vec::new();
    if median > ANSWER {
        missed.push(format!("a question takes {median:?} at the median, not {ANSWER:?}"));
    }
    if append_ratio > APPEND_RATIO {
        missed.push(format!("appends are {append_ratio:.2} times as slow, not {APPEND_RATIO}"));
    }
    if index_ratio > INDEX_RATIO {
        missed.push(format!("the index is {index_ratio:.2} times as slow, not {INDEX_RATIO}"));
    }
    for bar in &missed {
        println!("MISSED: {bar}");
    }
    drop((bench, small));
    drop(directory);
    std::process::exit(i32::from(!missed.is_empty()));
}

impl Bench {
    fn new(path: &Path) -> Self {
        let clock = Arc::new(Year(AtomicI64::new(1_780_000_000_000)));
        let options = Options::new(Schema::new(&[JOURNAL, SEARCH])).clock(clock.clone());
        let store = Store::open(&Location::file(path), options).unwrap();
        let owner = store.write(|tx| tx.owner("local")).unwrap();
        Self { store, clock, owner, texts: Texts::new(), entries: 0, current: None }
    }

    /// Writes entries in bulk until there are so many.
    fn fill(&mut self, wanted: usize) {
        while self.entries < wanted {
            let count = IN_SESSION.min(wanted - self.entries);
            self.clock.0.fetch_add(BETWEEN_SESSIONS, Ordering::Relaxed);
            let bodies: Vec<_> =
                (0..count).map(|number| self.texts.body(self.entries + number)).collect();
            let owner = self.owner;
            let (id, turn) = (SessionId::new(), TurnId::new());
            self.store
                .write(|tx| -> mainstay_journal::Result<()> {
                    begin(tx, owner, id, turn)?;
                    for (seq, body) in (1..).zip(&bodies) {
                        entry::insert(tx, id, turn, seq, body)?;
                    }
                    Ok(())
                })
                .unwrap();
            self.current = Some(TurnRef { session: id, turn });
            self.entries += bodies.len();
        }
    }

    fn index(&self) {
        catch_up(&self.store, self.owner, None, &mut |_| {}).unwrap();
    }

    /// A commit with one entry.
    fn append(&mut self, number: usize) -> Duration {
        let TurnRef { session: id, turn } = self.current.unwrap();
        let body = self.texts.body(number);
        let began = Instant::now();
        self.store.write(|tx| entry::append(tx, id, turn, &body)).unwrap();
        self.entries += 1;
        began.elapsed()
    }

    /// Brings 100 entries into the index.
    fn batch(&mut self) -> Duration {
        let TurnRef { session: id, turn } = self.current.unwrap();
        let bodies: Vec<_> = (0..100).map(|number| self.texts.body(number)).collect();
        self.store
            .write(|tx| -> mainstay_journal::Result<()> {
                for body in &bodies {
                    entry::append(tx, id, turn, body)?;
                }
                Ok(())
            })
            .unwrap();
        self.entries += bodies.len();
        let began = Instant::now();
        self.index();
        began.elapsed()
    }

    /// Asks many questions; answers the median of all.
    fn questions(&mut self) -> Duration {
        let texts = &mut self.texts;
        let word = |texts: &Texts, rank: usize| texts.word(rank).to_owned();
        let mut kinds: Vec<(&str, Vec<Asked>)> = Vec::new();
        let mut kind = |name, questions: Vec<String>| {
            let asked = |words| Asked { words, limit: 10, ..Asked::default() };
            kinds.push((name, questions.into_iter().map(asked).collect()));
        };
        kind("a rare word", (0..12).map(|n| word(texts, 40_000 + 977 * n)).collect());
        kind("a usual word", (0..12).map(|n| word(texts, 800 + 311 * n)).collect());
        kind("a word that is everywhere", (0..8).map(|n| word(texts, n)).collect());
        let two = |a: usize, b: usize| format!("{} {}", texts.word(a), texts.word(b));
        kind("two usual words", (0..12).map(|n| two(200 + 37 * n, 900 + 53 * n)).collect());
        kind("a rare and a common word", (0..8).map(|n| two(n, 20_000 + 1_999 * n)).collect());
        kind("two words that are everywhere", (0..8).map(|n| two(n, n + 1)).collect());
        kind("a phrase", (0..8).map(|n| format!("\"{}\"", two(n, n + 3))).collect());
        kind(
            "the beginning of a word",
            (0..8).map(|n| format!("{}*", texts.word(3_000 + n))).collect(),
        );
        kind(
            "without a word",
            (0..8).map(|n| format!("{} -{}", texts.word(500 + n), texts.word(n))).collect(),
        );
        let sentence = |n: usize| {
            let ranks = [0, 1, 4, 900 + n, 2, 7_000 + n, 3, 59_000 - n];
            ranks.map(|rank| texts.word(rank).to_owned()).join(" ")
        };
        kind("a sentence", (0..8).map(sentence).collect());
        kind("a word that is nowhere", (0..4).map(|n| format!("nowhere{n}zzz")).collect());
        let names: Vec<String> = (0..12).map(|_| texts.used_name()).collect();
        kind(
            "a piece of a name",
            names.iter().map(|name| name[1..name.len() - 1].to_owned()).collect(),
        );
        kind("a name in code", names);
        kind("one Chinese character", (0..8).map(|_| texts.han(1)).collect());
        kind("two Chinese characters", (0..8).map(|_| texts.han(2)).collect());
        kind("four Chinese characters", (0..8).map(|_| texts.han(4)).collect());
        let common =
            |n: usize| Asked { words: texts.word(n).to_owned(), limit: 10, ..Asked::default() };
        let now = self.clock.wall_millis();
        let filters = |n: usize| match n % 4 {
            0 => Filter { who: Some(Who::User), ..Filter::default() },
            1 => Filter { since: Some(now - 7 * 24 * 60 * 60 * 1000), ..Filter::default() },
            2 => {
                Filter { session: self.current.map(|current| current.session), ..Filter::default() }
            }
            _ => Filter { workspace: Some("/projects/elsewhere".to_owned()), ..Filter::default() },
        };
        let filtered = (0..8).map(|n| Asked { filter: filters(n), ..common(n) }).collect();
        kinds.push(("a common word, filtered", filtered));
        let oldest = (0..8).map(|n| Asked { sort: Sort::Oldest, ..common(n) }).collect();
        kinds.push(("the oldest first", oldest));

        let mut all = Vec::new();
        println!("{:>32}  {:>9} {:>9} {:>6}", "", "median", "slowest", "hits");
        for (name, questions) in kinds {
            let (mut times, mut hits) = (Vec::new(), 0);
            for asked in &questions {
                let began = Instant::now();
                let answer =
                    search::search(&self.store, self.owner, asked, None, &mut |_| {}).unwrap();
                times.push(began.elapsed());
                hits += answer.hits.len();
            }
            let slowest = *times.iter().max().unwrap();
            let middle = median(times.clone());
            println!(
                "{name:>32}  {:>6.1} ms {:>6.1} ms {:>6.1}",
                middle.as_secs_f64() * 1e3,
                slowest.as_secs_f64() * 1e3,
                hits as f64 / questions.len() as f64
            );
            all.extend(times);
        }
        let middle = median(all);
        println!("{:>32}  {:>6.1} ms", "all", middle.as_secs_f64() * 1e3);
        middle
    }
}

fn begin(
    tx: &mut mainstay_store::WriteTx<'_>,
    owner: OwnerId,
    id: SessionId,
    turn: TurnId,
) -> mainstay_journal::Result<()> {
    let new = session::New {
        owner,
        workspace: "/projects/here",
        prompt: "p",
        title: "t",
        begun_by: None,
    };
    session::create(tx, id, &new)?;
    turn::begin(tx, turn, id, turn.as_str())?;
    turn::end(tx, turn, turn::Outcome::Answered, None)
}

fn size(path: &Path) -> f64 {
    std::fs::metadata(path).map_or(0.0, |found| found.len() as f64)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn ratio(what: &str, small: Duration, large: Duration) -> f64 {
    let ratio = large.as_secs_f64() / small.as_secs_f64();
    println!("{what}: {small:.2?} with few entries, {large:.2?} with all: {ratio:.2} times");
    ratio
}
