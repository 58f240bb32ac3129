//! The server's error codes, sorted by what follows from them.

use std::time::Duration;

use tokio_postgres::error::{DbError, Severity, SqlState};

use crate::Error;

/// What an error of the driver means for the transaction it met.
#[derive(Debug)]
pub(super) enum Fault {
    /// It lost against another transaction: run it again.
    Lost,
    /// The connection is gone, or answered nothing in time.
    Broken(String),
    /// The server said no.
    Refused(Error),
}

/// Sorts an error.
pub(super) fn sorted(server: &str, error: &tokio_postgres::Error, limit: Duration) -> Fault {
    let Some(failure) = error.as_db_error() else {
        // A conversion or a wrong parameter is a defect here; the rest is the connection.
        return if error.is_closed() || is_io(error) {
            Fault::Broken(with_cause(error))
        } else {
            Fault::Refused(Error::Statement(with_cause(error)))
        };
    };
    let code = failure.code();
    if *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED {
        return Fault::Lost;
    }
    if is_fatal(failure) {
        return Fault::Broken(failure.message().to_owned());
    }
    Fault::Refused(said(server, failure, limit))
}

fn said(server: &str, failure: &DbError, limit: Duration) -> Error {
    let detail = failure.message().to_owned();
    match failure.code().code() {
        code if code.starts_with("23") => Error::Constraint { detail },
        "53100" => Error::Full(detail),
        "57014" => Error::TooSlow { what: "a transaction".to_owned(), limit },
        code if code.starts_with("58") || code.starts_with("XX") => {
            Error::Io(format!("{server}: {detail}"))
        }
        // A row or a table that somebody holds on to.
        "55P03" => Error::InUse {
            what: format!("the store on {server}"),
            holder: "another client".to_owned(),
        },
        "42501" | "25006" => Error::Refused { server: server.to_owned(), detail },
        code => Error::Statement(format!("{detail} (SQLSTATE {code})")),
    }
}

/// Whether the server ended the connection with this error.
fn is_fatal(failure: &DbError) -> bool {
    matches!(failure.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
        || failure.code().code().starts_with("57P")
        || failure.code().code().starts_with("08")
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if let Some(failure) = inner.downcast_ref::<std::io::Error>() {
            // A value that cannot be encoded comes in the same shape.
            return failure.kind() != std::io::ErrorKind::InvalidInput;
        }
        source = inner.source();
    }
    // An answer that cannot be parsed: the stream is out of step.
    error.to_string().contains("unexpected message")
}

/// An error while connecting: worth another try, or not.
pub(super) fn connecting(server: &str, error: &tokio_postgres::Error) -> Result<Error, Error> {
    let detail = with_cause(error);
    let unreachable = || Error::Unreachable { server: server.to_owned(), detail: detail.clone() };
    let Some(failure) = error.as_db_error() else {
        // A wrong certificate or a missing password does not mend itself.
        return if detail.contains("certificate") {
            Err(Error::Untrusted { server: server.to_owned(), detail })
        } else if error.is_closed() || is_io(error) {
            Ok(unreachable())
        } else {
            Err(Error::Refused { server: server.to_owned(), detail })
        };
    };
    match failure.code().code() {
        // Starting up, shutting down, too many connections.
        "57P03" | "57P01" | "57P02" | "53300" => Ok(unreachable()),
        _ => {
            Err(Error::Refused { server: server.to_owned(), detail: failure.message().to_owned() })
        }
    }
}

/// The error with its causes, which the driver's own text leaves out.
fn with_cause(error: &tokio_postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio_postgres::{Config, NoTls};

    use super::*;

    #[tokio::test]
    async fn a_server_that_hangs_up_after_its_greeting_is_tried_again() {
        let (ours, mut theirs) = tokio::io::duplex(4096);
        let server = tokio::spawn(async move {
            let mut startup = [0; 512];
            let _ = theirs.read(&mut startup).await;
            // "You are welcome", "ask", and then nothing.
            theirs.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I").await.unwrap();
        });
        let (client, connection) =
            Config::new().user("ada").connect_raw(ours, NoTls).await.unwrap();
        server.await.unwrap();
        let _ = connection.await;
        let error = client.batch_execute("SET search_path = a").await.unwrap_err();
        let problem = connecting("here", &error);
        assert!(matches!(problem, Ok(Error::Unreachable { .. })), "{problem:?}");
    }
}
