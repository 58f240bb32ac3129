//! `mainstay audit`

use std::path::Path;

use clap::Args;
use mainstay_agent::approvals::requests;
use mainstay_agent::session::audit::{self, Audit, AuditEvent, AuditItem};
use mainstay_journal::session::Session;
use mainstay_journal::{entry, session};
use serde_json::json;

use crate::context::{Context, open_existing};
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;
use crate::wording;

/// Show what came into a session, from where, and what was done after it
///
/// Text from the network taints a session. What happened while it was tainted is marked with `!`:
/// look there first when something was done that nobody asked for.
#[derive(Args, Debug)]
pub(crate) struct AuditArgs {
    /// Session to show (a prefix of its ID is enough)
    id: String,
}

pub(crate) fn run(args: &AuditArgs, context: &Context) -> Result<Exit, Error> {
    let paths = context.paths()?;
    let store = open_existing(&paths)?;
    let owner = engine::existing_owner(&store, "session", &args.id)?;
    let (session, entries, approvals) = store.read(|tx| -> mainstay_agent::Result<_> {
        let session = session::find(tx, owner, &args.id)?;
        let entries = entry::all(tx, session.id)?;
        let approvals = requests::of_session(tx, session.id)?;
        Ok((session, entries, approvals))
    })?;
    let audit = audit::audit(&entries, &approvals, Path::new(&session.workspace));
    let mut data = json!(audit);
    data["session"] = json!(session.id);
    data["workspace"] = json!(session.workspace);
    context.output.answer(&data, &text(&session, &audit))?;
    Ok(Exit::Done)
}

fn text(session: &Session, audit: &Audit) -> String {
    let mut text = format!(
        "session {}  {}\nin {}\n",
        session.id,
        wording::line(&session.title),
        wording::unbroken(&session.workspace)
    );
    match (&audit.tainted_by, audit.tainted_since) {
        (Some(by), Some(since)) => text.push_str(&format!(
            "tainted since {} by {}; what happened later is marked with !\n\n",
            wording::time(since),
            wording::line(by)
        )),
        _ => text.push_str("not tainted: nothing came from the network\n\n"),
    }
    if audit.items.is_empty() {
        text.push_str("No tools were used.\n");
    }
    let width = audit.items.iter().map(|item| item.tool.chars().count()).max().unwrap_or(0);
    for item in &audit.items {
        let mark = if item.tainted { '!' } else { ' ' };
        let words = wording::line(&describe_item(item, &session.workspace));
        text.push_str(&format!(
            "{mark} {}  {:<width$}  {words}\n",
            wording::time(item.at),
            wording::unbroken(&item.tool)
        ));
    }
    text
}

fn describe_item(item: &AuditItem, workspace: &str) -> String {
    let inner = |path: &str| {
        let below = Path::new(path).strip_prefix(workspace).ok();
        below.map_or_else(|| path.to_owned(), |below| below.display().to_string())
    };
    match &item.what {
        AuditEvent::Came { origin, outside: true, bytes } => {
            format!("brought {} from outside: {origin}", wording::size(*bytes))
        }
        AuditEvent::Came { origin, bytes, .. } => {
            format!("brought {} from {}", wording::size(*bytes), inner(origin))
        }
        AuditEvent::Ran { command, class, code } => {
            let end = match code {
                Some(0) => String::new(),
                Some(code) => format!(", exit code {code}"),
                None => ", in the background".to_owned(),
            };
            format!("ran `{command}` ({}{end})", class.describe())
        }
        AuditEvent::Changed { path } => format!("changed {}", inner(path)),
        AuditEvent::Proposed { skill } => format!("proposed the skill {skill}, for you to decide"),
        AuditEvent::InDoubt { arguments } => format!("may or may not have done {arguments}"),
        AuditEvent::Asked { action, standing, by, .. } => match by {
            Some(by) => format!("wanted {action}: {standing}, by {by}"),
            None => format!("wanted {action}: {standing}"),
        },
    }
}
