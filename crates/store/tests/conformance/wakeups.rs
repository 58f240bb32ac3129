//! Wake-ups between handles, as between processes.

use std::thread;
use std::time::{Duration, Instant};

use mainstay_store::{Error, Result, SLOW_POLL};

use crate::place::Place;

pub(crate) fn a_commit_wakes_listeners_of_its_topic_elsewhere(place: &Place) {
    let (one, two) = (place.open(), place.open());
    let tasks = two.listen(["tasks"]).unwrap();
    let other = two.listen(["other"]).unwrap();
    // A server's listener is told to look once when it begins to hear.
    while tasks.wait(Duration::from_millis(50)) {}
    while other.wait(Duration::from_millis(50)) {}
    thread::scope(|scope| {
        scope.spawn(|| {
            one.write(|tx| {
                tx.wake("tasks")?;
                Ok::<_, Error>(())
            })
            .unwrap();
        });
        let asked = Instant::now();
        assert!(tasks.wait(Duration::from_secs(60)));
        assert!(asked.elapsed() < SLOW_POLL, "woken, not polled");
    });
    assert!(!other.wait(Duration::ZERO));
    // Many topics at once still reach everybody.
    one.write(|tx| {
        (0..2000).try_for_each(|number| tx.wake(&format!("topic {number}")))?;
        tx.wake("other")
    })
    .unwrap();
    assert!(other.wait(Duration::from_secs(60)));
}

pub(crate) fn a_rolled_back_write_wakes_nobody(place: &Place) {
    let (one, two) = (place.open(), place.open());
    let listener = two.listen(["tasks"]).unwrap();
    while listener.wait(Duration::from_millis(50)) {}
    let refused: Result<()> = one.write(|tx| {
        tx.wake("tasks")?;
        Err(Error::Unstorable("this"))
    });
    assert!(refused.is_err());
    assert!(!listener.wait(Duration::from_millis(100)));
}
