//! Big payloads, kept once under the hash of their bytes.

use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use crate::{Error, FromValue, ReadTx, Result, ToValue, ValueRef, WriteTx, params};

/// The largest blob: a write-ahead log must be able to carry it.
pub const BLOB_LIMIT: usize = 8 << 20;

/// The SHA-256 of a blob's bytes, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobHash(String);

impl BlobHash {
    /// The hash of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(hexadecimal(&Sha256::digest(bytes)))
    }

    /// The hash as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl WriteTx<'_> {
    /// Keeps `bytes`, or finds that they are kept already.
    pub fn put_blob(&mut self, bytes: &[u8]) -> Result<BlobHash> {
        if bytes.len() > BLOB_LIMIT {
            return Err(Error::TooLarge { size: bytes.len(), limit: BLOB_LIMIT });
        }
        let hash = BlobHash::of(bytes);
        let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        let now = self.now();
        self.execute(
            "INSERT INTO blobs (hash, size, created_at, body) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (hash) DO NOTHING",
            params![hash, size, now, bytes],
        )?;
        Ok(hash)
    }
}

impl ReadTx<'_> {
    /// The bytes of a blob.
    pub fn blob(&mut self, hash: &BlobHash) -> Result<Option<Vec<u8>>> {
        self.query_opt("SELECT body FROM blobs WHERE hash = ?1", params![hash], |row| row.get(0))
    }
}

impl fmt::Display for BlobHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

impl FromStr for BlobHash {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let digits = |character: char| matches!(character, '0'..='9' | 'a'..='f');
        if text.len() == 64 && text.chars().all(digits) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Error::UnknownId { what: "blob".to_owned(), typed: text.to_owned() })
        }
    }
}

impl ToValue for BlobHash {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Text(&self.0)
    }
}

impl FromValue for BlobHash {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        String::from_value(value)?.parse().ok()
    }
}
