//! `mainstay store check`

use clap::Args;
use mainstay_store::Depth;
use serde_json::json;

use crate::context::{Context, open_existing};
use crate::error::Error;
use crate::exit::Exit;
use crate::progress::Progress;
use crate::wording;

/// Check the whole store: every page, index, row, blob hash and sequence
///
/// The exit code is 0 only if nothing is wrong. Nothing is changed or repaired.
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {}

pub(crate) fn run(_args: &CheckArgs, context: &Context) -> Result<Exit, Error> {
    let paths = context.paths()?;
    let progress = Progress::begin("checking", None);

    let store = open_existing(&paths)?;
    let mut problems = store.check(Depth::Full)?;
    if problems.is_empty() {
        problems = store.read_unlimited(mainstay_journal::check)?;
    }
    if problems.is_empty() {
        problems = store.read_unlimited(|tx| mainstay_memory::facts::check(tx, Depth::Full))?;
    }
    drop(progress);

    let sound = problems.is_empty();
    let next = (!sound).then(|| paths.command("restore FILE"));
    let data = json!({
        "place": paths.store.to_string(),
        "ok": sound,
        "problems": problems,
        "next": next,
    });
    let mut text = String::new();
    for problem in &problems {
        text.push_str(&format!("problem: {}\n", wording::line(problem)));
    }
    match next {
        None => text.push_str(&format!("{} has no problems.\n", paths.store)),
        Some(next) => text.push_str(&format!(
            "{} in {}.\nnext: restore a backup with `{next}`; the damaged store is kept.\n",
            wording::count(u64::try_from(problems.len()).unwrap_or(u64::MAX), "problem"),
            paths.store
        )),
    }
    context.output.answer(&data, &text)?;
    Ok(if sound { Exit::Done } else { Exit::Failed })
}
