//! What waits, and what was decided.

use std::fmt::Write as _;

use mainstay_agent::Verdict;
use mainstay_agent::approvals::questions::{self, RecordedQuestion};
use mainstay_agent::approvals::requests::{self, Approval, RequestFilter, RequestStanding};
use mainstay_journal::SessionId;
use mainstay_journal::session::root;
use serde_json::{Value, json};

use crate::context::{Context, open_existing};
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;
use crate::wording;

pub(super) fn run(all: bool, context: &Context) -> Result<Exit, Error> {
    let paths = context.paths()?;
    let store = open_existing(&paths)?;
    let which = if all { RequestFilter::All } else { RequestFilter::Waiting };
    // Each with the session to go on with: a helper asks for the one that it helps.
    let (requests, questions): (Vec<_>, Vec<_>) = match engine::find_owner(&store)? {
        None => Default::default(),
        Some(owner) => store.read(|tx| -> mainstay_agent::Result<_> {
            let mut requests = Vec::new();
            for approval in requests::list(tx, owner, which)? {
                let session = root(tx, approval.request.session)?;
                requests.push((approval, session));
            }
            let mut questions = Vec::new();
            for asked in questions::list(tx, owner, which)? {
                let session = root(tx, asked.question.session)?;
                questions.push((asked, session));
            }
            Ok((requests, questions))
        })?,
    };
    let mut text = String::new();
    for (approval, session) in &requests {
        write_request(&mut text, approval, *session);
    }
    for (asked, session) in &questions {
        write_question(&mut text, asked, *session);
    }
    let waiting = requests.iter().any(|(approval, _)| approval.standing == RequestStanding::Open);
    let asking =
        questions.iter().any(|(asked, _)| asked.standing == questions::QuestionStanding::Open);
    let mut next = Vec::new();
    if waiting {
        next.push("`mainstay approve ID` or `mainstay deny ID`");
    }
    if asking {
        next.push("`mainstay answer ID TEXT`");
    }
    if next.is_empty() {
        text.push_str("Nothing is waiting for you.\n");
    } else {
        let line = format!("Decide: {}. Then `mainstay resume SESSION`.\n", next.join(", "));
        text.push_str(&paths.completed(&line));
    }
    let data = json!({
        "requests": requests.iter().map(|(approval, _)| data(approval)).collect::<Vec<_>>(),
        "questions": questions.iter().map(|(asked, _)| question_data(asked)).collect::<Vec<_>>(),
    });
    context.output.answer(&data, &text)?;
    Ok(Exit::Done)
}

fn write_request(text: &mut String, approval: &Approval, session: SessionId) {
    let request = &approval.request;
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "{}  {:<8}  {}",
        request.id,
        approval.standing.as_str(),
        wording::line(&wording::wants(request))
    );
    let mut more = Vec::new();
    more.extend(request.reason.as_deref().map(wording::line));
    more.push(format!("session {session}"));
    more.push(format!("in {}", approval.workspace));
    match &approval.standing {
        RequestStanding::Open => {
            more.push(format!("until {}", wording::minute(request.expires_at)));
            more.extend(request.always.as_ref().map(|always| format!("--always: {always}")));
        }
        RequestStanding::Allowed(decided) | RequestStanding::Denied(decided) => {
            more.push(format!("by {}, {}", decided.by, wording::minute(decided.at)));
            if let Verdict::Deny { reason: Some(reason) } = &decided.verdict {
                more.push(wording::line(reason));
            }
        }
        RequestStanding::Expired | RequestStanding::Lapsed => {}
    }
    let _ = writeln!(text, "    {}", more.join("; "));
}

fn write_question(text: &mut String, asked: &RecordedQuestion, session: SessionId) {
    let question = &asked.question;
    let _ = writeln!(
        text,
        "{}  {:<8}  {}",
        question.id,
        asked.standing.as_str(),
        wording::line(&question.text)
    );
    for (number, choice) in (1..).zip(&question.choices) {
        let _ = writeln!(text, "    {number}. {}", wording::line(choice));
    }
    let _ = writeln!(text, "    session {session}");
}

/// A request as data.
pub(in crate::commands) fn data(approval: &Approval) -> Value {
    let mut data = json!(approval.request);
    data["workspace"] = json!(approval.workspace);
    data["standing"] = json!(approval.standing.as_str());
    data["used_at"] = json!(approval.used_at);
    if let RequestStanding::Allowed(decided) | RequestStanding::Denied(decided) = &approval.standing
    {
        let said = match &decided.verdict {
            Verdict::Deny { reason } => reason.as_deref(),
            Verdict::Once | Verdict::Session | Verdict::Always => None,
        };
        data["decided"] = json!({ "by": decided.by, "at": decided.at, "reason": said });
    }
    data
}

/// A question as data.
fn question_data(asked: &RecordedQuestion) -> Value {
    let mut data = json!(asked.question);
    data["standing"] = json!(asked.standing.as_str());
    if let questions::QuestionStanding::Answered { answer, by, at } = &asked.standing {
        data["answered"] = json!({ "answer": answer, "by": by, "at": at });
    }
    data
}
