//! A stamp on the processes of a keeper that they cannot remove.
//!
//! A process can leave its group, its session and its environment, and its parent can die. What it
//! cannot do without a privilege is to raise a hard limit, whatever namespace it makes itself. Two
//! limits have had no meaning since Linux 2.4, those on locks and on resident memory, and both are
//! without bound wherever nobody has a reason to set them. So a keeper lowers them, to two huge numbers
//! of which one is the higher the lower the other is: they name the keeper, and whoever lowers one or
//! both makes no other valid pair of it.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How many keepers are told apart.
const NUMBERS: u64 = 1 << 40;
/// The numbers lie above one of these powers of two: a keeper below a process of another one takes the
/// next. All are far more than any memory.
const POWERS: std::ops::RangeInclusive<u32> = 48..=61;

/// What the limits of a process say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// No keeper started it.
    None,
    /// The keeper with this number did.
    Of(u64),
    /// A keeper did, and it has tried to hide whose it is.
    Damaged,
}

/// The number of the keeper with this name.
pub(crate) fn number_of(keeper: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    keeper.hash(&mut hasher);
    hasher.finish() % NUMBERS
}

/// Stamps this process and all that it will start.
pub(crate) fn put_on(keeper: &str) -> io::Result<()> {
    let number = number_of(keeper);
    let highest = |limit: Rlimit| limit.maximum.unwrap_or(u64::MAX);
    let room = highest(getrlimit(Resource::Locks)).min(highest(getrlimit(Resource::Rss)));
    let power = POWERS.rev().map(|power| 1_u64 << power).find(|power| power + NUMBERS <= room);
    let power = power.ok_or(io::ErrorKind::Unsupported)?;
    for (resource, value) in
        [(Resource::Locks, power + number), (Resource::Rss, power + (NUMBERS - 1 - number))]
    {
        setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })?;
    }
    Ok(())
}

/// The stamp of a process. One whose limits are those of this process, or higher, has none that this
/// process does not have too.
pub(crate) fn stamp_of(pid: i32) -> Stamp {
    let Ok(limits) = fs::read_to_string(format!("/proc/{pid}/limits")) else { return Stamp::None };
    let own = |resource| getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let of = |name: &str| hard(&limits, name);
    let (locks, memory) = (of("Max file locks"), of("Max resident set"));
    if locks < own(Resource::Locks) || memory < own(Resource::Rss) {
        read(locks, memory)
    } else {
        Stamp::None
    }
}

/// Whether this process is one that a keeper started.
pub(crate) fn is_stamped() -> bool {
    let own = |resource| getrlimit(resource).maximum.unwrap_or(u64::MAX);
    read(own(Resource::Locks), own(Resource::Rss)) != Stamp::None
}

fn read(locks: u64, memory: u64) -> Stamp {
    let number = |value: u64| {
        let power = 1_u64.checked_shl(value.checked_ilog2()?)?;
        let valid = POWERS.contains(&power.ilog2()) && value - power < NUMBERS;
        valid.then_some(value - power)
    };
    match (number(locks), number(memory).map(|number| NUMBERS - 1 - number)) {
        (Some(one), Some(other)) if one == other => Stamp::Of(one),
        (Some(_), Some(_)) => Stamp::Damaged,
        (Some(number), None) | (None, Some(number)) => Stamp::Of(number),
        // People limit memory; nobody limits locks, and both only where something is to be hidden.
        (None, None) if locks != u64::MAX && memory != u64::MAX => Stamp::Damaged,
        (None, None) => Stamp::None,
    }
}

/// A hard limit as `/proc` shows it; the highest number where there is none.
fn hard(limits: &str, name: &str) -> u64 {
    let line = limits.lines().find_map(|line| line.strip_prefix(name));
    let hard = line.and_then(|line| line.split_ascii_whitespace().nth(1));
    hard.and_then(|hard| hard.parse().ok()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POWER: u64 = 1 << 61;

    fn stamped(number: u64) -> (u64, u64) {
        (POWER + number, POWER + NUMBERS - 1 - number)
    }

    #[test]
    fn lowering_a_limit_never_makes_the_stamp_of_another_keeper() {
        let number = number_of("keeper");
        let (locks, memory) = stamped(number);
        assert_eq!(read(locks, memory), Stamp::Of(number));
        assert_eq!(read(0, memory), Stamp::Of(number));
        assert_eq!(read(locks, 4096), Stamp::Of(number));
        assert_eq!(read(0, 0), Stamp::Damaged);
        // As if it were a keeper with a lower or a higher number.
        assert_eq!(read(locks - 1, memory), Stamp::Damaged);
        assert_eq!(read(locks, memory - 1), Stamp::Damaged);
        assert_eq!(read(locks - 1, memory - 1), Stamp::Damaged);
        for power in POWERS {
            let lowered = 1 << power;
            assert_ne!(read(lowered, memory), Stamp::None);
        }
    }

    #[test]
    fn limits_that_people_set_are_no_stamp() {
        assert_eq!(read(u64::MAX, u64::MAX), Stamp::None);
        assert_eq!(read(u64::MAX, 8 << 30), Stamp::None);
        assert_eq!(read(1000, u64::MAX), Stamp::None);
        assert_eq!(
            hard("Max file locks   unlimited   unlimited  locks \n", "Max file locks"),
            u64::MAX
        );
        assert_eq!(hard("Max file locks   7     9     locks \n", "Max file locks"), 9);
    }
}
