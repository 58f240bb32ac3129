//! The turn: ask, run what was asked for, ask again, until there is an answer.
//!
//! Before a call has its effect its intent is durable, and with it the reservation of the question
//! that will follow. Its result is written down while the model is being asked; nothing is done with
//! the answer before that is durable. So a round takes two commits, or one where the model answers at
//! once.

use std::collections::VecDeque;
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use mainstay_journal::entry::Body;
use mainstay_journal::turn::{self, Outcome as How, State, Turn};
use mainstay_journal::{CallId, SessionId, TurnId, call, entry, model_call, process};
use mainstay_llm::{Answer, Failure, Fault, Stop as Why};
use mainstay_message::{AssistantPart, Content};
use mainstay_store::{Id, WriteTx};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::agent::{Parts, blocking};
use crate::approvals::ask_person::Waiting;
use crate::budget::{Account, Spent};
use crate::calls::call::ToolCall;
use crate::loop_guard::LoopGuard;
use crate::session::open::{OpenSession, words};
use crate::turn::ask_model::{self, EventBuffer, FailedAttempts, ModelReservation, Question};
use crate::turn::report::{TurnEnding, TurnReport};
use crate::turn::unwritten::UnwrittenEntries;
use crate::{
    Error, Event, Observer, Result, approvals::questions, approvals::requests,
    background::processes, budget, redaction,
};

/// A turn being worked on.
pub(crate) struct TurnRunner<'a> {
    pub(crate) work: &'a mut OpenSession,
    pub(crate) turn: Turn,
    pub(crate) observer: Observer<'a>,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) guard: LoopGuard,
    pub(crate) deadline: Instant,
    /// Where spending is charged.
    pub(crate) account: Arc<Account>,
    /// What is known and not written down yet; the next commit writes it.
    pub(crate) known: UnwrittenEntries,
    /// The next question, where it is reserved already.
    pub(crate) next: Option<ModelReservation>,
    /// Calls without an outcome, in the order they were asked for.
    pub(crate) flying: VecDeque<ToolCall>,
    /// Those of them that a face was told of.
    pub(crate) told: Vec<CallId>,
    /// What a person has to say before the turn can go on.
    pub(crate) waiting: Waiting,
    answer: String,
    empty_answers: u32,
    /// An answer that was recorded before the turn could be ended.
    pub(crate) unended: Option<String>,
    /// How often hooks sent the turn on when it was about to end.
    pub(crate) stops: u32,
}

/// Whether an answer was cut at the model's limit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    Yes,
    No,
}

/// What came of a question.
type Asked = std::result::Result<Answer, Failure>;

/// Why the rounds stop.
pub(crate) enum TurnStop {
    Cancelled,
    Parked {
        reason: String,
        resume_at: Option<i64>,
    },
    Failed(String),
    Stuck(String),
    /// A hook ends the turn, for this reason.
    Stopped(String),
    /// The engine itself cannot go on; nothing more is written.
    Broken(Error),
}

impl<E: Into<Error>> From<E> for TurnStop {
    fn from(error: E) -> Self {
        TurnStop::Broken(error.into())
    }
}

/// How long results wait for company before they are written down. A model takes longer to answer, so
/// nothing waits for it; the keeper has them if this process dies.
const GATHER: Duration = Duration::from_millis(2);
/// How often a model may end its turn without a word.
const EMPTY_ANSWERS: u32 = 1;

impl<'a> TurnRunner<'a> {
    /// Works on a turn that was just begun.
    pub(crate) async fn begin(
        work: &'a mut OpenSession,
        turn: Turn,
        observer: Observer<'a>,
        cancel: &'a CancellationToken,
    ) -> Result<TurnReport> {
        let mut drive = Self::new(work, turn, observer, cancel);
        drive.find_account()?;
        let (id, number) = (drive.turn.id.to_string(), drive.turn.number);
        (drive.observer)(Event::Turn { id, number, resumed: false });
        drive.run().await
    }

    /// Goes on with a turn that another process left.
    pub(crate) async fn resume(
        work: &'a mut OpenSession,
        turn: Turn,
        observer: Observer<'a>,
        cancel: &'a CancellationToken,
    ) -> Result<TurnReport> {
        let mut drive = Self::new(work, turn, observer, cancel);
        drive.take_up()?;
        let (id, number) = (drive.turn.id.to_string(), drive.turn.number);
        (drive.observer)(Event::Turn { id, number, resumed: true });
        drive.run().await
    }

    /// Ends a turn that another process left, because something new was asked.
    pub(crate) async fn set_aside(
        work: &'a mut OpenSession,
        turn: Turn,
        observer: Observer<'a>,
        cancel: &'a CancellationToken,
    ) -> Result<()> {
        let mut drive = Self::new(work, turn, observer, cancel);
        drive.take_up()?;
        drive.close_calls("something new was asked before it could be run").await?;
        drive.end(How::Interrupted, None)?;
        let message = "the turn before was not finished; what it had begun is recorded".to_owned();
        (drive.observer)(Event::Notice { about: "interrupted", message, void: false });
        Ok(())
    }

    fn new(
        work: &'a mut OpenSession,
        turn: Turn,
        observer: Observer<'a>,
        cancel: &'a CancellationToken,
    ) -> Self {
        let Parts { owner, settings, .. } = &*work.agent.parts;
        let (day, wall) = (settings.budgets.day, settings.budgets.wall);
        let account = Account { owner: *owner, path: Vec::new(), day };
        Self {
            account: Arc::new(account),
            work,
            turn,
            observer,
            cancel,
            guard: LoopGuard::default(),
            deadline: Instant::now() + wall,
            known: UnwrittenEntries::default(),
            next: None,
            flying: VecDeque::new(),
            told: Vec::new(),
            waiting: Waiting::default(),
            answer: String::new(),
            empty_answers: 0,
            unended: None,
            stops: 0,
        }
    }

    /// Takes over what the process before left: closes its question, counts its calls.
    fn take_up(&mut self) -> Result<()> {
        let agent = self.work.agent.clone();
        let (session, turn) = self.place();
        let (budgets, is_child) = (agent.parts.settings.budgets, self.work.is_child);
        self.commit(|tx| {
            model_call::abandon(tx, session)?;
            turn::reopen(tx, turn)?;
            let parent = budget::of_session(session);
            if !is_child {
                budget::open(tx, &parent, None, &budgets.session)?;
            }
            budget::open(tx, &budget::of_turn(turn), Some(&parent), &budgets.turn)?;
            Ok(())
        })?;
        self.find_account()?;
        self.recount()?;
        let open = blocking(|| agent.parts.store.read(|tx| call::open(tx, session)))?;
        self.flying = open.iter().map(|open| ToolCall::from_record(&agent, open)).collect();
        Ok(())
    }

    /// Finds the budgets that the turn is charged to.
    fn find_account(&mut self) -> Result<()> {
        let id = budget::of_turn(self.turn.id);
        let store = &self.work.agent.parts.store;
        let path = blocking(|| store.read(|tx| budget::ancestry(tx, &id)))?;
        self.account = Arc::new(Account { path, ..(*self.account).clone() });
        Ok(())
    }

    async fn run(mut self) -> Result<TurnReport> {
        let ending = match self.rounds().await {
            Ok(()) => TurnEnding::Over(How::Answered, None),
            Err(halt) => self.halt(halt).await?,
        };
        let mut row = self.turn.clone();
        match &ending {
            TurnEnding::Over(how, reason) => {
                (row.state, row.outcome, row.reason) = (State::Ended, Some(*how), reason.clone());
            }
            TurnEnding::Parked { reason, resume_at } => {
                (row.state, row.reason, row.resume_at) =
                    (State::Parked, Some(reason.clone()), *resume_at);
            }
        }
        let ended = TurnReport::of(self.work, &row, std::mem::take(&mut self.answer))?;
        self.work.last = Some(row);
        ended.tell(self.observer);
        Ok(ended)
    }

    async fn rounds(&mut self) -> std::result::Result<(), TurnStop> {
        if self.work.agent.parts.settings.chain.is_empty() {
            return Err(Error::NoModel.into());
        }
        // An answer that is there only has to be told.
        if self.unended.is_none() && self.cancel.is_cancelled() {
            return Err(TurnStop::Cancelled);
        }
        self.run_calls().await?;
        self.pass_on_context()?;
        if let Some(answer) = self.unended.take().filter(|answer| !answer.is_empty())
            && self.concluded(answer, Cut::No).await?
        {
            return Ok(());
        }
        loop {
            self.make_room().await?;
            let asking = self.asking()?;
            let mut tried = FailedAttempts::default();
            let asked = match self.ask(&mut tried).await {
                Ok(asked) => asked,
                Err(TurnStop::Broken(error)) => return Err(TurnStop::Broken(error)),
                Err(halt) => {
                    let (agent, place) = (self.work.agent.clone(), self.place());
                    let account = self.account.clone();
                    self.commit(|tx| asking.give_up(tx, &agent, &account, place, &tried))?;
                    return Err(halt);
                }
            };
            let attempts = ask_model::attempts(&asked);
            match asked {
                Ok(answer) => {
                    let calls = calls_of(&answer);
                    self.known.later.push(answer_event(&answer));
                    let body = self.known.say(asking, attempts, &answer, &calls);
                    self.work.take_in(&body);
                    if calls.is_empty() {
                        if self.answered(&answer).await? {
                            return Ok(());
                        }
                    } else {
                        let agent = &self.work.agent;
                        self.flying = calls
                            .into_iter()
                            .zip(&self.known.call_ids)
                            .map(|(call, id)| ToolCall { id: *id, ..ToolCall::new(agent, call) })
                            .collect();
                        self.run_calls().await?;
                    }
                }
                Err(failure) => {
                    let (agent, place) = (self.work.agent.clone(), self.place());
                    let account = self.account.clone();
                    self.commit(|tx| {
                        let correction = asking.finish(tx, &agent, place, &attempts)?;
                        budget::correct(tx, &account, &correction)
                    })?;
                    if failure.fault == Fault::TooLong && Instant::now() < self.deadline {
                        self.make_room_after(&failure).await?;
                        continue;
                    }
                    return Err(match failure.retry_at {
                        // The turn's own time ended it, not the models'.
                        _ if Instant::now() >= self.deadline => self.out_of_time(),
                        Some(at) => {
                            TurnStop::Parked { reason: failure.to_string(), resume_at: Some(at) }
                        }
                        None => TurnStop::Failed(failure.to_string()),
                    });
                }
            }
        }
    }

    /// Asks the models. Results that are not written down yet are, after a moment in which others may
    /// join them; what is heard is told after that.
    async fn ask(&mut self, tried: &mut FailedAttempts) -> std::result::Result<Asked, TurnStop> {
        let asked = self.hear(tried).await?.ok_or_else(|| self.out_of_time())?;
        if let Ok(answer) = &asked {
            self.work.watch.answered();
            if let Some(usage) = &answer.usage {
                self.work.sizes.learn(usage);
                self.work.judge_compaction();
            }
        }
        Ok(asked)
    }

    /// Asks and hears; nothing where the turn's time is over.
    async fn hear(
        &mut self,
        tried: &mut FailedAttempts,
    ) -> std::result::Result<Option<Asked>, TurnStop> {
        let (agent, place) = (self.work.agent.clone(), self.place());
        // No channel: it would wake the task that is speaking already, once for each word.
        let heard = EventBuffer::default();
        let question = Question {
            agent: &agent,
            session: self.work.id,
            prompt: &self.work.prompt,
            tools: &self.work.specs,
            messages: self.work.transcript.messages(),
            memo: &self.work.memo,
            left: self.deadline.saturating_duration_since(Instant::now()),
        };
        let mut asking = pin!(timeout_at(self.deadline, question.ask(tried, &heard)));
        let mut gathering = pin!(sleep(GATHER));
        let mut owed = self.known.has_results();
        let asked = loop {
            let next = poll_fn(|context| match asking.as_mut().poll(context) {
                Poll::Ready(asked) => Poll::Ready(Some(asked)),
                Poll::Pending if !owed && !heard.is_empty() => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            });
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(TurnStop::Cancelled),
                next = next => match next {
                    Some(asked) => break asked,
                    None => heard.take().into_iter().for_each(&mut *self.observer),
                },
                () = &mut gathering, if owed => {
                    let (known, lease) = (&mut self.known, &self.work.lease);
                    known.write(&agent, lease, place, self.observer, |_, _| Ok(()))?;
                    owed = false;
                }
            }
        };
        if owed {
            self.known.later.extend(heard.take());
        } else {
            heard.take().into_iter().for_each(&mut *self.observer);
        }
        Ok(asked.ok())
    }

    /// Ends the turn with an answer, in the commit that writes it down. A model that said nothing is
    /// asked once more.
    async fn answered(&mut self, answer: &Answer) -> std::result::Result<bool, TurnStop> {
        let said = words(&answer.parts);
        if said.is_empty() {
            if self.empty_answers >= EMPTY_ANSWERS {
                return Err(TurnStop::Failed(format!(
                    "{} ended its turn without a word, twice",
                    answer.candidate
                )));
            }
            self.empty_answers += 1;
            let text = "your last message was empty; answer, or call a tool".to_owned();
            self.commit_entries(&[Body::Notice { text }])?;
            return Ok(false);
        }
        let cut = if matches!(answer.stop, Why::Length) { Cut::Yes } else { Cut::No };
        self.concluded(said, cut).await
    }

    /// Ends the turn with these words, unless a hook sends it on.
    async fn concluded(&mut self, answer: String, cut: Cut) -> std::result::Result<bool, TurnStop> {
        if self.is_sent_on(&answer).await? {
            return Ok(false);
        }
        self.answer = answer;
        self.end(How::Answered, None)?;
        if cut == Cut::Yes {
            let message = "the answer was cut at the model's limit for one answer".to_owned();
            (self.observer)(Event::Notice { about: "cut", message, void: false });
        }
        Ok(true)
    }

    /// The next question, reserved and written down.
    fn asking(&mut self) -> std::result::Result<ModelReservation, TurnStop> {
        if Instant::now() >= self.deadline {
            return Err(self.out_of_time());
        }
        processes::note_endings(self.work)?;
        if self.work.has_processes {
            self.announce()?;
        }
        self.hear_user()?;
        if let Some(asking) = self.next.take() {
            return Ok(asking);
        }
        let (agent, place) = (self.work.agent.clone(), self.place());
        let account = self.account.clone();
        let reserved = self.work.sizes.reservation(&agent, 0);
        let asking = ModelReservation { id: Id::new(), reserved };
        let begun = self.commit_with(|tx, correction| {
            ModelReservation::begin(
                tx,
                &agent,
                &account,
                place,
                &asking,
                &correction.unwrap_or_default(),
            )
        })?;
        match begun {
            Ok(()) => Ok(asking),
            // Nobody can give a child more than it was given; its parent has the rest.
            Err(Spent { budget, words })
                if self.work.is_child() && budget == budget::of_session(self.work.id) =>
            {
                Err(TurnStop::Failed(words))
            }
            Err(spent) => Err(TurnStop::Parked { reason: spent.words, resume_at: None }),
        }
    }

    /// Takes in what the user said since the last round. It is told when it is written down, and what
    /// is not written down is not taken.
    fn hear_user(&mut self) -> Result<()> {
        let waiting = self.work.steering.snapshot();
        if waiting.is_empty() {
            return Ok(());
        }
        let count = waiting.len();
        let bodies: Vec<Body> = waiting.into_iter().map(|content| Body::User { content }).collect();
        self.commit_entries(&bodies)?;
        self.work.steering.heard(count);
        for body in &bodies {
            if let Body::User { content } = body {
                let words: Vec<&str> = content.iter().filter_map(Content::text).collect();
                (self.observer)(Event::Steered { text: words.join("\n") });
            }
        }
        Ok(())
    }

    /// Tells the model which background processes ended.
    fn announce(&mut self) -> Result<()> {
        let (account, place) = (self.account.clone(), self.place());
        let bodies = self.commit_with(|tx, correction| {
            budget::correct(tx, &account, &correction.unwrap_or_default())?;
            let mut bodies = Vec::new();
            for process in process::announce(tx, place.0, place.1)? {
                let body = Body::Notice { text: processes::announcement(&process) };
                entry::append(tx, place.0, place.1, &body)?;
                bodies.push(body);
            }
            Ok(bodies)
        })?;
        for body in &bodies {
            self.work.take_in(body);
        }
        Ok(())
    }

    pub(crate) fn out_of_time(&self) -> TurnStop {
        let hours = self.work.agent.parts.settings.budgets.wall;
        TurnStop::Parked {
            reason: format!("the turn was worked on for {}", spoken(hours)),
            resume_at: None,
        }
    }

    /// Writes down that the turn stops, and answers how.
    async fn halt(&mut self, halt: TurnStop) -> Result<TurnEnding> {
        match halt {
            TurnStop::Broken(error) => Err(error),
            TurnStop::Parked { mut reason, resume_at } => {
                self.work.agent.parts.settings.redactor.string(&mut reason);
                let turn = self.turn.id;
                let (agent, place, next) =
                    (self.work.agent.clone(), self.place(), self.next.take());
                let account = self.account.clone();
                self.commit_snapshot(|tx| {
                    if let Some(next) = &next {
                        next.withdraw(tx, &agent, &account, place)?;
                    }
                    Ok(turn::park(tx, turn, &reason, resume_at)?)
                })?;
                let Waiting { mut requests, mut questions } = std::mem::take(&mut self.waiting);
                let session = self.work.id;
                // What its helpers wait for, it waits for too.
                let (more, others) = blocking(|| {
                    agent.parts.store.read(|tx| -> Result<_> {
                        Ok((requests::below(tx, session)?, questions::below(tx, session)?))
                    })
                })?;
                requests.extend(more);
                questions.extend(others);
                let told = Event::Parked { reason: reason.clone(), resume_at, requests, questions };
                (self.observer)(told);
                Ok(TurnEnding::Parked { reason, resume_at })
            }
            TurnStop::Failed(reason) => self.end(How::Failed, Some(reason)),
            TurnStop::Stuck(reason) => {
                self.close_calls("the turn was ended because it went in circles").await?;
                self.end(How::Stuck, Some(reason))
            }
            TurnStop::Stopped(reason) => {
                self.close_calls("a hook stopped the turn").await?;
                self.end(How::Cancelled, Some(format!("a hook stopped it: {reason}")))
            }
            TurnStop::Cancelled => {
                self.close_calls("the user stopped the turn").await?;
                self.end(How::Cancelled, None)
            }
        }
    }

    fn end(&mut self, how: How, mut reason: Option<String>) -> Result<TurnEnding> {
        if let Some(reason) = &mut reason {
            self.work.agent.parts.settings.redactor.string(reason);
        }
        if how == How::Cancelled {
            self.work.watch.stop();
        }
        let (agent, place, next) = (self.work.agent.clone(), self.place(), self.next.take());
        let account = self.account.clone();
        let body = Body::End { outcome: how, reason: reason.clone() };
        self.commit_snapshot(|tx| {
            if let Some(next) = &next {
                next.withdraw(tx, &agent, &account, place)?;
            }
            model_call::abandon(tx, place.0)?;
            entry::append(tx, place.0, place.1, &body)?;
            Ok(turn::end(tx, place.1, how, reason.as_deref())?)
        })?;
        self.work.take_in(&body);
        Ok(TurnEnding::Over(how, reason))
    }

    pub(crate) fn place(&self) -> (SessionId, TurnId) {
        (self.work.id, self.turn.id)
    }

    /// Commits what is known, and more.
    pub(crate) fn commit<T: Send>(
        &mut self,
        mut more: impl FnMut(&mut WriteTx<'_>) -> Result<T> + Send,
    ) -> Result<T> {
        let account = self.account.clone();
        self.commit_with(|tx, correction| {
            budget::correct(tx, &account, &correction.unwrap_or_default())?;
            more(tx)
        })
    }

    /// Commits what is known, how files are now that the turn stops, and more.
    fn commit_snapshot(
        &mut self,
        mut more: impl FnMut(&mut WriteTx<'_>) -> Result<()> + Send,
    ) -> Result<()> {
        let (parts, place) = (self.work.agent.parts.clone(), self.place());
        loop {
            let OpenSession { snapshots, workplace, id, .. } = &mut *self.work;
            snapshots.after(&parts.store, *id, workplace, &parts.settings.snapshots)?;
            let saved = snapshots.pending();
            let written = self.commit(|tx| {
                if let Some(saved) = &saved {
                    saved.write(tx, place)?;
                }
                more(tx)
            });
            match written {
                Err(Error::SnapshotsSwept) => self.work.snapshots.doubt(),
                written => {
                    if let Some(saved) = saved.as_ref().filter(|_| written.is_ok()) {
                        self.work.snapshots.written(saved);
                    }
                    return written;
                }
            }
        }
    }

    pub(crate) fn commit_entries(&mut self, bodies: &[Body]) -> Result<()> {
        let (session, turn) = self.place();
        let mut bodies = bodies.to_vec();
        let redactor = &self.work.agent.parts.settings.redactor;
        bodies.iter_mut().for_each(|body| redaction::body(redactor, body));
        self.commit(|tx| {
            for body in &bodies {
                entry::append(tx, session, turn, body)?;
            }
            Ok(())
        })?;
        bodies.iter().for_each(|body| self.work.take_in(body));
        Ok(())
    }
}

fn calls_of(answer: &Answer) -> Vec<mainstay_message::Call> {
    answer
        .parts
        .iter()
        .filter_map(|part| match part {
            AssistantPart::Call(call) => Some(call.clone()),
            _ => None,
        })
        .collect()
}

fn answer_event(answer: &Answer) -> Event {
    #[expect(clippy::cast_precision_loss, reason = "it is for reading")]
    let cost = answer.cost.unwrap_or(0) as f64 / 1e6;
    let (model, usage) = (answer.candidate.to_string(), answer.usage.unwrap_or_default());
    Event::Answer { model, usage, cost }
}

/// A time, as people say it.
pub(crate) fn spoken(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{:.1} s", time.as_secs_f32()),
        seconds @ 1..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}
