//! `mainstay undo`

use std::path::Path;

use clap::Args;
use mainstay_agent::snapshots::{Conflicts, Plan, UndoTarget, Undone, changed_turns};
use mainstay_agent::{Agent, Event};
use mainstay_journal::session::{self, Session};
use mainstay_store::Store;
use mainstay_tools::snapshot::State;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::config::Overrides;
use crate::context::{Context, open_existing};
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;
use crate::wording;

/// Restore files as they were before a turn
///
/// Restores what was changed, moved or deleted and removes what was created, by file tools and by
/// commands, with or without git. It undoes the last turn that changed files; run it again to undo
/// the one before. Files that were changed since are left alone unless you say otherwise.
/// Git's own state is not touched: commits stay.
///
/// What could not be saved is reported: large files that git ignores, files above 64 MiB, and files
/// outside the workspace unless a file tool changed them. Owners and times of files are not
/// restored.
#[derive(Args, Debug)]
pub(crate) struct UndoArgs {
    /// Session to undo in (a prefix of its ID is enough) [default: the last one in this directory]
    session: Option<String>,

    /// Go back to before this turn: undo it and everything after it
    #[arg(long, value_name = "NUMBER")]
    turn: Option<i64>,

    /// Revert the last undo
    #[arg(long, conflicts_with = "turn")]
    redo: bool,

    /// List the turns that changed files, and change nothing
    #[arg(long, conflicts_with_all = ["turn", "redo", "dry_run", "force", "keep"])]
    list: bool,

    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,

    /// Also restore files that were changed since; --redo brings them back
    #[arg(long, conflicts_with = "keep")]
    force: bool,

    /// Keep files that were changed since, and restore the others
    #[arg(long)]
    keep: bool,
}

pub(crate) fn run(args: &UndoArgs, context: &Context) -> Result<Exit, Error> {
    let paths = context.paths()?;
    let store = open_existing(&paths)?;
    let session = find(&store, args.session.as_deref())?;
    if args.list {
        return list(context, &store, &session);
    }
    let workspace = super::run::workspace_of(&session, None)?;
    let agent = engine::agent(context, store, session.owner, &workspace, Overrides::default())?;
    let done = engine::block_on(async |cancel: CancellationToken| {
        let done = act(args, context, &agent, &session, &cancel).await;
        agent.leave().await;
        done
    })?;
    done?;
    Ok(Exit::Done)
}

async fn act(
    args: &UndoArgs,
    context: &Context,
    agent: &Agent,
    session: &Session,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let mut open_session = engine::open(agent, session.id)?;
    let which = match (args.redo, args.turn) {
        (true, _) => UndoTarget::Undo,
        (false, Some(number)) => UndoTarget::From(number),
        (false, None) => UndoTarget::Last,
    };
    let conflicts = match (args.force, args.keep) {
        (true, _) => Conflicts::Overwrite,
        (false, true) => Conflicts::Keep,
        (false, false) => Conflicts::Refuse,
    };
    if args.dry_run {
        let plan = open_session.preview_undo(which, conflicts)?;
        return preview(args, context, session, &plan);
    }
    if let Some(undone) = open_session.finish_undo()? {
        // One that was killed is the one that is meant.
        return tell(args, context, session, &Plan::default(), &undone);
    }
    let mut observer = |event: Event| {
        if let Event::Notice { message, .. } = event {
            context.output.warning(message);
        }
    };
    let plan = open_session.plan_undo(which, conflicts, &mut observer, cancel).await?;
    if !plan.conflicts.is_empty() && conflicts == Conflicts::Refuse {
        return Err(refused(session, &plan));
    }
    // A turn of which nothing is left to undo counts as undone too, so that the next one comes up.
    let undone =
        if plan.turns.is_empty() { Undone::default() } else { open_session.undo(&plan)? };
    open_session.leave().await?;
    tell(args, context, session, &plan, &undone)
}

/// The session that is meant: the one that was named, or the last one in this directory.
pub(crate) fn find(store: &Store, typed: Option<&str>) -> Result<Session, Error> {
    if let Some(typed) = typed {
        return engine::named(store, typed);
    }
    let here = std::env::current_dir().and_then(|here| here.canonicalize()).unwrap_or_default();
    let sessions = match engine::find_owner(store)? {
        Some(owner) => store.read(|tx| session::list(tx, owner, 1_000))?,
        None => Vec::new(),
    };
    let is_here = |session: &Session| {
        Path::new(&session.workspace).canonicalize().is_ok_and(|workspace| workspace == here)
    };
    sessions.into_iter().find(is_here).ok_or_else(|| {
        Error::usage(format!("no session in {}", here.display()))
            .hint("Pass a session; list them with `mainstay sessions list`")
    })
}

fn list(context: &Context, store: &Store, session: &Session) -> Result<Exit, Error> {
    let turns = changed_turns(store, session.id)?;
    let mut text = String::new();
    for turn in &turns {
        text.push_str(&format!(
            "turn {}  {}  {}{}\n",
            turn.turn,
            wording::minute(turn.started_at),
            wording::count(turn.paths.len() as u64, "path"),
            if turn.undone { ", undone" } else { "" }
        ));
        for path in turn.paths.iter().take(10) {
            text.push_str(&format!("  {}\n", shown(session, path)));
        }
        if turn.paths.len() > 10 {
            text.push_str(&format!("  and {} more\n", turn.paths.len() - 10));
        }
        for (path, why) in &turn.not_kept {
            text.push_str(&format!("  not saved: {path} ({})\n", why.reason()));
        }
    }
    if turns.is_empty() {
        text.push_str(&format!("No turn of session {} changed files.\n", session.id));
    }
    context.output.answer(&json!({ "session": session.id, "turns": turns }), &text)?;
    Ok(Exit::Done)
}

fn preview(
    args: &UndoArgs,
    context: &Context,
    session: &Session,
    plan: &Plan,
) -> Result<(), Error> {
    let steps = || plan.steps.iter().filter(|step| step.from != step.to);
    let data = json!({
        "session": session.id,
        "turns": plan.turns,
        "put_back": steps().filter(|step| step.to != State::Absent).map(|step| &step.path)
            .collect::<Vec<_>>(),
        "removed": steps().filter(|step| step.to == State::Absent).map(|step| &step.path)
            .collect::<Vec<_>>(),
        "conflicts": plan.conflicts,
        "not_kept": plan.not_kept,
        "dry_run": true,
    });
    let mut text = match plan.turns.as_slice() {
        [] => nothing(args, session),
        turns => format!("This would undo {}:\n", turn_list(turns)),
    };
    for step in steps() {
        let what = if step.to == State::Absent { "remove " } else { "restore" };
        text.push_str(&format!("  {what}  {}\n", shown(session, &step.path)));
    }
    for conflict in &plan.conflicts {
        let path = shown(session, &conflict.path);
        text.push_str(&format!("  changed since, now {}: {path}\n", conflict.now));
    }
    if plan.unseen {
        text.push_str(UNSEEN);
    }
    text.push_str(&not_kept(session, plan));
    context.output.answer(&data, &text)
}

const UNSEEN: &str =
    "The end of the turn was not seen, so everything that changed since it began counts.\n";

/// Says what was done.
fn tell(
    args: &UndoArgs,
    context: &Context,
    session: &Session,
    plan: &Plan,
    undone: &Undone,
) -> Result<(), Error> {
    let data = json!({
        "session": session.id,
        "turns": undone.turns,
        "put_back": undone.put_back,
        "removed": undone.removed,
        "left": undone.left,
        "conflicts": plan.conflicts,
        "not_kept": plan.not_kept,
        "dry_run": false,
    });
    let mut text = if undone.turns.is_empty() {
        nothing(args, session)
    } else {
        let verb = if args.redo { "Redid" } else { "Undid" };
        format!(
            "{verb} {}: {} restored, {} removed.\n",
            turn_list(&undone.turns),
            wording::count(undone.put_back.len() as u64, "path"),
            undone.removed.len()
        )
    };
    for (what, paths) in [("restored", &undone.put_back), ("removed ", &undone.removed)] {
        for path in paths.iter().take(20) {
            text.push_str(&format!("  {what}  {}\n", shown(session, path)));
        }
        if paths.len() > 20 {
            text.push_str(&format!("  {what}  and {} more\n", paths.len() - 20));
        }
    }
    for (path, why) in &undone.left {
        text.push_str(&format!("  unchanged: {} ({why})\n", shown(session, path)));
    }
    for conflict in plan.conflicts.iter().filter(|_| args.keep) {
        text.push_str(&format!("  changed since, so kept: {}\n", shown(session, &conflict.path)));
    }
    for path in &plan.linked {
        text.push_str(&format!(
            "  {} had other names (hard links), which keep their content\n",
            shown(session, path)
        ));
    }
    if plan.unseen {
        text.push_str(UNSEEN);
    }
    text.push_str(&not_kept(session, plan));
    if !undone.turns.is_empty() && !args.redo {
        let paths = context.paths()?;
        let command = paths.command(&format!("undo {} --redo", session.id));
        text.push_str(&format!("To revert this: {command}\n"));
    }
    context.output.answer(&data, &text)
}

fn nothing(args: &UndoArgs, session: &Session) -> String {
    let what = if args.redo { "redo" } else { "undo" };
    format!("Nothing to {what} in session {}.\n", session.id)
}

fn not_kept(session: &Session, plan: &Plan) -> String {
    let line = |(path, why): &(String, mainstay_tools::snapshot::Omission)| {
        format!("  not saved, so unchanged: {} ({})\n", shown(session, path), why.reason())
    };
    plan.not_kept.iter().map(line).collect()
}

fn refused(session: &Session, plan: &Plan) -> Error {
    let paths: Vec<String> =
        plan.conflicts.iter().take(5).map(|conflict| shown(session, &conflict.path)).collect();
    let more = match plan.conflicts.len() {
        0..=5 => String::new(),
        many => format!(" and {} more", many - 5),
    };
    Error::failed(format!(
        "{}{more} changed after {} by other means; nothing was undone",
        paths.join(", "),
        turn_list(&plan.turns)
    ))
    .hint(format!("Keep them and restore the rest: `mainstay undo {} --keep`", session.id))
    .hint(format!("Restore them too: `mainstay undo {} --force`", session.id))
}

fn turn_list(turns: &[i64]) -> String {
    match turns {
        [turn] => format!("turn {turn}"),
        turns => {
            let numbers: Vec<String> = turns.iter().map(i64::to_string).collect();
            format!("turns {}", numbers.join(", "))
        }
    }
}

fn shown(session: &Session, path: &str) -> String {
    wording::in_workspace(Path::new(&session.workspace), path)
}
