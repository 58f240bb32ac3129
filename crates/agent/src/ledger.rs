//! The ledger of a session, filled from what the harness itself knows: the facts of results, and what
//! people decided.
//!
//! The journal owns the ledger's shape and bounds and must not know tools; tools do not know the
//! journal. Here both are known.

use mainstay_journal::entry::{Body, Entry};
use mainstay_journal::ledger::{self, File, Item, Ledger, Noted};
use mainstay_message::{Call, CallResult, Content};
use mainstay_tools::{Fact, Progress};
use serde_json::Value;

use crate::Verdict;
use crate::approvals::requests::{Approval, RequestStanding};

/// The tool whose results are answers of a person.
const ASKS: &str = "ask_user";

/// What is known of a session without a model, from its entries and the requests to people.
pub fn of(entries: &[Entry], approvals: &[Approval]) -> Ledger {
    let decided = approvals.iter().filter_map(decision).collect();
    ledger::ledger(entries, noted, decided)
}

/// The entry with the list of steps that is in force.
pub(crate) fn steps_in_force(entries: &[Entry]) -> Option<i64> {
    let sets = |fact: &Value| {
        let fact = serde_json::from_value::<Fact>(fact.clone());
        fact.is_ok_and(|fact| matches!(fact, Fact::Steps { .. }))
    };
    let sets = |entry: &&Entry| match &entry.body {
        Body::Result { facts, .. } => facts.iter().any(sets),
        _ => false,
    };
    entries.iter().rfind(sets).map(|entry| entry.seq)
}

/// What a result notes in the ledger.
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
            Fact::Background { process, command, .. } => Some(Noted::Decided(format!(
                "the process {process} was started in the background: {command}"
            ))),
            Fact::Proposed { skill } => Some(Noted::Decided(format!(
                "the skill {skill} was proposed; a person decides about it"
            ))),
            Fact::Acknowledged { .. }
            | Fact::Loaded { .. }
            | Fact::Outside { .. }
            | Fact::Memories { .. }
            | Fact::InDoubt => None,
        })
        .collect();
    if result.name == ASKS && !result.failed {
        let question = call.and_then(|call| serde_json::from_str::<Value>(&call.arguments).ok());
        let question = question.as_ref().and_then(|given| given["question"].as_str());
        let answer: Vec<&str> = result.content.iter().filter_map(Content::text).collect();
        let question = question.unwrap_or("a question");
        let answer = answer.join(" ");
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
        RequestStanding::Allowed(decided) | RequestStanding::Denied(decided) => decided,
        RequestStanding::Open | RequestStanding::Expired | RequestStanding::Lapsed => return None,
    };
    let what = match &decided.verdict {
        Verdict::Once => "allowed once".to_owned(),
        Verdict::Session => "allowed for the session".to_owned(),
        Verdict::Always => "allowed always".to_owned(),
        Verdict::Deny { reason: None } => "denied".to_owned(),
        Verdict::Deny { reason: Some(reason) } => format!("denied ({reason})"),
    };
    Some((decided.at, format!("{what}: {} {}", approval.request.tool, approval.request.action)))
}

#[cfg(test)]
mod tests {
    use mainstay_tools::TodoStep;
    use serde_json::json;

    use super::*;

    fn result(name: &str, text: &str) -> CallResult {
        CallResult {
            call: "c".to_owned(),
            name: name.to_owned(),
            content: vec![Content::Text(text.to_owned())],
            failed: false,
        }
    }

    #[test]
    fn every_fact_that_a_ledger_tells_of_is_noted() {
        let (path, hash) = ("/w/a".to_owned(), "00".to_owned());
        let file = |changed| Fact::File { path: path.clone(), hash: hash.clone(), changed };
        let step = TodoStep { content: "test".to_owned(), status: Progress::InProgress };
        let facts = [
            file(false),
            file(true),
            Fact::Exit { command: "ls".to_owned(), code: 2 },
            Fact::Steps { steps: vec![step] },
            Fact::Skill { name: "greet".to_owned() },
            Fact::Background {
                process: "p".to_owned(),
                keeper: "k".to_owned(),
                command: "serve".to_owned(),
            },
            Fact::InDoubt,
        ];
        let mut facts: Vec<Value> = facts.iter().map(|fact| json!(fact)).collect();
        // What another version wrote is not understood, and does no harm.
        facts.push(json!({ "of_the_future": 1 }));
        let noted = noted(None, &result("shell", "output"), &facts);
        let seen = File { path: path.clone(), hash: hash.clone() };
        let step = ("test".to_owned(), "in progress".to_owned());
        let expected = [
            Noted::Read(seen.clone()),
            Noted::Changed(seen),
            Noted::Ran { command: "ls".to_owned(), code: 2 },
            Noted::Steps(vec![Item { text: step.0, status: step.1, done: false }]),
            Noted::Decided(
                "the skill greet was loaded for this; load it again where it is still needed"
                    .to_owned(),
            ),
            Noted::Decided("the process p was started in the background: serve".to_owned()),
        ];
        assert_eq!(noted, expected);
    }

    #[test]
    fn what_a_person_answered_is_a_decision() {
        let call = Call {
            id: "c".to_owned(),
            name: ASKS.to_owned(),
            arguments: json!({ "question": "Which?" }).to_string(),
            extra: None,
        };
        let decided = noted(Some(&call), &result(ASKS, "the blue one"), &[]);
        let words = "asked \"Which?\", the user answered: the blue one";
        assert_eq!(decided, [Noted::Decided(words.to_owned())]);
        let failed = CallResult { failed: true, ..result(ASKS, "nobody was asked") };
        assert_eq!(noted(Some(&call), &failed, &[]), []);
    }
}
