//! Sessions: a conversation, its workspace and its owner.

use mainstay_store::{BlobHash, OwnerId, ReadTx, Row, WriteTx, params};

use crate::storable::storable;
use crate::{Error, Result, SessionId};

/// A session.
#[derive(Clone, Debug)]
pub struct Session {
    /// Its name.
    pub id: SessionId,
    /// Whose it is.
    pub owner: OwnerId,
    /// The directory it works in.
    pub workspace: String,
    /// The blob with the system prompt.
    prompt: BlobHash,
    /// A few words on what it is about.
    pub title: String,
    /// The session that it is a fork of, and the last entry that both share.
    pub parent: Option<(SessionId, i64)>,
    /// The session whose turn began it, where it is a child.
    pub begun_by: Option<SessionId>,
    /// How many turns it has.
    pub turns: i64,
    /// When it began, in milliseconds since 1970.
    pub created_at: i64,
    /// When a turn of it last began or ended.
    pub used_at: i64,
}

/// What a new session is given.
#[derive(Clone, Copy, Debug)]
pub struct New<'a> {
    /// Whose it is.
    pub owner: OwnerId,
    /// The directory it works in.
    pub workspace: &'a str,
    /// The system prompt.
    pub prompt: &'a str,
    /// A few words on what it is about.
    pub title: &'a str,
    /// The session whose turn begins it, where it is a child.
    pub begun_by: Option<SessionId>,
}

const COLUMNS: &str = "id, owner, workspace, prompt, title, turns, created_at, used_at, parent, parent_seq FROM sessions";

/// A child has a parent and no place in it; a fork has both.
pub(crate) const NO_CHILD: &str = "(parent IS NULL OR parent_seq IS NOT NULL)";

/// Begins a session under a name that was made before, so that the closure can run twice.
pub fn create(tx: &mut WriteTx<'_>, id: SessionId, new: &New<'_>) -> Result<()> {
    let now = tx.now();
    // The row is written with every entry; the prompt, which never changes, is kept apart.
    let prompt = tx.put_blob(new.prompt.as_bytes())?;
    tx.execute(
        "INSERT INTO sessions
             (id, owner, workspace, prompt, title, turns, created_at, used_at, parent)
         VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?6, ?7)",
        params![id, new.owner, new.workspace, prompt, new.title, now, new.begun_by],
    )?;
    Ok(())
}

/// The session of this owner that starts with what was typed.
pub fn find(tx: &mut ReadTx<'_>, owner: OwnerId, typed: &str) -> Result<Session> {
    let id = SessionId::from(tx.find_id("sessions", "session", typed)?);
    match get(tx, id)? {
        Some(session) if session.owner == owner => Ok(session),
        // Somebody else's session is as good as none.
        _ => Err(Error::Store(mainstay_store::Error::UnknownId {
            what: "session".to_owned(),
            typed: typed.to_owned(),
        })),
    }
}

/// The session with this name.
pub fn get(tx: &mut ReadTx<'_>, id: SessionId) -> Result<Option<Session>> {
    Ok(tx.query_opt(&format!("SELECT {COLUMNS} WHERE id = ?1"), params![id], read)?)
}

/// The system prompt of a session, fixed when it began: providers' caches hold on to it. It is empty
/// for one that was imported and has had no turn here.
pub fn prompt(tx: &mut ReadTx<'_>, session: &Session) -> Result<String> {
    let bytes = tx.blob(&session.prompt)?;
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(|| Error::Damaged {
        what: format!("the prompt of session {}", session.id),
        detail: "the store does not hold it".to_owned(),
    })
}

/// The sessions of an owner, last used first, without children: they belong to the turns that began
/// them.
pub fn list(tx: &mut ReadTx<'_>, owner: OwnerId, limit: u32) -> Result<Vec<Session>> {
    Ok(tx.query(
        &format!("SELECT {COLUMNS} WHERE owner = ?1 AND {NO_CHILD} ORDER BY used_at DESC, id DESC LIMIT ?2"),
        params![owner, i64::from(limit)],
        read,
    )?)
}

/// The sessions that turns of this one began.
pub fn children(tx: &mut ReadTx<'_>, id: SessionId) -> Result<Vec<SessionId>> {
    Ok(tx.query(
        "SELECT id FROM sessions WHERE parent = ?1 AND parent_seq IS NULL ORDER BY id",
        params![id],
        |row| row.get(0),
    )?)
}

/// The session that a user began and to which this one belongs: itself, where it is no child.
pub fn root(tx: &mut ReadTx<'_>, id: SessionId) -> Result<SessionId> {
    let mut root = id;
    while let Some(parent) = get(tx, root)?.and_then(|session| session.begun_by) {
        root = parent;
    }
    Ok(root)
}

/// Gives a session that has none its system prompt.
pub fn set_prompt(tx: &mut WriteTx<'_>, id: SessionId, prompt: &str) -> Result<()> {
    let prompt = tx.put_blob(prompt.as_bytes())?;
    tx.execute("UPDATE sessions SET prompt = ?2 WHERE id = ?1", params![id, prompt])?;
    Ok(())
}

/// Gives a session another title.
pub fn rename(tx: &mut WriteTx<'_>, id: SessionId, title: &str) -> Result<()> {
    let title = storable(title);
    tx.execute("UPDATE sessions SET title = ?2 WHERE id = ?1", params![id, &*title])?;
    Ok(())
}

/// Notes that a session was used.
pub(crate) fn used(tx: &mut WriteTx<'_>, id: SessionId) -> Result<()> {
    let now = tx.now();
    tx.execute("UPDATE sessions SET used_at = ?2 WHERE id = ?1", params![id, now])?;
    Ok(())
}

fn read(row: &Row<'_>) -> mainstay_store::Result<Session> {
    let place: Option<i64> = row.get(9)?;
    Ok(Session {
        id: row.get(0)?,
        owner: row.get(1)?,
        workspace: row.get(2)?,
        prompt: row.get(3)?,
        title: row.get(4)?,
        turns: row.get(5)?,
        created_at: row.get(6)?,
        used_at: row.get(7)?,
        parent: row.get::<Option<SessionId>>(8)?.zip(row.get(9)?),
        begun_by: row.get::<Option<SessionId>>(8)?.filter(|_| place.is_none()),
    })
}
