//! `mainstay deny`

use clap::Args;
use mainstay_agent::Verdict;
use mainstay_agent::approvals::requests::Effort;

use super::approve::{Decision, report_decision};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::redaction;
use crate::wording;

/// Refuse a call that is waiting for your decision
///
/// The model is told, with your reason, and the turn can continue.
#[derive(Args, Debug)]
pub(crate) struct DenyArgs {
    /// Request to deny (a prefix of its ID is enough); see `mainstay approvals`
    id: String,

    /// Reason, shown to the model
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// Continue the turn right away
    #[arg(long)]
    resume: bool,
}

pub(crate) fn run(args: &DenyArgs, context: &Context) -> Result<Exit, Error> {
    let reason = args.reason.as_deref().map(|reason| redaction::typed(reason, context));
    let reason = reason.transpose()?;
    let verdict = Verdict::Deny { reason };
    let decision =
        Decision { typed: &args.id, verdict, effort: Effort::Key, command: "mainstay deny" };
    let (approval, session) = decision.made(context)?;
    let request = &approval.request;
    let words = format!("Denied: {}.", wording::line(&wording::wants(request)));
    report_decision(&approval, session, &words, args.resume, context)
}
