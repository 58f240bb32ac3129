//! What a job reads and writes: outputs and inputs are asked for by key.

use std::os::fd::OwnedFd;

use super::Jobs;
use crate::keeper::shared::protocol::Says;
use crate::keeper::shared::{Job, read_part};
use crate::keeper::worker::live::{Direction, Outputs};
use crate::keeper::worker::output::{CAP, Output};

/// So many connections are lent at once before their jobs are started; more is a mistake.
const MOST_LENT: usize = 64;

impl Jobs {
    pub(super) fn outputs(&self, job: &Job) -> Outputs {
        let cap = job.limits.output.unwrap_or(CAP);
        let output = Output::new(self.spool.output_path(&job.key), cap);
        let without = |output: Output| output.without_secrets(&self.redactor);
        Outputs { output: without(output), errors: without(Output::in_memory()) }
    }

    /// Keeps a connection for the job with this key.
    pub(in crate::keeper::worker) fn lend(&mut self, key: String, connection: OwnedFd) {
        if self.lent.len() < MOST_LENT {
            self.lent.insert(key, connection);
        }
    }

    /// Output of a job from an offset on.
    pub(in crate::keeper::worker) fn read(&mut self, key: &str, offset: u64, limit: u64) -> Says {
        let part = match self.live.get_mut(key) {
            Some(live) => {
                // Whoever reads may wait for the very last letter, of a question for one.
                live.output.settle();
                Some(live.output.read(offset, limit))
            }
            None => self.past_end(key).map(|ended| read_part(&ended.output, offset, limit)),
        };
        part.map_or(Says::UnknownKey, Says::Output)
    }

    /// Bytes for the input of a job, or its end.
    pub(in crate::keeper::worker) fn write(&mut self, key: &str, bytes: Option<&[u8]>) -> Says {
        let Some(live) = self.live.get_mut(key) else {
            return if self.past.contains_key(key) {
                Says::Refused("It has ended.".to_owned())
            } else {
                Says::UnknownKey
            };
        };
        let Some(input) = &mut live.input else {
            return Says::Refused("Its input is closed.".to_owned());
        };
        match bytes {
            Some(bytes) => {
                if let Err(words) = input.push(bytes) {
                    return Says::Refused(words);
                }
            }
            None => input.close(),
        }
        live.flush_input();
        Says::Done
    }

    /// The descriptors to wait for: outputs, and inputs for which something waits.
    pub(in crate::keeper::worker) fn descriptors(
        &self,
    ) -> impl Iterator<Item = (&OwnedFd, Direction)> {
        self.live.values().flat_map(|live| {
            let pipes = live.watched().map(|pipe| (pipe, Direction::From));
            let input = live.input.as_ref().filter(|input| input.is_waiting());
            pipes.chain(input.map(|input| (input.pipe(), Direction::To)))
        })
    }
}
