//! What files say of hooks: the shape that users of Claude Code have in their settings.

use std::time::Duration;

use serde_json::{Map, Value};

use super::matcher::Matcher;
use super::{Hook, Hooks, Moment, OnHookFailure};

/// How long a hook may take unless it says otherwise.
const USUAL_LIMIT: Duration = Duration::from_secs(30);

impl Hooks {
    /// Adds what a file says: an object of lists, by moment. Each of a list's objects has a command,
    /// or a list `hooks` of objects that have one, and may have a `matcher`. Returns warnings; the
    /// error says what cannot be used. A hook that is meant to prevent something must not be
    /// dropped for a slip of the pen, so most slips are errors.
    pub fn add(&mut self, said: &Value) -> Result<Vec<String>, String> {
        let said = said.as_object().ok_or("hooks must be a table of events")?;
        let mut warnings = Vec::new();
        for (name, groups) in said {
            let Some(moment) = Moment::ALL.into_iter().find(|moment| moment.name() == name) else {
                let known = Moment::ALL.map(Moment::name).join(", ");
                warnings.push(format!("unknown hook event `{name}`; known events are {known}"));
                continue;
            };
            let groups = groups.as_array().ok_or_else(|| format!("hooks.{name} must be a list"))?;
            for group in groups {
                let group = group
                    .as_object()
                    .ok_or_else(|| format!("every item of hooks.{name} must be a table"))?;
                self.add_group(moment, group, &mut warnings)
                    .map_err(|wrong| format!("hooks.{name}: {wrong}"))?;
            }
        }
        Ok(warnings)
    }

    fn add_group(
        &mut self,
        moment: Moment,
        group: &Map<String, Value>,
        warnings: &mut Vec<String>,
    ) -> Result<(), String> {
        let matcher = match group.get("matcher") {
            None | Some(Value::Null) => Matcher::All,
            Some(Value::String(text)) => Matcher::read(text)
                .map_err(|wrong| format!("the matcher {text:?} is not valid: {wrong}"))?,
            Some(_) => return Err("a matcher must be text".to_owned()),
        };
        let Some(listed) = group.get("hooks") else {
            return self.add_hook(moment, matcher, group, warnings);
        };
        strangers(moment, group, &["matcher", "hooks", "description"], warnings);
        for hook in listed.as_array().ok_or("`hooks` must be a list")? {
            let hook = hook.as_object().ok_or("a hook must be a table")?;
            self.add_hook(moment, matcher.clone(), hook, warnings)?;
        }
        Ok(())
    }

    fn add_hook(
        &mut self,
        moment: Moment,
        matcher: Matcher,
        hook: &Map<String, Value>,
        warnings: &mut Vec<String>,
    ) -> Result<(), String> {
        if let Some(kind) = hook.get("type").filter(|kind| kind.as_str() != Some("command")) {
            warnings.push(format!(
                "a hook for {} has the type {kind} and is never run; only commands are supported",
                moment.name()
            ));
            return Ok(());
        }
        let known = ["matcher", "type", "command", "timeout", "onFailure", "on_failure"];
        strangers(moment, hook, &known, warnings);
        let command = hook.get("command").and_then(Value::as_str).map(str::trim);
        let command =
            command.filter(|command| !command.is_empty()).ok_or("a hook has no command")?;
        let limit = match hook.get("timeout") {
            None | Some(Value::Null) => USUAL_LIMIT,
            Some(seconds) => seconds
                .as_f64()
                .filter(|seconds| *seconds > 0.0)
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .ok_or_else(|| {
                    format!("the timeout {seconds} must be a number of seconds above 0")
                })?,
        };
        let failure = match hook.get("onFailure").or_else(|| hook.get("on_failure")) {
            None | Some(Value::Null) => OnHookFailure::Told,
            Some(Value::String(word)) if word == "block" => OnHookFailure::Blocks,
            Some(Value::String(word)) if word == "warn" || word == "allow" => OnHookFailure::Told,
            Some(other) => {
                return Err(format!("on_failure is {other}; write \"block\" or \"warn\""));
            }
        };
        self.all.push(Hook { moment, matcher, command: command.to_owned(), limit, failure });
        Ok(())
    }
}

fn strangers(
    moment: Moment,
    table: &Map<String, Value>,
    known: &[&str],
    warnings: &mut Vec<String>,
) {
    for key in table.keys().filter(|key| !known.contains(&key.as_str())) {
        let name = moment.name();
        warnings.push(format!("a hook for {name} has the unknown key `{key}`"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(said: &Value) -> (Hooks, Vec<String>) {
        let mut hooks = Hooks::default();
        let warnings = hooks.add(said).unwrap();
        (hooks, warnings)
    }

    #[test]
    fn the_nested_and_the_flat_shape_say_the_same() {
        let nested = json!({ "PreToolUse": [{ "matcher": "Bash|Edit", "hooks": [
            { "type": "command", "command": "check", "timeout": 5 },
            { "type": "command", "command": "log" },
        ]}]});
        let flat = json!({ "PreToolUse": [
            { "matcher": "Bash|Edit", "command": "check", "timeout": 5.0 },
            { "matcher": "Bash|Edit", "command": "log" },
        ]});
        for said in [nested, flat] {
            let (hooks, warnings) = read(&said);
            assert_eq!(warnings, Vec::<String>::new());
            let found = hooks.matching(Moment::PreToolUse, &["edit_file", "Edit"]);
            let found: Vec<_> =
                found.iter().map(|hook| (hook.command.as_str(), hook.limit.as_secs())).collect();
            assert_eq!(found, [("check", 5), ("log", 30)]);
            assert!(hooks.matching(Moment::PreToolUse, &["Read"]).is_empty());
            assert!(!hooks.any(Moment::Stop));
        }
    }

    #[test]
    fn what_is_not_known_is_a_warning_and_what_cannot_be_used_an_error() {
        let (hooks, warnings) = read(&json!({
            "Notification": [{ "hooks": [{ "type": "command", "command": "x" }] }],
            "Stop": [{ "hooks": [{ "type": "prompt", "prompt": "?" }] }],
            "PreToolUse": [{ "hooks": [{ "type": "command", "command": "y", "if": "Bash(rm *)" }] }],
        }));
        assert_eq!(warnings.len(), 3, "{warnings:?}");
        assert_eq!(hooks.all.len(), 1);
        let wrong = [
            json!([]),
            json!({ "Stop": {} }),
            json!({ "Stop": ["x"] }),
            json!({ "Stop": [{}] }),
            json!({ "Stop": [{ "command": " " }] }),
            json!({ "Stop": [{ "command": "x", "timeout": 0 }] }),
            json!({ "Stop": [{ "command": "x", "timeout": "soon" }] }),
            json!({ "Stop": [{ "command": "x", "on_failure": "explode" }] }),
            json!({ "Stop": [{ "matcher": 3, "command": "x" }] }),
            json!({ "PreToolUse": [{ "matcher": "Edit(", "command": "x" }] }),
        ];
        for said in wrong {
            assert!(Hooks::default().add(&said).is_err(), "{said}");
        }
    }
}
