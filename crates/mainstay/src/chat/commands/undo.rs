//! `/undo`: files put back as they were before a turn, and the undo taken back.

use std::path::Path;

use mainstay_agent::Event;
use mainstay_agent::snapshots::{Conflicts, Plan, UndoTarget, Undone};
use tokio_util::sync::CancellationToken;

use crate::chat::conversation::Conversation;
use crate::chat::render::text::{Colour, Line, Style};
use crate::error::Error;
use crate::plain_text::clean;
use crate::wording;

/// So many paths are named.
const NAMED: usize = 12;

impl Conversation<'_> {
    /// Puts files back as they were before the last turn that changed any.
    pub(crate) async fn undo(&mut self, rest: &str) -> Result<(), Error> {
        let (which, conflicts) = match rest {
            "" => (UndoTarget::Last, Conflicts::Refuse),
            "keep" => (UndoTarget::Last, Conflicts::Keep),
            "force" => (UndoTarget::Last, Conflicts::Overwrite),
            "redo" => (UndoTarget::Undo, Conflicts::Refuse),
            _ => {
                return Err(Error::usage(
                    "invalid argument for /undo; use keep, force or redo, or none",
                )
                .hint("keep leaves files that others changed since; force restores them too."));
            }
        };
        if self.place.session.is_none() {
            self.screen.note("Nothing to undo yet");
            return Ok(());
        }
        let mut session = match self.session.take() {
            Some(session) => session,
            None => self.open()?,
        };
        let mut told = Vec::new();
        let mut observer = |event| told.push(event);
        let done = async {
            // One that was killed is the one that is meant.
            if let Some(undone) = session.finish_undo()? {
                return Ok((Plan::default(), undone));
            }
            let cancel = CancellationToken::new();
            let plan = session.plan_undo(which, conflicts, &mut observer, &cancel).await?;
            let refused = !plan.conflicts.is_empty() && conflicts == Conflicts::Refuse;
            let undone = if plan.turns.is_empty() || refused {
                Undone::default()
            } else {
                session.undo(&plan)?
            };
            Ok::<_, mainstay_agent::Error>((plan, undone))
        }
        .await;
        self.session = Some(session);
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
}

/// What an undo did, or why it did nothing.
fn undone_lines(
    workspace: &Path,
    which: UndoTarget,
    conflicts: Conflicts,
    plan: &Plan,
    undone: &Undone,
) -> Vec<Line> {
    let shown = |path: &str| clean(&wording::in_workspace(workspace, path));
    let redo = matches!(which, UndoTarget::Undo);
    if !plan.conflicts.is_empty() && conflicts == Conflicts::Refuse {
        let mut lines = vec![Line::styled(
            "Nothing was undone: files were changed since then.",
            Style::of(Colour::Yellow),
        )];
        for conflict in plan.conflicts.iter().take(NAMED) {
            lines.push(Line::plain(&format!("  {} ({} now)", shown(&conflict.path), conflict.now)));
        }
        lines.push(Line::dim("  /undo keep leaves them; /undo force restores them too."));
        return lines;
    }
    if undone.turns.is_empty() {
        return vec![Line::dim(if redo { "Nothing to redo." } else { "Nothing to undo." })];
    }
    let turns: Vec<String> = undone.turns.iter().map(i64::to_string).collect();
    let verb = if redo { "Redid turn" } else { "Undid turn" };
    let mut lines = vec![Line::styled(&format!("{verb} {}", turns.join(", ")), Style::BOLD)];
    for (what, paths) in [("restored", &undone.put_back), ("removed ", &undone.removed)] {
        for path in paths.iter().take(NAMED) {
            lines.push(Line::plain(&format!("  {what}  {}", shown(path))).cut());
        }
        if paths.len() > NAMED {
            lines.push(Line::dim(&format!("  {what}  and {} more", paths.len() - NAMED)));
        }
    }
    for (path, why) in undone.left.iter().take(NAMED) {
        let line = format!("  unchanged: {} ({})", shown(path), clean(why));
        lines.push(Line::dim(&line).hanging("  ", Style::DIM));
    }
    for (path, why) in plan.not_kept.iter().take(NAMED) {
        let line = format!("  not saved, so unchanged: {} ({})", shown(path), why.reason());
        lines.push(Line::dim(&line).hanging("  ", Style::DIM));
    }
    if !redo {
        lines.push(Line::dim("  /undo redo reverts this; /undo again undoes the turn before."));
    }
    lines
}
