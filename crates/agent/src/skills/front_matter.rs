//! The front matter of a `SKILL.md`: a little YAML between two lines of dashes.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The longest name.
const LONGEST_NAME: usize = 64;
/// The longest description, in characters.
const LONGEST_DESCRIPTION: usize = 1024;

/// The most values in front matter.
const NODES: usize = 4_000;

/// What a `SKILL.md` says of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Front {
    /// Lower case, digits and hyphens; the name of its folder.
    pub name: String,
    /// What it does, and when to use it.
    pub description: String,
    /// Under which terms it may be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// What it needs around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compatibility: Option<String>,
    /// Whatever else somebody wanted to note.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The tools that its author expects. It is shown, and widens nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<String>,
}

/// Front matter as it is written. Unknown keys are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct WrittenFrontMatter {
    name: Option<Value>,
    description: Option<Value>,
    license: Option<Value>,
    compatibility: Option<Value>,
    metadata: Option<Value>,
    allowed_tools: Option<Value>,
}

/// Splits the text of a `SKILL.md` into its front matter and its body. An error says what is wrong,
/// in a clause.
pub(super) fn split(text: &str) -> Result<(&str, &str), String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let opening = lines.next().unwrap_or_default();
    if opening.trim_end() != "---" {
        return Err("it has no front matter: its first line is not ---".to_owned());
    }
    let start = opening.len();
    let mut at = start;
    for line in lines {
        if line.trim_end() == "---" {
            return Ok((&text[start..at], &text[at + line.len()..]));
        }
        at += line.len();
    }
    Err("its front matter is not closed: there is no second ---".to_owned())
}

impl Front {
    /// Reads front matter. An error says what is wrong, in a clause.
    pub(super) fn read(yaml: &str) -> Result<Self, String> {
        if yaml.trim().is_empty() {
            return Err("its front matter is empty".to_owned());
        }
        let options = serde_saphyr::options! {
            with_snippet: false,
            // YAML 1.1 reads "yes" and "on" as booleans; here they are text.
            strict_booleans: true,
            // What anchors and aliases unfold to is bounded: a project may bring hundreds of these.
            budget: serde_saphyr::budget! { max_nodes: NODES, max_events: 4 * NODES, max_depth: 32 },
        };
        let written: WrittenFrontMatter = serde_saphyr::from_str_with_options(yaml, options)
            .map_err(|error| format!("its front matter cannot be read: {}", one_line(&error)))?;
        let name = text("name", written.name)?.ok_or("its front matter has no name")?;
        check_name(&name)?;
        let description = text("description", written.description)?.unwrap_or_default();
        let description = description.trim().to_owned();
        match description.chars().count() {
            0 => return Err("its front matter has no description".to_owned()),
            long if long > LONGEST_DESCRIPTION => {
                return Err(format!(
                    "its description has {long} characters; the limit is {LONGEST_DESCRIPTION}"
                ));
            }
            _ => {}
        }
        Ok(Self {
            name,
            description,
            license: written.license.map(value_text),
            compatibility: written.compatibility.map(value_text),
            metadata: match written.metadata {
                Some(Value::Object(metadata)) => metadata,
                _ => Map::new(),
            },
            allowed_tools: written.allowed_tools.map(value_text),
        })
    }

    /// The front matter and the body of a whole `SKILL.md`.
    pub(super) fn of(text: &str) -> Result<(Self, &str), String> {
        let (yaml, body) = split(text)?;
        Ok((Self::read(yaml)?, body))
    }
}

/// Whether a word can be the name of a skill; an error says why not.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let fits =
        |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
    let why = if name.is_empty() {
        "is empty"
    } else if name.len() > LONGEST_NAME {
        "has more than 64 characters"
    } else if !name.bytes().all(fits) {
        "may only contain a-z, 0-9 and -"
    } else if name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        "has a hyphen at an end, or two in a row"
    } else {
        return Ok(());
    };
    let shown: String = name.chars().filter(|letter| !letter.is_control()).take(80).collect();
    Err(format!("the name {shown:?} {why}"))
}

/// Adds a line to the metadata of a `SKILL.md`, so that all else stays as it was written. Returns `None`
/// if the metadata is not written line by line.
pub(super) fn with_metadata(text: &str, key: &str, value: &str) -> Option<String> {
    let (yaml, body) = split(text).ok()?;
    let mut lines: Vec<String> = yaml.lines().map(str::to_owned).collect();
    // A word in quotes is the same in YAML as in JSON.
    let entry = format!("{key}: {}", Value::from(value));
    match lines.iter().position(|line| line.starts_with("metadata:")) {
        None => lines.extend(["metadata:".to_owned(), format!("  {entry}")]),
        Some(place) if lines[place].trim_end() == "metadata:" => {
            let own = format!("{key}:");
            let inner = lines[place + 1..].iter().take_while(|line| line.starts_with(' '));
            let old = inner.clone().position(|line| line.trim_start().starts_with(&own));
            let indent =
                lines.get(place + 1).map_or(2, |line| line.len() - line.trim_start().len());
            let entry = format!("{}{entry}", " ".repeat(indent.max(1)));
            match old {
                Some(old) => lines[place + 1 + old] = entry,
                None => lines.insert(place + 1, entry),
            }
        }
        Some(_) => return None,
    }
    let made = format!("---\n{}\n---\n{body}", lines.join("\n"));
    let (front, _) = Front::of(&made).ok()?;
    (front.metadata.get(key).and_then(Value::as_str) == Some(value)).then_some(made)
}

/// A word of the front matter; anything but a word or a number is an error.
fn text(key: &str, value: Option<Value>) -> Result<Option<String>, String> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(Value::Bool(truth)) => Ok(Some(truth.to_string())),
        Some(Value::Array(_) | Value::Object(_)) => Err(format!("its {key} is not text")),
    }
}

fn value_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Array(values) => values.into_iter().map(value_text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn one_line(error: &serde_saphyr::Error) -> String {
    let words = error.to_string();
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.starts_with("budget breached") {
        return "it has too many or too deeply nested values".to_owned();
    }
    let words = words.replace(", set DuplicateKeyPolicy in Options if acceptable", "");
    let twice = words.starts_with("duplicate");
    let hint = if !twice && (words.contains(": ") || words.contains("mapping")) {
        " (put text that contains a colon in quotes)"
    } else {
        ""
    };
    let shown: String = words.chars().filter(|letter| !letter.is_control()).take(200).collect();
    format!("{shown}{hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Front, String> {
        Front::of(text).map(|(front, _)| front)
    }

    #[test]
    fn front_matter_is_read_as_people_write_it() {
        let text = "\u{feff}---\r\nname: pdf-forms\r\ndescription: >\r\n  Fills in forms.\r\n  Use it \
                    for PDF.\r\nlicense: MIT\r\nallowed-tools: [Bash, Read]\r\nmetadata:\r\n  \
                    version: 1.5\r\nsomething: else\r\n---\r\n# Forms\r\n";
        let (front, body) = Front::of(text).unwrap();
        assert_eq!(front.name, "pdf-forms");
        assert_eq!(front.description, "Fills in forms. Use it for PDF.");
        assert_eq!(front.allowed_tools.as_deref(), Some("Bash, Read"));
        assert_eq!(front.metadata["version"], 1.5);
        assert_eq!(body, "# Forms\r\n");
        let number = read("---\nname: 42\ndescription: x\n---").unwrap();
        assert_eq!((number.name.as_str(), number.license), ("42", None));
        let word = read("---\nname: on\ndescription: yes\n---").unwrap();
        assert_eq!((word.name.as_str(), word.description.as_str()), ("on", "yes"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let long = format!("---\nname: a\ndescription: {}\n---\n", "x".repeat(1025));
        let long_name = format!("---\nname: {}\ndescription: x\n---\n", "a".repeat(65));
        let mut bomb = "---\nname: a\ndescription: x\na0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
        for level in 0..9 {
            let inner = vec![format!("*a{level}"); 9].join(",");
            bomb.push_str(&format!("a{next}: &a{next} [{inner}]\n", next = level + 1));
        }
        bomb.push_str("---\n");
        let (open, close) = ("[".repeat(2_000), "]".repeat(2_000));
        let deep = format!("---\nname: a\ndescription: x\nmetadata: {open}{close}\n---\n");
        let cases = [
            ("", "its first line is not ---"),
            ("# A skill", "its first line is not ---"),
            ("---\nname: a\n", "there is no second ---"),
            ("---\n---\n", "is empty"),
            ("---\n# only a remark\n---\n", "has no name"),
            ("---\ndescription: x\n---\n", "has no name"),
            ("---\nname:\ndescription: x\n---\n", "has no name"),
            ("---\nname: a\n---\n", "has no description"),
            ("---\nname: a\ndescription: \"  \"\n---\n", "has no description"),
            ("---\nname: [a]\ndescription: x\n---\n", "its name is not text"),
            ("---\nname: a\ndescription: {b: c}\n---\n", "its description is not text"),
            ("---\nname: A b\ndescription: x\n---\n", "may only contain"),
            ("---\nname: ../a\ndescription: x\n---\n", "may only contain"),
            ("---\nname: -a\ndescription: x\n---\n", "a hyphen at an end"),
            ("---\nname: a--b\ndescription: x\n---\n", "two in a row"),
            ("---\nname: \"\"\ndescription: x\n---\n", "is empty"),
            (&long, "1025 characters"),
            (&long_name, "more than 64"),
            ("---\nname: a\ndescription: Use when: asked\n---\n", "in quotes"),
            ("---\nname: a\nname: b\ndescription: x\n---\n", "cannot be read"),
            ("---\n- a\n- b\n---\n", "cannot be read"),
            ("---\nname: a\ndescription: \"x\n---\n", "cannot be read"),
            ("---\nname: a\nname: a\ndescription: x\n---\n", "key: name at line 2, column 1"),
            (&bomb, "too many or too deeply nested values"),
            (&deep, "cannot be read"),
            ("---\nname: *nobody\ndescription: x\n---\n", "cannot be read"),
        ];
        for (text, expected) in cases {
            let said = read(text).unwrap_err();
            assert!(said.contains(expected), "{text:?}: {said}");
            assert!(!said.contains('\n') && said.len() < 400, "{said}");
        }
    }

    #[test]
    fn a_line_of_metadata_is_added_and_all_else_stays() {
        let plain = "---\nname: a\ndescription: x # why\n---\nBody\n";
        let made = with_metadata(plain, "origin", "a \"place\": far").unwrap();
        let expected = "---\nname: a\ndescription: x # why\nmetadata:\n  \
                        origin: \"a \\\"place\\\": far\"\n---\nBody\n";
        assert_eq!(made, expected);
        let again = with_metadata(&made, "origin", "elsewhere").unwrap();
        assert_eq!(again.matches("origin").count(), 1, "{again}");
        let block = "---\nname: a\nmetadata:\n    version: 1\ndescription: x\n---\n";
        let made = with_metadata(block, "origin", "here").unwrap();
        let (front, _) = Front::of(&made).unwrap();
        assert_eq!(
            (&front.metadata["version"], &front.metadata["origin"]),
            (&1.into(), &"here".into())
        );
        let flow = "---\nname: a\nmetadata: {version: 1}\ndescription: x\n---\n";
        assert_eq!(with_metadata(flow, "origin", "here"), None);
    }
}
