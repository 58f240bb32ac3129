//! Big payloads, kept once under the hash of their bytes, packed where that makes them smaller.

use std::fmt;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::str::FromStr;

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
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

/// How the body of a blob is kept, as its row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// As it is.
    Plain,
    /// As a DEFLATE stream without a frame: the hash is checksum enough.
    Deflated,
}

impl Form {
    fn number(self) -> i64 {
        match self {
            Form::Plain => 0,
            Form::Deflated => 1,
        }
    }
}

/// Bytes as they will be kept. Packing them takes a while, so it is done before the transaction that
/// keeps them.
#[derive(Clone, Debug)]
pub struct PackedBlob {
    hash: BlobHash,
    size: i64,
    form: Form,
    body: Vec<u8>,
}

/// What is shorter is not packed: it has a page or a row of its own in any case.
const WORTH_PACKING: usize = 1024;

impl PackedBlob {
    /// Packs bytes, if that makes them at least an eighth smaller.
    pub fn of(bytes: &[u8]) -> Result<Self> {
        if bytes.len() > BLOB_LIMIT {
            return Err(Error::TooLarge { size: bytes.len(), limit: BLOB_LIMIT });
        }
        let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        let packed = deflated(bytes).filter(|packed| packed.len() < bytes.len() / 8 * 7);
        let (form, body) = match packed {
            Some(packed) => (Form::Deflated, packed),
            None => (Form::Plain, bytes.to_vec()),
        };
        Ok(Self { hash: BlobHash::of(bytes), size, form, body })
    }

    /// How many bytes it takes in the store.
    pub fn stored(&self) -> usize {
        self.body.len()
    }
}

fn deflated(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.len() < WORTH_PACKING {
        return None;
    }
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

/// The bytes of a blob whose row has this form, size and body. Returns `None` if it is damaged.
pub(crate) fn unpacked(form: i64, size: i64, body: Vec<u8>) -> Option<Vec<u8>> {
    let bytes = if form == Form::Plain.number() {
        body
    } else if form == Form::Deflated.number() {
        let mut bytes = Vec::new();
        // No blob is larger, whatever a damaged row says.
        let most = u64::try_from(BLOB_LIMIT).unwrap_or(u64::MAX).saturating_add(1);
        DeflateDecoder::new(&body[..]).take(most).read_to_end(&mut bytes).ok()?;
        bytes
    } else {
        return None;
    };
    (i64::try_from(bytes.len()) == Ok(size)).then_some(bytes)
}

impl WriteTx<'_> {
    /// Keeps `bytes`, or finds that they are kept already.
    pub fn put_blob(&mut self, bytes: &[u8]) -> Result<BlobHash> {
        self.put_packed_blob(&PackedBlob::of(bytes)?)
    }

    /// Keeps bytes that are packed already, or finds that they are kept.
    pub fn put_packed_blob(&mut self, packed: &PackedBlob) -> Result<BlobHash> {
        let PackedBlob { hash, size, form, body } = packed;
        let now = self.now();
        self.execute(
            "INSERT INTO blobs (hash, size, created_at, body, form) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (hash) DO NOTHING",
            params![hash, size, now, body, form.number()],
        )?;
        Ok(hash.clone())
    }
}

impl WriteTx<'_> {
    /// Keeps a blob that is there as it is packed now.
    pub(crate) fn replace_blob(&mut self, packed: &PackedBlob) -> Result<()> {
        let PackedBlob { hash, form, body, .. } = packed;
        self.execute(
            "UPDATE blobs SET form = ?2, body = ?3 WHERE hash = ?1",
            params![hash, form.number(), body],
        )?;
        Ok(())
    }
}

impl ReadTx<'_> {
    /// The bytes of a blob.
    pub fn blob(&mut self, hash: &BlobHash) -> Result<Option<Vec<u8>>> {
        let sql = "SELECT form, size, body FROM blobs WHERE hash = ?1";
        let row = self.query_opt(sql, params![hash], |row| {
            Ok((row.get::<i64>(0)?, row.get::<i64>(1)?, row.get::<Vec<u8>>(2)?))
        })?;
        let Some((form, size, body)) = row else { return Ok(None) };
        match unpacked(form, size, body) {
            Some(bytes) => Ok(Some(bytes)),
            None => Err(Error::Statement(format!("the blob {hash} cannot be unpacked"))),
        }
    }

    /// How many bytes these blobs take in the store.
    pub fn stored_bytes(&mut self, hashes: &[BlobHash]) -> Result<i64> {
        let mut bytes = 0;
        for hash in hashes {
            let sql = "SELECT LENGTH(body) FROM blobs WHERE hash = ?1";
            bytes += self.query_opt(sql, params![hash], |row| row.get::<i64>(0))?.unwrap_or(0);
        }
        Ok(bytes)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn back(packed: PackedBlob) -> Option<Vec<u8>> {
        unpacked(packed.form.number(), packed.size, packed.body)
    }

    #[test]
    fn what_is_packed_comes_back_and_is_packed_only_where_that_pays() {
        let log: Vec<u8> = (0..40_000).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
        let noise: Vec<u8> = (0..50u32).flat_map(|n| Sha256::digest(n.to_be_bytes())).collect();
        for (bytes, form) in
            [(log, Form::Deflated), (noise, Form::Plain), (b"short".to_vec(), Form::Plain)]
        {
            let packed = PackedBlob::of(&bytes).unwrap();
            assert_eq!(packed.form, form);
            assert!(form == Form::Plain || packed.stored() * 3 < bytes.len());
            assert_eq!(back(packed).as_deref(), Some(&bytes[..]));
        }
    }

    #[test]
    fn what_cannot_be_unpacked_is_no_blob() {
        let bytes = vec![7; 5000];
        let packed = PackedBlob::of(&bytes).unwrap();
        assert_eq!(unpacked(2, packed.size, packed.body.clone()), None);
        assert_eq!(unpacked(1, packed.size + 1, packed.body.clone()), None);
        assert_eq!(unpacked(1, packed.size, vec![0xff; 20]), None);
        // One that grows without end is read up to the limit.
        let endless = deflated(&vec![0; BLOB_LIMIT * 4]).unwrap();
        assert_eq!(unpacked(1, i64::try_from(BLOB_LIMIT * 4).unwrap(), endless), None);
    }
}
