//! What people said "always" to, per owner and workspace.

use std::path::Path;

use mainstay_store::{Id, OwnerId, ReadTx, WriteTx, params};
use sha2::{Digest, Sha256};

use super::requests::{Approval, TOPIC, storable};
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
) -> Result<()> {
    let Ok(text) = serde_json::to_string(rule) else { return Ok(()) };
    let now = tx.now();
    tx.execute(
        "INSERT INTO approval_rules (id, owner, workspace, class, rule, print, request, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (owner, print) DO NOTHING",
        params![
            Id::new(),
            owner,
            approval.workspace,
            approval.request.class,
            storable(&text),
            print(&approval.workspace, &text),
            approval.request.id,
            now
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

/// The rules that hold for an owner in a workspace.
pub fn rules_of(tx: &mut ReadTx<'_>, owner: OwnerId, workspace: &Path) -> Result<Vec<Rule>> {
    let place = storable(&workspace.to_string_lossy());
    let here = remembered(tx, owner)?.into_iter().filter(|rule| rule.workspace == place);
    Ok(here.map(|remembered| remembered.rule).collect())
}

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
