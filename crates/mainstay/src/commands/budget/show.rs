//! What `mainstay budget` shows: today's budget, and every reservation with whoever made it.

use mainstay_agent::budget::reservations::{self, Reservation, Stage};
use mainstay_agent::budget::{self, dollars};
use mainstay_store::{OwnerId, Store};
use serde::Serialize;
use serde_json::json;

use super::super::cost::usd;
use crate::context::{Context, open_existing};
use crate::error::Error;
use crate::exit::Exit;
use crate::{engine, wording};

/// What is known of whoever made a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Standing {
    /// The call goes on.
    Running,
    /// Its process is gone before it sent anything; the next turn gives it back.
    NotSent,
    /// Nobody will learn what it cost.
    Abandoned,
}

impl Standing {
    fn of(store: &Store, reservation: &Reservation) -> Result<Self, Error> {
        Ok(match reservation.stage {
            _ if reservation.is_open(store)? => Standing::Running,
            Stage::Ready => Standing::NotSent,
            Stage::Sent | Stage::Abandoned => Standing::Abandoned,
        })
    }

    fn word(self) -> &'static str {
        match self {
            Standing::Running => "running",
            Standing::NotSent => "not sent",
            Standing::Abandoned => "abandoned",
        }
    }
}

pub(super) fn run(context: &Context) -> Result<Exit, Error> {
    let store = open_existing(&context.paths()?)?;
    let Some(owner) = engine::find_owner(&store)? else {
        let data = json!({ "today": { "used_usd": 0.0 }, "reservations": [] });
        context.output.answer(&data, "Nothing is reserved: no model was called.\n")?;
        return Ok(Exit::Done);
    };
    let (today, found) = standings(&store, owner)?;
    let rows: Vec<_> = found.iter().map(|(standing, found)| data(*standing, found)).collect();
    let sum = |wanted| {
        let of = found.iter().filter(|(standing, _)| *standing == wanted);
        of.map(|(_, reservation)| reservation.amount.money).sum::<i64>()
    };
    let answer = json!({
        "today": { "used_usd": usd(today.money), "tokens": today.tokens, "calls": today.calls },
        "running_usd": usd(sum(Standing::Running)),
        "not_sent_usd": usd(sum(Standing::NotSent)),
        "abandoned_usd": usd(sum(Standing::Abandoned)),
        "reservations": rows,
    });
    let mut text = format!(
        "Today's budget: {} used, with all that is reserved today. `mainstay cost` shows what was \
         spent.\n",
        dollars(today.money)
    );
    text.push_str(&table(&found));
    if sum(Standing::Abandoned) > 0 {
        text.push_str(&format!(
            "{} is kept for abandoned calls, at the most they can have cost. If your provider did \
             not bill them: `mainstay budget clear --all --reason TEXT`\n",
            dollars(sum(Standing::Abandoned))
        ));
    }
    context.output.answer(&answer, &text)?;
    Ok(Exit::Done)
}

type Standings = Vec<(Standing, Reservation)>;

fn standings(store: &Store, owner: OwnerId) -> Result<(budget::Amount, Standings), Error> {
    let (today, all) = store.read(|tx| -> mainstay_agent::Result<_> {
        Ok((budget::used_today(tx, owner)?, reservations::all(tx, owner)?))
    })?;
    let mut found = Vec::new();
    for reservation in all {
        found.push((Standing::of(store, &reservation)?, reservation));
    }
    Ok((today, found))
}

fn data(standing: Standing, reservation: &Reservation) -> serde_json::Value {
    json!({
        "id": reservation.id,
        "state": standing,
        "most_usd": usd(reservation.amount.money),
        "most_tokens": reservation.amount.tokens,
        "purpose": reservation.purpose,
        "model": reservation.model,
        "session": reservation.session,
        "process": reservation.process,
        "since": reservation.made_at,
    })
}

fn table(found: &[(Standing, Reservation)]) -> String {
    let mut text = String::new();
    for (standing, reservation) in found {
        let session = reservation.session.map_or("-".to_owned(), |session| session.to_string());
        text.push_str(&format!(
            "{}  {:<9}  {:>9}  {:>9} tokens  {}  {}  session {session}, process {}\n",
            reservation.id,
            standing.word(),
            dollars(reservation.amount.money),
            reservation.amount.tokens,
            wording::minute(reservation.made_at),
            wording::line(&reservation.model),
            wording::line(reservation.process.split('/').next().unwrap_or_default()),
        ));
    }
    if text.is_empty() { "Nothing is reserved.\n".to_owned() } else { text }
}
