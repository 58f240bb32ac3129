//! `mainstay undo`

use std::path::Path;

use clap::Args;
use mainstay_agent::snapshots::{Conflicts, Plan, Undone, Which, changed_turns};
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

/// Put files back as they were before a turn
///
/// Brings back what was changed, moved or deleted and removes what was made, by file tools and by
/// commands, with or without git. It undoes the last turn that changed files; done again, the one
/// before. Files that somebody else changed since then are not touched unless you say so. Git's own
/// state is left alone: commits stay.
///
/// What is not kept is said: what git ignores and is large, files above 64 MiB, what lies outside
/// the workspace unless a file tool changed it. Owners and times of files are not put back.
#[derive(Args, Debug)]
pub(crate) struct UndoArgs {
    /// The session (the start of its id is enough) [default: the last one in this directory]
    session: Option<String>,

    /// Go back to before this turn: undo it and all that came after
    #[arg(long, value_name = "NUMBER")]
    turn: Option<i64>,

    /// Take the last undo back
    #[arg(long, conflicts_with = "turn")]
    redo: bool,

    /// Show which turns changed files, and change nothing
    #[arg(long, conflicts_with_all = ["turn", "redo", "dry_run", "force", "keep"])]
    list: bool,

    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,

    /// Put files back too that somebody else changed since; --redo brings them back
    #[arg(long, conflicts_with = "keep")]
    force: bool,

    /// Leave files alone that somebody else changed since, and put the others back
    #[arg(long)]
    keep: bool,
}

pub(crate) fn run(args: &UndoArgs, context: &Context) -> Result<Exit, Error> {
    let settings = context.settings()?;
    let store = open_existing(&settings.store)?;
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
    let mut work = engine::open(agent, session.id)?;
    let which = match (args.redo, args.turn) {
        (true, _) => Which::Undo,
        (false, Some(number)) => Which::From(number),
        (false, None) => Which::Last,
    };
    let conflicts = match (args.force, args.keep) {
        (true, _) => Conflicts::Overwrite,
        (false, true) => Conflicts::Keep,
        (false, false) => Conflicts::Refuse,
    };
    if args.dry_run {
        let plan = work.preview_undo(which, conflicts)?;
        return preview(args, context, session, &plan);
    }
    if let Some(undone) = work.finish_undo()? {
        // One that was killed is the one that is meant.
        return tell(args, context, session, &Plan::default(), &undone);
    }
    let mut observer = |event: Event| {
        if let Event::Notice { message, .. } = event {
            context.output.warning(message);
        }
    };
    let plan = work.plan_undo(which, conflicts, &mut observer, cancel).await?;
    if !plan.conflicts.is_empty() && conflicts == Conflicts::Refuse {
        return Err(refused(session, &plan));
    }
    // A turn of which nothing is left to undo counts as undone too, so that the next one comes up.
    let undone = if plan.turns.is_empty() { Undone::default() } else { work.undo(&plan)? };
    work.leave().await?;
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
        Error::usage(format!("no session works in {}", here.display()))
            .hint("Name a session: see `mainstay sessions list`")
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
            text.push_str(&format!("  not kept: {path} ({})\n", why.reason()));
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
        turns => format!("This would undo {}:\n", spoken(turns)),
    };
    for step in steps() {
        let what = if step.to == State::Absent { "remove  " } else { "put back" };
        text.push_str(&format!("  {what}  {}\n", shown(session, &step.path)));
    }
    for conflict in &plan.conflicts {
        let path = shown(session, &conflict.path);
        text.push_str(&format!("  changed since, {} now: {path}\n", conflict.now));
    }
    if plan.unseen {
        text.push_str(UNSEEN);
    }
    text.push_str(&not_kept(session, plan));
    context.output.answer(&data, &text)
}

const UNSEEN: &str =
    "Nobody saw how the turn ended, so all that changed since it began is counted.\n";

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
        let verb = if args.redo { "Took the undo back of" } else { "Undid" };
        format!(
            "{verb} {}: {} put back, {} removed.\n",
            spoken(&undone.turns),
            wording::count(undone.put_back.len() as u64, "path"),
            undone.removed.len()
        )
    };
    for (what, paths) in [("put back", &undone.put_back), ("removed ", &undone.removed)] {
        for path in paths.iter().take(20) {
            text.push_str(&format!("  {what}  {}\n", shown(session, path)));
        }
        if paths.len() > 20 {
            text.push_str(&format!("  {what}  and {} more\n", paths.len() - 20));
        }
    }
    for (path, why) in &undone.left {
        text.push_str(&format!("  left as it is: {} ({why})\n", shown(session, path)));
    }
    for conflict in plan.conflicts.iter().filter(|_| args.keep) {
        text.push_str(&format!("  changed since, kept: {}\n", shown(session, &conflict.path)));
    }
    for path in &plan.linked {
        text.push_str(&format!(
            "  {} had other names (hard links), which keep what they hold\n",
            shown(session, path)
        ));
    }
    if plan.unseen {
        text.push_str(UNSEEN);
    }
    text.push_str(&not_kept(session, plan));
    if !undone.turns.is_empty() && !args.redo {
        let settings = context.settings()?;
        let command = settings.command(&format!("undo {} --redo", session.id));
        text.push_str(&format!("To take it back: {command}\n"));
    }
    context.output.answer(&data, &text)
}

fn nothing(args: &UndoArgs, session: &Session) -> String {
    match args.redo {
        true => format!("Session {} has no undo to take back.\n", session.id),
        false => format!("There is nothing to undo in session {}.\n", session.id),
    }
}

fn not_kept(session: &Session, plan: &Plan) -> String {
    let line = |(path, why): &(String, mainstay_tools::snapshot::Omission)| {
        format!("  not kept, left as it is: {} ({})\n", shown(session, path), why.reason())
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
        "somebody else changed {}{more} after {}; nothing was done",
        paths.join(", "),
        spoken(&plan.turns)
    ))
    .hint(format!("Leave them and put the rest back: `mainstay undo {} --keep`", session.id))
    .hint(format!("Put them back too: `mainstay undo {} --force`", session.id))
}

fn spoken(turns: &[i64]) -> String {
    match turns {
        [turn] => format!("turn {turn}"),
        turns => {
            let numbers: Vec<String> = turns.iter().map(i64::to_string).collect();
            format!("turns {}", numbers.join(", "))
        }
    }
}

/// A path within the workspace, as people write it.
fn shown(session: &Session, path: &str) -> String {
    let workspace = Path::new(&session.workspace).canonicalize().unwrap_or_default();
    let inside = format!("{}/", mainstay_tools::snapshot::escaped(&workspace));
    path.strip_prefix(&inside).unwrap_or(path).to_owned()
}
