//! A session as lines of JSON: everything that is needed to go on with it elsewhere.
//!
//! A file may come from anybody, so it brings words only: its prompt and its directory are shown to
//! whoever reads the file, and are not those of the session that is made of it.
//!
//! The first line names the format and the session, then come turns, entries and blobs, and the last
//! line counts them and holds the hash of all lines before it, so that a file that was cut or changed
//! is noticed.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_store::{BlobHash, OwnerId, ReadTx, WriteTx, params};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::entry::{self, Body};
use crate::storable::storable;
use crate::turn::{Outcome, State};
use crate::{Error, Result, SessionId, TurnId, compaction, pictures, session};

/// The version of the format: 2 where there are compactions, which the first did not know.
const VERSION: u32 = 2;

/// A line of the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    MainstaySession(Head),
    Turn(TurnLine),
    Entry(EntryLine),
    Blob { hash: String, base64: String },
    End(Tail),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Head {
    version: u32,
    id: String,
    title: String,
    workspace: String,
    prompt: String,
    created_at: i64,
    used_at: i64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct TurnLine {
    number: i64,
    outcome: Option<Outcome>,
    reason: Option<String>,
    started_at: i64,
    ended_at: Option<i64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct EntryLine {
    seq: i64,
    turn: i64,
    at: i64,
    body: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Tail {
    turns: usize,
    entries: usize,
    blobs: usize,
    sha256: String,
}

/// A session that was read from a file and verified.
#[derive(Clone, Debug)]
pub struct Archive {
    head: Head,
    turns: Vec<TurnLine>,
    entries: Vec<EntryLine>,
    blobs: BTreeMap<String, Vec<u8>>,
}

/// A session as lines.
pub fn export(tx: &mut ReadTx<'_>, id: SessionId) -> Result<String> {
    let row = session::get(tx, id)?.ok_or_else(|| mainstay_store::Error::UnknownId {
        what: "session".to_owned(),
        typed: id.to_string(),
    })?;
    let prompt = session::prompt(tx, &row)?;
    let mut lines = Lines::default();
    lines.push(&Line::MainstaySession(Head {
        version: if compaction::last(tx, id)? > 0 { VERSION } else { 1 },
        id: id.to_string(),
        title: row.title,
        workspace: row.workspace,
        prompt,
        created_at: row.created_at,
        used_at: row.used_at,
    }))?;
    let turns = tx.query(
        "SELECT number, outcome, reason, started_at, ended_at FROM turns WHERE session = ?1
         ORDER BY number",
        params![id],
        |row| {
            Ok(TurnLine {
                number: row.get(0)?,
                outcome: row.get(1)?,
                reason: row.get(2)?,
                started_at: row.get(3)?,
                ended_at: row.get(4)?,
            })
        },
    )?;
    let entries: Vec<(i64, i64, i64, String)> = tx.query(
        "SELECT e.seq, t.number, e.at, e.body FROM entries e JOIN turns t ON t.id = e.turn
         WHERE e.session = ?1 ORDER BY e.seq",
        params![id],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
    )?;
    let mut tail =
        Tail { turns: turns.len(), entries: entries.len(), blobs: 0, sha256: String::new() };
    for turn in turns {
        lines.push(&Line::Turn(turn))?;
    }
    let mut blobs = BTreeSet::new();
    for (seq, turn, at, text) in entries {
        let wrong = |error: serde_json::Error| damaged(&format!("entry {seq} of {id}"), &error);
        let body: Value = serde_json::from_str(&text).map_err(wrong)?;
        let parsed: Body = serde_json::from_value(body.clone()).map_err(wrong)?;
        blobs.extend(pictures::blobs(&parsed));
        lines.push(&Line::Entry(EntryLine { seq, turn, at, body }))?;
    }
    tail.blobs = blobs.len();
    for hash in blobs {
        let bytes =
            tx.blob(&hash)?.ok_or_else(|| damaged(&format!("blob {hash}"), &"it is gone"))?;
        lines.push(&Line::Blob { hash: hash.to_string(), base64: STANDARD.encode(bytes) })?;
    }
    tail.sha256 = BlobHash::of(lines.0.as_bytes()).to_string();
    lines.push(&Line::End(tail))?;
    Ok(lines.0)
}

#[derive(Default)]
struct Lines(String);

impl Lines {
    fn push(&mut self, line: &Line) -> Result<()> {
        let text = serde_json::to_string(line).map_err(|error| damaged("a session", &error))?;
        self.0.push_str(&text);
        self.0.push('\n');
        Ok(())
    }
}

impl Archive {
    /// Reads lines and verifies them. Fails, in words, where they are not a whole session.
    pub fn read(text: &str) -> std::result::Result<Self, String> {
        let mut lines = text.split_inclusive('\n').enumerate();
        let parse = |(number, line): (usize, &str)| {
            serde_json::from_str::<Line>(line.trim_end())
                .map_err(|error| format!("line {} is not one of a session: {error}", number + 1))
        };
        let head = match lines.next().map(parse) {
            Some(Ok(Line::MainstaySession(head))) => head,
            _ => return Err("it is not a session that Mainstay wrote".to_owned()),
        };
        if head.version > VERSION {
            return Err("a newer Mainstay wrote it; update this one".to_owned());
        }
        let mut archive =
            Self { head, turns: Vec::new(), entries: Vec::new(), blobs: BTreeMap::new() };
        let mut before = text.split_inclusive('\n').next().map_or(0, str::len);
        for (number, line) in lines {
            match parse((number, line))? {
                Line::MainstaySession(_) => return Err("it holds two sessions".to_owned()),
                Line::Turn(turn) => archive.turns.push(turn),
                Line::Entry(entry) => archive.entries.push(entry),
                Line::Blob { hash, base64 } => {
                    let bytes = STANDARD.decode(base64).map_err(|error| error.to_string())?;
                    if BlobHash::of(&bytes).as_str() != hash {
                        return Err(format!("the blob {hash} was changed"));
                    }
                    archive.blobs.insert(hash, bytes);
                }
                Line::End(tail) => {
                    let there = Tail {
                        turns: archive.turns.len(),
                        entries: archive.entries.len(),
                        blobs: archive.blobs.len(),
                        sha256: BlobHash::of(&text.as_bytes()[..before]).to_string(),
                    };
                    if there != tail || before + line.len() != text.len() {
                        return Err("it was changed or is not whole".to_owned());
                    }
                    return archive.verified();
                }
            }
            before += line.len();
        }
        Err("it ends too early".to_owned())
    }

    /// Whether its parts fit together.
    fn verified(self) -> std::result::Result<Self, String> {
        let dense = |numbers: &mut dyn Iterator<Item = i64>| {
            numbers.zip(1..).all(|(number, expected)| number == expected)
        };
        if !dense(&mut self.turns.iter().map(|turn| turn.number))
            || !dense(&mut self.entries.iter().map(|entry| entry.seq))
        {
            return Err("turns or entries are missing".to_owned());
        }
        let mut at = 1;
        let mut compactions = 0;
        for EntryLine { seq, turn, body, .. } in &self.entries {
            if *turn < at || usize::try_from(*turn).is_ok_and(|turn| turn > self.turns.len()) {
                return Err(format!("entry {seq} belongs to no turn"));
            }
            at = *turn;
            let body: Body = serde_json::from_value(body.clone())
                .map_err(|error| format!("entry {seq} cannot be understood: {error}"))?;
            if let Body::Compaction(made) = &body {
                compactions += 1;
                if made.number != compactions {
                    return Err(format!("entry {seq} should be compaction {compactions}"));
                }
            }
            if let Some(hash) =
                pictures::blobs(&body).find(|hash| !self.blobs.contains_key(hash.as_str()))
            {
                return Err(format!("entry {seq} needs the blob {hash}, which is missing"));
            }
        }
        Ok(self)
    }

    /// The directory that the session worked in, where it was exported.
    pub fn workspace(&self) -> &str {
        &self.head.workspace
    }

    /// How many turns it has.
    pub fn turns(&self) -> usize {
        self.turns.len()
    }

    /// Makes a session of it under a new name, without a prompt. A turn that was not over is over, and
    /// `last` is said at the end of the last one.
    pub fn import(
        &self,
        tx: &mut WriteTx<'_>,
        id: SessionId,
        owner: OwnerId,
        workspace: &str,
        last: &Body,
    ) -> Result<()> {
        let Self { head, turns, entries, blobs } = self;
        let new = session::New {
            owner,
            workspace,
            prompt: "",
            title: &storable(&head.title),
            begun_by: None,
        };
        session::create(tx, id, &new)?;
        let (now, count) = (tx.now(), i64::try_from(turns.len()).unwrap_or(i64::MAX));
        tx.execute(
            "UPDATE sessions SET turns = ?2, created_at = ?3 WHERE id = ?1",
            params![id, count, head.created_at],
        )?;
        for bytes in blobs.values() {
            tx.put_blob(bytes)?;
        }
        let mut ids = Vec::with_capacity(turns.len());
        for turn in turns {
            let new = TurnId::new();
            let outcome = turn.outcome.unwrap_or(Outcome::Interrupted);
            tx.execute(
                "INSERT INTO turns (id, session, number, input_key, state, outcome, reason,
                     started_at, ended_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                params![
                    new,
                    id,
                    turn.number,
                    format!("import/{id}/{}", turn.number),
                    State::Ended,
                    outcome,
                    turn.reason.as_deref().map(storable).as_deref(),
                    turn.started_at,
                    turn.ended_at.unwrap_or(now)
                ],
            )?;
            ids.push(new);
        }
        for EntryLine { seq, turn, at, body } in entries {
            let turn = usize::try_from(*turn).ok().and_then(|turn| ids.get(turn - 1));
            let parsed = serde_json::from_value::<Body>(body.clone())
                .map_err(|error| damaged(&format!("entry {seq}"), &error))?;
            let kind = parsed.kind();
            if let Body::Compaction(made) = &parsed {
                tx.execute(
                    "INSERT INTO compactions (session, number, seq) VALUES (?1, ?2, ?3)",
                    params![id, made.number, seq],
                )?;
            }
            tx.execute(
                "INSERT INTO entries (session, seq, turn, kind, body, at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![id, seq, turn, kind, body.to_string(), at],
            )?;
        }
        if let Some(turn) = ids.last() {
            entry::append(tx, id, *turn, last)?;
        }
        Ok(())
    }
}

fn damaged(what: &str, error: &dyn std::fmt::Display) -> Error {
    Error::Damaged { what: what.to_owned(), detail: error.to_string() }
}
