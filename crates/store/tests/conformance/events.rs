//! The event log.

use std::thread;
use std::time::Duration;

use mainstay_store::{Error, EventReader, Retention, Store};

use crate::place::Place;

fn numbers(store: &Store, topic: &str) -> Vec<i64> {
    let page = store.read(|tx| tx.events(topic, 0, 10_000)).unwrap();
    page.events.iter().map(|event| event.number).collect()
}

pub(crate) fn numbers_have_no_gaps_and_appear_in_order(place: &Place) {
    const WRITERS: usize = 6;
    const EACH: usize = 20;
    let (one, two) = (place.open(), place.open());
    let seen = thread::scope(|scope| {
        for writer in 0..WRITERS {
            let store = if writer % 2 == 0 { &one } else { &two };
            scope.spawn(move || {
                for number in 0..EACH {
                    // Every third is rolled back after it took a number.
                    let outcome = store.write(|tx| {
                        tx.publish("t", &format!("{writer}/{number}"))?;
                        if number % 3 == 2 { Err(Error::Unstorable("a third")) } else { Ok(()) }
                    });
                    assert_eq!(outcome.is_ok(), number % 3 != 2);
                }
            });
        }
        // A reader that only ever looks after its cursor meets every number.
        let mut seen: Vec<i64> = Vec::new();
        let expected = WRITERS * (EACH - EACH / 3);
        while seen.len() < expected {
            let after = seen.last().copied().unwrap_or(0);
            let page = two.read(|tx| tx.events("t", after, 7)).unwrap();
            seen.extend(page.events.iter().map(|event| event.number));
        }
        seen
    });
    let expected: Vec<i64> = (1..=i64::try_from(seen.len()).unwrap()).collect();
    assert_eq!(seen, expected);
    assert_eq!(numbers(&one, "t"), expected);
}

pub(crate) fn a_reader_sees_everything_at_least_once(place: &Place) {
    let store = place.open();
    store
        .write(|tx| (1..=5).try_for_each(|number| tx.publish("t", &number.to_string()).map(drop)))
        .unwrap();
    let reader = EventReader::new(&store, "mail", "t").unwrap();
    let first = reader.next(2, Duration::ZERO).unwrap();
    assert_eq!(first.events.iter().map(|event| event.number).collect::<Vec<_>>(), [1, 2]);
    // It dies before it has handled them.
    drop(reader);
    let reader = EventReader::new(&place.open(), "mail", "t").unwrap();
    assert_eq!(reader.next(2, Duration::ZERO).unwrap(), first);
    reader.handled(2).unwrap();
    let second = reader.next(10, Duration::ZERO).unwrap();
    assert_eq!(second.events.iter().map(|event| event.number).collect::<Vec<_>>(), [3, 4, 5]);
    reader.handled(5).unwrap();
    assert!(reader.next(10, Duration::ZERO).unwrap().events.is_empty());
    // It wakes for the next one.
    thread::scope(|scope| {
        let waiting = scope.spawn(|| reader.next(10, Duration::from_secs(20)).unwrap());
        store.write(|tx| tx.publish("t", "6").map(drop)).unwrap();
        assert_eq!(waiting.join().unwrap().events[0].body, "6");
    });
}

pub(crate) fn a_cursor_never_moves_back(place: &Place) {
    let store = place.open();
    store.write(|tx| tx.move_cursor("r", "t", 5)).unwrap();
    store.write(|tx| tx.move_cursor("r", "t", 3)).unwrap();
    assert_eq!(store.read(|tx| tx.cursor("r", "t")).unwrap(), 5);
    assert_eq!(store.read(|tx| tx.cursor("other", "t")).unwrap(), 0);
}

pub(crate) fn retention_keeps_what_readers_need_and_tells_what_they_missed(place: &Place) {
    let store = place.open();
    let publish = |count: i32| {
        store.write(|tx| (0..count).try_for_each(|_| tx.publish("t", "x").map(drop))).unwrap();
    };
    let trim = |passed: Duration, waiting: Duration| {
        // Events are older than zero only after the clock has moved.
        thread::sleep(Duration::from_millis(3));
        store.write(|tx| tx.trim_events("t", Retention { passed, waiting })).unwrap()
    };
    const LONG: Duration = Duration::from_secs(1000);
    publish(10);
    store.write(|tx| tx.move_cursor("slow", "t", 4)).unwrap();
    assert_eq!(trim(LONG, LONG), 0);
    assert_eq!(trim(Duration::ZERO, LONG), 4, "only what every reader has passed");
    assert_eq!(numbers(&store, "t"), [5, 6, 7, 8, 9, 10]);
    let reader = EventReader::new(&store, "slow", "t").unwrap();
    assert_eq!(reader.next(1, Duration::ZERO).unwrap().missed, 0);
    assert_eq!(trim(Duration::ZERO, Duration::ZERO), 6, "waiting ends some time");
    publish(1);
    let page = reader.next(10, Duration::ZERO).unwrap();
    assert_eq!((page.missed, page.events[0].number), (6, 11), "and the reader is told");
}
