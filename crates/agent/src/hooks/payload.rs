//! What hooks are fields.

use std::path::Path;

use mainstay_tools::{Outcome, Piece};
use serde_json::{Value, json};

use super::{Moment, names};

/// What the hooks of one moment are fields, and which of them it concerns.
pub(crate) struct Payload<'a> {
    pub(super) moment: Moment,
    /// What matchers are held against.
    pub(super) names: Vec<&'a str>,
    /// What is fields beyond what every hook is.
    pub(super) fields: Value,
}

impl<'a> Payload<'a> {
    /// A session is begun (`startup`) or taken up (`resume`).
    pub(crate) fn session(source: &'a str) -> Self {
        let fields = json!({ "source": source });
        Self { moment: Moment::SessionStart, names: vec![source], fields }
    }

    /// A user sent this.
    pub(crate) fn prompt(words: &str) -> Self {
        let fields = json!({ "prompt": words });
        Self { moment: Moment::UserPromptSubmit, names: Vec::new(), fields }
    }

    /// A call is about to run.
    pub(crate) fn before(call: &HookedCall<'a>) -> Self {
        Self { moment: Moment::PreToolUse, names: names::names(call.tool), fields: call.payload() }
    }

    /// A call has an outcome.
    pub(crate) fn after(call: &HookedCall<'a>, outcome: &Outcome) -> Self {
        let mut fields = call.payload();
        let moment = if outcome.failed { Moment::PostToolUseFailure } else { Moment::PostToolUse };
        let (key, response) = if outcome.failed {
            ("error", Value::String(outcome_text(outcome, TextSource::All)))
        } else {
            ("tool_response", call.response(outcome))
        };
        fields[key] = response;
        Self { moment, names: names::names(call.tool), fields }
    }

    /// The conversation is about to be compacted, by hand (`manual`) or not (`auto`).
    pub(crate) fn compaction(trigger: &'a str, focus: Option<&str>) -> Self {
        let fields =
            json!({ "trigger": trigger, "custom_instructions": focus.unwrap_or_default() });
        Self { moment: Moment::PreCompact, names: vec![trigger], fields }
    }

    /// The turn is about to end with these words.
    pub(crate) fn stop(answer: &str, again: bool) -> Self {
        let fields = json!({ "stop_hook_active": again, "last_assistant_message": answer });
        Self { moment: Moment::Stop, names: Vec::new(), fields }
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
        if let (Some(whole), Value::Object(fields)) = (whole.as_object_mut(), &self.fields) {
            whole.extend(fields.clone());
        }
        let mut bytes = whole.to_string().into_bytes();
        bytes.push(b'\n');
        bytes
    }
}

/// A call, as hooks are fields of it.
pub(crate) struct HookedCall<'a> {
    pub(crate) id: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a Value,
    pub(crate) workspace: &'a Path,
}

impl HookedCall<'_> {
    fn payload(&self) -> Value {
        let name = names::names(self.tool).pop().unwrap_or_default().to_owned();
        let input = names::outward(self.tool, self.arguments, self.workspace);
        json!({ "tool_name": name, "tool_input": input, "tool_use_id": self.id })
    }

    /// What came of it, with the fields that hooks of others look for.
    fn response(&self, outcome: &Outcome) -> Value {
        match self.tool {
            "shell" => json!({
                "stdout": outcome_text(outcome, TextSource::Outside),
                "stderr": "",
                "interrupted": false,
                "isImage": false,
            }),
            "read_file" | "write_file" | "edit_file" => {
                let path = self.arguments.get("path").and_then(Value::as_str).unwrap_or_default();
                let path = names::absolute(path, self.workspace);
                let content = outcome_text(outcome, TextSource::All);
                json!({ "success": true, "filePath": path, "content": content })
            }
            _ => json!({ "success": true, "content": outcome_text(outcome, TextSource::All) }),
        }
    }
}

/// Whose words are meant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TextSource {
    All,
    /// What came from outside: a program's output, a file.
    Outside,
}

fn outcome_text(outcome: &Outcome, whose: TextSource) -> String {
    let words = outcome.pieces.iter().filter_map(|piece| match piece {
        Piece::Data(words) | Piece::Instructions(words) => Some(words.as_str()),
        Piece::Said(words) if whose == TextSource::All => Some(words.as_str()),
        Piece::Said(_) | Piece::Image(_) => None,
    });
    words.collect::<Vec<_>>().join("\n")
}
