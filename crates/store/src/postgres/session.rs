//! Statements on a connection to the server.

use std::error::Error as StdError;
use std::ops::ControlFlow;
use std::time::Duration;

use bytes::BytesMut;
use futures_util::TryStreamExt;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type};

use super::failure::Fault;
use super::wire::Wire;
use crate::row::Columns;
use crate::tx::{Dialect, Each, Session};
use crate::{Error, Params, Result, Row, Value, ValueRef};

/// A connection inside a transaction.
pub(super) struct PostgresSession<'a> {
    pub(super) wire: &'a mut Wire,
    pub(super) limit: Duration,
    /// Why the transaction cannot go on, when the closure is not to blame.
    pub(super) setback: Option<Setback>,
    /// Whether it runs in its turn, or should.
    pub(super) turn: Turn,
}

/// How a transaction stands to the turn, which transactions that clash take one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It does not have it.
    No,
    /// It has it.
    Taken,
    /// It does not have it and must not go on without.
    Wanted,
}

/// A transaction that must run again.
#[derive(Debug)]
pub(super) enum Setback {
    /// It lost against another one.
    Lost,
    /// The connection broke.
    Broken(String),
}

impl PostgresSession<'_> {
    fn described(&mut self, fault: Fault) -> Error {
        match fault {
            Fault::Refused(error) => error,
            Fault::Lost => {
                self.setback = Some(Setback::Lost);
                Error::Statement("the transaction lost against another one".to_owned())
            }
            Fault::Broken(detail) => {
                let server = self.wire.server.to_string();
                self.setback = Some(Setback::Broken(detail.clone()));
                Error::Unreachable { server, detail }
            }
        }
    }

    fn owned(params: Params<'_>) -> Result<Vec<Bound>> {
        params.iter().map(|param| Ok(Bound(param.to_value().portable()?.to_owned()))).collect()
    }
}

impl Session for PostgresSession<'_> {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn in_turn(&mut self) -> Result<()> {
        if self.turn == Turn::Taken {
            return Ok(());
        }
        self.turn = Turn::Wanted;
        Err(Error::Statement("the transaction runs again in its turn".to_owned()))
    }

    fn execute(&mut self, sql: &str, params: Params<'_>) -> Result<usize> {
        let params = Self::owned(params)?;
        let outcome = self.wire.prepared(self.limit, sql).and_then(|statement| {
            let client = self.wire.client.clone();
            self.wire.wait(self.limit, async move { client.execute_raw(&statement, params).await })
        });
        let changed = outcome.map_err(|fault| self.described(fault))?;
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    fn query(&mut self, sql: &str, params: Params<'_>, each: &mut Each<'_>) -> Result<()> {
        let params = Self::owned(params)?;
        let outcome = self.wire.prepared(self.limit, sql).and_then(|statement| {
            let client = self.wire.client.clone();
            self.wire.wait(self.limit, async move {
                client.query_raw(&statement, params).await?.try_collect::<Vec<_>>().await
            })
        });
        for row in outcome.map_err(|fault| self.described(fault))? {
            if each(&Row::new(&PostgresRow(row))) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }
}

/// A parameter, bound as whatever type the server takes it for.
#[derive(Debug)]
pub(super) struct Bound(pub(super) Value);

type Boxed = Box<dyn StdError + Sync + Send>;

impl ToSql for Bound {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Boxed> {
        match (&self.0, ty) {
            (Value::Null, _) => Ok(IsNull::Yes),
            (Value::Integer(integer), &Type::INT8) => integer.to_sql(ty, out),
            (Value::Integer(integer), &Type::INT4) => i32::try_from(*integer)?.to_sql(ty, out),
            (Value::Integer(integer), &Type::INT2) => i16::try_from(*integer)?.to_sql(ty, out),
            (Value::Real(real), &Type::FLOAT8) => real.to_sql(ty, out),
            (Value::Text(text), _) if <&str as ToSql>::accepts(ty) => text.as_str().to_sql(ty, out),
            (Value::Blob(blob), &Type::BYTEA) => blob.as_slice().to_sql(ty, out),
            (value, ty) => Err(format!("{value:?} given where {ty} is expected").into()),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    tokio_postgres::types::to_sql_checked!();
}

struct PostgresRow(tokio_postgres::Row);

impl Columns for PostgresRow {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn value(&self, index: usize) -> Result<ValueRef<'_>> {
        let column: Column<'_> =
            self.0.try_get(index).map_err(|error| Error::Statement(error.to_string()))?;
        Ok(column.0)
    }
}

struct Column<'a>(ValueRef<'a>);

impl<'a> FromSql<'a> for Column<'a> {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Boxed> {
        let value = match *ty {
            Type::INT8 => ValueRef::Integer(i64::from_sql(ty, raw)?),
            Type::INT4 => ValueRef::Integer(i64::from(i32::from_sql(ty, raw)?)),
            Type::INT2 => ValueRef::Integer(i64::from(i16::from_sql(ty, raw)?)),
            Type::BOOL => ValueRef::Integer(i64::from(bool::from_sql(ty, raw)?)),
            Type::FLOAT8 => ValueRef::Real(f64::from_sql(ty, raw)?),
            Type::FLOAT4 => ValueRef::Real(f64::from(f32::from_sql(ty, raw)?)),
            Type::BYTEA => ValueRef::Blob(raw),
            _ if <&str as FromSql>::accepts(ty) => ValueRef::Text(<&str>::from_sql(ty, raw)?),
            _ => return Err(format!("a column of type {ty} must be cast").into()),
        };
        Ok(Column(value))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Boxed> {
        Ok(Column(ValueRef::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}
