//! Reads git's index, versions 2 to 4.

/// Which hash a repository uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hash {
    Sha1,
    Sha256,
}

impl Hash {
    fn length(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }
}

/// What the index says about a file. While a merge waits, a file has several entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) id: Vec<u8>,
    pub(super) seconds: u32,
    pub(super) nanoseconds: u32,
    pub(super) size: u32,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entries {
    Found(Vec<Entry>),
    Absent,
    /// Not in this file, but the index has parts that this reader does not follow.
    Elsewhere,
}

/// The entries of the file called `name`, from the root of the working tree. `None` if the index
/// cannot be understood.
pub(super) fn entries(index: &[u8], hash: Hash, name: &[u8]) -> Option<Entries> {
    let end = index.len().checked_sub(hash.length())?;
    let mut reader = Reader { bytes: &index[..end], at: 0 };
    if reader.take(4)? != b"DIRC" {
        return None;
    }
    let version = reader.number()?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let count = reader.number()?;
    let mut found = Vec::new();
    let mut current = Vec::new();
    for _ in 0..count {
        let entry = entry(&mut reader, version, hash, &mut current)?;
        if current == name {
            found.push(entry);
        }
    }
    if !found.is_empty() {
        return Some(Entries::Found(found));
    }
    while reader.at < end {
        let signature = reader.take(4)?;
        // By git's rule an index cannot be understood without a part whose name is in small letters.
        if signature[0].is_ascii_lowercase() {
            return Some(Entries::Elsewhere);
        }
        let length = reader.number()?;
        reader.take(usize::try_from(length).ok()?)?;
    }
    Some(Entries::Absent)
}

/// Reads one entry, and its name into `name`, which holds the name of the one before.
fn entry(reader: &mut Reader<'_>, version: u32, hash: Hash, name: &mut Vec<u8>) -> Option<Entry> {
    const EXTENDED: u16 = 0x4000;

    let start = reader.at;
    reader.take(8)?;
    let (seconds, nanoseconds) = (reader.number()?, reader.number()?);
    reader.take(20)?;
    let size = reader.number()?;
    let id = reader.take(hash.length())?.to_vec();
    let flags = u16::from_be_bytes(reader.take(2)?.try_into().ok()?);
    if flags & EXTENDED != 0 {
        reader.take(2)?;
    }
    if version == 4 {
        let dropped = reader.offset()?;
        name.truncate(name.len().checked_sub(dropped)?);
        name.extend_from_slice(reader.until_nul()?);
    } else {
        name.clear();
        name.extend_from_slice(reader.until_nul()?);
        // An entry is padded to eight bytes, and the NUL is part of the padding.
        let length = reader.at - start;
        reader.take(length.next_multiple_of(8) - length)?;
    }
    Some(Entry { id, seconds, nanoseconds, size })
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn until_nul(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let length = rest.iter().position(|&byte| byte == 0)?;
        self.at += length + 1;
        Some(&rest[..length])
    }

    /// A number of variable length, as git writes the offsets in its packs.
    fn offset(&mut self) -> Option<usize> {
        let mut byte = self.take(1)?[0];
        let mut value = usize::from(byte & 127);
        while byte & 128 != 0 {
            byte = self.take(1)?[0];
            value = value.checked_add(1)?.checked_mul(128)? + usize::from(byte & 127);
        }
        Some(value)
    }
}
