//! The hash that binds a decision to one exact action.

use std::path::Path;

use mainstay_journal::{CallId, SessionId};
use mainstay_tools::Action;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::policy::{Judgement, Need};

/// All that a person is asked about.
pub(crate) struct BoundAction<'a> {
    pub(crate) session: SessionId,
    pub(crate) call: CallId,
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a Value,
    pub(crate) workspace: &'a Path,
    pub(crate) action: &'a Action,
    pub(crate) judged: &'a Judgement,
}

/// The hash of an action. Another tool, other arguments, another workspace or call, and another
/// judgement of the policy each give another one.
pub(crate) fn hash_action(bound: &BoundAction<'_>) -> String {
    let BoundAction { session, call, tool, arguments, workspace, action, judged } = bound;
    let mut hasher = Sha256::new();
    let mut add = |part: &[u8]| {
        hasher.update(part.len().to_le_bytes());
        hasher.update(part);
    };
    add(session.as_str().as_bytes());
    add(call.as_str().as_bytes());
    add(tool.as_bytes());
    add(arguments.to_string().as_bytes());
    add(workspace.as_os_str().as_encoded_bytes());
    add(format!("{action:?}").as_bytes());
    add(judged.class.as_str().as_bytes());
    for path in &judged.grant.write {
        add(path.as_os_str().as_encoded_bytes());
    }
    add(&[u8::from(judged.grant.network)]);
    // Where a path leads may change without a change of its name.
    for need in judged.needs.iter().flatten() {
        match need {
            Need::Command(_) => {}
            Need::Directory(path) => add(path.as_os_str().as_encoded_bytes()),
            Need::Host(host) => add(host.as_bytes()),
        }
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::json;

    use super::*;
    use crate::policy::{Act, Policy};

    #[test]
    fn another_tool_argument_place_or_call_is_another_action() {
        let (session, call) = (SessionId::new(), CallId::new());
        let hash = |session, call, tool: &str, workspace: &str, command: &str| {
            let workspace = Path::new(workspace);
            let action = Action::Execute(command.to_owned());
            let arguments = json!({ "command": command });
            let judged = Policy::default().judge(&Act::new(action.clone(), workspace), workspace);
            hash_action(&BoundAction {
                session,
                call,
                tool,
                arguments: &arguments,
                workspace,
                action: &action,
                judged: &judged,
            })
        };
        let first = hash(session, call, "shell", "/work", "make");
        assert_eq!(first, hash(session, call, "shell", "/work", "make"), "the same is the same");
        let others = [
            first,
            hash(session, call, "shell", "/work", "make x"),
            hash(session, call, "process", "/work", "make"),
            hash(session, call, "shell", "/other", "make"),
            hash(session, CallId::new(), "shell", "/work", "make"),
            hash(SessionId::new(), call, "shell", "/work", "make"),
        ];
        let distinct: HashSet<&String> = others.iter().collect();
        assert_eq!(distinct.len(), others.len());
    }

    #[test]
    fn a_path_that_leads_elsewhere_is_another_action() {
        let directory = tempfile::tempdir().unwrap();
        let workspace = directory.path().join("work");
        for name in ["work", "one", "two"] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        let link = workspace.join("link");
        let (session, call) = (SessionId::new(), CallId::new());
        let action = Action::Write("link/file".into());
        let hash = || {
            let judged = Policy::default().judge(&Act::new(action.clone(), &workspace), &workspace);
            hash_action(&BoundAction {
                session,
                call,
                tool: "write_file",
                arguments: &json!({}),
                workspace: &workspace,
                action: &action,
                judged: &judged,
            })
        };
        std::os::unix::fs::symlink("../one", &link).unwrap();
        let before = hash();
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("../two", &link).unwrap();
        assert_ne!(before, hash());
    }
}
