//! `mainstay store copy`

use std::ffi::OsString;

use clap::{Args, ValueHint};
use mainstay_store::Location;
use serde_json::json;

use crate::context::{Context, open_existing};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::object;
use crate::paths::location;
use crate::progress::Progress;
use crate::wording;

/// Copy the store to another place, on either engine
///
/// The store is read at one moment. The copy is compared table by table, by counts and hashes, and
/// appears as a whole or not at all.
#[derive(Args, Debug)]
pub(crate) struct CopyArgs {
    /// Target: a path, or postgres://USER:PASSWORD@HOST/DATABASE; it must not hold a store
    #[arg(long, value_name = "PATH|URL", value_hint = ValueHint::FilePath)]
    to: OsString,
}

pub(crate) fn run(args: &CopyArgs, context: &Context) -> Result<Exit, Error> {
    let paths = context.paths()?;
    let target = location(&args.to)?;
    let file = match &target {
        Location::Sqlite { path, .. } => Some(path.as_path()),
        Location::Postgres { .. } => None,
    };
    let progress = Progress::begin("copying", file);

    let store = open_existing(&paths)?;
    let others = store.info()?.other_users;
    let copied = store.copy_to(&target, &mut |at| progress.report(&at))?;
    drop(progress);

    if !others.is_empty() {
        context.output.warning(format!(
            "{} had the store open; what they wrote during the copy is not in it",
            others.join(", ")
        ));
    }
    let data = json!({
        "from": paths.store.to_string(),
        "to": target.to_string(),
        "rows": copied.rows(),
        "tables": object(&copied.tables),
        "verified": true,
        "other_users": others,
    });
    let text = format!(
        "Copied {} to {target}.\nThe copy has the same counts and hashes. Use it with --store.\n",
        wording::holdings(&copied)
    );
    context.output.answer(&data, &text)?;
    Ok(Exit::Done)
}
