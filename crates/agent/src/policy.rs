//! The policy: what may be done without asking.

pub mod command;
pub(crate) mod place;

use std::path::Path;

use mainstay_tools::Action;

use place::is_inside;

/// What happens when an action of some kind is about to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is done.
    Allow,
    /// A person is asked.
    Ask,
    /// It is not done.
    Deny,
}

/// A decision for every kind of action. Reading is always allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Changing files in the workspace.
    pub write: Decision,
    /// Changing files elsewhere.
    pub write_outside: Decision,
    /// Running commands.
    pub execute: Decision,
    /// Reaching places on the network.
    pub network: Decision,
    /// Leaving something that later sessions go by.
    pub persist: Decision,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            write: Decision::Allow,
            write_outside: Decision::Ask,
            execute: Decision::Ask,
            network: Decision::Ask,
            persist: Decision::Ask,
        }
    }
}

impl Policy {
    /// What is to happen with an action in this workspace.
    pub fn decide(&self, action: &Action, workspace: &Path) -> Decision {
        match action {
            Action::Read => Decision::Allow,
            Action::Write(path) if is_inside(path, workspace) => self.write,
            Action::Write(_) => self.write_outside,
            Action::Execute(_) => self.execute,
            Action::Network(_) => self.network,
            Action::Persist(_) => self.persist,
        }
    }

    /// The same policy with every question answered by yes.
    #[must_use]
    pub fn answered_yes(self) -> Self {
        let yes = |decision| match decision {
            Decision::Ask => Decision::Allow,
            settled => settled,
        };
        Self {
            write: yes(self.write),
            write_outside: yes(self.write_outside),
            execute: yes(self.execute),
            network: yes(self.network),
            persist: yes(self.persist),
        }
    }
}

/// What the action is, in words for a person.
pub fn spoken(action: &Action) -> String {
    match action {
        Action::Read => "to look at something".to_owned(),
        Action::Write(path) => format!("to change {}", path.display()),
        Action::Execute(command) => format!("to run `{command}`"),
        Action::Network(places) => format!("to reach {}", places.join(", ")),
        Action::Persist(what) => format!("to remember {what}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inside_and_outside_are_told_apart_through_links_and_dots() {
        let directory = tempfile::tempdir().unwrap();
        let workspace = directory.path().join("work");
        std::fs::create_dir_all(workspace.join("sub")).unwrap();
        std::os::unix::fs::symlink("/etc", workspace.join("link")).unwrap();
        std::os::unix::fs::symlink("../../new", workspace.join("sub/dangling")).unwrap();
        let policy = Policy::default();
        let cases = [
            ("a.txt", Decision::Allow),
            ("sub/new/deep.txt", Decision::Allow),
            ("sub/../a.txt", Decision::Allow),
            ("../a.txt", Decision::Ask),
            ("link/passwd", Decision::Ask),
            ("sub/dangling", Decision::Ask),
            ("/etc/passwd", Decision::Ask),
            ("new/../../x", Decision::Ask),
        ];
        for (path, expected) in cases {
            let decided = policy.decide(&Action::Write(path.into()), &workspace);
            assert_eq!(decided, expected, "{path}");
        }
    }

    #[test]
    fn yes_answers_questions_and_lifts_no_ban() {
        let policy = Policy { execute: Decision::Deny, ..Policy::default() }.answered_yes();
        let run = Action::Execute("ls".to_owned());
        assert_eq!(policy.decide(&run, Path::new("/")), Decision::Deny);
        assert_eq!(policy.write_outside, Decision::Allow);
    }
}
