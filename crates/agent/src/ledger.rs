//! The ledger of a session, filled from what the harness itself knows: the facts of results, and what
//! people decided.
//!
//! The journal owns the ledger's shape and bounds and must not know tools; tools do not know the
//! journal. Here both are known.

use mainstay_journal::entry::Entry;
use mainstay_journal::ledger::{self, File, Item, Ledger, Noted};
use mainstay_message::{Call, CallResult, Content};
use mainstay_tools::{Fact, Progress};
use serde_json::Value;

use crate::Verdict;
use crate::approval::{Approval, Standing};

/// The tool whose results are answers of a person.
const ASKS: &str = "ask_user";

/// What is known of a session without a model, from its entries and the requests to people.
pub fn of(entries: &[Entry], approvals: &[Approval]) -> Ledger {
    let decided = approvals.iter().filter_map(decision).collect();
    ledger::ledger(entries, noted, decided)
}

/// What a result means.
fn noted(call: Option<&Call>, result: &CallResult, facts: &[Value]) -> Vec<Noted> {
    let facts = facts.iter().filter_map(|fact| serde_json::from_value(fact.clone()).ok());
    let mut noted: Vec<Noted> = facts
        .filter_map(|fact| match fact {
            Fact::File { path, hash, changed: false } => Some(Noted::Read(File { path, hash })),
            Fact::File { path, hash, changed: true } => Some(Noted::Changed(File { path, hash })),
            Fact::Exit { command, code } => Some(Noted::Ran { command, code }),
            Fact::Steps { steps } => Some(Noted::Steps(
                steps
                    .into_iter()
                    .map(|step| Item {
                        text: step.content,
                        status: word(step.status).to_owned(),
                        done: step.status == Progress::Done,
                    })
                    .collect(),
            )),
            Fact::Skill { name } => Some(Noted::Decided(format!(
                "the skill {name} was loaded for this; load it again where it is still needed"
            ))),
            Fact::Background { .. }
            | Fact::Acknowledged { .. }
            | Fact::Loaded { .. }
            | Fact::Outside { .. }
            | Fact::InDoubt => None,
        })
        .collect();
    if result.name == ASKS && !result.failed {
        let question = call.and_then(|call| serde_json::from_str::<Value>(&call.arguments).ok());
        let question = question.as_ref().and_then(|given| given["question"].as_str());
        let answer: Vec<&str> = result.content.iter().filter_map(Content::text).collect();
        let (question, answer) = (question.unwrap_or("a question"), answer.join(" "));
        noted.push(Noted::Decided(format!("asked \"{question}\", the user answered: {answer}")));
    }
    noted
}

fn word(progress: Progress) -> &'static str {
    match progress {
        Progress::Pending => "pending",
        Progress::InProgress => "in progress",
        Progress::Done => "done",
    }
}

/// What a person decided on a request, and when.
fn decision(approval: &Approval) -> Option<(i64, String)> {
    let decided = match &approval.standing {
        Standing::Allowed(decided) | Standing::Denied(decided) => decided,
        Standing::Open | Standing::Expired | Standing::Lapsed => return None,
    };
    let what = match &decided.verdict {
        Verdict::Once => "allowed once".to_owned(),
        Verdict::Always => "allowed always".to_owned(),
        Verdict::Deny { reason: None } => "denied".to_owned(),
        Verdict::Deny { reason: Some(reason) } => format!("denied ({reason})"),
    };
    Some((decided.at, format!("{what}: {} {}", approval.request.tool, approval.request.action)))
}
