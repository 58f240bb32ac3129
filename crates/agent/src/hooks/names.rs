//! Tools and their arguments under the names that users' hooks know.
//!
//! A payload speaks of tools as Claude Code does, where it has such a tool: `Bash` for `shell`,
//! `file_path` for `path`. What a hook answers may use either name. Paths are absolute and without
//! dots, so that a hook can compare them.

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};

/// A tool, its name elsewhere, and those of its arguments that have another name there.
type Alias = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const FILE: (&str, &str) = ("path", "file_path");

const ALIASES: &[Alias] = &[
    ("shell", "Bash", &[]),
    ("read_file", "Read", &[FILE]),
    ("write_file", "Write", &[FILE]),
    (
        "edit_file",
        "Edit",
        &[FILE, ("old", "old_string"), ("new", "new_string"), ("all", "replace_all")],
    ),
    ("list", "LS", &[]),
    ("glob", "Glob", &[]),
    ("grep", "Grep", &[("ignore_case", "-i"), ("context", "-C")]),
    ("fetch", "WebFetch", &[]),
    ("web_search", "WebSearch", &[]),
    ("delegate", "Task", &[("task", "prompt")]),
    ("todo", "TodoWrite", &[("steps", "todos")]),
];

fn alias(tool: &str) -> Option<&'static Alias> {
    ALIASES.iter().find(|(ours, _, _)| *ours == tool)
}

/// The names that a matcher may mean a tool by; the last one is told to hooks.
pub(super) fn names(tool: &str) -> Vec<&str> {
    let mut names = vec![tool];
    names.extend(alias(tool).map(|(_, theirs, _)| *theirs));
    names
}

/// The arguments of a call as hooks read them.
pub(super) fn outward(tool: &str, arguments: &Value, workspace: &Path) -> Value {
    let Some(ours) = arguments.as_object() else { return arguments.clone() };
    let renamed = alias(tool).map_or(&[][..], |(_, _, fields)| *fields);
    let mut theirs = Map::new();
    for (name, value) in ours {
        let outside =
            renamed.iter().find(|(ours, _)| ours == name).map_or(name.as_str(), |(_, t)| t);
        theirs.insert(outside.to_owned(), outward_value(tool, name, value, workspace));
    }
    if tool == "fetch"
        && let Some(urls) = theirs.shift_remove("urls")
    {
        // One there, up to ten here: a hook that looks for a place finds it in any of them.
        let urls: Vec<&str> = match &urls {
            Value::Array(urls) => urls.iter().filter_map(Value::as_str).collect(),
            url => url.as_str().into_iter().collect(),
        };
        theirs.insert("url".to_owned(), urls.join("\n").into());
    }
    Value::Object(theirs)
}

fn outward_value(tool: &str, name: &str, value: &Value, workspace: &Path) -> Value {
    match (tool, name, value) {
        (_, "path", Value::String(path)) if alias(tool).is_some() => {
            absolute(path, workspace).display().to_string().into()
        }
        // Milliseconds there, seconds here.
        ("shell", "timeout", seconds) => match seconds.as_f64() {
            Some(seconds) => number(seconds * 1000.0),
            None => seconds.clone(),
        },
        _ => value.clone(),
    }
}

/// What a hook answered, as the tool reads it. Either name of an argument will do; where both are
/// there, the one that the hook was told holds.
pub(super) fn inward(tool: &str, answered: &Value) -> Value {
    let Some(answered) = answered.as_object() else { return answered.clone() };
    let renamed = alias(tool).map_or(&[][..], |(_, _, fields)| *fields);
    let mut ours = answered.clone();
    for (inside, outside) in renamed {
        if let Some(value) = ours.shift_remove(*outside) {
            ours.insert((*inside).to_owned(), value);
        }
    }
    if tool == "fetch"
        && let Some(Value::String(url)) = ours.shift_remove("url")
    {
        // It asks something of the page there.
        ours.shift_remove("prompt");
        ours.insert("urls".to_owned(), url.lines().map(Value::from).collect());
    }
    if tool == "shell" {
        // It describes the command there, and is no argument here.
        ours.shift_remove("description");
        if let Some(milliseconds) = ours.get("timeout").and_then(Value::as_f64) {
            ours.insert("timeout".to_owned(), number(milliseconds / 1000.0));
        }
    }
    Value::Object(ours)
}

/// A JSON number, an integer if it has no fraction.
fn number(value: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "the bounds are checked")]
    if value.fract() == 0.0 && value.abs() < 1e15 { (value as i64).into() } else { value.into() }
}

/// A path from the root, without `.` and `..`.
pub(super) fn absolute(path: &str, workspace: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for part in workspace.join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(found.pop()),
            part => found.push(part),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_go_out_and_come_back() {
        let cases = [
            (
                "shell",
                json!({"command": "ls", "timeout": 2.5}),
                json!({"command": "ls", "timeout": 2500}),
            ),
            (
                "read_file",
                json!({"path": "/w/a", "limit": 3}),
                json!({"file_path": "/w/a", "limit": 3}),
            ),
            (
                "write_file",
                json!({"path": "/a", "content": "x"}),
                json!({"file_path": "/a", "content": "x"}),
            ),
            (
                "edit_file",
                json!({"path": "/a", "old": "x", "new": "y", "all": true}),
                json!({"file_path": "/a", "old_string": "x", "new_string": "y", "replace_all": true}),
            ),
            (
                "grep",
                json!({"pattern": "x", "ignore_case": true}),
                json!({"pattern": "x", "-i": true}),
            ),
            ("process", json!({"action": "list"}), json!({"action": "list"})),
            ("fetch", json!({"urls": ["http://a"]}), json!({"url": "http://a"})),
            ("fetch", json!({"urls": ["http://a", "b"]}), json!({"url": "http://a\nb"})),
            ("delegate", json!({"task": "x"}), json!({"prompt": "x"})),
            ("todo", json!({"steps": [{"content": "x"}]}), json!({"todos": [{"content": "x"}]})),
        ];
        for (tool, ours, theirs) in cases {
            assert_eq!(outward(tool, &ours, Path::new("/w")), theirs);
            assert_eq!(inward(tool, &theirs), ours);
        }
        let either = json!({ "path": "a", "old": "1", "new_string": "2" });
        assert_eq!(inward("edit_file", &either), json!({ "path": "a", "old": "1", "new": "2" }));
    }

    #[test]
    fn paths_are_told_from_the_root_and_without_dots() {
        for (path, expected) in
            [("a", "/w/x/a"), ("../b/./c", "/w/b/c"), ("/etc/../y", "/y"), ("../../../..", "/")]
        {
            let told = outward("read_file", &json!({ "path": path }), Path::new("/w/x"));
            assert_eq!(told["file_path"], expected);
        }
    }
}
