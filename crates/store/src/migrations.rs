//! The store's own tables.

use crate::schema::{Component, Migration};

/// The component every store has.
pub(crate) const STORE: Component =
    Component { name: "store", migrations: &[GROUND, Migration::Both(PACKED_BLOBS)] };

/// How a blob's body is kept: 0 as it is, 1 as a DEFLATE stream.
const PACKED_BLOBS: &str = "ALTER TABLE blobs ADD COLUMN form INTEGER NOT NULL DEFAULT 0;";

/// Tables whose rows belong to one engine's workings: not copied, not counted.
pub(crate) const ENGINE_TABLES: &[&str] = &["engine_batches", "engine_turn", "engine_commits"];

/// What the names of tables begin with whose rows can be computed again from others, such as an index
/// of words. They are not copied to another engine, not counted, and damage to one is none to the
/// store: whoever keeps it makes it anew.
pub(crate) const CACHE: &str = "cache_";

const GROUND: Migration = Migration::Each {
    both: "CREATE TABLE schema_versions (
        component TEXT NOT NULL PRIMARY KEY,
        version INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE meta (
        key TEXT NOT NULL PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT;
    CREATE TABLE owners (
        id TEXT NOT NULL PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        created_at INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE leases (
        resource TEXT NOT NULL PRIMARY KEY,
        holder TEXT,
        epoch INTEGER NOT NULL,
        beat INTEGER NOT NULL,
        ttl INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        acquired_at INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE topics (
        topic TEXT NOT NULL PRIMARY KEY,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE events (
        topic TEXT NOT NULL,
        number INTEGER NOT NULL,
        at INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (topic, number)
    ) STRICT;
    CREATE TABLE cursors (
        reader TEXT NOT NULL,
        topic TEXT NOT NULL,
        number INTEGER NOT NULL,
        moved_at INTEGER NOT NULL,
        PRIMARY KEY (reader, topic)
    ) STRICT;
    CREATE TABLE blobs (
        hash TEXT NOT NULL PRIMARY KEY,
        size INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        body BLOB NOT NULL
    ) STRICT;",
    // The number of each writer's last batch, so that after an error of COMMIT the truth can be
    // read.
    sqlite: "CREATE TABLE engine_batches (
        writer TEXT NOT NULL PRIMARY KEY,
        number INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;",
    // A table to lock, for transactions that kept losing against others; and a token of each
    // transaction, by which its commit can be recognised when the answer was lost.
    postgres: "CREATE TABLE engine_turn (nothing BIGINT);
    CREATE TABLE engine_commits (
        token TEXT COLLATE \"C\" NOT NULL PRIMARY KEY,
        at BIGINT NOT NULL
    );
    CREATE INDEX engine_commits_at ON engine_commits (at);",
};
