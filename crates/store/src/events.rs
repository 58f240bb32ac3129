//! The event log: per topic a sequence without gaps, and readers that remember how far they are.
//!
//! An event's number is taken in the transaction that publishes it, under the lock of its topic's
//! row, so numbers become visible in their order: a reader that has seen 7 will never meet a 6
//! that committed late. A reader handles events, then moves its cursor; what it handled before a
//! crash it sees again. Every event is seen at least once.

use std::time::Duration;

use crate::clock::millis;
use crate::hub::Listener;
use crate::{ReadTx, Result, Store, WriteTx, params};

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number in its topic, from 1, without gaps.
    pub number: i64,
    /// When it was published, in milliseconds since 1970.
    pub at: i64,
    /// What happened, usually JSON.
    pub body: String,
}

/// Some events, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventPage {
    /// The events.
    pub events: Vec<Event>,
    /// How many events before them are gone for ever, because they were kept long enough and this
    /// reader did not come for them.
    pub missed: i64,
}

/// How long events are kept.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// Events that every reader has passed are kept this long.
    pub passed: Duration,
    /// Events that some reader has not passed are kept this long.
    pub waiting: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        Self { passed: DAY, waiting: 30 * DAY }
    }
}

impl WriteTx<'_> {
    /// Publishes an event and wakes the listeners of `topic`. Answers its number.
    pub fn publish(&mut self, topic: &str, body: &str) -> Result<i64> {
        let number: i64 = self.query_one(
            "INSERT INTO topics (topic, first, last) VALUES (?1, 1, 1)
             ON CONFLICT (topic) DO UPDATE SET last = topics.last + 1
             RETURNING last",
            params![topic],
            |row| row.get(0),
        )?;
        let now = self.now();
        self.execute(
            "INSERT INTO events (topic, number, at, body) VALUES (?1, ?2, ?3, ?4)",
            params![topic, number, now, body],
        )?;
        self.wake(topic)?;
        Ok(number)
    }

    /// Moves a reader's cursor to `number`. It never moves back.
    pub fn move_cursor(&mut self, reader: &str, topic: &str, number: i64) -> Result<()> {
        let now = self.now();
        self.execute(
            "INSERT INTO cursors (reader, topic, number, moved_at) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (reader, topic) DO UPDATE
             SET number = excluded.number, moved_at = excluded.moved_at
             WHERE cursors.number < excluded.number",
            params![reader, topic, number, now],
        )?;
        Ok(())
    }

    /// Forgets a reader, so that nothing is kept for it any more.
    pub fn forget_reader(&mut self, reader: &str) -> Result<()> {
        self.execute("DELETE FROM cursors WHERE reader = ?1", params![reader]).map(drop)
    }

    /// Removes the events of `topic` that were kept long enough. Answers how many.
    pub fn trim_events(&mut self, topic: &str, retention: Retention) -> Result<usize> {
        let now = self.now();
        let slowest: Option<i64> = self.query_one(
            "SELECT min(number) FROM cursors WHERE topic = ?1",
            params![topic],
            |row| row.get(0),
        )?;
        // Only what lies before the first event that must stay: a wrong clock once does not make
        // everything before its event old.
        let upto: Option<i64> = self.query_one(
            "SELECT coalesce(
                 (SELECT min(number) - 1 FROM events
                  WHERE topic = ?1 AND NOT ((at < ?2 AND number <= ?3) OR at < ?4)),
                 (SELECT max(number) FROM events WHERE topic = ?1))",
            params![
                topic,
                now - millis(retention.passed),
                slowest.unwrap_or(i64::MAX),
                now - millis(retention.waiting)
            ],
            |row| row.get(0),
        )?;
        let Some(upto) = upto else { return Ok(0) };
        self.execute(
            "UPDATE topics SET first = ?2 WHERE topic = ?1 AND first < ?2",
            params![topic, upto + 1],
        )?;
        self.execute("DELETE FROM events WHERE topic = ?1 AND number <= ?2", params![topic, upto])
    }
}

impl ReadTx<'_> {
    /// At most `limit` events of `topic` after number `after`.
    pub fn events(&mut self, topic: &str, after: i64, limit: u32) -> Result<EventPage> {
        let first: Option<i64> =
            self.query_opt("SELECT first FROM topics WHERE topic = ?1", params![topic], |row| {
                row.get(0)
            })?;
        let events = self.query(
            "SELECT number, at, body FROM events WHERE topic = ?1 AND number > ?2
             ORDER BY number LIMIT ?3",
            params![topic, after, limit],
            |row| Ok(Event { number: row.get(0)?, at: row.get(1)?, body: row.get(2)? }),
        )?;
        Ok(EventPage { events, missed: (first.unwrap_or(1) - 1 - after).max(0) })
    }

    /// How far `reader` is in `topic`; zero before its first event.
    pub fn cursor(&mut self, reader: &str, topic: &str) -> Result<i64> {
        let number = self.query_opt(
            "SELECT number FROM cursors WHERE reader = ?1 AND topic = ?2",
            params![reader, topic],
            |row| row.get(0),
        )?;
        Ok(number.unwrap_or(0))
    }
}

/// A durable reader of one topic.
#[derive(Debug)]
pub struct EventReader {
    store: Store,
    reader: String,
    topic: String,
    listener: Listener,
}

impl EventReader {
    /// The reader with this name. A new one starts at the oldest event and holds on to what it
    /// has not seen, within the [`Retention`].
    pub fn new(store: &Store, reader: &str, topic: &str) -> Result<Self> {
        let listener = store.listen([topic])?;
        store.write(|tx| tx.move_cursor(reader, topic, 0))?;
        Ok(Self {
            store: store.clone(),
            reader: reader.to_owned(),
            topic: topic.to_owned(),
            listener,
        })
    }

    /// The next events, at most `limit`. Waits up to `patience` for one; an empty page means that
    /// there was none. The same events come again until [`handled`](Self::handled) is called.
    pub fn next(&self, limit: u32, patience: Duration) -> Result<EventPage> {
        let deadline = crate::clock::Deadline::after(patience);
        loop {
            let page = self.store.read(|tx| {
                let after = tx.cursor(&self.reader, &self.topic)?;
                tx.events(&self.topic, after, limit)
            })?;
            if !page.events.is_empty() || deadline.passed() {
                return Ok(page);
            }
            self.listener.wait(deadline.left());
        }
    }

    /// Takes note that everything up to event `number` is done with.
    pub fn handled(&self, number: i64) -> Result<()> {
        self.store.write(|tx| tx.move_cursor(&self.reader, &self.topic, number))
    }
}
