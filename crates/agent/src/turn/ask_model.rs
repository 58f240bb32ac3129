//! Asking the models: the stream of an answer, and the results that are written meanwhile.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::Mutex;
use std::task::Poll;
use std::time::Duration;

use mainstay_journal::SessionId;
use mainstay_journal::model_call::Attempt;
use mainstay_llm::{Answer, Event as StreamEvent, Failure, Memo, Request};
use mainstay_message::{Message, Redactor, ToolSpec};
use tokio::time::{Instant, sleep, timeout_at};

use super::commit::Writer;
use super::end::TurnStop;
use super::runner::TurnRunner;
use crate::agent::{Agent, Parts};
use crate::session::open::OpenSession;
use crate::{Event, redaction};
use mainstay_store::lock;

/// How long results wait for company before they are written. A model takes longer to answer, so
/// nothing waits for it; the keeper has them if this process dies.
const GATHER: Duration = Duration::from_millis(2);

/// What came of asking.
pub(crate) type Asked = Result<Answer, Failure>;

/// The attempts of a model call that failed, while it goes on.
#[derive(Debug, Default)]
pub(crate) struct FailedAttempts {
    pub(super) failed: Vec<Attempt>,
    /// When the next attempt is made, if it has to wait.
    pub(super) next: Option<Instant>,
}

impl TurnRunner<'_> {
    /// Asks the models, and learns from what the provider counted.
    pub(crate) async fn ask_model(
        &mut self,
        failed: &mut FailedAttempts,
    ) -> Result<Asked, TurnStop> {
        let asked = self.stream_answer(failed).await?.ok_or_else(|| self.out_of_time())?;
        if let Ok(answer) = &asked {
            self.session.compaction.answered();
            if let Some(usage) = &answer.usage {
                self.session.conversation.size.learn(usage);
                self.session.judge_compaction();
            }
        }
        Ok(asked)
    }

    /// Asks, and tells faces what is heard. Results that are unwritten are written after a moment in
    /// which others may join them; what is heard before that is told after it. Returns `None` if the
    /// turn's time is over.
    async fn stream_answer(
        &mut self,
        failed: &mut FailedAttempts,
    ) -> Result<Option<Asked>, TurnStop> {
        let OpenSession { agent, lease, conversation, tools, id, .. } = &mut *self.session;
        let (agent, lease) = (&*agent, &*lease);
        let writer = Writer { agent, lease, place: self.turn.place() };
        // No channel: it would wake the task that is speaking already, once for each word.
        let heard = EventBuffer::default();
        let question = ModelQuestion {
            agent,
            session: *id,
            prompt: &conversation.prompt,
            tools: &tools.specs,
            messages: conversation.transcript.messages(),
            memo: &conversation.memo,
            left: self.limits.deadline.saturating_duration_since(Instant::now()),
        };
        let mut asking = pin!(timeout_at(self.limits.deadline, question.ask(failed, &heard)));
        let mut gathering = pin!(sleep(GATHER));
        let mut owed = self.unwritten.has_results();
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
                    writer.write(&mut self.unwritten, self.observer, |_, _| Ok(()))?;
                    owed = false;
                }
            }
        };
        if owed {
            self.unwritten.events_after_commit.extend(heard.take());
        } else {
            heard.take().into_iter().for_each(&mut *self.observer);
        }
        Ok(asked.ok())
    }
}

/// What a model said and no face was told yet.
#[derive(Default)]
struct EventBuffer(Mutex<Vec<Event>>);

impl EventBuffer {
    fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }

    fn push(&self, event: Event) {
        lock(&self.0).push(event);
    }

    /// All of it, once.
    fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *lock(&self.0))
    }
}

/// What is asked.
struct ModelQuestion<'a> {
    agent: &'a Agent,
    session: SessionId,
    prompt: &'a str,
    tools: &'a [ToolSpec],
    messages: &'a [Message],
    memo: &'a Memo,
    /// How long there is for it.
    left: Duration,
}

impl ModelQuestion<'_> {
    /// Asks the models of the chain. To cancel it, drop it; `failed` then tells how far it came.
    async fn ask(self, failed: &mut FailedAttempts, heard: &EventBuffer) -> Asked {
        let Parts { client, settings, .. } = &*self.agent.parts;
        let session = self.session.to_string();
        let request = Request {
            system: self.prompt,
            tools: self.tools,
            messages: self.messages,
            max_output: settings.max_output,
            temperature: settings.temperature,
            effort: settings.effort,
            cache_key: Some(&session),
            memo: Some(self.memo),
        };
        let mut limits = settings.asking.clone();
        limits.chain = limits.chain.min(self.left);
        let mut listener = |event: StreamEvent<'_>| {
            failed.note(&event, &settings.redactor);
            if let Some(event) = shown_event(&event) {
                heard.push(event);
            }
        };
        let mut asked = client.call(&settings.chain, &request, &limits, &mut listener).await;
        match &mut asked {
            Ok(answer) => redaction::answer(&settings.redactor, answer),
            Err(failure) => redaction::failure(&settings.redactor, failure),
        }
        asked
    }
}

impl FailedAttempts {
    fn note(&mut self, event: &StreamEvent<'_>, redactor: &Redactor) {
        match event {
            StreamEvent::Failed(attempt) => {
                let mut row = attempt_row(attempt);
                for text in [&mut row.said, &mut row.request_id].into_iter().flatten() {
                    redactor.string(text);
                }
                self.failed.push(row);
                self.next = None;
            }
            StreamEvent::Waiting { wait, .. } => self.next = Some(Instant::now() + *wait),
            StreamEvent::Text(_) | StreamEvent::Reasoning(_) | StreamEvent::Call { .. } => {}
        }
    }
}

/// What a face is shown of what is heard. Returns `None` for the beginning of a call: calls are shown
/// when they run.
fn shown_event(heard: &StreamEvent<'_>) -> Option<Event> {
    Some(match heard {
        StreamEvent::Text(delta) => Event::Text { delta: (*delta).to_owned() },
        StreamEvent::Reasoning(delta) => Event::Reasoning { delta: (*delta).to_owned() },
        StreamEvent::Call { .. } => return None,
        StreamEvent::Failed(attempt) => Event::Notice {
            about: "retry",
            message: format!("{}: {}", attempt.candidate, attempt.cause()),
            void: true,
        },
        StreamEvent::Waiting { why, wait } => Event::Notice {
            about: "retry",
            message: format!("{why}; waiting {} s", wait.as_secs_f32().ceil()),
            void: false,
        },
    })
}

/// The rows of the ledger for a model call.
pub(crate) fn attempts(asked: &Asked) -> Vec<Attempt> {
    let (attempts, cost) = match asked {
        Ok(answer) => (&answer.attempts, answer.cost),
        Err(failure) => (&failure.attempts, None),
    };
    let mut rows: Vec<Attempt> = attempts.iter().map(attempt_row).collect();
    if let Some(last) = rows.last_mut() {
        last.cost = cost.unwrap_or(0);
    }
    rows
}

/// The row of one attempt; only an answer has a cost.
fn attempt_row(attempt: &mainstay_llm::Attempt) -> Attempt {
    let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    Attempt {
        model: attempt.candidate.clone(),
        latency: millis(attempt.latency),
        first_byte: attempt.first_byte.map(millis),
        usage: attempt.usage.unwrap_or_default(),
        cost: 0,
        fault: attempt.fault.map(|fault| fault.as_str().to_owned()),
        said: attempt.fault.map(|_| attempt.said.clone()),
        status: attempt.status.map(i64::from),
        request_id: attempt.request_id.clone(),
    }
}
