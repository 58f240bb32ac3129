//! The policy of a session that has read words from outside.

use std::path::Path;

use mainstay_tools::Action;

use super::{Act, Decision, Judgement, Need, Policy, command, place};
use crate::taint::Origins;

impl Policy {
    /// What is to happen with an action, in a session with words from these origins. Before it leaves
    /// something that later sessions go by, or reaches a place it has not heard from, a tainted
    /// session does what [`Policy::tainted`] says, also where others would just do it.
    pub fn judge_after(&self, origins: &Origins, act: &Act, workspace: &Path) -> Judgement {
        let judged = self.judge(act, workspace);
        let Some(first) = origins.first() else { return judged };
        if judged.decision == Decision::Deny || judged.decision > self.tainted {
            return judged;
        }
        let (why, needs) = match act.action() {
            Action::Persist(_) => ("later sessions would rely on it".to_owned(), None),
            // It is asked about when a person decides about it.
            Action::Propose(_) if self.tainted == Decision::Deny => {
                ("later sessions would rely on it".to_owned(), None)
            }
            Action::Write(path) if place::instructs(path) => {
                ("later sessions would rely on it".to_owned(), None)
            }
            Action::Network(places) => {
                let Some(new) = places.iter().find(|place| !origins.knows(place)) else {
                    return judged;
                };
                (format!("{new} was not reached before"), judged.needs)
            }
            Action::Execute(_) | Action::Input { .. }
                if act.line.stages.iter().any(|stage| stage.instructs) =>
            {
                ("later sessions would rely on what it writes".to_owned(), None)
            }
            Action::Execute(_) | Action::Input { .. } => {
                let reaches =
                    act.line.stages.iter().filter(|s| s.classes.has(command::Class::Network));
                let reaching: Option<Vec<Need>> = reaches.map(Need::command).collect();
                if reaching.as_ref().is_some_and(Vec::is_empty) {
                    return judged;
                }
                // What the policy asks about anyway has to be covered as well.
                let needs = match (judged.needs, reaching) {
                    (Some(asked), Some(reaching)) => Some([asked, reaching].concat()),
                    _ => None,
                };
                ("it reaches the network".to_owned(), needs)
            }
            _ => return judged,
        };
        let reason = format!("{why}, and the session has read text from {first}");
        let decision = judged.decision.max(self.tainted);
        Judgement {
            decision,
            class: judged.class,
            reason: Some(reason),
            needs,
            grant: judged.grant,
        }
    }
}

#[cfg(test)]
mod tests {
    use mainstay_tools::Fact;

    use super::*;

    fn tainted() -> Origins {
        let mut origins = Origins::default();
        origins.note(&Fact::Outside { origin: "example.org".to_owned() });
        origins
    }

    fn permissive() -> Policy {
        Policy {
            network: Decision::Allow,
            persist: Decision::Allow,
            execute: Decision::Allow,
            ..Policy::default()
        }
    }

    fn actions() -> [(Action, Decision); 19] {
        let run = |line: &str| Action::Execute(line.to_owned());
        let reach = |place: &str| Action::Network(vec![place.to_owned()]);
        [
            (Action::Persist("a memory".to_owned()), Decision::Ask),
            (Action::Propose("the skill x".to_owned()), Decision::Allow),
            (reach("example.com"), Decision::Ask),
            (reach("example.org"), Decision::Allow),
            (run("curl https://example.com"), Decision::Ask),
            (run("git push origin main"), Decision::Ask),
            (run("cargo test"), Decision::Allow),
            (run("echo x > notes.md"), Decision::Allow),
            (run("echo x > AGENTS.md"), Decision::Ask),
            (run("cd sub && sed -i s/a/b/ claude.md"), Decision::Ask),
            (run("cp /tmp/AGENTS.md ."), Decision::Ask),
            (run("rm *.md"), Decision::Ask),
            (run("mkdir -p .agents/skills/x"), Decision::Ask),
            (run("git apply x.patch"), Decision::Ask),
            (run("git add AGENTS.md"), Decision::Allow),
            (Action::Write("a.txt".into()), Decision::Allow),
            (Action::Write("a/AGENTS.md".into()), Decision::Ask),
            (Action::Write("a/.agents/skills/b/scripts/c.sh".into()), Decision::Ask),
            (Action::Write(".claude/settings.json".into()), Decision::Allow),
        ]
    }

    #[test]
    fn a_tainted_session_asks_before_it_persists_or_reaches_new_places() {
        let directory = tempfile::tempdir().unwrap();
        for (action, expected) in actions() {
            let act = Act::new(action.clone(), directory.path());
            let clean = Origins::default();
            let before = permissive().judge_after(&clean, &act, directory.path());
            assert_eq!(before.decision, Decision::Allow, "{action:?}");
            let after = permissive().judge_after(&tainted(), &act, directory.path());
            assert_eq!(after.decision, expected, "{action:?}");
            if expected == Decision::Ask {
                assert!(after.reason.unwrap().contains("text from example.org"), "{action:?}");
                // Nothing is covered by having nothing to cover.
                assert!(after.needs.is_none_or(|needs| !needs.is_empty()), "{action:?}");
            }
        }
    }

    #[test]
    fn taint_lifts_no_ban_and_a_profile_can_forbid_more() {
        let directory = tempfile::tempdir().unwrap();
        let act = |action| Act::new(action, directory.path());
        let reach = act(Action::Network(vec!["example.com".to_owned()]));
        let banned = Policy { network: Decision::Deny, ..permissive() };
        let judged = banned.judge_after(&tainted(), &reach, directory.path());
        assert_eq!(judged.decision, Decision::Deny);
        let strict = Policy { tainted: Decision::Deny, ..permissive() };
        let judged = strict.judge_after(&tainted(), &reach, directory.path());
        assert_eq!(judged.decision, Decision::Deny);
        let propose = act(Action::Propose("the skill x".to_owned()));
        let judged = strict.judge_after(&tainted(), &propose, directory.path());
        assert_eq!(judged.decision, Decision::Deny);
        let yes = permissive().answered_yes();
        let judged = yes.judge_after(&tainted(), &reach, directory.path());
        assert_eq!(judged.decision, Decision::Allow);
    }
}
