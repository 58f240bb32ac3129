//! Gives back the room that a store does not need: blobs that older programs kept unpacked, and what
//! deleted rows left.

use crate::blobs::PackedBlob;
use crate::location::Location;
use crate::sqlite;
use crate::store::{Engine, Options};
use crate::{BlobHash, Result, Store, params};

/// What compacting a store did.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Compacted {
    /// Bytes of the database, its log included, before.
    pub before: u64,
    /// And after.
    pub after: u64,
    /// How many blobs were packed.
    pub packed: u64,
}

/// Compacts the store at `location`. Nobody else may have a file open; a server goes on serving, and
/// uses the room that it cannot give back for new rows.
pub fn compact(location: &Location, options: &Options) -> Result<Compacted> {
    let open = || Store::open(location, options.clone().existing());
    let store = open()?;
    let before = store.bytes()?;
    let packed = store.pack_blobs()?;
    let after = match (&store.inner.engine, location) {
        (Engine::Sqlite(_), Location::Sqlite { path, .. }) => {
            drop(store);
            sqlite::compact(path, options.records.as_deref())?;
            open()?.bytes()?
        }
        (Engine::Postgres(postgres), _) => {
            postgres.vacuum()?;
            store.bytes()?
        }
        (Engine::Sqlite(_), Location::Postgres { .. }) => before,
    };
    Ok(Compacted { before, after, packed })
}

impl Store {
    fn bytes(&self) -> Result<u64> {
        let info = self.info()?;
        Ok(info.bytes + info.wal_bytes.unwrap_or(0))
    }

    /// Packs the blobs that older programs kept as they are, each in a transaction of its own.
    fn pack_blobs(&self) -> Result<u64> {
        let mut packed = 0;
        let plain: Vec<BlobHash> = self.read_unlimited(|tx| {
            let sql = "SELECT hash FROM blobs WHERE form = 0 ORDER BY hash";
            tx.query(sql, params![], |row| row.get(0))
        })?;
        for hash in &plain {
            let Some(bytes) = self.read(|tx| tx.blob(hash))? else { continue };
            let smaller = PackedBlob::of(&bytes)?;
            if smaller.stored() < bytes.len() {
                self.write(|tx| tx.replace_blob(&smaller))?;
                packed += 1;
            }
        }
        Ok(packed)
    }
}
