//! A brand that the processes of a job do not shed.
//!
//! A process can leave its group, its session and its environment, and its parent can die; what is
//! left to tell whose it was are things that are inherited and that nobody changes. The soft limit
//! on bytes in message queues is one: it is lowered, by another number for each job. The numbers
//! are scattered, so that a keeper among the processes of a job gives none of ours.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How far the limit is lowered at most, about half of what Linux gives.
const RANGE: u64 = 400_000;

/// Gives each job another brand.
pub(crate) struct Brands {
    keeper: String,
    given: u64,
    /// The hard limit, which stays.
    limit: Option<u64>,
}

impl Brands {
    pub(crate) fn new(keeper: &str) -> Self {
        let limit = getrlimit(Resource::Msgqueue).maximum;
        Self { keeper: keeper.to_owned(), given: 0, limit }
    }

    /// Brands what this process starts next. Returns `None` if the limit is too low for that.
    pub(crate) fn next(&mut self) -> Option<u64> {
        self.given += 1;
        let mut hasher = DefaultHasher::new();
        (&self.keeper, self.given).hash(&mut hasher);
        let limit = self.limit.unwrap_or(4 * RANGE);
        let brand = limit.checked_sub(1 + hasher.finish() % RANGE).filter(|_| limit > RANGE)?;
        let new = Rlimit { current: Some(brand), maximum: self.limit };
        setrlimit(Resource::Msgqueue, new).ok()?;
        Some(brand)
    }
}

/// Whether a process carries a brand of any keeper.
pub(crate) fn is_branded(pid: i32) -> bool {
    let highest = getrlimit(Resource::Msgqueue).maximum.unwrap_or(4 * RANGE);
    let lowest = highest.saturating_sub(RANGE);
    brand_of(pid).is_some_and(|brand| (lowest..highest).contains(&brand))
}

/// The brand of a process.
pub(crate) fn brand_of(pid: i32) -> Option<u64> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max msgqueue size"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}
