//! What hooks are told.

use std::path::Path;

use mainstay_tools::{Outcome, Piece};
use serde_json::{Value, json};

use super::{Moment, names};

/// What the hooks of one moment are told, and which of them it concerns.
pub(crate) struct Payload<'a> {
    pub(super) moment: Moment,
    /// What matchers are held against.
    pub(super) names: Vec<&'a str>,
    /// What is told beyond what every hook is.
    pub(super) told: Value,
}

impl<'a> Payload<'a> {
    /// A session is begun (`startup`) or taken up (`resume`).
    pub(crate) fn session(source: &'a str) -> Self {
        let told = json!({ "source": source });
        Self { moment: Moment::SessionStart, names: vec![source], told }
    }

    /// A user sent this.
    pub(crate) fn prompt(words: &str) -> Self {
        let told = json!({ "prompt": words });
        Self { moment: Moment::UserPromptSubmit, names: Vec::new(), told }
    }

    /// A call is about to run.
    pub(crate) fn before(call: &Called<'a>) -> Self {
        Self { moment: Moment::PreToolUse, names: names::names(call.tool), told: call.told() }
    }

    /// A call has an outcome.
    pub(crate) fn after(call: &Called<'a>, outcome: &Outcome) -> Self {
        let mut told = call.told();
        let moment = match outcome.failed {
            true => Moment::PostToolUseFailure,
            false => Moment::PostToolUse,
        };
        let (key, response) = match outcome.failed {
            true => ("error", Value::String(words(outcome, Whose::All))),
            false => ("tool_response", call.response(outcome)),
        };
        told[key] = response;
        Self { moment, names: names::names(call.tool), told }
    }

    /// The conversation is about to be compacted, by hand (`manual`) or not (`auto`).
    pub(crate) fn compaction(trigger: &'a str, focus: Option<&str>) -> Self {
        let told = json!({ "trigger": trigger, "custom_instructions": focus.unwrap_or_default() });
        Self { moment: Moment::PreCompact, names: vec![trigger], told }
    }

    /// The turn is about to end with these words.
    pub(crate) fn stop(answer: &str, again: bool) -> Self {
        let told = json!({ "stop_hook_active": again, "last_assistant_message": answer });
        Self { moment: Moment::Stop, names: Vec::new(), told }
    }

    /// All of it, as bytes for a hook's input.
    pub(super) fn bytes(&self, session: &str, workspace: &Path) -> Vec<u8> {
        let mut whole = json!({
            "session_id": session,
            // The conversation is in the store and in no file. Whoever reads this finds nothing;
            // `mainstay sessions show` has it all.
            "transcript_path": "/dev/null",
            "cwd": workspace,
            "permission_mode": "default",
            "hook_event_name": self.moment.name(),
        });
        if let (Some(whole), Value::Object(told)) = (whole.as_object_mut(), &self.told) {
            whole.extend(told.clone());
        }
        let mut bytes = whole.to_string().into_bytes();
        bytes.push(b'\n');
        bytes
    }
}

/// A call, as hooks are told of it.
pub(crate) struct Called<'a> {
    pub(crate) id: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a Value,
    pub(crate) workspace: &'a Path,
}

impl Called<'_> {
    fn told(&self) -> Value {
        let name = names::names(self.tool).pop().unwrap_or_default().to_owned();
        let input = names::outward(self.tool, self.arguments, self.workspace);
        json!({ "tool_name": name, "tool_input": input, "tool_use_id": self.id })
    }

    /// What came of it, with the fields that hooks of others look for.
    fn response(&self, outcome: &Outcome) -> Value {
        match self.tool {
            "shell" => json!({
                "stdout": words(outcome, Whose::Outside),
                "stderr": "",
                "interrupted": false,
                "isImage": false,
            }),
            "read_file" | "write_file" | "edit_file" => {
                let path = self.arguments.get("path").and_then(Value::as_str).unwrap_or_default();
                let path = names::absolute(path, self.workspace);
                let content = words(outcome, Whose::All);
                json!({ "success": true, "filePath": path, "content": content })
            }
            _ => json!({ "success": true, "content": words(outcome, Whose::All) }),
        }
    }
}

/// Whose words are meant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    All,
    /// What came from outside: a program's output, a file.
    Outside,
}

fn words(outcome: &Outcome, whose: Whose) -> String {
    let words = outcome.pieces.iter().filter_map(|piece| match piece {
        Piece::Data(words) | Piece::Instructions(words) => Some(words.as_str()),
        Piece::Said(words) if whose == Whose::All => Some(words.as_str()),
        Piece::Said(_) | Piece::Image(_) => None,
    });
    words.collect::<Vec<_>>().join("\n")
}
