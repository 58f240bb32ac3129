//! `mainstay sessions list`

use clap::Args;
use mainstay_journal::session::{self, Session};
use mainstay_journal::turn::{self, State, Turn};
use mainstay_store::Store;
use serde_json::{Value, json};

use crate::context::{Context, open_existing};
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;
use crate::wording;

/// List sessions, most recently used first
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Show at most this many
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    limit: u32,
}

pub(crate) fn run(args: &ListArgs, context: &Context) -> Result<Exit, Error> {
    let paths = context.paths()?;
    let store = open_existing(&paths)?;
    let sessions = sessions(&store, args.limit)?;
    let data: Vec<Value> =
        sessions.iter().map(|(session, turn)| data(session, turn.as_ref())).collect();
    let mut text = String::new();
    for (session, turn) in &sessions {
        text.push_str(&format!(
            "{}  {}  {:<9}  {}\n",
            session.id,
            wording::minute(session.used_at),
            turn.as_ref().map_or("empty", standing),
            wording::unbroken(&session.title)
        ));
    }
    if sessions.is_empty() {
        text.push_str(&paths.completed("No sessions yet. Start one with `mainstay run \"…\"`.\n"));
    }
    context.output.answer(&data, &text)?;
    Ok(Exit::Done)
}

fn sessions(store: &Store, limit: u32) -> Result<Vec<(Session, Option<Turn>)>, Error> {
    let Some(owner) = engine::find_owner(store)? else { return Ok(Vec::new()) };
    let found = store.read(|tx| -> mainstay_journal::Result<_> {
        let mut sessions = Vec::new();
        for session in session::list(tx, owner, limit)? {
            let turn = turn::last(tx, session.id)?;
            sessions.push((session, turn));
        }
        Ok(sessions)
    });
    Ok(found?)
}

/// How the last turn stands, in a word.
pub(super) fn standing(turn: &Turn) -> &'static str {
    match (turn.state, turn.outcome) {
        (State::Open, _) => "open",
        (State::Parked, _) => "parked",
        (State::Ended, outcome) => outcome.map_or("ended", turn::Outcome::as_str),
    }
}

/// A session as data.
pub(super) fn data(session: &Session, turn: Option<&Turn>) -> Value {
    json!({
        "id": session.id,
        "title": session.title,
        "workspace": session.workspace,
        "turns": session.turns,
        "parent": session.parent.map(|(id, seq)| json!({ "id": id, "seq": seq })),
        "created_at": session.created_at,
        "used_at": session.used_at,
        "last_turn": turn.map(|turn| json!({
            "id": turn.id,
            "number": turn.number,
            "state": turn.state,
            "outcome": turn.outcome,
            "reason": turn.reason,
            "parked": turn.parked,
            "resume_at": turn.resume_at(),
        })),
    })
}
