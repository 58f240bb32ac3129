//! The `propose_skill` tool: a new skill or changes to one, for a person to approve.

use std::sync::Weak;
use std::time::Duration;

use futures_util::future::BoxFuture;
use mainstay_journal::SessionId;
use mainstay_message::ToolSpec;
use mainstay_store::Id;
use mainstay_tools::{
    Action, Concurrency, Exposure, Fact, Invocation, Outcome, Replay, Tool, Traits,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::discovery::FILE;
use super::front::{check_name, with_metadata};
use super::proposal::{self, Change, NAME, Proposal, State, Which};
use super::tree::{Tree, check_path};
use super::{Origin, Shelf, find};
use crate::agent::{Agent, Parts, blocking};
use crate::{Result, taint};

/// A proposal has so many files and bytes at most.
const MOST_FILES: usize = 50;
const MOST_BYTES: usize = 256 << 10;
/// So many wait for a person at most.
const MOST_WAITING: usize = 100;
/// The key under which a skill says that words from outside were there when it was made.
const ORIGIN: &str = "mainstay-origin";

/// Proposes skills.
pub(crate) struct ProposeSkill {
    /// The agent has this tool, so it must not be held by it.
    agent: Weak<Parts>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// a-z, 0-9 and hyphens
    name: String,
    /// Why it is worth keeping, for the person who decides.
    reason: String,
    /// Files to write; the others of the skill stay.
    files: Vec<File>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct File {
    /// SKILL.md, scripts/…, references/… or assets/…
    path: String,
    /// All of it; left out, the file goes.
    content: Option<String>,
}

impl ProposeSkill {
    pub(crate) fn new(agent: Weak<Parts>) -> Self {
        Self { agent }
    }

    fn propose(&self, call: Invocation<'_>) -> Result<std::result::Result<Outcome, Outcome>> {
        let agent = match self.agent.upgrade() {
            Some(parts) => Agent { parts },
            None => return Ok(Err(refused("the agent is going"))),
        };
        let given: Arguments = match mainstay_tools::arguments(call.arguments) {
            Ok(given) => given,
            Err(outcome) => return Ok(Err(outcome)),
        };
        let Some(home) = &agent.settings().skills.home else {
            return Ok(Err(refused("there is no home to keep skills in")));
        };
        let ids = (call.id.parse::<Id>(), call.session.parse::<Id>().map(SessionId::from));
        let (Ok(id), Ok(session)) = ids else {
            return Ok(Err(refused("the call has no name")));
        };
        let (owner, store) = (agent.owner(), &agent.parts.store);
        let (waiting, tainted) = store.read(|tx| -> Result<_> {
            let waiting = proposal::list(tx, owner, Which::Waiting)?;
            Ok((waiting, taint::of_session(tx, session)?))
        })?;
        let others = waiting.iter().filter(|other| other.id != id).count();
        if others >= MOST_WAITING {
            return Ok(Err(refused("too many proposals wait for a person already")));
        }
        let shelf = Shelf::at(home);
        let origin = tainted.first().map(str::to_owned);
        let proposal = match drawn_up(&shelf, given, (id, session), origin) {
            Ok(proposal) => proposal,
            Err(what) => return Ok(Err(refused(&what))),
        };
        agent.write(|tx| proposal::propose(tx, owner, &proposal))?;
        let found = find(&agent.settings().skills, &call.workplace.workspace);
        let shadow = found.get(&proposal.name).filter(|skill| skill.origin != Origin::Home);
        let shadow = shadow.map_or(String::new(), |skill| {
            format!(" In this workspace {} holds before it.", skill.path.display())
        });
        let mut outcome = Outcome::said(format!(
            "Proposed as {id}. It waits for a person, who sees what it changes and approves or \
             rejects it (`mainstay skills approve {id}`, in a chat /skills). Nothing uses it before \
             that; go on without it.{shadow}"
        ));
        outcome.facts = vec![Fact::Proposed { skill: proposal.name }];
        Ok(Ok(outcome))
    }
}

impl Tool for ProposeSkill {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description:
                "Proposes a new skill or changes to one of the user's: what was learned in \
                          this session and is worth following again. A person decides. SKILL.md \
                          begins with YAML front matter: name, and a description that says what it \
                          does and when to use it."
                    .to_owned(),
            parameters: mainstay_tools::parameters::<Arguments>(),
        }
    }

    fn traits(&self) -> Traits {
        let wall = Duration::from_secs(60);
        Traits { replay: Replay::Idempotent, concurrency: Concurrency::Exclusive, wall }
    }

    fn exposure(&self) -> Exposure {
        Exposure::OnDemand
    }

    fn action(&self, call: &Invocation<'_>) -> Action {
        match mainstay_tools::arguments::<Arguments>(call.arguments) {
            Ok(given) if check_name(&given.name).is_ok() => {
                Action::Propose(format!("the skill {}", given.name))
            }
            // Nothing is written: the model is told what is wrong.
            _ => Action::Read,
        }
    }

    fn run<'a>(&'a self, call: Invocation<'a>, _plan: Option<&'a Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            match blocking(|| self.propose(call)) {
                Ok(Ok(outcome) | Err(outcome)) => outcome,
                Err(error) => refused(&error.to_string()),
            }
        })
    }
}

/// The proposal that a call asks for, or what is wrong with it.
fn drawn_up(
    shelf: &Shelf,
    given: Arguments,
    (id, session): (Id, SessionId),
    origin: Option<String>,
) -> std::result::Result<Proposal, String> {
    let Arguments { name, reason, files } = given;
    check_name(&name)?;
    if files.is_empty() || files.len() > MOST_FILES {
        return Err(format!("give 1 to {MOST_FILES} files"));
    }
    let bytes = files.iter().map(|file| file.content.as_ref().map_or(0, String::len));
    if bytes.sum::<usize>() > MOST_BYTES {
        return Err("the files are more than 256 KiB together".to_owned());
    }
    let mut changes: Vec<Change> = Vec::new();
    for File { path, content } in files {
        check_path(&path)?;
        if changes.iter().any(|change| change.path == path) {
            return Err(format!("{path} is there twice"));
        }
        if content.as_ref().is_some_and(|content| content.contains('\0')) {
            return Err(format!("{path} holds a NUL; only texts can be proposed"));
        }
        changes.push(Change { path, content });
    }
    let base = shelf.read(&name).map_err(|trouble| trouble.to_string())?;
    let before = base.clone().unwrap_or_default();
    let mut proposal = Proposal {
        id,
        session,
        name,
        reason: reason.chars().take(2_000).collect(),
        base: base.as_ref().map(Tree::hash),
        result: String::new(),
        files: changes,
        origin,
        state: State::Waiting,
        proposed_at: 0,
        decided_by: None,
        decided_at: None,
    };
    let mut after = proposal.applied(&before);
    after.front(&proposal.name)?;
    if let Some(path) = after.clash() {
        return Err(format!("{path} cannot be both a file and a folder"));
    }
    if after == before {
        return Err("it changes nothing".to_owned());
    }
    if let Some(origin) = &proposal.origin {
        let text = after.files.get(FILE).map(|file| String::from_utf8_lossy(&file.bytes));
        let words = format!("session {session}, which had read words from {origin}");
        let marked = with_metadata(&text.unwrap_or_default(), ORIGIN, &words)
            .ok_or("write the metadata in SKILL.md with a line for each key")?;
        after.change(FILE, Some(&marked));
        proposal.files.retain(|change| change.path != FILE);
        proposal.files.push(Change { path: FILE.to_owned(), content: Some(marked) });
    }
    proposal.result = after.hash();
    Ok(proposal)
}

fn refused(what: &str) -> Outcome {
    Outcome::failed(format!("Nothing was proposed: {what}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Files<'a> = &'a [(&'a str, Option<&'a str>)];

    fn given(files: Files<'_>) -> Arguments {
        let files = files.iter().map(|(path, content)| File {
            path: (*path).to_owned(),
            content: content.map(str::to_owned),
        });
        Arguments { name: "one".to_owned(), reason: "why".to_owned(), files: files.collect() }
    }

    fn drawn(shelf: &Shelf, given: Arguments) -> std::result::Result<Proposal, String> {
        drawn_up(shelf, given, (Id::new(), SessionId::new()), None)
    }

    const TEXT: &str = "---\nname: one\ndescription: x\n---\nDo it.\n";

    #[test]
    fn what_could_never_be_used_is_not_proposed() {
        let directory = tempfile::tempdir().unwrap();
        let shelf = Shelf::at(directory.path());
        let other = TEXT.replace("one", "two");
        let cases: [(Files<'_>, &str); 10] = [
            (&[], "1 to 50 files"),
            (&[("scripts/a.sh", Some("x"))], "no SKILL.md"),
            (&[("SKILL.md", Some("Do it."))], "first line is not ---"),
            (&[("SKILL.md", Some(&other))], "\"two\""),
            (&[("SKILL.md", Some(TEXT)), ("../x", Some("x"))], "no path below"),
            (&[("SKILL.md", Some(TEXT)), ("a", Some("\0"))], "holds a NUL"),
            (&[("SKILL.md", Some(TEXT)), ("SKILL.md", None)], "there twice"),
            (&[("SKILL.md", None)], "no SKILL.md"),
            (&[("SKILL.md", Some(TEXT)), ("SKILL.md/a", Some("x"))], "both a file and a folder"),
            (
                &[("SKILL.md", Some(TEXT)), ("a/b/c", Some("x")), ("a", Some("x"))],
                "a cannot be both",
            ),
        ];
        for (files, what) in cases {
            let said = drawn(&shelf, given(files)).unwrap_err();
            assert!(said.contains(what), "{files:?}: {said}");
        }
        let proposal = drawn(&shelf, given(&[("SKILL.md", Some(TEXT))])).unwrap();
        assert_eq!(proposal.base, None);
        shelf.lock().unwrap().put("one", &proposal.applied(&Tree::default()), None).unwrap();
        let said = drawn(&shelf, given(&[("SKILL.md", Some(TEXT))])).unwrap_err();
        assert!(said.contains("changes nothing"), "{said}");
        let more = drawn(&shelf, given(&[("scripts/a.sh", Some("#!/bin/sh\n"))])).unwrap();
        assert_eq!(more.base, Some(proposal.result));
    }

    #[test]
    fn a_tainted_session_is_named_in_what_it_proposes() {
        let directory = tempfile::tempdir().unwrap();
        let (shelf, ids) = (Shelf::at(directory.path()), (Id::new(), SessionId::new()));
        let origin = Some("example.org".to_owned());
        let proposal = drawn_up(&shelf, given(&[("SKILL.md", Some(TEXT))]), ids, origin).unwrap();
        let tree = proposal.applied(&Tree::default());
        let said = tree.front("one").unwrap().metadata[ORIGIN].as_str().unwrap().to_owned();
        assert!(said.ends_with("which had read words from example.org"), "{said}");
        assert_eq!(tree.hash(), proposal.result);
    }
}
