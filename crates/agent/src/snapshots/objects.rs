//! Objects: the bytes of files and listings, kept once under their hash.

use std::collections::HashSet;

use mainstay_store::{ReadTx, Store, ToValue, WriteTx, params};
use mainstay_tools::snapshot::Listing;

use super::mark::damaged;
use crate::Result;

/// So many bytes are written in one transaction at most: the write-ahead log must carry them.
pub(crate) const BATCH: usize = 4 << 20;
/// So many hashes are asked about in one question.
const ASKED: usize = 200;

/// An object that may not be kept yet.
pub(crate) type Object = (String, Vec<u8>);

/// Keeps objects.
pub(crate) fn put(tx: &mut WriteTx<'_>, objects: &[Object]) -> Result<()> {
    for (hash, body) in objects {
        let size = i64::try_from(body.len()).unwrap_or(i64::MAX);
        tx.execute(
            "INSERT INTO snapshot_objects (hash, size, body) VALUES (?1, ?2, ?3)
             ON CONFLICT (hash) DO NOTHING",
            params![hash, size, body],
        )?;
    }
    Ok(())
}

/// Keeps objects in transactions of their own, without those that are kept.
pub(crate) fn flush(store: &Store, objects: &mut Vec<Object>) -> Result<Vec<String>> {
    let hashes: Vec<String> = objects.iter().map(|(hash, _)| hash.clone()).collect();
    let kept = store.read(|tx| kept(tx, &hashes))?;
    objects.retain(|(hash, _)| !kept.contains(hash));
    let mut rest = objects.as_slice();
    while !rest.is_empty() {
        let mut count = 0;
        let mut bytes = 0;
        while count < rest.len() && (count == 0 || bytes + rest[count].1.len() <= BATCH) {
            bytes += rest[count].1.len();
            count += 1;
        }
        let (batch, others) = rest.split_at(count);
        store.write(|tx| put(tx, batch))?;
        rest = others;
    }
    objects.clear();
    Ok(hashes)
}

/// Which of these are kept.
pub(crate) fn kept(tx: &mut ReadTx<'_>, hashes: &[String]) -> Result<HashSet<String>> {
    let mut kept = HashSet::new();
    for part in hashes.chunks(ASKED) {
        // Always the same statement, so that it is prepared once.
        let places: Vec<String> = (1..=ASKED).map(|place| format!("?{place}")).collect();
        let sql =
            format!("SELECT hash FROM snapshot_objects WHERE hash IN ({})", places.join(", "));
        let last = &part[part.len() - 1];
        let values: Vec<&dyn ToValue> =
            part.iter().chain(std::iter::repeat(last)).take(ASKED).map(|hash| hash as _).collect();
        kept.extend(tx.query(&sql, &values, |row| row.get::<String>(0))?);
    }
    Ok(kept)
}

/// The bytes of an object.
pub(crate) fn get(tx: &mut ReadTx<'_>, hash: &str) -> Result<Vec<u8>> {
    find(tx, hash)?
        .ok_or_else(|| damaged(&format!("the object {hash} of a snapshot"), &"it is missing"))
}

/// A directory's listing.
pub(crate) fn listing(tx: &mut ReadTx<'_>, hash: &str) -> Result<Listing> {
    let bytes = get(tx, hash)?;
    Listing::decode(&bytes).ok_or_else(|| {
        damaged(&format!("the listing {hash} of a snapshot"), &"it is not a valid listing")
    })
}

/// A directory's listing. Returns `None` if it was swept away.
pub(crate) fn find_listing(tx: &mut ReadTx<'_>, hash: &str) -> Result<Option<Listing>> {
    Ok(find(tx, hash)?.as_deref().and_then(Listing::decode))
}

fn find(tx: &mut ReadTx<'_>, hash: &str) -> Result<Option<Vec<u8>>> {
    let sql = "SELECT body FROM snapshot_objects WHERE hash = ?1";
    Ok(tx.query_opt(sql, params![hash], |row| row.get(0))?)
}

/// The number of the last sweep. What is known of kept objects holds for this number only.
pub(crate) fn generation(tx: &mut ReadTx<'_>) -> Result<i64> {
    let sql = "SELECT generation FROM snapshot_sweeps WHERE one = 1";
    Ok(tx.query_opt(sql, params![], |row| row.get(0))?.unwrap_or(0))
}
