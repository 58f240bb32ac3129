//! The script that stands for a model: a small task, step by step, and what each step leaves behind.

use serde_json::{Value, json};

/// What the agent is asked to do.
pub(super) const TASK: &str = "Add up sales.csv by region in report.txt, and check the report.";
/// The task's data, in the workspace from the beginning.
pub(super) const SALES: (&str, &str) =
    ("sales.csv", "north,12\nsouth,31\nnorth,30\nsouth,20\nsouth,7\n");
/// The file that steps add lines to.
pub(super) const REPORT: &str = "report.txt";
/// The step in which the agent is killed, counted from one: a command that takes a while.
pub(super) const HALFWAY: usize = 3;
/// Words of that command by which its process is known.
pub(super) const SLOW: &str = "sleep 1.5; sh total.sh south";

const ANSWER: &str = "The report is there and checked: north sold 42, south 58, together 100.";

const TOTAL: &str = r#"# Adds up the sales of one region, as a line in report.txt.
sum=0
while IFS=, read -r region amount; do
    [ "$region" = "$1" ] && sum=$((sum + amount))
done < sales.csv
echo "$1 $sum" >> report.txt
echo "$1 $sum"
"#;

const CHECK: &str = "set -- $(cat report.txt); [ $# = 6 ] && [ $(($2 + $4)) = $6 ] \
                     && echo 'checked yes' >> report.txt && echo checked";

/// A step of the task.
pub(super) struct ScriptStep {
    /// The tool.
    pub(super) tool: &'static str,
    /// What the tool is asked to do.
    pub(super) arguments: Value,
    /// What a person is shown of that.
    pub(super) shown: &'static str,
    /// Words that its result must have.
    expected: &'static str,
    /// What it leaves behind.
    pub(super) trace: Trace,
}

/// What a step leaves in the workspace. If it ran twice, its line would be there twice.
pub(super) enum Trace {
    /// This line of the report.
    Line(&'static str),
    /// This file, whole.
    File(&'static str, &'static str),
    /// Nothing: it only looks.
    Nothing,
}

/// The steps, in their order.
pub(super) fn steps() -> Vec<ScriptStep> {
    vec![
        ScriptStep {
            tool: "write_file",
            arguments: json!({ "path": "total.sh", "content": TOTAL }),
            shown: "total.sh",
            expected: "total.sh",
            trace: Trace::File("total.sh", TOTAL),
        },
        ScriptStep {
            tool: "shell",
            arguments: json!({ "command": "sh total.sh north" }),
            shown: "sh total.sh north",
            expected: "north 42",
            trace: Trace::Line("north 42"),
        },
        ScriptStep {
            tool: "shell",
            arguments: json!({ "command": SLOW }),
            shown: SLOW,
            expected: "south 58",
            trace: Trace::Line("south 58"),
        },
        ScriptStep {
            tool: "edit_file",
            arguments: json!({ "path": REPORT, "old": "south 58\n", "new": "south 58\ntotal 100\n" }),
            shown: REPORT,
            expected: "total 100",
            trace: Trace::Line("total 100"),
        },
        ScriptStep {
            tool: "grep",
            arguments: json!({ "pattern": "^total", "path": REPORT }),
            shown: "^total in report.txt",
            expected: "total 100",
            trace: Trace::Nothing,
        },
        ScriptStep {
            tool: "shell",
            arguments: json!({ "command": CHECK }),
            shown: "the check",
            expected: "checked",
            trace: Trace::Line("checked yes"),
        },
    ]
}

/// What the script says next.
#[derive(Debug)]
pub(super) enum Says {
    /// It asks for the step with this number, counted from one.
    Call { number: usize, tool: &'static str, arguments: String },
    /// It is done, or cannot go on.
    Text(String),
}

/// Decides by the results that the conversation holds, and by nothing else.
pub(super) fn next(results: &[String]) -> Says {
    let steps = steps();
    for (number, (step, result)) in steps.iter().zip(results).enumerate() {
        if !result.contains(step.expected) {
            let number = number + 1;
            return Says::Text(format!("Step {number} did not return what it should: {result}"));
        }
    }
    match steps.get(results.len()) {
        Some(step) => Says::Call {
            number: results.len() + 1,
            tool: step.tool,
            arguments: step.arguments.to_string(),
        },
        None => Says::Text(ANSWER.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_follows_the_results_and_stops_at_a_wrong_one() {
        let called = |results: &[&str]| {
            let results: Vec<String> = results.iter().map(|text| (*text).to_owned()).collect();
            match next(&results) {
                Says::Call { number, .. } => Ok(number),
                Says::Text(text) => Err(text),
            }
        };
        assert_eq!(called(&[]), Ok(1));
        assert_eq!(called(&["Wrote total.sh."]), Ok(2));
        assert_eq!(called(&["Wrote total.sh.", "north 42"]), Ok(HALFWAY));
        let wrong = called(&["Wrote total.sh.", "exit code 1"]).unwrap_err();
        assert_eq!(wrong, "Step 2 did not return what it should: exit code 1");
        let good: Vec<&str> = steps().iter().map(|step| step.expected).collect();
        assert_eq!(called(&good), Err(ANSWER.to_owned()));
    }
}
