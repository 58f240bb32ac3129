//! Background processes: their ends are written down, whoever saw them, and told once a turn.

use std::collections::BTreeSet;

use mainstay_journal::process::{self, Process, State};
use mainstay_tools::keeper::{Attached, Collected, Ended};
use mainstay_tools::{KnownProcess, ProcessState};

use crate::Result;
use crate::session::open::OpenSession;

/// Finds out what became of the processes that another process of the agent left.
pub(crate) async fn reconcile(session: &mut OpenSession) -> Result<()> {
    let agent = session.agent.clone();
    let id = session.id;
    let rows = agent.read(|tx| process::owed(tx, id))?;
    session.has_processes = !rows.is_empty();
    let mut ended: Vec<(String, String)> = Vec::new();
    let keepers: BTreeSet<&str> = running(&rows).map(|row| row.keeper.as_str()).collect();
    for name in keepers {
        let attached = agent.parts.keeper.attach(name, id.as_str()).await;
        for row in running(&rows).filter(|row| row.keeper == name) {
            if let Some(ending) = ending(session, &attached, row) {
                ended.push((row.id.clone(), ending));
            }
        }
    }
    write_down(session, &ended)?;
    for row in rows {
        let now = ended.iter().find(|(id, _)| *id == row.id).map(|(_, ending)| ending.clone());
        let state = match now.or(row.ending) {
            Some(ending) => ProcessState::Ended(ending),
            None => ProcessState::Running,
        };
        session.workplace.processes.load([KnownProcess {
            name: row.id,
            keeper: row.keeper,
            command: row.command,
            state,
            // Another process of the agent may have written to it.
            input: None,
        }]);
    }
    Ok(())
}

/// Writes down the ends that the keeper told since the last time.
pub(crate) fn note_endings(session: &mut OpenSession) -> Result<()> {
    if !session.has_processes {
        return Ok(());
    }
    let id = session.id.to_string();
    let mut ended = Vec::new();
    for ending in session.agent.parts.endings.take(&id) {
        session.workplace.processes.ended(&ending.key, &ending.ended);
        ended.push((ending.key.clone(), ending_text(&ending.ended)));
    }
    write_down(session, &ended)
}

/// Ends all that runs for the session and writes down how it ended.
pub(crate) async fn end_all(session: &mut OpenSession) -> Result<()> {
    let agent = session.agent.clone();
    let id = session.id.to_string();
    // Whoever took the session over has its processes too.
    if !session.has_processes || !session.lease.is_live() {
        return Ok(());
    }
    agent.parts.keeper.stop_session(&id).await;
    note_endings(session)?;
    // Whatever the keeper did not announce is asked for by name.
    let rows = agent.read(|tx| process::owed(tx, session.id))?;
    let mut ended = Vec::new();
    for row in running(&rows) {
        let how = match agent.parts.keeper.poll(&row.id).await {
            Ok(status) => status.ended.map(|ended| ending_text(&ended)),
            Err(_) => None,
        };
        ended.push((
            row.id.clone(),
            how.unwrap_or_else(|| "it was ended when Mainstay exited".to_owned()),
        ));
    }
    write_down(session, &ended)
}

/// What the model is told of an end.
pub(crate) fn announcement(process: &Process) -> String {
    format!(
        "the background process {} (`{}`) ended: {}. Acknowledge it with the process tool once you \
         have acted on it",
        process.id,
        process.command,
        process.ending.as_deref().unwrap_or("how is not known")
    )
}

fn running(rows: &[Process]) -> impl Iterator<Item = &Process> {
    rows.iter().filter(|row| row.state == State::Running)
}

/// How a process ended. Returns `None` while it runs.
fn ending(session: &OpenSession, attached: &Attached, row: &Process) -> Option<String> {
    match attached {
        Attached::Alive(jobs) => {
            let job = jobs.iter().find(|job| job.key == row.id)?;
            let ended = job.ended.as_ref()?;
            job.left.is_empty().then(|| ending_text(ended))
        }
        // As far as anybody knows it runs.
        Attached::Silent => None,
        Attached::Gone => match session.agent.parts.keeper.collect(&row.keeper, &row.id) {
            Collected::Ended(ended) => Some(ending_text(&ended)),
            Collected::NeverStarted => Some("it never started".to_owned()),
            Collected::Running | Collected::InDoubt(_) => {
                Some("how is not known: its keeper was killed, and it with it".to_owned())
            }
        },
    }
}

fn ending_text(ended: &Ended) -> String {
    match &ended.rest {
        Some(why) => format!("{}, and what it left running was killed: {why}", ended.how),
        None => ended.how.to_string(),
    }
}

fn write_down(session: &OpenSession, ended: &[(String, String)]) -> Result<()> {
    if ended.is_empty() {
        return Ok(());
    }
    session.write(|tx| {
        for (id, ending) in ended {
            process::ended(tx, id, ending)?;
        }
        Ok(())
    })
}
