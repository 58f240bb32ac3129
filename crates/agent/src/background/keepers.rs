//! Which keepers may still be asked what became of something.

use std::collections::BTreeSet;

use mainstay_journal::{call, process};
use mainstay_store::Store;
use mainstay_tools::keeper;

use crate::error::Result;

/// The keepers that are written down for a call without an outcome, or for a process whose end is not.
pub fn keepers_in_use(store: &Store) -> Result<BTreeSet<String>> {
    store.read(|tx| {
        let mut names: BTreeSet<String> = process::keepers(tx)?.into_iter().collect();
        let plans = call::unsettled_plans(tx)?;
        names.extend(plans.iter().filter_map(|plan| keeper::planned(plan)));
        Ok(names)
    })
}
