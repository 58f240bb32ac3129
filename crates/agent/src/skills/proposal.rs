//! Proposals: what models want to add to the skills or change in them, as rows.

use mainstay_journal::SessionId;
use mainstay_store::{
    Component, FromValue, Id, Migration, OwnerId, ReadTx, Row, ToValue, ValueRef, WriteTx, params,
};
use serde::{Deserialize, Serialize};

use super::files::SkillFiles;
use crate::Result;
use crate::approvals::requests::storable;

/// The name of the tool that makes them.
pub const NAME: &str = "propose_skill";

/// The tables of skills.
pub const SKILLS: Component = Component { name: "skills", migrations: &[Migration::Both(TABLES)] };

const TABLES: &str = "
CREATE TABLE skill_proposals (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL REFERENCES owners (id),
    session TEXT NOT NULL,
    name TEXT NOT NULL,
    reason TEXT NOT NULL,
    base TEXT,
    result TEXT NOT NULL,
    files TEXT NOT NULL,
    origin TEXT,
    state TEXT NOT NULL,
    proposed_at INTEGER NOT NULL,
    decided_by TEXT,
    decided_at INTEGER
) STRICT;
CREATE INDEX skill_proposals_by_time ON skill_proposals (owner, proposed_at);
CREATE INDEX skill_proposals_of_session ON skill_proposals (session);
";

/// A new skill, or changes to one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Proposal {
    /// Its name, that of the call that made it.
    pub id: Id,
    /// Where it was made.
    pub session: SessionId,
    /// The skill.
    pub name: String,
    /// Why, in the model's words.
    pub reason: String,
    /// The hash of the skill that it changes. It is `None` if the skill is new.
    pub base: Option<String>,
    /// The hash of the skill as it would be.
    pub result: String,
    /// What it changes.
    pub files: Vec<FileChange>,
    /// Where the text came from that tainted the session. It is `None` if it was not tainted.
    pub origin: Option<String>,
    /// Its state.
    pub state: ProposalState,
    /// When it was made, in milliseconds since 1970.
    pub proposed_at: i64,
    /// Who decided about it.
    pub decided_by: Option<String>,
    /// When.
    pub decided_at: Option<i64>,
}

/// A file of a proposal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Its path below the skill's folder.
    pub path: String,
    /// What it is to hold. It is `None` if the file is to be deleted.
    pub content: Option<String>,
}

/// The state of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProposalState {
    /// It waits for a person.
    Waiting,
    /// A person approved it; its files are being written.
    Approving,
    /// It is in use.
    Approved,
    /// A person did not want it.
    Rejected,
}

impl ProposalState {
    const NAMES: [(Self, &'static str); 4] = [
        (Self::Waiting, "waiting"),
        (Self::Approving, "approving"),
        (Self::Approved, "approved"),
        (Self::Rejected, "rejected"),
    ];

    /// Its name, as in JSON.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize].1
    }
}

impl ToValue for ProposalState {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Text(self.as_str())
    }
}

impl FromValue for ProposalState {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        let ValueRef::Text(word) = value else { return None };
        Self::NAMES.iter().find(|(_, name)| *name == word).map(|(state, _)| *state)
    }
}

/// Which proposals are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProposalFilter {
    /// Those that wait for a person.
    Waiting,
    /// Those that a person approved and whose files may not be written.
    Approving,
    /// All of them.
    All,
}

impl Proposal {
    /// The skill as it would be, from what it is.
    pub(super) fn applied(&self, base: &SkillFiles) -> SkillFiles {
        let mut tree = base.clone();
        for change in &self.files {
            tree.change(&change.path, change.content.as_deref());
        }
        tree
    }
}

/// Writes a proposal down, once: the same call makes the same one.
pub(crate) fn propose(tx: &mut WriteTx<'_>, owner: OwnerId, proposal: &Proposal) -> Result<()> {
    let files = serde_json::to_string(&proposal.files).unwrap_or_default();
    let now = tx.now();
    tx.execute(
        "INSERT INTO skill_proposals
         (id, owner, session, name, reason, base, result, files, origin, state, proposed_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT (id) DO NOTHING",
        params![
            proposal.id,
            owner,
            proposal.session,
            proposal.name,
            storable(&proposal.reason),
            proposal.base,
            proposal.result,
            storable(&files),
            proposal.origin.as_deref().map(storable),
            ProposalState::Waiting,
            now
        ],
    )?;
    Ok(())
}

/// The proposal of this owner with this id.
pub(super) fn get(tx: &mut ReadTx<'_>, owner: OwnerId, id: Id) -> Result<Proposal> {
    let found = select(tx, "owner = ?1 AND id = ?2", params![owner, id])?.pop();
    Ok(found.ok_or_else(|| unknown(&id.to_string()))?)
}

/// The proposal of this owner whose id begins like this.
pub fn find(tx: &mut ReadTx<'_>, owner: OwnerId, typed: &str) -> Result<Proposal> {
    let id = tx.find_id("skill_proposals", "proposal", typed)?;
    match get(tx, owner, id) {
        // An id of another owner is answered like one that does not exist.
        Err(_) => Err(unknown(typed).into()),
        found => found,
    }
}

/// The proposals to an owner, the oldest first.
pub fn list(tx: &mut ReadTx<'_>, owner: OwnerId, which: ProposalFilter) -> Result<Vec<Proposal>> {
    let waiting = ProposalState::Waiting;
    let approving = ProposalState::Approving;
    match which {
        ProposalFilter::All => select(tx, "owner = ?1", params![owner]),
        ProposalFilter::Waiting => {
            let condition = "owner = ?1 AND (state = ?2 OR state = ?3)";
            select(tx, condition, params![owner, waiting, approving])
        }
        ProposalFilter::Approving => {
            select(tx, "owner = ?1 AND state = ?2", params![owner, approving])
        }
    }
}

/// Changes the state of a proposal that is in state `from`. Returns whether it was.
pub(super) fn change_state(
    tx: &mut WriteTx<'_>,
    id: Id,
    from: ProposalState,
    to: ProposalState,
    by: Option<&str>,
) -> Result<bool> {
    let now = tx.now();
    let changed = tx.execute(
        "UPDATE skill_proposals SET state = ?3, decided_by = ?4, decided_at = ?5
         WHERE id = ?1 AND state = ?2",
        params![id, from, to, by.map(storable), by.map(|_| now)],
    )?;
    Ok(changed > 0)
}

/// Notes that the files of a proposal are written.
pub(super) fn note_applied(tx: &mut WriteTx<'_>, id: Id) -> Result<()> {
    let from = ProposalState::Approving;
    let to = ProposalState::Approved;
    let sql = "UPDATE skill_proposals SET state = ?3 WHERE id = ?1 AND state = ?2";
    tx.execute(sql, params![id, from, to])?;
    Ok(())
}

/// Removes what a session proposed, except what is being written.
pub(crate) fn delete_session(tx: &mut WriteTx<'_>, session: SessionId) -> Result<()> {
    let sql = "DELETE FROM skill_proposals WHERE session = ?1 AND state <> ?2";
    tx.execute(sql, params![session, ProposalState::Approving])?;
    Ok(())
}

fn select(
    tx: &mut ReadTx<'_>,
    condition: &str,
    values: mainstay_store::Params<'_>,
) -> Result<Vec<Proposal>> {
    let sql = format!(
        "SELECT id, session, name, reason, base, result, files, origin, state, proposed_at,
         decided_by, decided_at FROM skill_proposals WHERE {condition} ORDER BY id"
    );
    let mut proposals = Vec::new();
    for (mut proposal, files) in tx.query(&sql, values, row)? {
        proposal.files = serde_json::from_str(&files).map_err(|error| {
            let what = format!("proposal {}", proposal.id);
            mainstay_journal::Error::Damaged { what, detail: error.to_string() }
        })?;
        proposals.push(proposal);
    }
    Ok(proposals)
}

/// A proposal without its files, and the JSON that its files are stored as.
fn row(row: &Row<'_>) -> mainstay_store::Result<(Proposal, String)> {
    let proposal = Proposal {
        id: row.get(0)?,
        session: row.get(1)?,
        name: row.get(2)?,
        reason: row.get(3)?,
        base: row.get(4)?,
        result: row.get(5)?,
        files: Vec::new(),
        origin: row.get(7)?,
        state: row.get(8)?,
        proposed_at: row.get(9)?,
        decided_by: row.get(10)?,
        decided_at: row.get(11)?,
    };
    Ok((proposal, row.get(6)?))
}

fn unknown(typed: &str) -> mainstay_store::Error {
    mainstay_store::Error::UnknownId { what: "proposal".to_owned(), typed: typed.to_owned() }
}
