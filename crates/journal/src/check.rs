//! Looks for rows that are missing: what is numbered without gaps is counted.

use mainstay_store::{ReadTx, Row, params};

use crate::Result;

/// Looks at all sessions; answers a sentence for each thing that is wrong. It reads every number, so
/// it is for a check that may take its time.
pub fn check(tx: &mut ReadTx<'_>) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let dense = [("entries", "seq"), ("turns", "number"), ("compactions", "number")];
    for (table, number) in dense {
        let sql = format!(
            "SELECT session, COUNT(*), MIN({number}), MAX({number}) FROM {table} GROUP BY session
             HAVING MIN({number}) <> 1 OR MAX({number}) <> COUNT(*)"
        );
        problems.extend(tx.query(&sql, params![], |row| {
            let (session, count): (String, i64) = (row.get(0)?, row.get(1)?);
            let (first, last): (i64, i64) = (row.get(2)?, row.get(3)?);
            Ok(format!(
                "the {table} of session {session} should be numbered from 1 without gaps, but \
                 there are {count}, from {first} to {last}"
            ))
        })?);
    }
    // The last ones are missed by nothing but what counts them, or names them.
    let turns = "SELECT s.id, s.turns, COUNT(t.id) FROM sessions s
                 LEFT JOIN turns t ON t.session = s.id
                 GROUP BY s.id, s.turns HAVING COUNT(t.id) <> s.turns";
    problems.extend(tx.query(turns, params![], |row| {
        let (session, expected, count): (String, i64, i64) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(format!("session {session} should have {expected} turns, but there are {count}"))
    })?);
    let results = "SELECT c.session, c.result_seq FROM calls c
                   LEFT JOIN entries e ON e.session = c.session AND e.seq = c.result_seq
                   WHERE c.result_seq IS NOT NULL AND e.seq IS NULL";
    problems.extend(tx.query(results, params![], |row| missing(row, "a result"))?);
    let unlisted = "SELECT e.session, e.seq FROM entries e
                    LEFT JOIN compactions c ON c.session = e.session AND c.seq = e.seq
                    WHERE e.kind = 'compaction' AND c.number IS NULL";
    problems.extend(tx.query(unlisted, params![], |row| {
        let (session, seq): (String, i64) = (row.get(0)?, row.get(1)?);
        Ok(format!("the compaction that is entry {seq} of session {session} has no number"))
    })?);
    let empty = "SELECT c.session, c.seq FROM compactions c
                 LEFT JOIN entries e
                     ON e.session = c.session AND e.seq = c.seq AND e.kind = 'compaction'
                 WHERE e.seq IS NULL";
    problems.extend(tx.query(empty, params![], |row| missing(row, "a compaction"))?);
    Ok(problems)
}

fn missing(row: &Row<'_>, what: &str) -> mainstay_store::Result<String> {
    let (session, seq): (String, i64) = (row.get(0)?, row.get(1)?);
    Ok(format!("entry {seq} of session {session} should be {what}, but it is not there"))
}
