//! `[policy]`: what may be done without asking.

use std::time::Duration;

use mainstay_agent::policy::{self, Decision};
use mainstay_journal::turn::Mode;
use mainstay_tools::sandbox::Wishes;
use serde::Deserialize;

use super::Config;
use super::build::time;
use super::shape::Time;
use crate::error::Error;

/// Its settings in a new file.
pub(super) const TEMPLATE: &str = r#"
# What the agent may do: allow, ask or deny. What is said here holds in every mode but plan, which
# only gets stricter by it. `destructive` is what cannot be undone. A request waits for your decision
# for `request_time`.
[policy]
#read = "allow"
#write = "allow"
#write_outside = "ask"
# for example: execute = "ask"      (without it the mode decides)
#network = "ask"
#persist = "ask"
#destructive = "ask"
#request_time = "24h"
# For sessions that have read text from the network: applies to persisting anything and to reaching
# new places, whatever is set above.
#tainted = "ask"
"#;

/// What may be done without asking: `allow`, `ask` or `deny`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Policy {
    pub(super) read: Option<String>,
    pub(super) write: Option<String>,
    pub(super) write_outside: Option<String>,
    pub(super) execute: Option<String>,
    pub(super) network: Option<String>,
    pub(super) persist: Option<String>,
    pub(super) destructive: Option<String>,
    pub(super) tainted: Option<String>,
    /// How long a request waits for a decision.
    pub(super) request_time: Option<Time>,
}

/// What the engine is told of the policy.
pub(super) fn policy(
    config: &Config,
    mode: Mode,
    wishes: &Wishes,
) -> Result<policy::Policy, Error> {
    let said = &config.file.policy;
    let mut policy = policy::Policy::of_mode(mode);
    if mode == Mode::Plan && super::mode::unheld(wishes).is_some() {
        // Nobody would keep a command from writing.
        policy.execute = Decision::Deny;
    }
    let decisions = [
        ("read", &said.read, &mut policy.read),
        ("write", &said.write, &mut policy.write),
        ("write_outside", &said.write_outside, &mut policy.write_outside),
        ("execute", &said.execute, &mut policy.execute),
        ("network", &said.network, &mut policy.network),
        ("persist", &said.persist, &mut policy.persist),
        ("destructive", &said.destructive, &mut policy.destructive),
        ("tainted", &said.tainted, &mut policy.tainted),
    ];
    for (name, said, decision) in decisions {
        let said = match said.as_deref() {
            None => continue,
            Some("allow") => Decision::Allow,
            Some("ask") => Decision::Ask,
            Some("deny") => Decision::Deny,
            Some(other) => {
                return Err(config
                    .wrong(format!("policy.{name} is {other:?}"))
                    .hint("Write allow, ask or deny."));
            }
        };
        *decision = match mode {
            Mode::Plan => said.max(*decision),
            Mode::Auto | Mode::Ask | Mode::Yes => said,
        };
    }
    Ok(if mode == Mode::Yes { policy.answered_yes() } else { policy })
}

/// How long a request waits for a decision. Returns `None` if the file does not say.
pub(super) fn request_time(config: &Config) -> Result<Option<Duration>, Error> {
    let said = config.file.policy.request_time.as_ref();
    said.map(|said| time(config, "policy.request_time", said)).transpose()
}
