//! Background processes: their ends are written down, whoever saw them, and told once a turn.

use std::collections::BTreeSet;

use mainstay_journal::process::{self, Process, State};
use mainstay_tools::keeper::{Attached, Collected, Ended};
use mainstay_tools::{KnownProcess, ProcessState};

use crate::Result;
use crate::session::open::OpenSession;

/// Finds out what became of the processes that another process of the agent left.
pub(crate) async fn reconcile(work: &mut OpenSession) -> Result<()> {
    let (agent, session) = (work.agent.clone(), work.id);
    let rows = agent.read(|tx| process::owed(tx, session))?;
    work.has_processes = !rows.is_empty();
    let mut ended: Vec<(String, String)> = Vec::new();
    let keepers: BTreeSet<&str> = running(&rows).map(|row| row.keeper.as_str()).collect();
    for name in keepers {
        let attached = agent.parts.keeper.attach(name, session.as_str()).await;
        for row in running(&rows).filter(|row| row.keeper == name) {
            if let Some(ending) = ending(work, &attached, row) {
                ended.push((row.id.clone(), ending));
            }
        }
    }
    write_down(work, &ended)?;
    for row in rows {
        let now = ended.iter().find(|(id, _)| *id == row.id).map(|(_, ending)| ending.clone());
        let state = match now.or(row.ending) {
            Some(ending) => ProcessState::Ended(ending),
            None => ProcessState::Running,
        };
        work.workplace.processes.load([KnownProcess {
            name: row.id,
            keeper: row.keeper,
            command: row.command,
            state,
        }]);
    }
    Ok(())
}

/// Writes down the ends that the keeper told since the last time.
pub(crate) fn note_endings(work: &mut OpenSession) -> Result<()> {
    if !work.has_processes {
        return Ok(());
    }
    let session = work.id.to_string();
    let mut ended = Vec::new();
    for ending in work.agent.parts.endings.take(&session) {
        work.workplace.processes.ended(&ending.key, &ending.ended);
        ended.push((ending.key.clone(), ending_text(&ending.ended)));
    }
    write_down(work, &ended)
}

/// Ends all that runs for the session and writes down how it ended.
pub(crate) async fn end_all(work: &mut OpenSession) -> Result<()> {
    let (agent, session) = (work.agent.clone(), work.id.to_string());
    // Whoever took the session over has its processes too.
    if !work.has_processes || !work.lease.is_live() {
        return Ok(());
    }
    agent.parts.keeper.stop_session(&session).await;
    note_endings(work)?;
    // Whatever the keeper did not announce is asked for by name.
    let rows = agent.read(|tx| process::owed(tx, work.id))?;
    let mut ended = Vec::new();
    for row in running(&rows) {
        let how = match agent.parts.keeper.poll(&row.id).await {
            Ok(status) => status.ended.map(|ended| ending_text(&ended)),
            Err(_) => None,
        };
        ended.push((row.id.clone(), how.unwrap_or_else(|| "ended when the agent left".to_owned())));
    }
    write_down(work, &ended)
}

/// What the model is told of an end.
pub(crate) fn announcement(process: &Process) -> String {
    format!(
        "the background process {} (`{}`) ended: {}. Acknowledge it with the process tool once you \
         have acted on it",
        process.id,
        process.command,
        process.ending.as_deref().unwrap_or("nobody saw how")
    )
}

fn running(rows: &[Process]) -> impl Iterator<Item = &Process> {
    rows.iter().filter(|row| row.state == State::Running)
}

/// How a process ended; nothing while it runs.
fn ending(work: &OpenSession, attached: &Attached, row: &Process) -> Option<String> {
    match attached {
        Attached::Alive(jobs) => {
            let job = jobs.iter().find(|job| job.key == row.id)?;
            let ended = job.ended.as_ref()?;
            job.left.is_empty().then(|| ending_text(ended))
        }
        Attached::Gone => match work.agent.parts.keeper.collect(&row.keeper, &row.id) {
            Collected::Ended(ended) => Some(ending_text(&ended)),
            Collected::NeverStarted => Some("it never started".to_owned()),
            Collected::Running | Collected::InDoubt(_) => {
                Some("nobody saw how: its keeper was killed, and it with it".to_owned())
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

fn write_down(work: &OpenSession, ended: &[(String, String)]) -> Result<()> {
    if ended.is_empty() {
        return Ok(());
    }
    let lease = &work.lease;
    work.agent.write(|tx| {
        lease.guard(tx)?;
        for (id, ending) in ended {
            process::ended(tx, id, ending)?;
        }
        Ok(())
    })
}
