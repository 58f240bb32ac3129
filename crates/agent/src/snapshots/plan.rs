//! What an undo would do, before anything is done.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mainstay_journal::TurnId;
use mainstay_tools::Workplace;
use mainstay_tools::snapshot::{
    Limits, Looked, Omission, PathChange, State, escaped, look, unescaped, with_closed_directories,
};
use serde::Serialize;

use super::changes::RecordedChange;
use super::objects::Object;

/// What is to be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoTarget {
    /// The last turn that changed files and is not undone yet.
    Last,
    /// Everything since before the turn with this number.
    From(i64),
    /// The last undo.
    Undo,
}

/// What becomes of files that somebody else changed after the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflicts {
    /// Nothing is done at all while there are any.
    Refuse,
    /// They are put back too; how they are now is kept for an undo of the undo.
    Overwrite,
    /// They are left as they are.
    Keep,
}

/// What an undo would do.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The numbers of the turns that are undone, or whose undo is taken back.
    pub turns: Vec<i64>,
    /// What is done, path by path.
    pub steps: Vec<PathChange>,
    /// Files that somebody else changed after the turn.
    pub conflicts: Vec<Conflict>,
    /// What cannot be put back, and why.
    pub not_kept: Vec<(String, Omission)>,
    /// Files that have other names too, which keep what they hold now.
    pub linked: Vec<String>,
    /// Whether nobody saw how things were when the last of the turns ended, so that everything that
    /// changed since is taken for its work.
    pub unseen: bool,
    /// Whether it must not be done while there are conflicts.
    pub(crate) refuses: bool,
    pub(crate) turn_ids: Vec<TurnId>,
    /// The undo that is taken back.
    pub(crate) taken_back: Option<String>,
    /// What is replaced, so that it can be brought back.
    pub(crate) objects: Vec<Object>,
}

/// A file that somebody else changed after the turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// Its path, escaped.
    pub path: String,
    /// What is there now, in words.
    pub now: String,
}

impl Plan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.conflicts.is_empty()
    }
}

/// Goes back over changes, the last first, from how things are now.
pub(crate) struct Planner<'a> {
    workplace: &'a Workplace,
    limits: &'a Limits,
    conflicts: Conflicts,
    /// How it is, and how it is to be.
    paths: BTreeMap<String, (Looked, State)>,
    plan: Plan,
}

impl<'a> Planner<'a> {
    pub(crate) fn new(workplace: &'a Workplace, limits: &'a Limits, conflicts: Conflicts) -> Self {
        Self { workplace, limits, conflicts, paths: BTreeMap::new(), plan: Plan::default() }
    }

    /// Goes back over one change.
    pub(crate) fn take_back(&mut self, change: RecordedChange) {
        let RecordedChange { path, before, after } = change;
        let workplace = self.workplace;
        let limits = self.limits;
        let (looked, virtually) = self.paths.entry(path.clone()).or_insert_with(|| {
            let looked = look(workplace, &unescaped(&path), limits);
            let state = looked.state.clone();
            (looked, state)
        });
        let after = after.unwrap_or_else(|| virtually.clone());
        if *virtually == before || before == after {
            return;
        }
        // What was not kept, or was made and is not looked into, stays as it is.
        for state in [&before, &after, &looked.state] {
            if let State::Left(why) = state {
                if *why != Omission::Git {
                    self.plan.not_kept.push((path, *why));
                }
                return;
            }
        }
        if *virtually == after {
            *virtually = before;
            return;
        }
        if let (State::Directory { .. }, State::Directory { .. }) = (&before, &*virtually) {
            // Only its mode differs; what is in it stands for itself.
            return;
        }
        self.plan.conflicts.push(Conflict { path, now: looked.state.kind_name().to_owned() });
        if self.conflicts == Conflicts::Overwrite {
            *virtually = before;
        }
    }

    /// Leaves what is behind a link by now, unless the directory that was there comes back.
    fn leave_behind(&mut self) {
        let comes_back = |link: &PathBuf| {
            let step = self.paths.get(&escaped(link));
            step.is_some_and(|(_, to)| matches!(to, State::Directory { .. }))
        };
        let is_behind = |(looked, _): &(Looked, State)| {
            looked.behind.as_ref().is_some_and(|link| !comes_back(link))
        };
        let behind: Vec<String> = self
            .paths
            .iter()
            .filter(|(_, found)| is_behind(found))
            .map(|(path, _)| path.clone())
            .collect();
        for path in behind {
            self.paths.remove(&path);
            self.plan.conflicts.retain(|conflict| conflict.path != path);
            self.plan.not_kept.push((path, Omission::Behind));
        }
    }

    pub(crate) fn done(mut self) -> Plan {
        self.leave_behind();
        let mut steps = Vec::new();
        for (path, (looked, to)) in self.paths {
            if looked.state == to {
                continue;
            }
            if looked.has_other_names {
                self.plan.linked.push(path.clone());
            }
            self.plan.objects.extend(looked.objects);
            steps.push(PathChange { path, from: looked.state, to });
        }
        self.plan.steps = with_closed_directories(steps);
        self.plan.refuses = self.conflicts == Conflicts::Refuse;
        self.plan.not_kept.sort();
        self.plan.not_kept.dedup();
        self.plan
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests may do as they like")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use mainstay_tools::Keeper;
    use mainstay_tools::keeper::Launch;

    use super::*;

    #[test]
    fn what_is_behind_a_link_by_now_is_no_step_and_no_conflict_and_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let work = directory.path().canonicalize().unwrap().join("work");
        fs::create_dir_all(work.join("elsewhere")).unwrap();
        fs::write(work.join("elsewhere/f"), "theirs").unwrap();
        symlink("elsewhere", work.join("d")).unwrap();
        let keeper = Keeper::new(Launch {
            program: "/nonexistent".into(),
            arguments: Vec::new(),
            spool: "/nonexistent".into(),
            grace: std::time::Duration::ZERO,
        });
        let workplace = Workplace::new(&work, keeper);
        let limits = Limits::default();
        let file = |objects: &str| State::File { mode: 0o644, objects: objects.into(), size: 1 };
        let change = |path: &str, before, after| RecordedChange {
            path: escaped(&work.join(path)),
            before,
            after: Some(after),
        };
        let of_files =
            || [change("d/f", file("a"), file("b")), change("d/g", State::Absent, file("b"))];
        let mut planner = Planner::new(&workplace, &limits, Conflicts::Overwrite);
        of_files().into_iter().for_each(|change| planner.take_back(change));
        let plan = planner.done();
        assert!(plan.is_empty(), "{plan:?}");
        let behind = |path: &str| (escaped(&work.join(path)), Omission::Behind);
        assert_eq!(plan.not_kept, [behind("d/f"), behind("d/g")]);

        let link = State::Link { target: "elsewhere".to_owned() };
        let mut planner = Planner::new(&workplace, &limits, Conflicts::Overwrite);
        of_files().into_iter().for_each(|change| planner.take_back(change));
        planner.take_back(change("d", State::Directory { mode: 0o755 }, link));
        let plan = planner.done();
        assert_eq!(plan.not_kept, []);
        let steps: Vec<&str> = plan.steps.iter().map(|step| step.path.as_str()).collect();
        assert_eq!(steps, ["d", "d/f"].map(|path| escaped(&work.join(path))));
    }
}
