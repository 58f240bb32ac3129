//! One call over its candidates: what is done about each fault.

use std::time::Duration;

use mainstay_message::{AssistantPart, Usage};
use tokio::time::{Instant, sleep, timeout_at};

use super::Client;
use super::exchange::{Broken, Exchange, Share};
use super::health::Placed;
use crate::clock::wall_after;
use crate::lock::lock;
use crate::transport::headers;
use crate::wire::{Parameter, Quirks, Retreat, encode, max_output};
use crate::{
    Answer, Api, Attempt, Candidate, Event, Failure, Fault, Limits, Request, Secret, Stop,
};

type Listener<'l> = &'l mut (dyn FnMut(Event<'_>) + Send);

/// The state of one call.
pub(super) struct Run<'a> {
    client: &'a Client,
    request: &'a Request<'a>,
    limits: &'a Limits,
    deadline: Instant,
    attempts: Vec<Attempt>,
    /// The last fault of each candidate that was given up.
    faults: Vec<Fault>,
    /// The soonest time at which a provider said it would serve again.
    retry_at: Option<i64>,
}

/// How hard to try one candidate.
#[derive(Clone, Copy)]
struct Patience {
    attempts: u32,
    /// The longest wait that a provider may ask for.
    wait: Duration,
    share: Share,
}

/// What to do after an attempt failed.
enum Next {
    /// Try again after this wait, different in what the note says.
    Again {
        wait: Option<Duration>,
        note: Option<String>,
    },
    GiveUp,
}

/// An answer that one attempt gave.
struct Whole {
    parts: Vec<AssistantPart>,
    stop: Stop,
    usage: Option<Usage>,
}

/// What one candidate's attempts have in common.
struct Trial {
    patience: Patience,
    /// Attempts that failed with a fault that may pass.
    failed: u32,
    renewed: bool,
    quirks: Quirks,
    secret: Option<Secret>,
}

impl<'a> Run<'a> {
    pub(super) fn new(client: &'a Client, request: &'a Request<'a>, limits: &'a Limits) -> Self {
        let deadline = Instant::now() + limits.chain;
        let attempts = Vec::new();
        let faults = Vec::new();
        Run { client, request, limits, deadline, attempts, faults, retry_at: None }
    }

    /// Tries each candidate in this order.
    pub(super) async fn over(
        mut self,
        order: &[Placed],
        listener: Listener<'_>,
    ) -> Result<Answer, Failure> {
        // The largest window that turned out to be too small.
        let mut outgrown: Option<u64> = None;
        for (number, placed) in order.iter().enumerate() {
            let fits = |candidate: &Candidate| match (candidate.window, outgrown) {
                (Some(window), Some(outgrown)) => window > outgrown,
                _ => true,
            };
            if !fits(&placed.candidate) {
                continue;
            }
            let healthy = |other: &Placed| !other.unwell && fits(&other.candidate);
            let later = &order[number + 1..];
            let fallback = later.iter().any(healthy);
            let others = later.iter().filter(|other| fits(&other.candidate)).count();
            let share = self.share(others, fallback);
            let patience = if fallback {
                Patience {
                    attempts: self.limits.attempts_with_fallback.min(self.limits.attempts),
                    wait: self.limits.patience.min(self.limits.retry_after),
                    share,
                }
            } else {
                Patience { attempts: self.limits.attempts, wait: self.limits.retry_after, share }
            };
            match self.candidate(placed, patience, listener).await {
                Ok(answer) => {
                    return Ok(Answer { attempts: self.attempts, ..answer });
                }
                Err(fault) => {
                    self.faults.push(fault);
                    if fault == Fault::TooLong {
                        outgrown = outgrown.max(placed.candidate.window);
                    }
                    if fault == Fault::Deadline {
                        break;
                    }
                }
            }
        }
        let late = self.faults.contains(&Fault::Deadline).then_some(Fault::Deadline);
        let fault = late.or_else(|| Fault::nearest_remedy(self.faults.iter().copied()));
        Err(Failure {
            attempts: self.attempts,
            // Without candidates there is no model.
            fault: fault.unwrap_or(Fault::NotFound),
            retry_at: self.retry_at,
        })
    }

    /// The time of a candidate with so many others after it: all that is left, but for what lets each
    /// of those be waited for once, or an equal part where time is short.
    fn share(&self, others: usize, fallback: bool) -> Share {
        let count = u32::try_from(others).unwrap_or(u32::MAX);
        let left = self.deadline.saturating_duration_since(Instant::now());
        let once = self.limits.first_byte.saturating_add(self.limits.idle);
        let each = once.min(left / count.saturating_add(1));
        Share { end: self.deadline - each * count, others: others > 0, fallback }
    }

    /// Tries one candidate until it answers or there is no point in going on.
    async fn candidate(
        &mut self,
        placed: &Placed,
        patience: Patience,
        listener: Listener<'_>,
    ) -> Result<Answer, Fault> {
        let candidate = &placed.candidate;
        let quirks = lock(&self.client.quirks).get(&candidate.identity()).cloned();
        let mut trial = Trial {
            patience,
            failed: 0,
            renewed: false,
            quirks: quirks.unwrap_or_default(),
            secret: None,
        };
        let mut note = None;
        loop {
            if Instant::now() >= patience.share.end {
                return Err(patience.share.over().fault);
            }
            let mut attempt = blank(candidate, note.take());
            let began = Instant::now();
            let outcome = self.attempt(candidate, &mut trial, listener, &mut attempt).await;
            attempt.latency = began.elapsed();
            let broken = match outcome {
                Ok(whole) => {
                    self.attempts.push(attempt);
                    lock(&self.client.health).answered(candidate);
                    let prices = candidate.price_list();
                    return Ok(Answer {
                        cost: whole
                            .usage
                            .as_ref()
                            .zip(prices)
                            .map(|(usage, prices)| prices.cost(usage)),
                        parts: whole.parts,
                        stop: whole.stop,
                        usage: whole.usage,
                        candidate: candidate.clone(),
                        attempts: Vec::new(),
                    });
                }
                Err(broken) => broken,
            };
            attempt.fault = Some(broken.fault);
            attempt.said = hide(&broken.said, trial.secret.as_ref());
            tracing::warn!(
                candidate = attempt.candidate,
                fault = broken.fault.as_str(),
                status = attempt.status,
                said = attempt.said,
                "an attempt failed"
            );
            listener(Event::Failed(&attempt));
            let why = format!("{}: {}", attempt.candidate, attempt.cause());
            self.attempts.push(attempt);
            match self.next(candidate, &broken, &mut trial).await {
                Next::Again { wait, note: changed } => {
                    note = changed;
                    if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
                        listener(Event::Waiting { why: &why, wait });
                        sleep(wait).await;
                        if let Some(last) = self.attempts.last_mut() {
                            last.waited = wait;
                        }
                    }
                }
                Next::GiveUp => {
                    let Broken { fault, told, .. } = broken;
                    lock(&self.client.health).failed(candidate, fault, told, Instant::now());
                    if let Some(told) = told {
                        let at = wall_after(told);
                        self.retry_at = Some(self.retry_at.map_or(at, |before| before.min(at)));
                    }
                    return Err(fault);
                }
            }
        }
    }

    /// Makes one attempt.
    async fn attempt(
        &self,
        candidate: &Candidate,
        trial: &mut Trial,
        listener: Listener<'_>,
        attempt: &mut Attempt,
    ) -> Result<Whole, Broken> {
        let provider = &candidate.provider;
        let share = trial.patience.share;
        let key = timeout_at(share.end, provider.key.get()).await.map_err(|_| share.over())?;
        trial.secret = key.map_err(|words| Broken::new(Fault::Auth, words))?;
        let bad = |words: String| Broken::new(Fault::BadRequest, words);
        let headers = headers(provider, trial.secret.as_ref()).map_err(bad)?;
        let body = encode(candidate, self.request, &trial.quirks)
            .map_err(|error| bad(format!("could not build the request: {error}")))?;
        let pool = self.client.transport.pool(provider, self.limits.connect).map_err(bad)?;
        let request = pool.post(provider.endpoint()).headers(headers).body(body).build();
        let request = request.map_err(|error| bad(mainstay_message::causes(&error)))?;
        let exchange = Exchange { pool: &pool, api: provider.api, limits: self.limits, share };
        let done = exchange.run(request, candidate.to_string(), listener, attempt).await?;
        let parts = done.collected.finish(self.request.messages, || self.client.fresh_id());
        Ok(Whole { parts, stop: done.stop, usage: done.usage })
    }

    /// The table of faults: what is done about each.
    async fn next(&self, candidate: &Candidate, broken: &Broken, trial: &mut Trial) -> Next {
        match broken.fault {
            Fault::Unsupported => {
                let note = broken.parameter.and_then(|refused| {
                    self.without(candidate, refused, &broken.said, &mut trial.quirks)
                });
                note.map_or(Next::GiveUp, |note| Next::Again { wait: None, note: Some(note) })
            }
            Fault::Auth if !trial.renewed => {
                trial.renewed = true;
                self.renew(candidate, trial.secret.as_ref(), trial.patience.share).await
            }
            Fault::RateLimited
            | Fault::Overloaded
            | Fault::Network
            | Fault::Stalled
            | Fault::Garbage => {
                trial.failed += 1;
                if broken.spent || trial.failed >= trial.patience.attempts {
                    return Next::GiveUp;
                }
                let wait = match broken.told {
                    Some(told) if told > trial.patience.wait => return Next::GiveUp,
                    // A little more than was asked for, so that those who wait do not come back as one.
                    Some(told) => {
                        told + self.client.share_of((told / 10).min(Duration::from_secs(1)))
                    }
                    None => self.client.share_of(self.backoff(trial.failed)),
                };
                if Instant::now() + wait >= trial.patience.share.end {
                    return Next::GiveUp;
                }
                Next::Again { wait: Some(wait), note: None }
            }
            Fault::Quota
            | Fault::Auth
            | Fault::NotFound
            | Fault::BadRequest
            | Fault::TooLong
            | Fault::Refused
            | Fault::Deadline => Next::GiveUp,
        }
    }

    /// The bound of the wait after so many failures.
    fn backoff(&self, failed: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(failed.saturating_sub(1));
        self.limits.backoff_base.saturating_mul(doubled).min(self.limits.backoff_cap)
    }

    /// Once more if the source has another key than the one that was refused.
    async fn renew(&self, candidate: &Candidate, refused: Option<&Secret>, share: Share) -> Next {
        let Some(refused) = refused else { return Next::GiveUp };
        let key = &candidate.provider.key;
        key.refused();
        match timeout_at(share.end, key.get()).await {
            Ok(Ok(Some(renewed))) if renewed != *refused => {
                Next::Again { wait: None, note: Some("with a new key".to_owned()) }
            }
            _ => Next::GiveUp,
        }
    }

    /// Changes what the candidate refused, for this call and those to come.
    fn without(
        &self,
        candidate: &Candidate,
        refused: Parameter,
        said: &str,
        quirks: &mut Quirks,
    ) -> Option<String> {
        let Request { temperature, effort, cache_key, .. } = *self.request;
        let most = max_output(candidate, self.request, quirks);
        let sent = match refused {
            Parameter::MaxOutput => most.is_some(),
            Parameter::Temperature => temperature.is_some(),
            Parameter::Effort | Parameter::Summary => effort.is_some(),
            Parameter::CacheKey => cache_key.is_some(),
            Parameter::StreamOptions | Parameter::Include => true,
        };
        if !sent {
            return None;
        }
        let retreat = match (refused, candidate.provider.api) {
            (Parameter::MaxOutput, Api::OpenAiChat) | (Parameter::Effort, Api::Anthropic) => {
                Retreat::OtherForm
            }
            (Parameter::MaxOutput, Api::Anthropic) => Retreat::Lower,
            _ => Retreat::Omit,
        };
        let note = quirks.learn(refused, retreat, said, most)?;
        lock(&self.client.quirks).insert(candidate.identity(), quirks.clone());
        Some(note)
    }
}

fn blank(candidate: &Candidate, note: Option<String>) -> Attempt {
    Attempt {
        candidate: candidate.to_string(),
        fault: None,
        status: None,
        said: String::new(),
        request_id: None,
        latency: Duration::ZERO,
        first_byte: None,
        waited: Duration::ZERO,
        usage: None,
        note,
    }
}

/// A provider's words without the key, should it repeat it.
fn hide(said: &str, secret: Option<&Secret>) -> String {
    match secret {
        Some(secret) if secret.expose().len() >= 8 => said.replace(secret.expose(), "…"),
        _ => said.to_owned(),
    }
}
