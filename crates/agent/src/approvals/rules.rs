//! What people said "always" to, per owner and workspace.

use std::path::Path;

use mainstay_journal::SessionId;
use mainstay_store::{Id, OwnerId, ReadTx, WriteTx, params};
use sha2::{Digest, Sha256};

use super::requests::{Approval, TOPIC, rules_of_session, storable};
use super::seal::{Sealer, is_proven};
use crate::Result;
use crate::policy::{ActionClass, Rule};

/// A rule that is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RememberedRule {
    /// Its name, for `mainstay approvals forget`.
    pub id: Id,
    /// Where it holds.
    pub workspace: String,
    /// What was decided when it was made.
    pub class: ActionClass,
    /// What it lets through.
    pub rule: Rule,
    /// The request that it was the answer to.
    pub request: String,
    /// Since when it holds, in milliseconds since 1970.
    pub created_at: i64,
}

/// Remembers a rule, unless it is remembered already.
pub(super) fn remember(
    tx: &mut WriteTx<'_>,
    owner: OwnerId,
    approval: &Approval,
    rule: &Rule,
    sealer: Option<&Sealer>,
) -> Result<()> {
    let Ok(text) = serde_json::to_string(rule) else { return Ok(()) };
    let text = storable(&text);
    let now = tx.now();
    let seal =
        sealer.map(|sealer| sealer.seal(KIND, &[&owner.to_string(), &approval.workspace, &text]));
    // One that is there without a proof gets it now.
    tx.execute(
        "INSERT INTO approval_rules
             (id, owner, workspace, class, rule, print, request, created_at, seal)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
         ON CONFLICT (owner, print) DO UPDATE SET seal = excluded.seal",
        params![
            Id::new(),
            owner,
            approval.workspace,
            approval.request.class,
            text,
            print(&approval.workspace, &text),
            approval.request.id,
            now,
            seal
        ],
    )?;
    Ok(())
}

/// All rules of an owner, the oldest first.
pub fn remembered(tx: &mut ReadTx<'_>, owner: OwnerId) -> Result<Vec<RememberedRule>> {
    let rows = tx.query(
        "SELECT id, workspace, class, rule, request, created_at FROM approval_rules
         WHERE owner = ?1 ORDER BY created_at, id",
        params![owner],
        |row| {
            let (id, workspace, class): (Id, String, ActionClass) =
                (row.get(0)?, row.get(1)?, row.get(2)?);
            let rule: String = row.get(3)?;
            let request: String = row.get(4)?;
            let created_at: i64 = row.get(5)?;
            // A rule that cannot be parsed is ignored: it lets nothing through.
            let rule = serde_json::from_str(&rule).ok();
            Ok(rule.map(|rule| RememberedRule { id, workspace, class, rule, request, created_at }))
        },
    )?;
    Ok(rows.into_iter().flatten().collect())
}

/// The rules that hold for an owner in a workspace, and for this session: those that a person is proven
/// to have said.
pub fn rules_of(
    tx: &mut ReadTx<'_>,
    owner: OwnerId,
    workspace: &Path,
    session: SessionId,
    sealer: Option<&Sealer>,
) -> Result<Vec<Rule>> {
    let place = storable(&workspace.to_string_lossy());
    let said_by = owner.to_string();
    let rows = tx.query(
        "SELECT rule, seal FROM approval_rules WHERE owner = ?1 AND workspace = ?2",
        params![owner, place],
        |row| Ok((row.get::<String>(0)?, row.get::<Option<String>>(1)?)),
    )?;
    let proven = rows
        .into_iter()
        .filter(|(rule, seal)| is_proven(sealer, seal.as_deref(), KIND, &[&said_by, &place, rule]));
    // A rule that cannot be parsed is ignored: it lets nothing through.
    let parsed = proven.filter_map(|(rule, _)| serde_json::from_str(&rule).ok());
    let mut rules: Vec<Rule> = parsed.collect();
    rules.extend(rules_of_session(tx, session, sealer)?);
    Ok(rules)
}

/// Seals all rules of an owner as they stand, when there is a secret for the first time.
pub fn seal_all(tx: &mut WriteTx<'_>, owner: OwnerId, sealer: &Sealer) -> Result<()> {
    let rows = tx.query(
        "SELECT id, workspace, rule FROM approval_rules WHERE owner = ?1",
        params![owner],
        |row| Ok((row.get::<Id>(0)?, row.get::<String>(1)?, row.get::<String>(2)?)),
    )?;
    for (id, workspace, rule) in rows {
        let seal = sealer.seal(KIND, &[&owner.to_string(), &workspace, &rule]);
        tx.execute("UPDATE approval_rules SET seal = ?2 WHERE id = ?1", params![id, seal])?;
    }
    Ok(())
}

/// What is sealed here.
const KIND: &str = "rule";

/// Forgets the rule of this owner whose id begins like this. Returns it.
pub fn forget(tx: &mut WriteTx<'_>, owner: OwnerId, typed: &str) -> Result<RememberedRule> {
    let id = tx.find_id("approval_rules", "rule", typed)?;
    let found = remembered(tx, owner)?.into_iter().find(|rule| rule.id == id);
    let rule = found.ok_or_else(|| mainstay_store::Error::UnknownId {
        what: "rule".to_owned(),
        typed: typed.to_owned(),
    })?;
    tx.execute("DELETE FROM approval_rules WHERE id = ?1", params![id])?;
    tx.wake(TOPIC)?;
    Ok(rule)
}

/// The same rule in the same place has the same print.
fn print(workspace: &str, rule: &str) -> String {
    let mut hasher = Sha256::new();
    hasher.update(workspace.len().to_le_bytes());
    hasher.update(workspace);
    hasher.update(rule);
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
