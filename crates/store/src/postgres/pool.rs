//! A bounded number of connections, made when they are needed.

use std::sync::{Condvar, Mutex, PoisonError};

use super::server::Server;
use super::wire::Wire;
use crate::clock::Deadline;
use crate::lock::lock;
use crate::{Error, Result};

/// How many transactions run side by side in one process.
const CONNECTIONS: usize = 8;

pub(super) struct Pool {
    pub(super) server: Server,
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Default)]
struct State {
    idle: Vec<Wire>,
    out: usize,
}

/// A connection on loan. It goes back only when it is [given back](Loan::give_back).
pub(super) struct Loan<'a> {
    pool: &'a Pool,
    wire: Option<Wire>,
}

impl Pool {
    pub(super) fn new(server: Server) -> Self {
        Self { server, state: Mutex::default(), freed: Condvar::new() }
    }

    pub(super) fn take(&self, deadline: Deadline) -> Result<Loan<'_>> {
        let mut state = lock(&self.state);
        loop {
            while let Some(wire) = state.idle.pop() {
                if !wire.client.is_closed() {
                    state.out += 1;
                    return Ok(Loan { pool: self, wire: Some(wire) });
                }
            }
            if state.out < CONNECTIONS {
                state.out += 1;
                drop(state);
                let mut loan = Loan { pool: self, wire: None };
                loan.wire = Some(self.server.connect(deadline)?);
                return Ok(loan);
            }
            let left = deadline.left();
            if left.is_zero() {
                return Err(Error::TooSlow {
                    what: "waiting for a free connection".to_owned(),
                    limit: self.server.limits.write,
                });
            }
            let waited = self.freed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Loan<'_> {
    /// The connection, until it is given back.
    pub(super) fn wire(&mut self) -> Result<&mut Wire> {
        self.wire
            .as_mut()
            .ok_or_else(|| Error::Statement("the connection was given back already".to_owned()))
    }

    /// Returns a healthy connection with no transaction open.
    pub(super) fn give_back(mut self) {
        lock(&self.pool.state).idle.extend(self.wire.take());
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        lock(&self.pool.state).out -= 1;
        self.pool.freed.notify_one();
    }
}
