//! `[[memory.providers]]`: who has memories besides the store. A workspace has no say in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use mainstay_agent::memory::external::{
    CommandProvider, Description, ProviderKind, REST, ServerProvider, USUAL_LIMIT, Wishes,
};
use mainstay_tools::keeper::Program;
use mainstay_tools::{Web, harmless_environment, mcp};
use serde::Deserialize;

use super::Config;
use super::shape::Time;
use crate::error::Error;
use crate::{env, redaction};

/// One of them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MemoryProvider {
    name: String,
    command: Option<String>,
    args: Vec<String>,
    url: Option<String>,
    mcp: Option<bool>,
    env: BTreeMap<String, String>,
    pass_environment: Vec<String>,
    headers: BTreeMap<String, String>,
    api_key_env: Option<String>,
    timeout: Option<Time>,
    write: bool,
    trusted: bool,
    recall_tool: Option<String>,
    recall_argument: Option<String>,
    remember_tool: Option<String>,
    remember_argument: Option<String>,
    forget_tool: Option<String>,
    arguments: serde_json::Map<String, serde_json::Value>,
}

/// Names that memories of the store are known by.
const TAKEN: [&str; 3] = ["notes", "facts", "memory"];

impl MemoryProvider {
    /// Makes known what it is given that nobody else is to see.
    pub(super) fn make_secrets_known(&self) {
        let given = self.headers.iter().chain(&self.env);
        given.for_each(|(name, value)| redaction::add_header(&self.name, name, value));
        if let Some(variable) = &self.api_key_env
            && let Some(value) = env::named_by_configuration(variable)
        {
            redaction::add(variable, &value.to_string_lossy());
        }
        if let Some(password) = self.url.as_deref().and_then(redaction::password_in) {
            redaction::add(&format!("password of {}", self.name), password);
        }
    }
}

/// All of them, in their order.
pub(crate) fn descriptions(config: &Config) -> Result<Vec<Description>, Error> {
    let mut names = BTreeSet::new();
    let mut all = Vec::new();
    for said in &config.file.memory.providers {
        let description = description(config, said)?;
        if !names.insert(description.name.clone()) {
            return Err(config
                .wrong(format!("two providers in memory.providers have the name {:?}", said.name))
                .hint("Give each a name of its own."));
        }
        all.push(description);
    }
    Ok(all)
}

fn description(config: &Config, said: &MemoryProvider) -> Result<Description, Error> {
    let name = said.name.as_str();
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    if name.is_empty() || !name.chars().all(is_word) || TAKEN.contains(&name) {
        return Err(config
            .wrong(format!("{name:?} is not a valid name in memory.providers"))
            .hint(
                "Name each with a word of its own: letters, digits, - and _; not notes or facts.",
            ));
    }
    let wrong = |detail: String| config.wrong(format!("memory.providers, {name}: {detail}"));
    let limit = match &said.timeout {
        None => USUAL_LIMIT,
        Some(time) => time.duration().filter(|time| !time.is_zero()).ok_or_else(|| {
            wrong("timeout is not a valid time".to_owned())
                .hint("Write seconds, such as 8, or a time with its unit, such as \"500ms\".")
        })?,
    };
    Ok(Description {
        kind: kind(said, &wrong)?,
        name: name.to_owned(),
        limit,
        rest: REST,
        write: said.write,
        trusted: said.trusted,
    })
}

fn kind(said: &MemoryProvider, wrong: &dyn Fn(String) -> Error) -> Result<ProviderKind, Error> {
    let wishes = Wishes {
        recall_tool: said.recall_tool.clone(),
        recall_argument: said.recall_argument.clone(),
        remember_tool: said.remember_tool.clone(),
        remember_argument: said.remember_argument.clone(),
        forget_tool: said.forget_tool.clone(),
        arguments: said.arguments.clone(),
    };
    let named = [&said.recall_tool, &said.remember_tool, &said.forget_tool];
    let is_mcp = said.mcp.unwrap_or_else(|| {
        said.url.is_some() || named.iter().any(|tool| tool.is_some()) || !said.arguments.is_empty()
    });
    match (&said.command, &said.url) {
        (Some(line), None) => {
            let program = if said.args.is_empty() {
                Program::Line(line.clone())
            } else {
                let words = std::iter::once(line).chain(&said.args);
                Program::Arguments(words.map(|word| at_home(word)).collect())
            };
            let environment = environment(said);
            let directory = home();
            Ok(if is_mcp {
                let program = mcp::Program { program, directory, environment };
                ProviderKind::Server(Box::new(ServerProvider {
                    server: mcp::Server::Program(program),
                    wishes,
                }))
            } else {
                ProviderKind::Command(CommandProvider { program, environment, directory })
            })
        }
        (None, Some(url)) if is_mcp => {
            let service = service(said, url, wrong)?;
            Ok(ProviderKind::Server(Box::new(ServerProvider {
                server: mcp::Server::Service(service),
                wishes,
            })))
        }
        (None, Some(_)) => {
            Err(wrong("`url` needs an MCP server, but mcp is false".into())
                .hint("Leave `mcp` out."))
        }
        _ => Err(wrong("it needs a `command` or a `url`, and not both".to_owned()).hint(
            "Write command = \"…\" for a program, url = \"https://…\" for a server elsewhere.",
        )),
    }
}

fn service(
    said: &MemoryProvider,
    url: &str,
    wrong: &dyn Fn(String) -> Error,
) -> Result<mcp::Service, Error> {
    let no_address = || {
        wrong(format!("{url:?} is not a valid address"))
            .hint("Write a whole address, such as http://127.0.0.1:8765/mcp.")
    };
    let url: url::Url = url.parse().map_err(|_| no_address())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(no_address());
    }
    let mut headers = said.headers.clone();
    if let Some(variable) = &said.api_key_env {
        // Without it the server says itself that it wants one.
        if let Some(key) = env::named_by_configuration(variable) {
            headers.insert("authorization".to_owned(), format!("Bearer {}", key.to_string_lossy()));
        }
    }
    // It names places that a model may reach; none here.
    let web = Web::new::<&str>(&[]).map_err(|error| wrong(error.to_string()))?;
    let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    mcp::Service::new(url, headers, web).map_err(|name| {
        wrong(format!("{name:?} is not a valid header"))
            .hint("Write headers = { \"X-Team\" = \"blue\" }.")
    })
}

/// What it is given of the environment: what commands are, what is named, and what is set for it.
fn environment(said: &MemoryProvider) -> Vec<(String, String)> {
    let mut given = harmless_environment(&env::all(), &said.pass_environment);
    given.retain(|(name, _)| !said.env.contains_key(name));
    given.extend(said.env.iter().map(|(name, value)| (name.clone(), at_home(value))));
    given
}

/// The user's own directory.
fn home() -> PathBuf {
    let home = env::HOME.get().map(PathBuf::from).filter(|home| home.is_dir());
    home.unwrap_or_else(|| PathBuf::from("/"))
}

/// A path below the user's own directory, written with `~/`; anything else as it is.
fn at_home(word: &str) -> String {
    match word.strip_prefix("~/") {
        Some(rest) => home().join(rest).display().to_string(),
        None => word.to_owned(),
    }
}
