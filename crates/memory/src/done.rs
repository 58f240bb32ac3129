//! What a call did, by its name: the same call twice has one effect.

use mainstay_store::{OwnerId, ReadTx, Result, WriteTx, params};

/// How long it is known. Whoever asks again does so after a crash, not after a month.
const KEPT: i64 = 30 * 24 * 60 * 60 * 1000;

/// What came of this call, where it was done.
pub fn find(tx: &mut ReadTx<'_>, owner: OwnerId, key: &str) -> Result<Option<String>> {
    let sql = "SELECT outcome FROM memory_calls WHERE owner = ?1 AND key = ?2";
    tx.query_opt(sql, params![owner, key], |row| row.get(0))
}

/// Writes down what came of a call, in the transaction that does it.
pub fn note(tx: &mut WriteTx<'_>, owner: OwnerId, key: &str, outcome: &str) -> Result<()> {
    let now = tx.now();
    tx.execute("DELETE FROM memory_calls WHERE at < ?1", params![now - KEPT])?;
    tx.execute(
        "INSERT INTO memory_calls (owner, key, outcome, at) VALUES (?1, ?2, ?3, ?4)",
        params![owner, key, outcome, now],
    )?;
    Ok(())
}
