//! The ground: all state of all parts in one database, changed by one kind of transaction.
//!
//! [`Store::write`] runs a closure as one serialisable transaction, as a whole or not at all, and
//! what it wrote is durable when it returns. Two engines run the same closures: SQLite, embedded,
//! the default; PostgreSQL, when work is spread over many hosts. On the same ground stand
//! [leases](Lease), an [event log](EventReader), [wake-ups](Listener), [blobs](BlobHash),
//! [owners](OwnerId), backups, and [atomic file writes](fsatomic).
//!
//! This crate owns transactions, engines, migrations and integrity. It must not know what an
//! agent is.
//!
//! ```
//! use mainstay_store::{Component, Location, Migration, Options, Schema, Store, params};
//!
//! const NOTES: Component = Component {
//!     name: "notes",
//!     migrations: &[Migration::Both("CREATE TABLE notes (text TEXT NOT NULL) STRICT;")],
//! };
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("store.db");
//! let options = Options::new(Schema::new(&[NOTES]));
//! let store = Store::open(&Location::file(path), options)?;
//! store.write(|tx| tx.execute("INSERT INTO notes (text) VALUES (?1)", params!["kept"]))?;
//! let texts: Vec<String> =
//!     store.read(|tx| tx.query("SELECT text FROM notes", params![], |row| row.get(0)))?;
//! assert_eq!(texts, ["kept"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blobs;
mod check;
mod clock;
mod compact;
mod copy;
mod deathwatch;
mod error;
mod events;
mod filesystem;
pub mod fsatomic;
mod hub;
mod id;
mod identity;
mod info;
mod lease;
mod lease_keeper;
mod location;
mod lock;
mod means;
mod migrations;
pub mod occupancy;
mod owners;
mod panic_text;
mod postgres;
mod prefix;
mod restore;
mod row;
mod schema;
pub mod scratch;
mod sqlite;
mod store;
mod tables;
mod tx;
pub mod unfinished;
mod value;

pub use blobs::{BLOB_LIMIT, BlobHash, PackedBlob};
pub use check::Depth;
pub use clock::{Clock, SystemClock, wall_millis};
pub use compact::{Compacted, compact};
pub use copy::{Copied, Progress};
pub use error::{Error, Result};
pub use events::{Event, EventPage, EventReader, Retention};
pub use filesystem::FileSystem;
pub use hub::{Listener, SLOW_POLL};
pub use id::{Id, NotAnId, random_secret};
pub use identity::{Liveness, ProcessIdentity};
pub use info::Info;
pub use lease::{Acquired, Holder, Lease};
pub use location::{Journal, Location};
pub use lock::lock;
pub use means::{refuse_without_descriptors, refuse_without_thread};
pub use owners::OwnerId;
pub use restore::{Restored, restore};
pub use row::Row;
pub use schema::{Component, Migration, Schema};
pub use store::{Limits, Options, Store};
pub use tx::{Dialect, ReadTx, WriteTx};
pub use value::{FromValue, Params, ToValue, Value, ValueRef};
