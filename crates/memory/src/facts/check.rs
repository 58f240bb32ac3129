//! Looks for facts that nothing leads to, for what leads to no fact, and for sums that do not add
//! up. What is written with a fact is made anew from the facts and compared.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use mainstay_store::{Depth, OwnerId, ReadTx, params};

use super::bank::{self, Bank, BankChange};
use super::fact::{self, Stored};
use super::prepared::{both_ways, digest};
use super::terms::{self, Kind};
use crate::entities;
use crate::vector::{self, Compact};
use crate::{Error, Result};

/// Facts that are read at a time.
const PAGE: usize = 1000;

/// Looks at the facts of all owners; answers a sentence for each thing that is wrong. With
/// [`Depth::Full`] vectors are computed anew too, which takes far longer.
pub fn check(tx: &mut ReadTx<'_>, depth: Depth) -> Result<Vec<String>> {
    let owners: Vec<(OwnerId, String)> =
        tx.query("SELECT id, name FROM owners ORDER BY id", params![], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    let mut problems = Vec::new();
    for (owner, name) in owners {
        let found = match check_owner(tx, owner, depth) {
            Err(damaged @ Error::Damaged { .. }) => vec![damaged.to_string()],
            found => found?,
        };
        problems.extend(found.into_iter().map(|found| format!("facts of {name}: {found}")));
    }
    Ok(problems)
}

fn check_owner(tx: &mut ReadTx<'_>, owner: OwnerId, depth: Depth) -> Result<Vec<String>> {
    let mut wanted = Wanted::default();
    let mut last = 0;
    loop {
        let page = fact::oldest(tx, owner, last, PAGE)?;
        let Some(newest) = page.last() else { break };
        last = newest.fact.id.number();
        for stored in &page {
            wanted.add(stored, depth);
        }
    }
    wanted.compare_number(tx, owner, last)?;
    wanted.compare_terms(tx, owner)?;
    wanted.compare_aliases(tx, owner)?;
    wanted.compare_banks(tx, owner)?;
    Ok(wanted.problems)
}

/// What must be in the store, by the facts that are there.
#[derive(Default)]
struct Wanted {
    terms: BTreeMap<(Kind, String), Vec<i64>>,
    aliases: BTreeSet<(String, String, i64)>,
    banks: BTreeMap<String, Bank>,
    problems: Vec<String>,
}

impl Wanted {
    fn add(&mut self, stored: &Stored, depth: Depth) {
        let fact = &stored.fact;
        let number = fact.id.number();
        for term in stored.terms() {
            self.terms.entry(term).or_default().push(number);
        }
        for (name, other) in both_ways(&entities::found(&fact.content).aliases) {
            self.aliases.insert((name, other, number));
        }
        let bank = self.banks.entry(fact.category.clone()).or_insert_with(Bank::empty);
        bank.apply(BankChange::Add, &stored.vector, stored.word_count());
        if depth == Depth::Full {
            let names = fact.entities.iter().map(String::as_str);
            if Compact::of(&vector::fact(&fact.content, names)) != stored.vector {
                self.problems.push(format!("fact {number} has the vector of something else"));
            }
        }
    }

    fn compare_number(&mut self, tx: &mut ReadTx<'_>, owner: OwnerId, newest: i64) -> Result<()> {
        let last: Option<i64> = tx.query_opt(
            "SELECT last FROM fact_numbers WHERE owner = ?1",
            params![owner],
            |row| row.get(0),
        )?;
        if newest > last.unwrap_or(0) {
            self.problems.push(format!("there is a fact {newest}, a number not handed out yet"));
        }
        let problems = &mut self.problems;
        tx.for_each(
            "SELECT number, content, digest FROM facts WHERE owner = ?1",
            params![owner],
            |row| {
                let (number, content, kept): (i64, String, Vec<u8>) =
                    (row.get(0)?, row.get(1)?, row.get(2)?);
                if digest(&content) != kept {
                    problems.push(format!("fact {number} is not known by its text"));
                }
                Ok(ControlFlow::Continue(()))
            },
        )?;
        Ok(())
    }

    fn compare_terms(&mut self, tx: &mut ReadTx<'_>, owner: OwnerId) -> Result<()> {
        let mut there = terms::all(tx, owner)?;
        for ((kind, term), numbers) in std::mem::take(&mut self.terms) {
            let found = there.remove(&(kind.text().to_owned(), term.clone())).unwrap_or_default();
            if found != numbers {
                self.problems.push(format!(
                    "the {} \"{term}\" should lead to {} facts and leads to {}",
                    kind.text(),
                    numbers.len(),
                    found.len()
                ));
            }
        }
        for ((kind, term), numbers) in there {
            self.problems.push(format!(
                "the {kind} \"{term}\" leads to {} facts that do not have it",
                numbers.len()
            ));
        }
        Ok(())
    }

    fn compare_aliases(&mut self, tx: &mut ReadTx<'_>, owner: OwnerId) -> Result<()> {
        let there: Vec<(String, String, i64)> = tx.query(
            "SELECT name, other, fact FROM fact_aliases WHERE owner = ?1",
            params![owner],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        let there: BTreeSet<_> = there.into_iter().collect();
        for (name, other, number) in there.symmetric_difference(&self.aliases) {
            self.problems.push(format!(
                "\"{name}\" and \"{other}\" are one by fact {number} or by the names that are kept, \
                 but not by both"
            ));
        }
        Ok(())
    }

    fn compare_banks(&mut self, tx: &mut ReadTx<'_>, owner: OwnerId) -> Result<()> {
        let there: BTreeMap<String, Bank> = bank::all(tx, owner)?.into_iter().collect();
        let categories: BTreeSet<&String> = there.keys().chain(self.banks.keys()).collect();
        for category in categories {
            if there.get(category) != self.banks.get(category) {
                self.problems.push(format!(
                    "the bank of the category \"{category}\" is not the sum of its facts"
                ));
            }
        }
        Ok(())
    }
}
