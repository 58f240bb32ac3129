//! The memory's tables.

use mainstay_store::{Component, Migration};

/// The memory's tables.
pub const MEMORY: Component = Component { name: "memory", migrations: &[Migration::Both(TABLES)] };

/// A fact is one row; what leads to it is in `fact_terms`: for each word, entity, tag and category
/// the numbers of the facts that have it, in chunks. `fact_banks` holds a sum of vectors for each
/// category. The workspace of notes on the user is empty. `memory_calls` says what came of calls, so
/// that one that is run again changes nothing twice.
const TABLES: &str = "
CREATE TABLE facts (
    owner TEXT NOT NULL REFERENCES owners (id),
    number INTEGER NOT NULL,
    category TEXT NOT NULL,
    content TEXT NOT NULL,
    digest BLOB NOT NULL,
    tags TEXT NOT NULL,
    entities TEXT NOT NULL,
    source TEXT NOT NULL,
    key TEXT,
    trust INTEGER NOT NULL,
    helpful INTEGER NOT NULL,
    unhelpful INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (owner, number),
    UNIQUE (owner, digest)
) STRICT;
CREATE UNIQUE INDEX facts_by_key ON facts (owner, key) WHERE key IS NOT NULL;

CREATE TABLE fact_numbers (
    owner TEXT NOT NULL PRIMARY KEY REFERENCES owners (id),
    last INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE fact_terms (
    owner TEXT NOT NULL,
    kind TEXT NOT NULL,
    term TEXT NOT NULL,
    first INTEGER NOT NULL,
    rest BLOB NOT NULL,
    PRIMARY KEY (owner, kind, term, first)
) STRICT, WITHOUT ROWID;

CREATE TABLE fact_aliases (
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    other TEXT NOT NULL,
    fact INTEGER NOT NULL,
    PRIMARY KEY (owner, name, other, fact)
) STRICT, WITHOUT ROWID;

CREATE TABLE fact_banks (
    owner TEXT NOT NULL,
    category TEXT NOT NULL,
    facts INTEGER NOT NULL,
    words INTEGER NOT NULL,
    sums BLOB NOT NULL,
    PRIMARY KEY (owner, category)
) STRICT;

CREATE TABLE notes (
    owner TEXT NOT NULL REFERENCES owners (id),
    workspace TEXT NOT NULL,
    number INTEGER NOT NULL,
    text TEXT NOT NULL,
    digest BLOB NOT NULL,
    source TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (owner, workspace, number),
    UNIQUE (owner, workspace, digest)
) STRICT;

CREATE TABLE memory_calls (
    owner TEXT NOT NULL REFERENCES owners (id),
    key TEXT NOT NULL,
    outcome TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (owner, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_calls_by_age ON memory_calls (at);
";
