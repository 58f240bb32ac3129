//! `mainstay skills show`

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use mainstay_agent::skills::{self, SkillError, visible};
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

/// Show a skill: its description, files and instructions
#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// Name of the skill
    name: String,

    /// Directory to look from [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    workspace: Option<PathBuf>,
}

pub(super) fn run(args: &ShowArgs, context: &Context) -> Result<Exit, Error> {
    let (places, workspace) = super::places(context, args.workspace.as_deref())?;
    let found = skills::find(&places, &workspace);
    let Some(skill) = found.get(&args.name) else {
        let error = Error::usage(format!("unknown skill {:?}", args.name));
        return Err(error.hint("List the skills: `mainstay skills list`"));
    };
    let body =
        skill.body().map_err(|what| SkillError::Invalid { path: skill.path.clone(), what })?;
    let (files, _) = skill.files();
    let front = &skill.front;
    let mut text = format!("{}: {}\n", front.name, front.description);
    // Writing to a string does not fail.
    let _ = writeln!(text, "from: {}, {}", skill.origin.as_str(), skill.path.display());
    let said = [
        ("license", &front.license),
        ("compatibility", &front.compatibility),
        ("allowed-tools", &front.allowed_tools),
    ];
    for (key, value) in said {
        if let Some(value) = value {
            let _ = writeln!(text, "{key}: {value}");
        }
    }
    for (key, value) in &front.metadata {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let _ = writeln!(text, "{key}: {value}");
    }
    for (path, size) in &files {
        let _ = writeln!(text, "file: {path} ({size} bytes)");
    }
    let _ = writeln!(text, "\n{body}");
    let mut data = json!(skill);
    data["body"] = json!(body);
    let files: Vec<Value> =
        files.iter().map(|(path, size)| json!({ "path": path, "bytes": size })).collect();
    data["files"] = json!(files);
    context.output.answer(&data, &visible(&text))?;
    Ok(Exit::Done)
}
