//! An audit of a session: what came from where, and what was done after.
//!
//! It is computed from the journal and the requests, like the view: nothing is written down for it.

use std::collections::HashMap;
use std::path::Path;

use mainstay_journal::entry::{Body, Entry};
use mainstay_message::{AssistantPart, Call, Content};
use mainstay_tools::Fact;
use serde::Serialize;

use crate::approvals::requests::{Approval, RequestStanding};
use crate::policy::command::{self, Class};
use crate::session::notice::{self, NoticeFact};
use crate::taint;

/// What happened in a session, in order.
#[derive(Clone, Debug, Serialize)]
pub struct Audit {
    /// Since when words from outside are in it, in milliseconds since 1970.
    pub tainted_since: Option<i64>,
    /// Where the first of them came from.
    pub tainted_by: Option<String>,
    /// What happened.
    pub items: Vec<AuditItem>,
}

/// Something that happened.
#[derive(Clone, Debug, Serialize)]
pub struct AuditItem {
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// The number of its entry. It is `None` for a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<i64>,
    /// The tool that did it.
    pub tool: String,
    /// Whether words from outside were in the session before.
    pub tainted: bool,
    /// What it was.
    #[serde(flatten)]
    pub what: AuditEvent,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AuditEvent {
    /// Words came into the session.
    Came {
        /// Where from.
        origin: String,
        /// Whether that is outside, so that it taints the session.
        outside: bool,
        /// How much the model read of it.
        bytes: u64,
    },
    /// A command ran.
    Ran {
        /// The line.
        command: String,
        /// The worst that it may have done.
        class: Class,
        /// Its exit code. It is `None` if the command goes on.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
    },
    /// A file was changed.
    Changed {
        /// Its path.
        path: String,
    },
    /// A skill was put before a person.
    Proposed {
        /// Its name.
        skill: String,
    },
    /// Nobody knows whether a call had its effect.
    InDoubt {
        /// What it was asked to do.
        arguments: String,
    },
    /// A person was asked.
    Asked {
        /// What the call wanted.
        action: String,
        /// What the policy took it for.
        class: String,
        /// How the request stands.
        standing: String,
        /// Who decided.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
}

/// What happened in a session with these entries and requests.
pub fn audit(entries: &[Entry], approvals: &[Approval], workspace: &Path) -> Audit {
    let mut audit = Audit { tainted_since: None, tainted_by: None, items: Vec::new() };
    let mut calls: HashMap<&str, &Call> = HashMap::new();
    let mut at = 0;
    for entry in entries {
        // Their order counts, whatever the clock did meanwhile.
        at = entry.at.max(at);
        match &entry.body {
            Body::Assistant { parts, .. } => {
                calls.extend(parts.iter().filter_map(|part| match part {
                    AssistantPart::Call(call) => Some((call.id.as_str(), call)),
                    _ => None,
                }));
            }
            Body::Result { result, facts, .. } => {
                let facts: Vec<Fact> = facts
                    .iter()
                    .filter_map(|fact| serde_json::from_value(fact.clone()).ok())
                    .collect();
                let call = calls.get(result.call.as_str()).copied();
                let mut happened = done(&facts, call, workspace);
                happened.extend(came(&facts, call, &result.name, &result.content));
                for what in happened {
                    let tainted = audit.tainted_since.is_some();
                    let tool = result.name.clone();
                    let item = AuditItem { at, seq: Some(entry.seq), tool, tainted, what };
                    audit.push(item);
                }
            }
            Body::Notice { text, .. } => {
                let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
                let is_import = notice::facts(&entry.body).contains(&NoticeFact::Imported);
                let tool = if is_import { "import" } else { "memory" };
                let mut origins = taint::outside(&entry.body);
                origins.dedup();
                for fact in origins {
                    let Fact::Outside { origin } = fact else { continue };
                    let what = AuditEvent::Came { origin, outside: true, bytes };
                    let (tool, tainted) = (tool.to_owned(), audit.tainted_since.is_some());
                    audit.push(AuditItem { at, seq: Some(entry.seq), tool, tainted, what });
                }
            }
            _ => {}
        }
    }
    for approval in approvals {
        let (at, by) = match &approval.standing {
            RequestStanding::Allowed(decided) | RequestStanding::Denied(decided) => {
                (decided.at, Some(decided.by.clone()))
            }
            _ => (approval.request.asked_at, None),
        };
        let what = AuditEvent::Asked {
            action: approval.request.action.clone(),
            class: approval.request.class.as_str().to_owned(),
            standing: approval.standing.as_str().to_owned(),
            by,
        };
        let tainted = audit.tainted_since.is_some_and(|since| at >= since);
        let tool = approval.request.tool.clone();
        audit.items.push(AuditItem { at, seq: None, tool, tainted, what });
    }
    // Entries keep their order. Within a millisecond a request follows the result before it: its own
    // has to wait for a person.
    audit.items.sort_by_key(|item| (item.at, item.seq.is_none()));
    audit
}

impl Audit {
    fn push(&mut self, item: AuditItem) {
        if let AuditEvent::Came { origin, outside: true, .. } = &item.what
            && self.tainted_since.is_none()
        {
            self.tainted_since = Some(item.at);
            self.tainted_by = Some(origin.clone());
        }
        self.items.push(item);
    }
}

/// What a call did.
fn done(facts: &[Fact], call: Option<&Call>, workspace: &Path) -> Vec<AuditEvent> {
    let ran = |command: &str, code| AuditEvent::Ran {
        command: command.to_owned(),
        class: command::judge(command, workspace).class(),
        code,
    };
    let done = facts.iter().filter_map(|fact| match fact {
        Fact::Exit { command, code } => Some(ran(command, Some(*code))),
        // One that was waited for is told by its end.
        Fact::Background { command, .. }
            if !facts.iter().any(|fact| matches!(fact, Fact::Exit { .. })) =>
        {
            Some(ran(command, None))
        }
        Fact::File { path, changed: true, .. } => Some(AuditEvent::Changed { path: path.clone() }),
        Fact::Proposed { skill } => Some(AuditEvent::Proposed { skill: skill.clone() }),
        Fact::InDoubt => {
            let arguments = call.map(|call| call.arguments.clone()).unwrap_or_default();
            Some(AuditEvent::InDoubt { arguments })
        }
        _ => None,
    });
    done.collect()
}

/// What words a call brought.
fn came(facts: &[Fact], call: Option<&Call>, tool: &str, content: &[Content]) -> Vec<AuditEvent> {
    let bytes = content.iter().map(|part| match part {
        Content::Text(text) => text.len(),
        Content::Image(image) => image.base64.len() / 4 * 3,
    });
    let bytes = u64::try_from(bytes.sum::<usize>()).unwrap_or(u64::MAX);
    let outside: Vec<AuditEvent> = facts
        .iter()
        .filter_map(|fact| match fact {
            Fact::Outside { origin } => {
                Some(AuditEvent::Came { origin: origin.clone(), outside: true, bytes })
            }
            _ => None,
        })
        .collect();
    // What the harness says itself stands in no frame.
    let framed = content.iter().any(|part| match part {
        Content::Text(text) => text.contains("<data "),
        Content::Image(_) => true,
    });
    if !outside.is_empty() || !framed {
        return outside;
    }
    let origin = facts.iter().find_map(|fact| match fact {
        Fact::File { path, changed: false, .. } => Some(path.clone()),
        Fact::Exit { command, .. } => Some(format!("`{command}`")),
        _ => None,
    });
    let asked = || call.map_or_else(|| tool.to_owned(), |call| call.arguments.clone());
    vec![AuditEvent::Came { origin: origin.unwrap_or_else(asked), outside: false, bytes }]
}
