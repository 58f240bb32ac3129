//! A compaction from the draft to the record, under the session's lease.

use std::sync::Arc;

use mainstay_journal::TurnId;
use mainstay_journal::compaction::{self, Committed, Compaction};
use mainstay_journal::entry::{self, Body, Entry};
use mainstay_journal::model_call::{self, Attempt};
use mainstay_store::wall_millis;
use tokio_util::sync::CancellationToken;

use super::draft::{CompactionAim, CompactionSource, Draft, MissingSummary, TokenScale};
use super::limits::{CompactionKind, CompactionPause, WindowMarks};
use super::summary_request::{
    self, PURPOSE, SummaryBill, SummaryFailure, SummaryInProgress, SummaryPrompt,
};
use super::{OnFailure, Trigger, summary};
use crate::budget::Account;
use crate::hooks::{self, Moment, Payload};
use crate::session::open::OpenSession;
use crate::{
    Event, Observer, Result, approvals::requests, calls::record::nonce, ledger, redaction,
};

/// Said when there is nothing to compact.
pub(super) const TOO_LITTLE: &str = "there is too little to leave out";
/// What is left for the frame around what a model is shown.
const FRAME: i64 = 1_500;

/// What came of an attempt at a compaction.
#[derive(Debug)]
pub(super) enum CompactionAttempt {
    /// It is in force.
    Made(Box<Compaction>),
    /// A summary is being made.
    Begun,
    /// Nothing has changed, for this reason.
    Not(String),
    /// Nothing has changed: no summary is asked for, for this reason, and nothing else would help.
    Resting(String),
    /// Nothing has changed: there is too little that could be left out.
    Nothing,
    /// Somebody stopped it.
    Stopped,
}

/// A request for a compaction.
pub(super) struct CompactionRequest<'a> {
    pub(super) turn: TurnId,
    pub(super) account: &'a Arc<Account>,
    pub(super) trigger: Trigger,
    pub(super) focus: Option<String>,
}

/// Where a compaction comes from: the turn, the trigger, and the summary's attempts with their bill.
#[derive(Clone, Copy)]
struct CompactionOrigin<'a> {
    turn: TurnId,
    trigger: Trigger,
    paid: Option<(&'a SummaryBill, &'a [Attempt])>,
}

impl OpenSession {
    /// Begins a compaction: asks the hooks, takes the cheap steps if they are enough, or has a summary
    /// made.
    pub(super) async fn begin_compaction(
        &mut self,
        request: CompactionRequest<'_>,
        observer: Observer<'_>,
        cancel: &CancellationToken,
    ) -> Result<CompactionAttempt> {
        let CompactionRequest { turn, account, trigger, focus } = request;
        let origin = CompactionOrigin { turn, trigger, paid: None };
        let source = self.source()?;
        let scale = self.scale();
        let aim = self.aim(trigger, source.size(&scale));
        let resting = self.compaction.resting(turn, wall_millis());
        let resting = resting.filter(|_| trigger != Trigger::Hand);
        let local = self.agent.settings().compaction.on_failure == OnFailure::Local;
        // Hooks are asked about what is going to happen, and not whether something could.
        let draft = match (source.draft(&scale, &aim), &resting) {
            (Draft::Nothing, _) => {
                self.compaction.found_nothing(self.conversation.size.tokens());
                return Ok(CompactionAttempt::Nothing);
            }
            (Draft::NeedsSummary(wanted), Some(resting)) if !local => match wanted.instead {
                Some(cheap) => Draft::Ready(cheap),
                None => {
                    self.compaction.found_nothing(self.conversation.size.tokens());
                    return Ok(CompactionAttempt::Resting(self.why_resting(resting)));
                }
            },
            (draft, _) => draft,
        };
        let instructions = match self.ask_hooks(trigger, focus.as_deref(), observer, cancel).await {
            Some(Ok(instructions)) => instructions,
            Some(Err(reason)) => {
                let words = format!("a hook refused it: {reason}");
                self.compaction.failed(turn, wall_millis(), &words, None);
                self.compaction.unwanted = true;
                return Ok(CompactionAttempt::Not(words));
            }
            None => return Ok(CompactionAttempt::Stopped),
        };
        let wanted = match draft {
            Draft::Ready(compaction) => return self.apply(origin, *compaction, source, observer),
            Draft::NeedsSummary(wanted) => wanted,
            Draft::Nothing => return Ok(CompactionAttempt::Nothing),
        };
        if resting.is_some() {
            return self.apply_local(origin, &wanted, focus, source, observer);
        }
        let prompt = SummaryPrompt {
            system: summary::system(wanted.most),
            words: summary::summary_question(
                &wanted.material,
                &nonce(),
                focus.as_deref(),
                &instructions,
            ),
            most: wanted.most,
        };
        drop(source);
        let bill =
            match SummaryBill::open(self, account, turn, &prompt, |bytes| scale.tokens(bytes))? {
                Ok(bill) => bill,
                Err(spent) => {
                    self.compaction.failed(turn, wall_millis(), &spent.text, None);
                    return Ok(CompactionAttempt::Not(spent.text));
                }
            };
        let tokens = u64::try_from(self.conversation.size.tokens()).unwrap_or(0);
        observer(Event::Compacting { why: trigger.as_str(), tokens });
        self.compaction.in_progress =
            Some(SummaryInProgress::begin(&self.agent, wanted, prompt, bill, trigger, focus));
        Ok(CompactionAttempt::Begun)
    }

    /// Waits for the summary that is being made, and applies it.
    pub(super) async fn apply_summary(
        &mut self,
        turn: TurnId,
        observer: Observer<'_>,
        cancel: &CancellationToken,
    ) -> Result<CompactionAttempt> {
        let Some(mut in_progress) = self.compaction.in_progress.take() else {
            return Ok(CompactionAttempt::Not("no summary is being made".to_owned()));
        };
        let (attempts, made) = tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(CompactionAttempt::Stopped),
            made = in_progress.made() => made,
        };
        let paid = Some((&in_progress.bill, attempts.as_slice()));
        let trigger = in_progress.trigger;
        let focus = in_progress.focus.clone();
        let origin = CompactionOrigin { turn, trigger, paid };
        match made {
            Ok(summary) => {
                self.compaction.healthy();
                let source = self.source()?;
                let complete = source.complete(&in_progress.wanted, summary, focus, &self.scale());
                let (compaction, enough) = complete;
                if enough {
                    return self.apply(origin, compaction, source, observer);
                }
                self.settle(origin)?;
                self.compaction.refused();
                Ok(CompactionAttempt::Not("the summary would save less than a fifth".to_owned()))
            }
            Err(SummaryFailure { words, retry_at }) => {
                self.compaction.failed(turn, wall_millis(), &words, retry_at);
                let words = format!("the summary failed: {words}");
                if self.agent.settings().compaction.on_failure == OnFailure::Abort {
                    self.settle(origin)?;
                    return Ok(CompactionAttempt::Not(words));
                }
                let source = self.source()?;
                let attempt =
                    self.apply_local(origin, &in_progress.wanted, focus, source, observer)?;
                let message = format!("{words}; a summary was made without a model");
                observer(Event::Notice { about: "compaction", message, void: false });
                Ok(attempt)
            }
        }
    }

    /// Applies a compaction with a summary that no model made.
    fn apply_local(
        &mut self,
        origin: CompactionOrigin<'_>,
        wanted: &MissingSummary,
        focus: Option<String>,
        source: CompactionSource,
        observer: Observer<'_>,
    ) -> Result<CompactionAttempt> {
        let scale = self.scale();
        // Three bytes a token is a low estimate, so the summary stays within its tokens.
        let most = usize::try_from(wanted.most.saturating_mul(3)).unwrap_or(usize::MAX);
        let text = summary::local(source.entries(), wanted.through, most);
        let (compaction, enough) = source.complete(wanted, text, focus, &scale);
        if enough {
            return self.apply(origin, compaction, source, observer);
        }
        self.settle(origin)?;
        self.compaction.refused();
        Ok(CompactionAttempt::Nothing)
    }

    /// Writes a compaction down, with what its summary took, and follows it. One that somebody else
    /// made meanwhile is followed instead.
    fn apply(
        &mut self,
        origin: CompactionOrigin<'_>,
        compaction: Compaction,
        mut source: CompactionSource,
        observer: Observer<'_>,
    ) -> Result<CompactionAttempt> {
        let CompactionOrigin { turn, trigger, paid } = origin;
        let mut body = Body::Compaction(Box::new(compaction));
        redaction::body(self.agent.redactor(), &mut body);
        let Body::Compaction(compaction) = body else { return Ok(CompactionAttempt::Stopped) };
        let id = self.id;
        let committed = self.write(|tx| {
            if let Some((bill, attempts)) = paid {
                bill.settle(tx, self, attempts)?;
            }
            Ok(compaction::commit(tx, id, turn, &compaction)?)
        })?;
        let Committed::Made(seq) = committed else {
            let entries = self.agent.read(|tx| entry::all(tx, id))?;
            self.rebuild_transcript(&entries);
            return Ok(CompactionAttempt::Not("another process compacted the session".to_owned()));
        };
        let body = Body::Compaction(compaction.clone());
        source.push(Entry { seq, turn, at: wall_millis(), body });
        self.rebuild_transcript(source.entries());
        let marks = self.marks();
        self.compaction.applied(
            CompactionKind::of(&compaction),
            self.conversation.size.tokens(),
            marks.as_ref(),
        );
        observer(Event::Compacted {
            number: compaction.number,
            why: trigger.as_str(),
            before: compaction.before,
            after: compaction.after,
            summarised: compaction.summary.is_some(),
        });
        Ok(CompactionAttempt::Made(compaction))
    }

    /// Writes down what a summary took that is not used.
    fn settle(&self, origin: CompactionOrigin<'_>) -> Result<()> {
        let Some((bill, attempts)) = origin.paid else { return Ok(()) };
        self.write(|tx| bill.settle(tx, self, attempts))
    }

    /// All entries of the session, and what is remembered of them without a model.
    pub(super) fn source(&self) -> Result<CompactionSource> {
        let id = self.id;
        let (entries, approvals, number) = self.agent.read(|tx| -> Result<_> {
            let number = compaction::last(tx, id)? + 1;
            Ok((entry::all(tx, id)?, requests::of_session(tx, id)?, number))
        })?;
        let ledger = ledger::of(&entries, &approvals);
        Ok(CompactionSource::new(entries, ledger, number))
    }

    /// The sizes at which something is done: by the first model's window, or by what its provider
    /// found too long.
    pub(super) fn marks(&self) -> Option<WindowMarks> {
        let settings = self.agent.settings();
        let learned =
            self.compaction.outgrown.map(|most| WindowMarks::within(most, settings.compaction.at));
        match (WindowMarks::of(settings), learned) {
            (Some(known), Some(learned)) if learned.room < known.room => Some(learned),
            (known, learned) => known.or(learned),
        }
    }

    pub(super) fn scale(&self) -> TokenScale {
        let tools: usize = self.tools.specs.iter().map(crate::session::offered_tools::size).sum();
        TokenScale {
            fixed: self.conversation.prompt.len() + tools,
            bytes_a_token: self.conversation.size.bytes_per_token(),
        }
    }

    /// What a compaction aims at. A manual one shrinks a conversation even if it is small.
    fn aim(&self, trigger: Trigger, size: i64) -> CompactionAim {
        let settings = self.agent.settings();
        let known = self.marks();
        let marks = match (trigger, known) {
            (Trigger::Share, Some(marks)) => marks,
            (_, known) => {
                let room = known.map_or(size, |marks| marks.room.min(size));
                WindowMarks::within(room, settings.compaction.at)
            }
        };
        let window = summary_request::first_window(&self.agent)
            .and_then(|window| i64::try_from(window).ok());
        // The provider refused a request of this size; the summary is asked for with half of it.
        let most = if trigger == Trigger::TooLong { size / 2 } else { size };
        // A quarter of the window is left for its answer.
        let room = |window: i64| window - window / 4 - FRAME.min(window / 4);
        let shown = window.map_or(most, |window| room(window).min(most));
        let again = self.compaction.lately();
        CompactionAim { marks, again, cheap: trigger != Trigger::Hand, shown }
    }

    /// Asks the hooks whether they agree. Returns what they want the summary to look after, the reason
    /// if one refuses, or `None` if it was cancelled.
    async fn ask_hooks(
        &self,
        trigger: Trigger,
        focus: Option<&str>,
        observer: Observer<'_>,
        cancel: &CancellationToken,
    ) -> Option<std::result::Result<Vec<String>, String>> {
        let settings = self.agent.settings();
        if !settings.hooks.any(Moment::PreCompact) {
            return Some(Ok(Vec::new()));
        }
        let payload = Payload::compaction(trigger.for_hooks(), focus);
        let session = self.id.to_string();
        let reply = tokio::select! {
            biased;
            () = cancel.cancelled() => return None,
            reply = hooks::fire(&settings.hooks, &payload, &session, &self.workplace) => reply,
        };
        hooks::show_notices(observer, reply.notices);
        let redactor = &settings.redactor;
        Some(match reply.halt.or(reply.block) {
            Some(reason) => Err(redactor.text(&reason).into_owned()),
            None => {
                Ok(reply.context.iter().map(|words| redactor.text(words).into_owned()).collect())
            }
        })
    }

    /// Takes in what earlier processes left, once.
    pub(super) fn remember_compactions(&mut self, turn: TurnId) -> Result<()> {
        if self.compaction.remembers {
            return Ok(());
        }
        let id = self.id;
        let (entries, rows) = self.agent.read(|tx| -> Result<_> {
            Ok((entry::all(tx, id)?, model_call::of_purpose(tx, id, PURPOSE)?))
        })?;
        let marks = self.marks();
        self.compaction.remember(&entries, &rows, turn, marks.as_ref());
        Ok(())
    }

    /// Why no summary is asked for.
    pub(super) fn why_resting(&self, resting: &CompactionPause) -> String {
        match resting {
            CompactionPause::Enough => "two summaries were made in the last few rounds".to_owned(),
            CompactionPause::Unanswered => {
                "it was compacted twice since the last answer".to_owned()
            }
            CompactionPause::Fruitless => "the last two compactions did not help".to_owned(),
            CompactionPause::Failing => {
                format!("the summary failed too often in this turn: {}", self.compaction.failure)
            }
            CompactionPause::Until(until) => {
                let seconds = (until - wall_millis()).max(0) / 1000 + 1;
                let failure = &self.compaction.failure;
                format!(
                    "the last summary failed ({failure}) and is not tried again for {seconds} s"
                )
            }
        }
    }
}
