//! How calls look: a row while they run, folded when they are done, changes of files in colour.

use serde_json::Value;

use crate::chat::render::text::{Colour, Line, Style, Wrap};
use crate::plain_text::clean;

/// A call that was told of.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: Value,
    /// When it was told of, on the screen's clock.
    pub(crate) since: u64,
}

/// So many lines of a change are shown.
const CHANGE_LINES: usize = 40;
/// So many lines of a new file.
const NEW_LINES: usize = 12;
/// So many of the last lines of a command's output.
const OUTPUT_LINES: usize = 4;
/// So many lines of what went wrong.
const FAILURE_LINES: usize = 8;
/// So many lines when all of it is wanted.
const WHOLE_LINES: usize = 2_000;

impl Call {
    /// What is done, on one line.
    pub(crate) fn title(&self) -> String {
        brief(&self.name, &self.arguments)
    }

    /// The row while it runs.
    pub(crate) fn running(&self, spinner: &str, now: u64) -> Line {
        let seconds = now.saturating_sub(self.since) / 1000;
        let mut line = Line::styled(&format!("{spinner} "), Style::of(Colour::Yellow))
            .and(&self.name, Style::BOLD);
        if seconds > 0 {
            line = line.and(&format!(" {seconds} s"), Style::DIM);
        }
        line.and(&format!("  {}", self.title()), Style::PLAIN).cut()
    }

    /// What stays of it: what was done, and as much of what came of it as one wants to see.
    pub(crate) fn folded(&self, text: &str, failed: bool) -> Vec<Line> {
        let shown = ResultText::of(text);
        let mut lines = vec![self.head(failed)];
        if self.name == "todo" && !failed {
            lines.extend(shown.said.iter().map(|step| step_line(step)));
            return lines;
        }
        let mut said = shown.said.join(" ");
        // The change itself says so.
        if self.name == "edit_file" && said == format!("Changed {}:", self.title()) {
            said.clear();
        }
        if !said.is_empty() {
            lines.push(Line::dim(&format!("  {said}")).hanging("  ", Style::DIM));
        }
        if failed {
            lines.extend(last(&shown.data, FAILURE_LINES));
            return lines;
        }
        match self.name.as_str() {
            "edit_file" => lines.extend(change(&shown.data)),
            "write_file" => lines.extend(self.new_file()),
            "shell" | "process" => lines.extend(last(&shown.data, OUTPUT_LINES)),
            _ if shown.data.is_empty() => {}
            _ => {
                let count = u64::try_from(shown.data.len()).unwrap_or(u64::MAX);
                let count = crate::wording::count(count, "line");
                if said.is_empty() {
                    lines.push(Line::dim(&format!("  {count}")));
                } else if let Some(line) = lines.last_mut() {
                    *line = line.clone().and(&format!(" ({count})"), Style::DIM);
                }
            }
        }
        lines
    }

    /// All of it.
    pub(crate) fn whole(&self, text: &str) -> Vec<Line> {
        let text = clean(text);
        let mut lines = vec![self.head(false)];
        lines.extend(text.lines().take(WHOLE_LINES).map(code));
        let more = text.lines().count().saturating_sub(WHOLE_LINES);
        if more > 0 {
            lines.push(Line::dim(&format!("  … {more} more lines")));
        }
        lines
    }

    fn head(&self, failed: bool) -> Line {
        let (mark, colour) = if failed { ("✗ ", Colour::Red) } else { ("● ", Colour::Green) };
        Line::styled(mark, Style::of(colour))
            .and(&self.name, Style::BOLD)
            .and(&format!("  {}", self.title()), Style::PLAIN)
            .hanging("    ", Style::PLAIN)
    }

    /// The beginning of what was written.
    fn new_file(&self) -> Vec<Line> {
        let content = self.arguments.get("content").and_then(Value::as_str).unwrap_or_default();
        let content = clean(content);
        let all: Vec<&str> = content.lines().collect();
        let mut lines: Vec<Line> =
            all.iter().take(NEW_LINES).map(|line| changed(&format!("+{line}"))).collect();
        if all.len() > NEW_LINES {
            lines.push(Line::dim(&format!("  … {} more lines", all.len() - NEW_LINES)));
        }
        lines
    }
}

/// What a result says: words of the harness, and words from outside, which are framed.
struct ResultText {
    said: Vec<String>,
    data: Vec<String>,
}

impl ResultText {
    fn of(text: &str) -> Self {
        let text = clean(text);
        let mut shown = Self { said: Vec::new(), data: Vec::new() };
        let mut close = None;
        for line in text.lines() {
            match &close {
                Some(mark) if line == mark => close = None,
                Some(_) => shown.data.push(line.to_owned()),
                None => match line.strip_prefix("<data ").and_then(|rest| rest.strip_suffix('>')) {
                    Some(nonce) => close = Some(format!("</data {nonce}>")),
                    None if line.trim().is_empty() => {}
                    None => shown.said.push(line.trim().to_owned()),
                },
            }
        }
        shown
    }
}

/// The arguments of a call on one line: the one that matters, where there is one.
pub(crate) fn brief(name: &str, arguments: &Value) -> String {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let main_arguments =
        ["command", "path", "pattern", "url", "query", "task", "question", "action"];
    let mut found: Vec<String> = match name {
        "process" => {
            ["action", "command", "process"].iter().filter_map(|name| text(name)).collect()
        }
        "grep" => ["pattern", "path"].iter().filter_map(|name| text(name)).collect(),
        _ => main_arguments.iter().find_map(|name| text(name)).into_iter().collect::<Vec<_>>(),
    }
    .into_iter()
    .map(str::to_owned)
    .collect();
    for list in ["urls", "names"] {
        let all = arguments.get(list).and_then(Value::as_array).into_iter().flatten();
        found.extend(all.filter_map(Value::as_str).map(str::to_owned));
    }
    if let Some(steps) = arguments.get("steps").and_then(Value::as_array) {
        let done = steps.iter().filter(|step| step["status"] == "done").count();
        found = vec![format!("{done} of {} done", steps.len())];
    }
    if found.is_empty() {
        found = match arguments {
            Value::Object(object) if object.is_empty() => Vec::new(),
            Value::String(words) => vec![words.clone()],
            other => vec![other.to_string()],
        };
    }
    let all = clean(&found.join("  "));
    let mut lines = all.lines().filter(|line| !line.trim().is_empty());
    let first: String = lines.next().unwrap_or_default().chars().take(400).collect();
    if lines.next().is_some() { format!("{first} …") } else { first }
}

/// A step of the model's list: what is done steps back, what is being done stands out.
fn step_line(step: &str) -> Line {
    let style = match step.get(..3) {
        Some("[x]") => Style::DIM,
        Some("[>]") => Style::of(Colour::Yellow).strong(),
        _ => Style::PLAIN,
    };
    Line::styled(&format!("  {step}"), style).hanging("      ", style)
}

fn last(data: &[String], most: usize) -> Vec<Line> {
    let end = data.iter().rposition(|line| !line.trim().is_empty()).map_or(0, |place| place + 1);
    let from = end.saturating_sub(most);
    // One line is no longer than what would be said of it.
    let from = if from == 1 { 0 } else { from };
    let mut lines = Vec::new();
    if from > 0 {
        lines.push(Line::dim(&format!("  … {from} lines before (Ctrl-O shows all)")));
    }
    lines.extend(data[from..end].iter().map(|line| Line::dim(&format!("  {line}")).cut()));
    lines
}

/// A change, without its header; the marks tell it also without colours.
fn change(data: &[String]) -> Vec<Line> {
    let mut lines: Vec<Line> = data.iter().take(CHANGE_LINES).map(|line| changed(line)).collect();
    if data.len() > CHANGE_LINES {
        lines.push(Line::dim(&format!("  … {} more lines", data.len() - CHANGE_LINES)));
    }
    lines
}

/// A line of a change, by its first letter.
pub(crate) fn changed(line: &str) -> Line {
    let style = match line.as_bytes().first() {
        Some(b'+') => Style::of(Colour::Green),
        Some(b'-') => Style::of(Colour::Red),
        Some(b'@') => Style::of(Colour::Cyan),
        _ => Style::PLAIN,
    };
    let mut line = Line::styled(&format!("  {line}"), style);
    line.wrap = Wrap::Terminal;
    line
}

fn code(line: &str) -> Line {
    let mut line = Line::plain(&format!("  {line}"));
    line.wrap = Wrap::Terminal;
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn folded(name: &str, arguments: Value, text: &str, failed: bool) -> String {
        let call = Call { id: "c".into(), name: name.into(), arguments, since: 0 };
        let lines: Vec<String> = call.folded(text, failed).iter().map(Line::text).collect();
        lines.join("\n")
    }

    #[test]
    fn each_kind_is_folded_to_what_one_wants_to_see() {
        let output: String = (1..=30).map(|line| format!("test {line} ... ok\n")).collect();
        let shell = format!("exit code 0 (1.2 s)\n<data ab12cd>\n{output}</data ab12cd>");
        let diff = "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n";
        let edit = format!("Changed a.txt:\n<data ab12cd>\n{diff}</data ab12cd>");
        let cases = [
            folded("shell", json!({ "command": "cargo test\nls" }), &shell, false),
            folded("edit_file", json!({ "path": "a.txt" }), &edit, false),
            folded("write_file", json!({ "path": "b", "content": "x\ny\n" }), "Created b.", false),
            folded("read_file", json!({ "path": "c" }), "<data k>\n1\n2\n</data k>", false),
            folded("shell", json!({ "command": "false" }), "exit code 1 (0.0 s)", true),
            folded("odd", json!({ "a": 1 }), "\u{1b}[2Jdone", false),
            folded("fetch", json!({ "urls": ["http://a", "http://b"] }), "Two pages.", false),
            folded(
                "todo",
                json!({ "steps": [{ "status": "done" }, { "status": "in_progress" }] }),
                "[x] look around\n[>] act",
                false,
            ),
        ];
        insta::assert_snapshot!(cases.join("\n\n"));
    }

    #[test]
    fn data_cannot_close_its_own_frame() {
        let text = "<data k7>\nx\n</data k8>\n<data k8>\ny\n</data k7>\nsaid";
        let shown = ResultText::of(text);
        assert_eq!(shown.said, ["said"]);
        assert_eq!(shown.data, ["x", "</data k8>", "<data k8>", "y"]);
    }
}
