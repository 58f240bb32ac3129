//! Commands that look back: undo, fork, and where the tokens go.

use std::path::Path;

use mainstay_agent::snapshots::{Conflicts, Plan, Undone, Which};
use mainstay_agent::{Event, session::manage};
use tokio_util::sync::CancellationToken;

use super::status::tokens;
use super::talk::Talk;
use super::text::{Colour, Line, Style, clean};
use crate::error::Error;
use crate::wording;

/// So many paths are named.
const NAMED: usize = 12;

impl Talk<'_> {
    /// Puts files back as they were before the last turn that changed any.
    pub(super) async fn undo(&mut self, rest: &str) -> Result<(), Error> {
        let (which, conflicts) = match rest {
            "" => (Which::Last, Conflicts::Refuse),
            "keep" => (Which::Last, Conflicts::Keep),
            "force" => (Which::Last, Conflicts::Overwrite),
            "redo" => (Which::Undo, Conflicts::Refuse),
            _ => {
                return Err(Error::usage("/undo takes nothing, or keep, force or redo")
                    .hint("keep leaves what others changed since, force puts it back too."));
            }
        };
        if self.place.session.is_none() {
            self.screen.note("there is nothing to undo yet");
            return Ok(());
        }
        let mut work = match self.work.take() {
            Some(work) => work,
            None => self.open()?,
        };
        let mut told = Vec::new();
        let mut observer = |event| told.push(event);
        let done = async {
            // One that was killed is the one that is meant.
            if let Some(undone) = work.finish_undo()? {
                return Ok((Plan::default(), undone));
            }
            let cancel = CancellationToken::new();
            let plan = work.plan_undo(which, conflicts, &mut observer, &cancel).await?;
            let refused = !plan.conflicts.is_empty() && conflicts == Conflicts::Refuse;
            let undone = match plan.turns.is_empty() || refused {
                true => Undone::default(),
                false => work.undo(&plan)?,
            };
            Ok::<_, mainstay_agent::Error>((plan, undone))
        }
        .await;
        self.work = Some(work);
        for event in told {
            if let Event::Notice { message, .. } = event {
                self.screen.note(&message);
            }
        }
        let (plan, undone) = done?;
        let lines = undone_lines(&self.place.workspace, which, conflicts, &plan, &undone);
        self.screen.lines(lines);
        Ok(())
    }

    /// Goes on in a copy of the session, as it is or as it was after some turn.
    pub(super) async fn fork(&mut self, rest: &str) -> Result<(), Error> {
        let Some(parent) = self.place.session else {
            self.screen.note("there is nothing to fork yet");
            return Ok(());
        };
        let after = match rest {
            "" => None,
            number => Some(number.parse::<i64>().map_err(|_| {
                Error::usage(format!("{number:?} is no number of a turn"))
                    .hint("/fork 2 goes on as it was after the second turn.")
            })?),
        };
        let turns = self.place.find(&parent.to_string())?.turns;
        if after.is_some_and(|after| !(1..=turns).contains(&after)) {
            return Err(Error::usage(format!(
                "this session has {}",
                wording::count(u64::try_from(turns).unwrap_or(0), "turn")
            )));
        }
        let id = manage::fork(&self.place.store, parent, after)?;
        self.part().await?;
        let session = self.place.find(&id.to_string())?;
        self.place.turn_to(&session).await?;
        self.screen.note(&format!(
            "this is a fork now, session {id}; the one before is kept: /resume {parent}"
        ));
        self.take_up()
    }

    /// Takes the last compaction back.
    pub(super) fn uncompact(&mut self) -> Result<(), Error> {
        if self.place.session.is_none() {
            self.screen.note("there is nothing to take back yet");
            return Ok(());
        }
        let mut work = match self.work.take() {
            Some(work) => work,
            None => self.open()?,
        };
        let restored = work.uncompact();
        self.work = Some(work);
        match restored? {
            Some(restored) => {
                self.screen.status.context = restored.tokens;
                self.screen.note(&wording::restored(&restored));
            }
            None => self.screen.note("no compaction is in force"),
        }
        Ok(())
    }

    /// Shows where the tokens go.
    pub(super) fn context(&mut self) -> Result<(), Error> {
        let Some(id) = self.place.session else {
            self.screen.note("there is nothing in the context yet");
            return Ok(());
        };
        let window = self.place.agent.context(id)?;
        let all = window.tokens.max(1);
        let width = window.parts.iter().map(|part| part.name.chars().count()).max().unwrap_or(0);
        let row = |name: &str, count: u64, style: Style| {
            // A bar of at most twenty letters; the figures say the same.
            let letters = usize::try_from(count.saturating_mul(20) / all).unwrap_or(0).min(20);
            let bar = "█".repeat(letters);
            Line::styled(&format!("  {name:<width$}  {:>7}  ", tokens(count)), style)
                .and(&format!("{:>3}% ", count.saturating_mul(100) / all), Style::DIM)
                .and(&bar, Style::of(Colour::Cyan))
                .cut()
        };
        let mut lines: Vec<Line> =
            window.parts.iter().map(|part| row(&part.name, part.tokens, Style::PLAIN)).collect();
        lines.push(row("all", window.tokens, Style::BOLD));
        if let Some(size) = window.window.filter(|size| *size > 0) {
            let share = window.tokens.saturating_mul(100) / size;
            lines.push(Line::dim(&format!("  {share}% of a window of {} tokens", tokens(size))));
        }
        for large in &window.largest {
            let words = clean(&format!("{} {}", large.tool, wording::line(&large.asked)));
            lines.push(Line::dim(&format!("  {:>7}  {words}", tokens(large.tokens))).cut());
        }
        self.screen.lines(lines);
        Ok(())
    }
}

/// What an undo did, or why it did nothing.
fn undone_lines(
    workspace: &Path,
    which: Which,
    conflicts: Conflicts,
    plan: &Plan,
    undone: &Undone,
) -> Vec<Line> {
    let shown = |path: &str| clean(&within(workspace, path));
    let redo = matches!(which, Which::Undo);
    if !plan.conflicts.is_empty() && conflicts == Conflicts::Refuse {
        let mut lines = vec![Line::styled(
            "Nothing was undone: somebody else changed files since.",
            Style::of(Colour::Yellow),
        )];
        for conflict in plan.conflicts.iter().take(NAMED) {
            lines.push(Line::plain(&format!("  {} ({} now)", shown(&conflict.path), conflict.now)));
        }
        lines.push(Line::dim("  /undo keep leaves them, /undo force puts them back too."));
        return lines;
    }
    if undone.turns.is_empty() {
        return vec![Line::dim(match redo {
            true => "There is no undo to take back.",
            false => "There is nothing to undo.",
        })];
    }
    let turns: Vec<String> = undone.turns.iter().map(i64::to_string).collect();
    let verb = if redo { "Took back the undo of turn" } else { "Undid turn" };
    let mut lines = vec![Line::styled(&format!("{verb} {}", turns.join(", ")), Style::BOLD)];
    for (what, paths) in [("put back", &undone.put_back), ("removed ", &undone.removed)] {
        for path in paths.iter().take(NAMED) {
            lines.push(Line::plain(&format!("  {what}  {}", shown(path))).cut());
        }
        if paths.len() > NAMED {
            lines.push(Line::dim(&format!("  {what}  and {} more", paths.len() - NAMED)));
        }
    }
    for (path, why) in undone.left.iter().take(NAMED) {
        let line = format!("  left as it is: {} ({})", shown(path), clean(why));
        lines.push(Line::dim(&line).hanging("  ", Style::DIM));
    }
    for (path, why) in plan.not_kept.iter().take(NAMED) {
        let line = format!("  not kept, left as it is: {} ({})", shown(path), why.reason());
        lines.push(Line::dim(&line).hanging("  ", Style::DIM));
    }
    if !redo {
        lines.push(Line::dim("  /undo redo takes it back; /undo undoes the turn before."));
    }
    lines
}

/// A path within the workspace, as people write it.
fn within(workspace: &Path, path: &str) -> String {
    let workspace = workspace.canonicalize().unwrap_or_default();
    let inside = format!("{}/", mainstay_tools::snapshot::escaped(&workspace));
    path.strip_prefix(&inside).unwrap_or(path).to_owned()
}
