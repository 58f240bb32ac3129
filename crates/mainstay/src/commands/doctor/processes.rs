//! What runs for agents, who keeps it, and what nobody keeps any more.

use mainstay_store::Liveness;
use mainstay_tools::keeper::{KeeperFound, Survey};
use mainstay_tools::sandbox::ProcessWay;

use super::finding::Finding;
use crate::paths::Paths;
use crate::wording;

/// So many processes are named.
const NAMED: usize = 5;

/// What keepers keep, and what outlived one: the next command ends that.
pub(super) fn kept(survey: &Survey, way: ProcessWay, paths: &Paths) -> Vec<Finding> {
    let mut findings: Vec<Finding> = survey.keepers.iter().filter_map(stopped).collect();
    if !survey.outlived.is_empty() {
        let named = survey.outlived.iter().take(NAMED);
        let named: Vec<String> =
            named.map(|left| format!("{} ({})", left.pid, left.command)).collect();
        let more = survey.outlived.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let number = u64::try_from(survey.outlived.len()).unwrap_or(u64::MAX);
        findings.push(Finding::warning(
            "processes",
            format!(
                "{} outlived a keeper that was killed, and the next command of Mainstay ends that: \
                 {}{more}",
                if number == 1 { "1 process".to_owned() } else { format!("{number} processes") },
                named.join(", ")
            ),
            paths.command("sessions list"),
        ));
    }
    if findings.is_empty() {
        findings.push(Finding::ok("processes", well(&survey.keepers, way)));
    }
    findings
}

/// A keeper that does not move keeps others from its jobs.
fn stopped(keeper: &KeeperFound) -> Option<Finding> {
    (keeper.liveness == Liveness::Stopped).then(|| {
        Finding::warning(
            "processes",
            format!("the keeper {} (process {}) is stopped", keeper.name, keeper.pid),
            format!("kill -CONT {}", keeper.pid),
        )
    })
}

fn well(keepers: &[KeeperFound], way: ProcessWay) -> String {
    let held: Vec<String> = keepers
        .iter()
        .filter(|keeper| keeper.liveness == Liveness::Alive)
        .map(|keeper| {
            let jobs = wording::count(u64::try_from(keeper.jobs).unwrap_or(u64::MAX), "job");
            format!("process {} keeps {jobs}", keeper.pid)
        })
        .collect();
    let held = if held.is_empty() { "none are kept".to_owned() } else { held.join(", ") };
    let way = match way {
        ProcessWay::Namespace => {
            "a process namespace ends commands in the sandbox with their keeper"
        }
        ProcessWay::Stamp => {
            "the kernel gives no process namespace, so commands whose keeper was killed with its \
             guard run until the next command of Mainstay ends them"
        }
    };
    format!("{held}; {way}")
}

#[cfg(test)]
mod tests {
    use mainstay_tools::keeper::Left;

    use super::super::finding::Status;
    use super::*;
    use crate::paths::Globals;

    fn judged(survey: &Survey) -> Vec<Finding> {
        let globals = Globals { home: Some("/h".into()), ..Globals::default() };
        kept(survey, ProcessWay::Stamp, &Paths::resolve(&globals).unwrap())
    }

    #[test]
    fn what_is_kept_is_told_with_who_keeps_it_and_what_nobody_keeps_with_what_to_do() {
        let keeper = |liveness| KeeperFound { name: "k".to_owned(), pid: 7, liveness, jobs: 2 };
        let well = judged(&Survey { keepers: vec![keeper(Liveness::Alive)], outlived: vec![] });
        assert_eq!(well[0].status, Status::Ok);
        assert!(well[0].message.starts_with("process 7 keeps 2 jobs; "), "{}", well[0].message);
        let left = |pid| Left { pid, inside: None, command: "sleep 9".to_owned() };
        let outlived = (1..=7).map(left).collect();
        let bad = judged(&Survey { keepers: vec![keeper(Liveness::Stopped)], outlived });
        assert_eq!(bad.len(), 2);
        assert_eq!(bad[0].next.as_deref(), Some("kill -CONT 7"));
        assert!(bad[1].message.contains("7 processes outlived"), "{}", bad[1].message);
        assert!(bad[1].message.ends_with("5 (sleep 9) and 2 more"), "{}", bad[1].message);
        assert_eq!(bad[1].next.as_deref(), Some("mainstay --home /h sessions list"));
    }
}
