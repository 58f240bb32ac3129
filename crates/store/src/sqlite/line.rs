//! The line before the turn: who came first writes first, across processes.
//!
//! Everybody who finds the turn taken draws a number, and waits until that is at the front. The one
//! at the front waits for the turn, and when it has it, calls the next number. Numbers live in shared
//! memory and decide nothing but the order: whoever writes holds the turn's lock, which the kernel
//! frees when its holder dies. So a number whose owner is dead or stopped holds nobody up for long:
//! where the turn is free and nobody takes it, whoever is behind goes past.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::gate::{Gate, Patience, Shared};
use crate::Result;

/// How long the turn may lie free before the one behind the front takes it; the one behind that
/// waits twice as long, and so on.
const PASS: Duration = Duration::from_millis(200);

/// So many go past at different times, the others at the same.
const MOST_STEPS: u32 = 10;

/// Takes the turn in the order of arrival, or answers `false` when patience is at its end.
pub(super) fn take_in_order(turn: &Gate, patience: &mut Patience) -> Result<bool> {
    let line = Line(&turn.shared);
    // Numbers that nobody owns any more are left by those who died together.
    let last = line.0.last_number().load(Ordering::Acquire);
    if (line.is_empty() || line.0.is_still_for(PASS)) && turn.try_take()? {
        // Those who came meanwhile have later numbers, and keep them.
        line.call(last);
        return Ok(true);
    }
    let number = line.draw();
    let taken = line.wait(number, turn, patience).transpose();
    let taken = taken.unwrap_or_else(|| turn.take(patience));
    match &taken {
        Ok(true) => line.call(number.wrapping_add(1)),
        // In the middle of the line a gap is left, which those behind go past.
        Ok(false) | Err(_) => line.leave(number),
    }
    taken
}

/// Whether somebody waits for the turn. Of those who died waiting a number is left for a while.
pub(super) fn is_wanted(turn: &Gate) -> bool {
    !Line(&turn.shared).is_empty() || turn.shared.waiting().load(Ordering::Relaxed) != 0
}

struct Line<'a>(&'a Shared);

impl Line<'_> {
    fn is_empty(&self) -> bool {
        ahead(self.0.front().load(Ordering::Acquire), self.0.last_number().load(Ordering::Acquire))
            == 0
    }

    fn draw(&self) -> u32 {
        self.0.last_number().fetch_add(1, Ordering::AcqRel)
    }

    /// Waits until `number` is at the front: then there is no answer yet. Answers whether the turn
    /// was taken where that could be told before.
    fn wait(&self, number: u32, turn: &Gate, patience: &mut Patience) -> Result<Option<bool>> {
        loop {
            let front = self.0.front().load(Ordering::Acquire);
            let before = ahead(front, number);
            if before == 0 {
                return Ok(None);
            }
            let releases = self.0.releases().load(Ordering::Acquire);
            let left = patience.left(releases);
            if left.is_zero() {
                return Ok(Some(false));
            }
            self.0.wait_for_front(front, number, left.min(PASS * before.min(MOST_STEPS)));
            let moved = front != self.0.front().load(Ordering::Acquire)
                || releases != self.0.releases().load(Ordering::Acquire);
            if !moved && self.0.is_still_for(PASS) && turn.try_take()? {
                return Ok(Some(true));
            }
        }
    }

    /// Lets the next one come to the front, if `number` is there.
    fn leave(&self, number: u32) {
        if ahead(self.0.front().load(Ordering::Acquire), number) == 0 {
            self.call(number.wrapping_add(1));
        }
    }

    /// Brings `number` to the front, unless the line is past it.
    fn call(&self, number: u32) {
        let moved = self.0.front().fetch_update(Ordering::AcqRel, Ordering::Acquire, |front| {
            (ahead(front, number) > 0).then_some(number)
        });
        if moved.is_ok() {
            self.0.moved();
            self.0.wake_at_front(number);
        }
    }
}

/// How many are before `number` where `front` is at the front; none when the line is past it.
/// Numbers begin anew after the last one, so they are compared by their distance.
fn ahead(front: u32, number: u32) -> u32 {
    let distance = number.wrapping_sub(front);
    if distance > u32::MAX / 2 { 0 } else { distance }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_is_right_where_numbers_begin_anew() {
        assert_eq!(ahead(3, 3), 0);
        assert_eq!(ahead(3, 8), 5);
        assert_eq!(ahead(8, 3), 0);
        assert_eq!(ahead(u32::MAX, 4), 5);
        assert_eq!(ahead(4, u32::MAX), 0);
    }

    fn gate(directory: &tempfile::TempDir) -> Gate {
        Gate::open(&directory.path().join("turn"), Duration::from_millis(5)).unwrap()
    }

    #[test]
    fn numbers_of_the_dead_hold_nobody_up() {
        let directory = tempfile::tempdir().unwrap();
        let turn = gate(&directory);
        for _ in 0..3 {
            Line(&turn.shared).draw();
        }
        assert!(is_wanted(&turn));
        let mut patience = Patience::new(Duration::from_secs(20), &turn.shared);
        assert!(take_in_order(&turn, &mut patience).unwrap());
        assert!(!is_wanted(&turn));
    }

    #[test]
    fn who_comes_first_is_first_and_who_gives_up_is_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let holder = gate(&directory);
        assert!(holder.try_take().unwrap());
        let order = std::sync::Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for number in 0..6_u32 {
                let (order, directory) = (&order, &directory);
                // The third one has little patience.
                let limit = Duration::from_millis(if number == 2 { 20 } else { 30_000 });
                scope.spawn(move || {
                    let turn = gate(directory);
                    let mut patience = Patience::new(limit, &turn.shared);
                    let taken = take_in_order(&turn, &mut patience).unwrap();
                    assert_eq!(taken, number != 2);
                    if taken {
                        order.lock().unwrap().push(number);
                        turn.give().unwrap();
                    }
                });
                while holder.shared.last_number().load(Ordering::Acquire) <= number {
                    std::thread::yield_now();
                }
            }
            while order.lock().unwrap().is_empty()
                && ahead(0, holder.shared.front().load(Ordering::Acquire)) == 0
                && !holder.shared.is_still_for(Duration::from_millis(60))
            {
                std::thread::yield_now();
            }
            holder.give().unwrap();
        });
        assert_eq!(order.into_inner().unwrap(), [0, 1, 3, 4, 5]);
    }

    #[test]
    fn patience_begins_anew_while_others_are_served() {
        let directory = tempfile::tempdir().unwrap();
        let turn = gate(&directory);
        let mut patience = Patience::new(Duration::from_millis(40), &turn.shared);
        for releases in 1..5 {
            std::thread::sleep(Duration::from_millis(20));
            assert!(patience.left(releases) > Duration::from_millis(20), "{releases}");
        }
        std::thread::sleep(Duration::from_millis(45));
        assert!(patience.left(4).is_zero());
    }
}
