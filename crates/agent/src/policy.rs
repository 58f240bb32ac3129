//! The policy: what may be done without asking.

pub mod command;
mod leaving;
mod place;
mod rule;
mod tainted;

use std::path::Path;

use leaving::Leaving;
use mainstay_journal::turn::Mode;
use mainstay_store::{FromValue, ToValue, ValueRef};
use mainstay_tools::{Action, Grant};
use place::PathPlace;
pub use rule::{Need, Rule};
use serde::Serialize;

/// The kinds of action that a policy tells apart. Later ones are worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionClass {
    /// Looking at something.
    Read,
    /// Changing files in the workspace.
    Write,
    /// Changing files elsewhere.
    WriteOutside,
    /// Reaching places on the network.
    Network,
    /// Leaving something that later sessions go by.
    Persist,
    /// Running code.
    Execute,
    /// Destroying what cannot be put back.
    Destructive,
    /// Becoming another user.
    Privilege,
    /// Calling Mainstay itself.
    Control,
}

/// What happens when an action of some kind is about to be done. Later ones are stricter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// It is done.
    Allow,
    /// A person is asked.
    Ask,
    /// It is not done.
    Deny,
}

/// A decision for every kind of action. It is plain data: a profile can bring another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// What holds commands: in a [boxed](Mode::is_boxed) mode the kernel does, and a line that nobody can
    /// read is code like any other.
    pub mode: Mode,
    /// Looking at something, also by commands that do nothing else.
    pub read: Decision,
    /// Changing files in the workspace, also by commands that do nothing else.
    pub write: Decision,
    /// Changing files elsewhere.
    pub write_outside: Decision,
    /// Running code. Where it is denied no command runs at all.
    pub execute: Decision,
    /// Reaching places on the network.
    pub network: Decision,
    /// Leaving something that later sessions go by.
    pub persist: Decision,
    /// Running commands that destroy what cannot be put back, or that become another user.
    pub destructive: Decision,
    /// What at least happens before a session with words from outside leaves something that later
    /// sessions go by, or reaches a new place.
    pub tainted: Decision,
}

impl Default for Policy {
    fn default() -> Self {
        Self::of_mode(Mode::Ask)
    }
}

impl Policy {
    /// What a mode allows, asks and denies where the user says nothing else.
    pub fn of_mode(mode: Mode) -> Self {
        let asking = Self {
            mode,
            read: Decision::Allow,
            write: Decision::Allow,
            write_outside: Decision::Ask,
            execute: Decision::Ask,
            network: Decision::Ask,
            persist: Decision::Ask,
            destructive: Decision::Ask,
            tainted: Decision::Ask,
        };
        match mode {
            Mode::Ask => asking,
            Mode::Yes => asking.answered_yes(),
            Mode::Auto => Self { execute: Decision::Allow, ..asking },
            Mode::Plan => Self {
                write: Decision::Deny,
                write_outside: Decision::Deny,
                execute: Decision::Allow,
                persist: Decision::Deny,
                destructive: Decision::Deny,
                ..asking
            },
        }
    }
}

/// An action, and how a command line in it was read: once, before it does anything, so that whoever asks
/// goes by the same reading.
#[derive(Clone, Debug)]
pub struct Act {
    action: Action,
    /// How the command line was read. It is empty if the action runs nothing.
    line: command::LineJudgement,
    /// What it asks to be allowed beyond the sandbox.
    wants: Grant,
}

impl Act {
    /// Reads an action that is to be done in a workspace.
    pub fn new(action: Action, workspace: &Path) -> Self {
        let line = match &action {
            Action::Execute(line) => command::judge(line, workspace),
            Action::Input { command, before, text } => {
                command::judge_input(command, before.as_deref(), text, workspace)
            }
            _ => command::LineJudgement::default(),
        };
        Self { action, line, wants: Grant::default() }
    }

    /// The same, which asks to be allowed something beyond the sandbox.
    #[must_use]
    pub fn wanting(self, wants: Grant) -> Self {
        Self { wants, ..self }
    }

    /// The action.
    pub fn action(&self) -> &Action {
        &self.action
    }

    /// How the command line in it was read.
    pub fn line(&self) -> &command::LineJudgement {
        &self.line
    }

    /// Whether it runs this command line.
    pub fn runs(&self, command: &str) -> bool {
        matches!(&self.action, Action::Execute(line) if line == command)
    }
}

/// What the policy makes of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// What is to happen.
    pub decision: Decision,
    /// What the action is taken for, at its worst.
    pub class: ActionClass,
    /// Why, if there is more to say than the class: a clause such as "it runs code".
    pub reason: Option<String>,
    /// What a person would have to have said "always" to. It is `None` if it must be asked each time.
    pub needs: Option<Vec<Need>>,
    /// What it may do beyond the sandbox if it is done.
    pub grant: Grant,
}

impl Policy {
    /// What is to happen with actions of a class. An agent never decides about itself.
    pub fn of(&self, class: ActionClass) -> Decision {
        match class {
            ActionClass::Read => self.read,
            ActionClass::Write => self.write,
            ActionClass::WriteOutside => self.write_outside,
            ActionClass::Network => self.network,
            ActionClass::Persist => self.persist,
            ActionClass::Execute => self.execute,
            ActionClass::Destructive | ActionClass::Privilege => self.destructive,
            ActionClass::Control => Decision::Deny,
        }
    }

    /// What is to happen with an action in this workspace.
    pub fn judge(&self, act: &Act, workspace: &Path) -> Judgement {
        match act.action() {
            Action::Read => self.simply(ActionClass::Read, None),
            Action::Write(path) => {
                let class = match place::locate(path, workspace) {
                    PathPlace::Inside | PathPlace::Root => ActionClass::Write,
                    // What git keeps there is run by git, outside of any box.
                    PathPlace::Git | PathPlace::Temporary | PathPlace::Outside => {
                        ActionClass::WriteOutside
                    }
                };
                // Most writes are allowed and remember nothing.
                let judged = match self.of(class) {
                    Decision::Ask => self.simply(class, Need::directory(path, workspace)),
                    _ => self.simply(class, None),
                };
                let write = match class {
                    ActionClass::WriteOutside => place::real(&workspace.join(path)),
                    _ => None,
                };
                let grant = Grant { write: write.into_iter().collect(), ..Grant::default() };
                Judgement { grant, ..judged }
            }
            Action::Execute(line) => self.judge_line(line, &act.line, &act.wants, workspace),
            Action::Input { text, .. } => self.judge_line(text, &act.line, &act.wants, workspace),
            Action::Network(places) => {
                let hosts: Option<Vec<Need>> =
                    places.iter().map(|place| Need::host(place)).collect();
                Judgement { needs: hosts, ..self.simply(ActionClass::Network, None) }
            }
            Action::Persist(_) => self.simply(ActionClass::Persist, None),
            // The person is asked when they decide about it; to ask before as well says nothing new.
            Action::Propose(_) => {
                let judged = self.simply(ActionClass::Persist, None);
                Judgement { decision: unless_denied(judged.decision), ..judged }
            }
            // Asking asks by itself, and what a child does is judged when it does it.
            Action::Ask { .. } | Action::Delegate(_) => {
                Judgement { decision: Decision::Allow, ..self.simply(ActionClass::Read, None) }
            }
        }
    }

    fn simply(&self, class: ActionClass, need: Option<Need>) -> Judgement {
        Judgement {
            decision: self.of(class),
            class,
            reason: None,
            needs: need.map(|need| vec![need]),
            grant: Grant::default(),
        }
    }

    /// The strictest decision on anything that a command line may do. In a box the kernel decides what
    /// it does, so only what would leave the box counts.
    fn judge_line(
        &self,
        line: &str,
        judged: &command::LineJudgement,
        wants: &Grant,
        workspace: &Path,
    ) -> Judgement {
        let leaving = Leaving::of(judged, wants, self.mode, workspace);
        let (stages, classes) = (&leaving.stages, leaving.classes());
        let strictest = |classes: command::Classes| {
            classes.iter().map(|class| self.of(class.into())).max().unwrap_or(Decision::Ask)
        };
        let mut decision = strictest(classes);
        // The worst of what leads to the decision.
        let deciding = classes.iter().filter(|class| self.of((*class).into()) == decision).last();
        let deciding = deciding.unwrap_or_else(|| classes.worst());
        if self.execute == Decision::Deny {
            decision = Decision::Deny;
        }
        let class = ActionClass::from(deciding);
        let reason = match (judged.unclear, stages.as_slice()) {
            (Some(why), _) if !self.mode.is_boxed() => {
                format!("its effect cannot be determined: {why}")
            }
            (_, [_]) => format!("it {}", deciding.describe()),
            (_, stages) => {
                let worst = stages.iter().find(|stage| stage.classes.has(deciding));
                let text = worst.map_or(line, |stage| &stage.text);
                format!("`{text}` {}", deciding.describe())
            }
        };
        let asking = stages.iter().filter(|stage| strictest(stage.classes) != Decision::Allow);
        let needs = asking.map(Need::command).collect();
        let needs = if class.is_severe() { None } else { needs };
        Judgement { decision, class, reason: Some(reason), needs, grant: leaving.grant }
    }

    /// The same policy with every question answered by yes.
    #[must_use]
    pub fn answered_yes(self) -> Self {
        self.each(unless_denied)
    }

    /// The same policy with each of its decisions changed.
    #[must_use]
    pub fn each(self, change: impl Fn(Decision) -> Decision) -> Self {
        Self {
            mode: self.mode,
            read: change(self.read),
            write: change(self.write),
            write_outside: change(self.write_outside),
            execute: change(self.execute),
            network: change(self.network),
            persist: change(self.persist),
            destructive: change(self.destructive),
            tainted: change(self.tainted),
        }
    }
}

/// The decision if every question is answered with yes.
fn unless_denied(decision: Decision) -> Decision {
    match decision {
        Decision::Ask => Decision::Allow,
        settled => settled,
    }
}

impl ActionClass {
    /// Each with its name, the most harmless first.
    const NAMES: [(Self, &'static str); 9] = [
        (Self::Read, "read"),
        (Self::Write, "write"),
        (Self::WriteOutside, "write_outside"),
        (Self::Network, "network"),
        (Self::Persist, "persist"),
        (Self::Execute, "execute"),
        (Self::Destructive, "destructive"),
        (Self::Privilege, "privilege"),
        (Self::Control, "control"),
    ];

    /// Whether a yes holds for one call only and takes more than a key.
    pub fn is_severe(self) -> bool {
        self >= Self::Destructive
    }

    /// Its name, as in the configuration and in JSON.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize].1
    }
}

impl From<command::Class> for ActionClass {
    fn from(class: command::Class) -> Self {
        match class {
            command::Class::Read => Self::Read,
            command::Class::WriteInside => Self::Write,
            command::Class::WriteOutside => Self::WriteOutside,
            command::Class::Network => Self::Network,
            command::Class::Execute => Self::Execute,
            command::Class::Destructive => Self::Destructive,
            command::Class::Privilege => Self::Privilege,
            command::Class::Control => Self::Control,
        }
    }
}

impl ToValue for ActionClass {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Text(self.as_str())
    }
}

impl FromValue for ActionClass {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        let ValueRef::Text(word) = value else { return None };
        Self::NAMES.iter().find(|(_, name)| *name == word).map(|(class, _)| *class)
    }
}

/// Describes an action to a person, in full: "to run `make`".
pub fn describe_action(action: &Action) -> String {
    let words = match action {
        Action::Read => "to read".to_owned(),
        Action::Write(path) => format!("to change {}", path.display()),
        Action::Execute(command) => format!("to run `{command}`"),
        Action::Input { command, text, .. } => format!("to write `{text}` to `{command}`"),
        Action::Network(places) => format!("to reach {}", places.join(", ")),
        Action::Persist(what) => format!("to remember {what}"),
        Action::Propose(what) => format!("to propose {what}"),
        // It does nothing, and may have signs in it that only join others.
        Action::Ask { question, .. } => return format!("to ask: {question}"),
        Action::Delegate(task) => format!("to have this done: {task}"),
    };
    crate::skills::visible(&words)
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
            (".git/hooks/pre-commit", Decision::Ask),
            ("../a.txt", Decision::Ask),
            ("link/passwd", Decision::Ask),
            ("sub/dangling", Decision::Ask),
            ("/etc/passwd", Decision::Ask),
            ("new/../../x", Decision::Ask),
        ];
        for (path, expected) in cases {
            let judged =
                policy.judge(&Act::new(Action::Write(path.into()), &workspace), &workspace);
            assert_eq!(judged.decision, expected, "{path}");
        }
    }

    #[test]
    fn who_is_asked_sees_all_of_what_is_to_be_done() {
        let run = Action::Execute("rm -rf x\u{1b}[2K\r\u{202e}".to_owned());
        assert_eq!(describe_action(&run), "to run `rm -rf x\\u{1b}[2K\\u{d}\\u{202e}`");
        let keep = Action::Persist("“a\u{1b}[8m b”".to_owned());
        assert_eq!(describe_action(&keep), "to remember “a\\u{1b}[8m b”");
    }

    #[test]
    fn each_mode_asks_about_what_leaves_its_box_and_says_what_a_yes_grants() {
        use Decision::{Allow, Ask, Deny};
        let directory = tempfile::tempdir().unwrap();
        let elsewhere = directory.path().canonicalize().unwrap().join("elsewhere");
        let workspace = directory.path().join("work");
        std::fs::create_dir(&elsewhere).unwrap();
        std::fs::create_dir(&workspace).unwrap();
        let far = format!("touch {}/x", elsewhere.display());
        // What plan, ask, auto and yes make of a line, and what auto would grant.
        let cases: [(&str, [Decision; 4], &str); 14] = [
            ("ls", [Allow, Allow, Allow, Allow], ""),
            ("mkdir x", [Deny, Allow, Allow, Allow], ""),
            ("cargo test", [Allow, Ask, Allow, Allow], ""),
            ("python3 x.py | tee log", [Deny, Ask, Allow, Allow], ""),
            ("make && git commit -m x", [Deny, Ask, Allow, Allow], ""),
            ("eval \"$x\"", [Allow, Ask, Allow, Allow], ""),
            ("pip install x", [Ask, Ask, Ask, Allow], "with network"),
            ("git push origin main", [Ask, Ask, Ask, Allow], "with network"),
            ("curl -s https://example.org", [Ask, Ask, Ask, Allow], "with network"),
            ("eval \"$x\"; curl -s https://example.org", [Ask, Ask, Ask, Allow], "with network"),
            (&far, [Deny, Ask, Ask, Allow], "may write"),
            ("rm -rf /", [Deny, Ask, Ask, Allow], ""),
            ("sudo ls", [Deny, Ask, Ask, Allow], ""),
            ("mainstay approve 0", [Deny, Deny, Deny, Deny], ""),
        ];
        for (line, expected, granted) in cases {
            let act = Act::new(Action::Execute(line.to_owned()), &workspace);
            let judged = Mode::ALL.map(|mode| Policy::of_mode(mode).judge(&act, &workspace));
            let decisions = judged.each_ref().map(|judged| judged.decision);
            assert_eq!(decisions, expected, "{line}: {judged:?}");
            let said = judged[2].grant.describe().unwrap_or_default();
            assert!(
                said.starts_with(granted) && said.is_empty() == granted.is_empty(),
                "{line}: {said:?}"
            );
            // Nobody was asked, so nothing is wider.
            assert_eq!(judged[3].grant, Grant::default(), "{line}");
        }
    }

    #[test]
    fn what_a_call_asks_for_is_asked_and_remembered_with_it() {
        let workspace = Path::new("/nowhere/work");
        let auto = Policy::of_mode(Mode::Auto);
        let act = || Act::new(Action::Execute("make deps".to_owned()), workspace);
        let plain = auto.judge(&act(), workspace);
        assert_eq!((plain.decision, plain.grant), (Decision::Allow, Grant::default()));
        let wants = Grant { network: true, write: vec!["/srv".into()] };
        let judged = auto.judge(&act().wanting(wants.clone()), workspace);
        assert_eq!((judged.decision, &judged.grant), (Decision::Ask, &wants));
        let needs = judged.needs.unwrap();
        let rules: Vec<Rule> = needs.iter().filter_map(Need::rule).collect();
        assert!(needs.iter().all(|need| rules.iter().any(|rule| rule.covers(need))));
        // "Always" to less is not "always" to this.
        let less = Grant { network: true, write: Vec::new() };
        let less = auto.judge(&act().wanting(less), workspace).needs.unwrap();
        let rules: Vec<Rule> = less.iter().filter_map(Need::rule).collect();
        assert!(!needs.iter().all(|need| rules.iter().any(|rule| rule.covers(need))));
        let denied = Policy { network: Decision::Deny, ..auto };
        assert_eq!(denied.judge(&act().wanting(wants), workspace).decision, Decision::Deny);
    }

    fn judged(policy: &Policy, line: &str) -> Judgement {
        let workspace = Path::new("/nowhere/work");
        policy.judge(&Act::new(Action::Execute(line.to_owned()), workspace), workspace)
    }

    #[test]
    fn a_command_line_is_decided_by_the_worst_that_it_may_do() {
        let cases = [
            ("ls -l | wc -l", Decision::Allow, ActionClass::Read),
            ("cargo test", Decision::Ask, ActionClass::Execute),
            ("ls && curl https://example.org", Decision::Ask, ActionClass::Network),
            ("ls; sudo ls", Decision::Ask, ActionClass::Privilege),
            ("rm -rf /", Decision::Ask, ActionClass::Destructive),
            ("ls; mainstay approve 0", Decision::Deny, ActionClass::Control),
        ];
        for (line, decision, class) in cases {
            let judged = judged(&Policy::default(), line);
            assert_eq!((judged.decision, judged.class), (decision, class), "{line}: {judged:?}");
            let all = self::judged(&Policy::default().answered_yes(), line);
            let expected = if class == ActionClass::Control { decision } else { Decision::Allow };
            assert_eq!(all.decision, expected, "{line} with every question answered by yes");
            let none = Policy { execute: Decision::Deny, ..Policy::default() };
            assert_eq!(self::judged(&none, line).decision, Decision::Deny, "{line}");
            assert!(!class.is_severe() || judged.needs.is_none(), "{line} can be remembered");
        }
    }

    #[test]
    fn always_covers_the_same_command_with_other_words_behind_it_and_nothing_more() {
        let policy = Policy::default();
        let needs = judged(&policy, "cargo test").needs.unwrap();
        let rules: Vec<Rule> = needs.iter().filter_map(Need::rule).collect();
        assert!(!rules.is_empty());
        let cases = [
            ("cargo test --workspace", true),
            ("cargo test 2>&1 | tail -5", true),
            ("cargo publish", false),
            ("cargo test && make", false),
            ("cargo test; rm -rf /", false),
            ("sudo cargo test", false),
            ("cargo test $(make)", false),
        ];
        for (line, covered) in cases {
            let judged = judged(&policy, line);
            let met = judged.needs.is_some_and(|needs| {
                needs.iter().all(|need| rules.iter().any(|rule| rule.covers(need)))
            });
            assert_eq!(met, covered, "{line}");
        }
    }

    #[test]
    fn yes_answers_questions_and_lifts_no_ban() {
        let policy = Policy { execute: Decision::Deny, ..Policy::default() }.answered_yes();
        let run = Action::Execute("ls".to_owned());
        assert_eq!(
            policy.judge(&Act::new(run, Path::new("/")), Path::new("/")).decision,
            Decision::Deny
        );
        assert_eq!(policy.write_outside, Decision::Allow);
        let all = Policy::default().answered_yes();
        assert_eq!(all.of(ActionClass::Control), Decision::Deny);
    }

    #[test]
    fn a_proposal_is_not_asked_about_before_the_person_decides_and_a_ban_holds() {
        let propose = Action::Propose("the skill x".to_owned());
        for (persist, expected) in [
            (Decision::Allow, Decision::Allow),
            (Decision::Ask, Decision::Allow),
            (Decision::Deny, Decision::Deny),
        ] {
            let policy = Policy { persist, ..Policy::default() };
            let judged = policy.judge(&Act::new(propose.clone(), Path::new("/")), Path::new("/"));
            assert_eq!((judged.decision, judged.class), (expected, ActionClass::Persist));
        }
    }

    #[test]
    fn names_of_classes_are_found_again() {
        for (number, (class, name)) in ActionClass::NAMES.into_iter().enumerate() {
            assert_eq!(class as usize, number);
            assert_eq!(ActionClass::from_value(ValueRef::Text(name)), Some(class));
            assert_eq!(serde_json::to_value(class).unwrap(), name);
        }
    }
}
