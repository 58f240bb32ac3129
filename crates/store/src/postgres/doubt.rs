//! A COMMIT whose answer was lost: the server is asked what became of it.
//!
//! The server knows the state of a transaction by its number (`pg_xact_status`). After a crash of
//! the server that is not enough: a number that never reached its log is given out again, and the
//! answer would be about somebody else. So every transaction also leaves a token of its own, and
//! is taken for committed only when the token is there.

use std::time::Duration;

use super::failure::Fault;
use super::pool::Pool;
use super::sql::literal;
use super::wire::Wire;
use crate::clock::Deadline;
use crate::{Error, Result};

/// How long the server is asked. Long enough for it to restart.
const PATIENCE: Duration = Duration::from_secs(20);

/// What identifies a transaction after its connection is gone.
#[derive(Clone, Debug)]
pub(super) struct Doubt {
    /// The server's number of the transaction.
    pub(super) transaction: String,
    /// What the transaction wrote into `engine_commits`.
    pub(super) token: String,
    /// The server's process that ran it, and the name of its connection.
    pub(super) backend: i32,
    pub(super) name: String,
    /// How the answer was lost.
    pub(super) reason: String,
}

/// What became of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Committed,
    Aborted,
}

/// Asks until the server knows, or it could not be reached for long, `outage` at least. Never guesses.
pub(super) fn resolve(pool: &Pool, doubt: &Doubt, outage: Deadline) -> Result<Fate> {
    tracing::warn!(reason = doubt.reason, "a commit was not answered; asking the server about it");
    let deadline = Deadline::after(PATIENCE).or_later(outage);
    let mut pause = Duration::from_millis(10);
    loop {
        let problem = match ask(pool, doubt, deadline) {
            Ok(Some(fate)) => return Ok(fate),
            Ok(None) => "the transaction is still in progress".to_owned(),
            Err(error) => error.to_string(),
        };
        if deadline.passed() {
            return Err(Error::OutcomeUnknown(format!("{}; {problem}", doubt.reason)));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(500));
    }
}

fn ask(pool: &Pool, doubt: &Doubt, deadline: Deadline) -> Result<Option<Fate>> {
    let mut loan = pool.take(deadline)?;
    let wire = loan.wire()?;
    // The number came from the server, but is parsed again before it is put into a statement.
    let number: u64 = doubt.transaction.parse().map_err(|_| {
        Error::Statement(format!("\"{}\" is not a valid transaction", doubt.transaction))
    })?;
    // A number that the server has not given out (yet, or again) was lost with a crash.
    let status = text(
        wire,
        &format!(
            "SELECT CASE WHEN '{number}'::xid8 >= pg_snapshot_xmax(pg_current_snapshot())
             THEN 'aborted' ELSE pg_xact_status('{number}'::xid8) END"
        ),
    )?;
    let fate = match status.as_deref() {
        Some("committed") => {
            Some(if is_there(wire, &doubt.token)? { Fate::Committed } else { Fate::Aborted })
        }
        Some("aborted") => Some(Fate::Aborted),
        Some(_) => {
            // Its process may wait for a COMMIT that is still on its way: end it, so that the
            // answer cannot change after it was given.
            let end = format!(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE pid = {} AND application_name = {}",
                doubt.backend,
                literal(&doubt.name)
            );
            text(wire, &end)?;
            None
        }
        None => {
            return Err(Error::OutcomeUnknown(format!(
                "{}; the server no longer knows the transaction",
                doubt.reason
            )));
        }
    };
    loan.give_back();
    Ok(fate)
}

fn is_there(wire: &Wire, token: &str) -> Result<bool> {
    let sql = format!("SELECT token FROM engine_commits WHERE token = {}", literal(token));
    Ok(text(wire, &sql)?.is_some())
}

/// Removes tokens that nobody can be in doubt about any more. Outside of serialisable transactions,
/// with which it therefore never clashes.
pub(super) fn forget_old_tokens(wire: &Wire) -> Result<()> {
    let sql = format!(
        "DELETE FROM engine_commits WHERE at < CAST(extract(epoch FROM now()) AS BIGINT) - {}",
        PATIENCE.as_secs() * 30
    );
    text(wire, &sql).map(drop)
}

fn text(wire: &Wire, sql: &str) -> Result<Option<String>> {
    match wire.simple(Duration::from_secs(5), sql) {
        Ok(rows) => Ok(rows.into_iter().next().and_then(|row| row.into_iter().next().flatten())),
        Err(Fault::Refused(error)) => Err(error),
        // Never an answer: it is asked again.
        Err(Fault::Lost) => Err(Error::Statement("the question lost against a write".to_owned())),
        Err(Fault::Broken(detail)) => {
            Err(Error::Unreachable { server: wire.server.to_string(), detail })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::Postgres;
    use crate::{Location, Options, Schema};

    #[test]
    fn a_number_alone_does_not_prove_a_commit() {
        let location: Location = mainstay_testkit::postgres::fresh().parse().unwrap();
        let Location::Postgres { url, schema } = &location else { panic!("{location}") };
        let options = Options::new(Schema::default());
        let store = Postgres::open(url, schema, &options, std::sync::Arc::default()).unwrap();
        let mut loan = store.pool.take(Deadline::after(PATIENCE)).unwrap();
        let number = text(loan.wire().unwrap(), "SELECT pg_current_xact_id()::text").unwrap();
        let doubt = Doubt {
            transaction: number.unwrap(),
            token: "mine".to_owned(),
            backend: 0,
            name: String::new(),
            reason: "the answer was lost".to_owned(),
        };
        let resolve = |doubt: &Doubt| resolve(&store.pool, doubt, Deadline::after(PATIENCE));
        // The number was given to somebody else after a crash.
        assert_eq!(resolve(&doubt).unwrap(), Fate::Aborted);
        let leave = "INSERT INTO engine_commits (token, at) VALUES ('mine', 0)";
        text(loan.wire().unwrap(), leave).unwrap();
        assert_eq!(resolve(&doubt).unwrap(), Fate::Committed);
        // One that was never given out was lost with a crash.
        let future = Doubt { transaction: "999999999".to_owned(), ..doubt };
        assert_eq!(resolve(&future).unwrap(), Fate::Aborted);
        // Tokens that nobody can ask about any more go.
        forget_old_tokens(loan.wire().unwrap()).unwrap();
        assert!(!is_there(loan.wire().unwrap(), "mine").unwrap());
    }
}
