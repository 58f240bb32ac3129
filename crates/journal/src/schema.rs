//! The journal's tables.

use mainstay_store::{Component, Migration};

/// The journal's tables.
pub const JOURNAL: Component = Component {
    name: "journal",
    migrations: &[
        Migration::Both(TABLES),
        Migration::Both(CHANGED_CALLS),
        Migration::Both(COMPACTIONS),
        Migration::Both(PARKED_AND_CHOSEN),
    ],
};

/// Number n of a session exists once.
const COMPACTIONS: &str = "
CREATE TABLE compactions (
    session TEXT NOT NULL REFERENCES sessions (id),
    number INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (session, number)
) STRICT, WITHOUT ROWID;
";

/// Why a turn is parked and what was chosen for it, both as JSON. Rows of earlier versions have
/// neither.
const PARKED_AND_CHOSEN: &str = "
ALTER TABLE turns ADD COLUMN parked TEXT;
ALTER TABLE turns ADD COLUMN choices TEXT;
";

/// A call may run with other arguments than the model's, because a hook changed them.
const CHANGED_CALLS: &str = "ALTER TABLE calls ADD COLUMN input TEXT;";

const TABLES: &str = "
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL REFERENCES owners (id),
    workspace TEXT NOT NULL,
    prompt TEXT NOT NULL,
    title TEXT NOT NULL,
    parent TEXT REFERENCES sessions (id),
    parent_seq INTEGER,
    turns INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_by_use ON sessions (owner, used_at);

CREATE TABLE turns (
    id TEXT PRIMARY KEY,
    session TEXT NOT NULL REFERENCES sessions (id),
    number INTEGER NOT NULL,
    input_key TEXT NOT NULL,
    state TEXT NOT NULL,
    outcome TEXT,
    reason TEXT,
    resume_at INTEGER,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    UNIQUE (session, input_key),
    UNIQUE (session, number)
) STRICT;
CREATE INDEX turns_unfinished ON turns (started_at) WHERE state <> 'ended';

CREATE TABLE entries (
    session TEXT NOT NULL REFERENCES sessions (id),
    seq INTEGER NOT NULL,
    turn TEXT NOT NULL REFERENCES turns (id),
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (session, seq)
) STRICT;

CREATE TABLE calls (
    id TEXT NOT NULL,
    session TEXT NOT NULL REFERENCES sessions (id),
    turn TEXT NOT NULL REFERENCES turns (id),
    seq INTEGER NOT NULL,
    position INTEGER NOT NULL,
    tool TEXT NOT NULL,
    state TEXT NOT NULL,
    plan TEXT,
    started_at INTEGER,
    result_seq INTEGER,
    PRIMARY KEY (session, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE model_calls (
    id TEXT NOT NULL,
    owner TEXT NOT NULL REFERENCES owners (id),
    session TEXT NOT NULL,
    turn TEXT NOT NULL,
    purpose TEXT NOT NULL,
    model TEXT NOT NULL,
    state TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    latency INTEGER,
    first_byte INTEGER,
    input INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    cache_written INTEGER NOT NULL,
    output INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    cost INTEGER NOT NULL,
    fault TEXT,
    said TEXT,
    status INTEGER,
    request_id TEXT,
    PRIMARY KEY (session, turn, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE processes (
    id TEXT PRIMARY KEY,
    session TEXT NOT NULL REFERENCES sessions (id),
    keeper TEXT NOT NULL,
    command TEXT NOT NULL,
    state TEXT NOT NULL,
    ending TEXT,
    announced TEXT,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    acknowledged_at INTEGER
) STRICT;
CREATE INDEX processes_of_session ON processes (session) WHERE acknowledged_at IS NULL;
";
