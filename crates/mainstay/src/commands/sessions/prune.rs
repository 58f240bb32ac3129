//! `mainstay sessions prune`

use clap::Args;
use mainstay_agent::session::manage::{Prunable, Prune, prunable};
use mainstay_journal::SessionId;
use mainstay_store::wall_millis;
use serde_json::json;

use super::delete::{confirmed, delete};
use crate::context::Context;
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;
use crate::wording;

/// Delete sessions that have not been used for a while
///
/// Sessions in use are kept, and so are sessions whose last turn is unfinished, unless you pass
/// --unfinished.
#[derive(Args, Debug)]
pub(crate) struct PruneArgs {
    /// Delete sessions not used for this long: 12h, 30d, 8w
    #[arg(long, value_name = "TIME", value_parser = time)]
    older_than: i64,

    /// Keep this many of the most recently used, whatever their age
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    keep: usize,

    /// Also delete sessions whose last turn is parked or was interrupted
    #[arg(long)]
    unfinished: bool,

    /// Show what would be deleted, without deleting it
    #[arg(long)]
    dry_run: bool,

    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

const HOUR: i64 = 60 * 60 * 1000;

/// A time in milliseconds.
fn time(typed: &str) -> Result<i64, String> {
    let wrong = || "write a number and a unit: 12h, 30d or 8w".to_owned();
    let (number, unit) =
        typed.split_at(typed.len() - typed.chars().last().map_or(0, char::len_utf8));
    let number: i64 = number.parse().map_err(|_| wrong())?;
    let unit = match unit {
        "h" => HOUR,
        "d" => 24 * HOUR,
        "w" => 7 * 24 * HOUR,
        _ => return Err(wrong()),
    };
    number.checked_mul(unit).filter(|time| *time >= 0).ok_or_else(wrong)
}

pub(crate) fn run(args: &PruneArgs, context: &Context) -> Result<Exit, Error> {
    let store = super::open(context)?;
    let prune = Prune {
        before: wall_millis().saturating_sub(args.older_than),
        keep: args.keep,
        unfinished: args.unfinished,
    };
    let Prunable { sessions, unfinished } = match engine::find_owner(&store)? {
        Some(owner) => store.read(|tx| prunable(tx, owner, &prune))?,
        None => Prunable::default(),
    };
    let ids: Vec<SessionId> = sessions.iter().map(|session| session.id).collect();
    let waiting: Vec<SessionId> = unfinished.iter().map(|(session, _)| session.id).collect();
    let left = match waiting.len() as u64 {
        0 => String::new(),
        1 => {
            "Kept 1 old session with an unfinished turn; --unfinished deletes it too.\n".to_owned()
        }
        many => format!(
            "Kept {many} old sessions with an unfinished turn; --unfinished deletes them too.\n"
        ),
    };
    if args.dry_run || ids.is_empty() {
        let mut text = format!("Would delete {}.\n", wording::count(ids.len() as u64, "session"));
        if ids.is_empty() {
            text = "Nothing to prune.\n".to_owned();
        }
        for session in &sessions {
            let used = wording::minute(session.used_at);
            text.push_str(&format!("{}  {used}  {}\n", session.id, session.title));
        }
        let data =
            json!({ "would_delete": ids, "unfinished": waiting, "deleted": [], "in_use": [] });
        context.output.answer(&data, &(text + &left))?;
        return Ok(Exit::Done);
    }
    if !args.yes && !confirmed(&sessions)? {
        let data = json!({ "deleted": [], "in_use": [], "unfinished": waiting });
        context.output.answer(&data, "Nothing was deleted.\n")?;
        return Ok(Exit::Done);
    }
    let deleted = delete(&store, &ids)?;
    let mut data = deleted.data();
    data["unfinished"] = json!(waiting);
    context.output.answer(&data, &(deleted.text() + &left))?;
    // What somebody works on is not old: it stays, and that is no error.
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(time("2h"), Ok(2 * HOUR));
        assert_eq!(time("30d"), Ok(720 * HOUR));
        assert_eq!(time("1w"), Ok(168 * HOUR));
        for wrong in ["", "d", "30", "-1d", "3 d", "9999999999999999d", "3ü"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
