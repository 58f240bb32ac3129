//! Banks: for each category the sum of its facts' vectors, and how many there are.
//!
//! Sums are whole numbers, so that taking a fact out undoes adding it to the last bit; a bank is
//! therefore what it would be if it were made anew, and a write touches one row of it.

use std::sync::LazyLock;

use mainstay_store::{OwnerId, ReadTx, WriteTx, params};

use crate::vector::{Compact, DIMENSION, Vector};
use crate::{Error, Result};

/// One on the unit circle, in a bank's whole numbers.
const ONE: f64 = 4096.0;

/// The bytes of a bank: real parts, then imaginary ones, four bytes each.
const BYTES: usize = DIMENSION * 8;

/// A category's facts as one.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Bank {
    pub(super) facts: i64,
    pub(super) words: i64,
    sums: Vec<i32>,
}

/// How many facts and words there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) facts: i64,
    pub(super) words: i64,
}

/// Whether a fact comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BankChange {
    Add,
    Remove,
}

impl Bank {
    pub(super) fn empty() -> Self {
        Self { facts: 0, words: 0, sums: vec![0; DIMENSION * 2] }
    }

    /// Adds a fact of so many words, or takes it out.
    pub(super) fn apply(&mut self, change: BankChange, vector: &Compact, words: i64) {
        let sign = match change {
            BankChange::Add => 1,
            BankChange::Remove => -1,
        };
        self.facts += i64::from(sign);
        self.words += i64::from(sign) * words;
        let circle = &*CIRCLE;
        let (real, imaginary) = self.sums.split_at_mut(DIMENSION);
        for ((real, imaginary), step) in real.iter_mut().zip(imaginary).zip(vector.bytes()) {
            let (cosine, sine) = circle[usize::from(*step)];
            // Half a million facts fit; wrapping around would still be undone exactly.
            *real = real.wrapping_add(sign * cosine);
            *imaginary = imaginary.wrapping_add(sign * sine);
        }
    }

    /// The bundle of the bank's facts.
    pub(super) fn vector(&self) -> Vector {
        let (real, imaginary) = self.sums.split_at(DIMENSION);
        Vector::new(&std::array::from_fn(|at| f64::from(imaginary[at]).atan2(f64::from(real[at]))))
    }

    fn bytes(&self) -> Vec<u8> {
        self.sums.iter().flat_map(|sum| sum.to_le_bytes()).collect()
    }

    fn from_bytes(facts: i64, words: i64, bytes: &[u8]) -> Option<Self> {
        let sums = bytes.chunks_exact(4).map(|four| {
            let mut number = [0; 4];
            number.copy_from_slice(four);
            i32::from_le_bytes(number)
        });
        (bytes.len() == BYTES).then(|| Self { facts, words, sums: sums.collect() })
    }
}

/// The points of a circle of 256 steps.
static CIRCLE: LazyLock<[(i32, i32); 256]> = LazyLock::new(|| {
    std::array::from_fn(|step| {
        let (sine, cosine) = (step as f64 * (std::f64::consts::TAU / 256.0)).sin_cos();
        ((cosine * ONE).round() as i32, (sine * ONE).round() as i32)
    })
});

/// The bank of a category, if it has facts.
pub(super) fn get(tx: &mut ReadTx<'_>, owner: OwnerId, category: &str) -> Result<Option<Bank>> {
    let found = tx.query_opt(
        "SELECT facts, words, sums FROM fact_banks WHERE owner = ?1 AND category = ?2",
        params![owner, category],
        |row| Ok((row.get(0)?, row.get(1)?, row.get::<Vec<u8>>(2)?)),
    )?;
    found.map(|(facts, words, sums)| read(category, facts, words, &sums)).transpose()
}

/// All banks of an owner, by category.
pub(super) fn all(tx: &mut ReadTx<'_>, owner: OwnerId) -> Result<Vec<(String, Bank)>> {
    let rows: Vec<(String, i64, i64, Vec<u8>)> = tx.query(
        "SELECT category, facts, words, sums FROM fact_banks WHERE owner = ?1 ORDER BY category",
        params![owner],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
    )?;
    let banks = rows.into_iter().map(|(category, facts, words, sums)| {
        let bank = read(&category, facts, words, &sums)?;
        Ok((category, bank))
    });
    banks.collect()
}

fn read(category: &str, facts: i64, words: i64, sums: &[u8]) -> Result<Bank> {
    Bank::from_bytes(facts, words, sums).ok_or_else(|| Error::Damaged {
        what: format!("the bank of the category \"{category}\""),
        detail: format!("it has {} bytes, not {BYTES}", sums.len()),
    })
}

/// How much each bank of an owner holds, by category.
pub(super) fn sizes(tx: &mut ReadTx<'_>, owner: OwnerId) -> Result<Vec<(String, Size)>> {
    let sizes = tx.query(
        "SELECT category, facts, words FROM fact_banks WHERE owner = ?1 ORDER BY category",
        params![owner],
        |row| Ok((row.get(0)?, Size { facts: row.get(1)?, words: row.get(2)? })),
    )?;
    Ok(sizes)
}

/// How much an owner's banks hold.
pub(super) fn size(tx: &mut ReadTx<'_>, owner: OwnerId) -> Result<Size> {
    let mut all = Size { facts: 0, words: 0 };
    for (_, size) in sizes(tx, owner)? {
        all.facts += size.facts;
        all.words += size.words;
    }
    Ok(all)
}

/// Adds a fact to its category's bank, or takes it out.
pub(super) fn apply(
    tx: &mut WriteTx<'_>,
    owner: OwnerId,
    category: &str,
    change: BankChange,
    vector: &Compact,
    words: i64,
) -> Result<()> {
    let known = get(tx, owner, category)?;
    let is_new = known.is_none();
    let mut bank = known.unwrap_or_else(Bank::empty);
    bank.apply(change, vector, words);
    if bank.facts == 0 {
        tx.execute(
            "DELETE FROM fact_banks WHERE owner = ?1 AND category = ?2",
            params![owner, category],
        )?;
        return Ok(());
    }
    let sql = if is_new {
        "INSERT INTO fact_banks (owner, category, facts, words, sums) VALUES (?1, ?2, ?3, ?4, ?5)"
    } else {
        "UPDATE fact_banks SET facts = ?3, words = ?4, sums = ?5
         WHERE owner = ?1 AND category = ?2"
    };
    tx.execute(sql, params![owner, category, bank.facts, bank.words, bank.bytes()])?;
    Ok(())
}
