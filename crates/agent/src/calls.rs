//! The calls of a model's message: decided, started, run, recorded.
//!
//! The turn owns the calls in one list ([`OpenCalls`](call::OpenCalls)). A group of calls that may run
//! beside each other is a range of it. Each group goes through the steps below, each in a file of its
//! own; what is known of a call stands on the call.

pub(crate) mod call;
pub(crate) mod decide;
pub(crate) mod fingerprint;
pub(crate) mod record;
pub(crate) mod run;
pub(crate) mod settle;
pub(crate) mod start;

use crate::turn::end::TurnStop;
use crate::turn::runner::TurnRunner;

impl TurnRunner<'_> {
    /// Runs every open call, group by group. The last results are unwritten when it returns: the next
    /// commit writes them.
    pub(crate) async fn run_open_calls(&mut self) -> Result<(), TurnStop> {
        while let Some(group) = self.calls.next_group() {
            self.run_hooks_before(group.clone()).await?;
            self.decide_group(group.clone()).await?;
            self.start_group(group.clone()).await?;
            self.run_group(group).await?;
        }
        Ok(())
    }
}
