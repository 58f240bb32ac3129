//! The `skill` tool: loads the instructions of a skill, with the paths of its files.

use std::time::Duration;

use futures_util::future::BoxFuture;
use mainstay_message::ToolSpec;
use mainstay_tools::{Action, Concurrency, Fact, Invocation, Outcome, Piece, Replay, Tool, Traits};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::catalogue::short;
use super::{Found, Origin, Places, Skill, find};
use crate::agent::blocking;

/// The tool's name.
const NAME: &str = "skill";
/// So many bytes of a body are given at once.
const BODY: usize = 48 << 10;
/// So many bytes of a list.
const LIST: usize = 16 << 10;

/// Loads skills.
pub(crate) struct LoadSkill {
    places: Places,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    name: Option<String>,
}

impl LoadSkill {
    pub(crate) fn new(places: Places) -> Self {
        Self { places }
    }
}

impl Tool for LoadSkill {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Loads a skill: instructions for a kind of task, and the paths of its \
                          files. Without a name it lists all skills."
                .to_owned(),
            parameters: mainstay_tools::parameters::<Arguments>(),
        }
    }

    fn traits(&self) -> Traits {
        let wall = Duration::from_secs(60);
        Traits { replay: Replay::Pure, concurrency: Concurrency::Parallel, wall }
    }

    fn action(&self, _call: &Invocation<'_>) -> Action {
        Action::Read
    }

    fn run<'a>(&'a self, call: Invocation<'a>, _plan: Option<&'a Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let Arguments { name } = match mainstay_tools::arguments(call.arguments) {
                Ok(given) => given,
                Err(outcome) => return outcome,
            };
            blocking(|| {
                let found = find(&self.places, &call.workplace.workspace);
                match name.as_deref().map(str::trim).filter(|name| !name.is_empty()) {
                    None => listed(&found),
                    Some(name) => loaded(&found, name.trim_start_matches('/')),
                }
            })
        })
    }
}

fn loaded(found: &Found, name: &str) -> Outcome {
    let Some(skill) = found.get(name) else {
        let told = found.warnings.iter().find(|warning| {
            warning.file.parent().and_then(|folder| folder.file_name()) == Some(name.as_ref())
        });
        let why = match told {
            Some(warning) => format!(" {warning}."),
            None => " Call it without a name to see which there are.".to_owned(),
        };
        return Outcome::failed(format!("There is no skill of this name that can be used.{why}"));
    };
    match text(skill) {
        Err(what) => Outcome::failed(format!("{} cannot be read: {what}.", file(skill))),
        Ok(body) => Outcome {
            pieces: vec![
                Piece::Said(format!("Skill {name}, {}", whose(skill))),
                Piece::Instructions(body),
                Piece::Said(files(skill)),
            ],
            facts: vec![Fact::Skill { name: name.to_owned() }],
            ..Outcome::default()
        },
    }
}

fn listed(found: &Found) -> Outcome {
    if found.skills.is_empty() {
        return Outcome::said("There are no skills.");
    }
    let mut text = String::new();
    for (place, skill) in found.skills.iter().enumerate() {
        let (name, origin) = (&skill.front.name, skill.origin.as_str());
        let line = format!("- {name} ({origin}): {}\n", short(&skill.front.description));
        if text.len() + line.len() > LIST {
            text.push_str(&format!("and {} more.", found.skills.len() - place));
            break;
        }
        text.push_str(&line);
    }
    // What the workspace says of itself is somebody's words.
    Outcome::said("Skills, each with where it comes from:").data(text)
}

/// Whose instructions these are, and how far they hold.
pub(super) fn whose(skill: &Skill) -> String {
    let words = match skill.origin {
        Origin::Home => {
            "one of the user's own. Follow it for this task; what the user says comes first."
        }
        Origin::Given => {
            "from a place that the user named. Follow it for this task; what the user says comes first."
        }
        Origin::Workspace => {
            "from the workspace's files, by whoever wrote the project. Follow it as far as it serves \
             what the user asked for."
        }
    };
    format!("{words} Its folder is {}.", printable(&skill.path.to_string_lossy()))
}

/// The instructions, as much of them as is given at once.
pub(super) fn text(skill: &Skill) -> Result<String, String> {
    let mut body = skill.body()?;
    if body.len() > BODY {
        body.truncate(body.floor_char_boundary(BODY));
        let file = file(skill);
        body.push_str(&format!("\n[Mainstay: the skill goes on; read {file} with read_file.]"));
    }
    Ok(body)
}

/// What else is in its folder.
pub(super) fn files(skill: &Skill) -> String {
    let (files, more) = skill.files();
    if files.is_empty() {
        return "It has no other files.".to_owned();
    }
    let mut words = "Its other files, to be read with read_file or run with shell:".to_owned();
    for (path, size) in files {
        words.push_str(&format!("\n- {} ({size} bytes)", printable(&path)));
    }
    if more {
        words.push_str("\n- and more");
    }
    words
}

fn file(skill: &Skill) -> String {
    printable(&skill.path.join(super::discovery::FILE).to_string_lossy())
}

/// A path on one line.
fn printable(path: &str) -> String {
    path.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}
