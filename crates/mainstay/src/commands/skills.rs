//! `mainstay skills`

mod add;
mod approve;
mod list;
mod proposals;
mod reject;
mod remove;
mod restore;
mod show;
mod trash;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use mainstay_agent::skills::{self, Places, Proposal, Shelf};
use mainstay_store::{OwnerId, Store};

use super::run::{current_directory, directory};
use crate::chat::commands::slash::is_command;
use crate::config::Config;
use crate::context::{Context, open_existing};
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;
use crate::paths::Paths;

/// Manage skills, and decide on proposed ones
///
/// A skill is a folder with a SKILL.md: a name and a description, then instructions, with scripts
/// and references beside it. Skills are found in the home (skills/), in the places listed in
/// `[skills] paths`, and in the workspace (.agents/skills, .claude/skills, from the root of its
/// repository down). If two have the same name, the nearer one is used.
#[derive(Debug, Subcommand)]
pub(crate) enum SkillsCommand {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Add(add::AddArgs),
    Remove(remove::RemoveArgs),
    Restore(restore::RestoreArgs),
    Trash(trash::TrashArgs),
    Proposals(proposals::ProposalsArgs),
    Approve(approve::ApproveArgs),
    Reject(reject::RejectArgs),
}

pub(crate) fn run(command: &SkillsCommand, context: &Context) -> Result<Exit, Error> {
    match command {
        SkillsCommand::List(args) => list::run(args, context),
        SkillsCommand::Show(args) => show::run(args, context),
        SkillsCommand::Add(args) => add::run(args, context),
        SkillsCommand::Remove(args) => remove::run(args, context),
        SkillsCommand::Restore(args) => restore::run(args, context),
        SkillsCommand::Trash(args) => trash::run(args, context),
        SkillsCommand::Proposals(args) => proposals::run(args, context),
        SkillsCommand::Approve(args) => approve::run(args, context),
        SkillsCommand::Reject(args) => reject::run(args, context),
    }
}

/// Where skills are looked for, seen from a directory.
fn places(context: &Context, workspace: Option<&Path>) -> Result<(Places, PathBuf), Error> {
    let workspace = match workspace {
        Some(path) => directory(path)?,
        None => current_directory()?,
    };
    let config = Config::load(&context.paths()?, Some(&workspace), context.output)?;
    Ok((config.skills()?, workspace))
}

/// The home's skills.
pub(crate) fn shelf(paths: &Paths) -> Shelf {
    Shelf::at(paths.home.join("skills"))
}

/// How a skill is called for in a chat, where a command of its name comes first.
fn in_a_chat(name: &str) -> String {
    if is_command(name) {
        format!("; in a chat, /{name} is a command, so ask for the skill in words")
    } else {
        format!("; in a chat, use /{name}")
    }
}

/// The store, after finishing what a crash interrupted. Returns `None` if nothing was ever proposed.
fn proposed(paths: &Paths) -> Result<Option<(Store, OwnerId)>, Error> {
    let store = match open_existing(paths) {
        Err(mainstay_store::Error::Absent { .. }) => return Ok(None),
        store => store?,
    };
    let Some(owner) = engine::find_owner(&store)? else { return Ok(None) };
    skills::settle(&store, owner, &shelf(paths))?;
    Ok(Some((store, owner)))
}

/// A proposal that must be there.
fn named(paths: &Paths, typed: &str) -> Result<(Store, OwnerId, Proposal), Error> {
    let unknown = || mainstay_store::Error::UnknownId {
        what: "proposal".to_owned(),
        typed: typed.to_owned(),
    };
    let (store, owner) = proposed(paths)?.ok_or_else(unknown)?;
    let found = store.read(|tx| skills::find_proposal(tx, owner, typed))?;
    Ok((store, owner, found))
}
