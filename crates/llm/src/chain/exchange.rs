//! One request and its response.

use std::time::Duration;

use mainstay_message::Usage;
use mainstay_message::causes;
use reqwest::header::{HeaderMap, LOCATION};
use tokio::time::{Instant, timeout_at};

use super::pace::{Pace, Piece};
use super::reader::Reader;
use super::retry_after;
use crate::attempt::one_line;
use crate::stream::Collector;
use crate::wire::{Parameter, Progress, Said, Verdict, Wrong, classify};
use crate::{Api, Attempt, Event, Fault, Limits, Stop};

/// How much of an error's body is read.
const ERROR_BYTES: usize = 64 << 10;
/// How long the end of the body is waited for, so that the connection can be used again.
const DRAIN: Duration = Duration::from_millis(100);

/// A whole answer.
pub(super) struct Done<'l> {
    pub(super) collected: Collector<'l>,
    pub(super) stop: Stop,
    pub(super) usage: Option<Usage>,
}

/// Why there is none.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) fault: Fault,
    pub(super) parameter: Option<Parameter>,
    pub(super) said: String,
    /// The wait that the provider named.
    pub(super) told: Option<Duration>,
    /// Whether the candidate had all the time it gets while another one waits.
    pub(super) spent: bool,
}

impl Broken {
    pub(super) fn new(fault: Fault, said: impl Into<String>) -> Broken {
        Broken { fault, parameter: None, said: said.into(), told: None, spent: false }
    }

    fn of(verdict: Verdict, said: Said, told: Option<Duration>) -> Broken {
        let Verdict { fault, parameter } = verdict;
        let told = told.or_else(|| said.retry_seconds.and_then(retry_after::seconds));
        Broken { fault, parameter, said: said.words, told, spent: false }
    }
}

/// Bounds one exchange: each wait by its own limit, all of them by the candidate's share of the time.
pub(super) struct Exchange<'a> {
    pub(super) pool: &'a reqwest::Client,
    pub(super) api: Api,
    pub(super) limits: &'a Limits,
    pub(super) share: Share,
}

/// The time that one candidate has.
#[derive(Clone, Copy)]
pub(super) struct Share {
    pub(super) end: Instant,
    /// Whether others have theirs after it; otherwise the end is that of the whole call.
    pub(super) others: bool,
    /// Whether one of them is healthy.
    pub(super) fallback: bool,
}

impl Share {
    /// Why a candidate was given up at the end of its share.
    pub(super) fn over(self) -> Broken {
        if self.others {
            let words = "its share of the time is over; the rest is for the other models";
            Broken { spent: true, ..Broken::new(Fault::Stalled, words) }
        } else {
            Broken::new(Fault::Deadline, Fault::Deadline.description())
        }
    }
}

impl Exchange<'_> {
    /// Sends a request and reads its answer. What is learned on the way is noted in `attempt`, also
    /// when it fails.
    pub(super) async fn run<'l>(
        &self,
        request: reqwest::Request,
        origin: String,
        listener: &'l mut (dyn FnMut(Event<'_>) + Send),
        attempt: &mut Attempt,
    ) -> Result<Done<'l>, Broken> {
        let began = Instant::now();
        let sent = self.within(self.limits.first_byte, self.pool.execute(request)).await?;
        let mut response = sent.map_err(|error| self.unsent(&error))?;
        attempt.status = Some(response.status().as_u16());
        attempt.request_id = request_id(response.headers());
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }

        let mut reader = Reader::new(self.api, self.limits);
        let mut collected = Collector::new(origin, listener);
        let mut pace = Pace::begin(self.limits, self.share.fallback);
        let mut progress = Progress::Open;
        let read = loop {
            if progress == Progress::Ended {
                break Ok(());
            }
            let due = pace.due();
            let chunk = match self.until(due.at, || due.missed(), response.chunk()).await {
                Ok(Ok(chunk)) => chunk,
                // The answer is there; only what may follow it is not.
                Ok(Err(_)) | Err(_) if progress == Progress::Whole => None,
                Ok(Err(error)) => break Err(Broken::new(Fault::Network, broke(&error))),
                Err(stalled) => break Err(stalled),
            };
            let Some(bytes) = chunk else {
                break reader.end(&mut collected).map_err(wrong);
            };
            attempt.first_byte.get_or_insert_with(|| began.elapsed());
            match reader.feed(&bytes, &mut collected) {
                Ok(next) => progress = next,
                Err(error) => break Err(wrong(error)),
            }
            pace.heard(&Piece {
                sign: reader.take_sign(),
                grown: collected.take_growth(),
                spoken: collected.has_spoken(),
                progress,
            });
        };
        let ending = reader.ending();
        attempt.usage = ending.usage;
        read?;
        if progress == Progress::Ended {
            let end = async { while let Ok(Some(_)) = response.chunk().await {} };
            let _ = tokio::time::timeout(DRAIN, end).await;
        }
        let stop = ending.stop.unwrap_or(Stop::End);
        Ok(Done { collected, stop, usage: ending.usage })
    }

    /// Waits for `future`, but neither longer than `limit` nor past the share.
    async fn within<T>(
        &self,
        limit: Duration,
        future: impl Future<Output = T>,
    ) -> Result<T, Broken> {
        let words = || format!("nothing was received for {} s", limit.as_secs_f64());
        let missed = || Broken::new(Fault::Stalled, words());
        self.until(Instant::now() + limit, missed, future).await
    }

    /// Waits for `future` until a time, but not past the share.
    async fn until<T>(
        &self,
        until: Instant,
        missed: impl FnOnce() -> Broken,
        future: impl Future<Output = T>,
    ) -> Result<T, Broken> {
        if until < self.share.end {
            timeout_at(until, future).await.map_err(|_| missed())
        } else {
            timeout_at(self.share.end, future).await.map_err(|_| self.share.over())
        }
    }

    fn unsent(&self, error: &reqwest::Error) -> Broken {
        if error.is_builder() || error.is_request() && error.is_status() {
            return Broken::new(Fault::BadRequest, causes(error));
        }
        if error.is_connect() && error.is_timeout() {
            let seconds = self.limits.connect.as_secs_f64();
            return Broken::new(Fault::Network, format!("no connection within {seconds} s"));
        }
        Broken::new(Fault::Network, causes(error))
    }

    /// Reads what a response with an error says.
    async fn refused(&self, mut response: reqwest::Response) -> Broken {
        let status = response.status();
        let told = retry_after::requested_wait(response.headers(), crate::clock::wall_millis());
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let location = location.map(str::to_owned);
        let mut body = Vec::new();
        // Whatever can be read is worth showing; the status alone is enough to go on.
        let read = async {
            while body.len() < ERROR_BYTES
                && let Ok(Some(bytes)) = response.chunk().await
            {
                body.extend_from_slice(&bytes);
            }
        };
        let _ = self.within(self.limits.idle, read).await;
        body.truncate(ERROR_BYTES);
        let mut said = Said::read(&body);
        if status.is_redirection() {
            let location = one_line(&location.unwrap_or_default(), 200);
            said.words = format!("the server redirects to {location}; put that into base_url");
        } else if said.words.is_empty() {
            said.words = status.canonical_reason().unwrap_or_default().to_owned();
        }
        Broken::of(classify(Some(status.as_u16()), &said), said, told)
    }
}

fn wrong(wrong: Wrong) -> Broken {
    match wrong {
        Wrong::Said(said) => Broken::of(classify(None, &said), said, None),
        Wrong::Garbage(words) => Broken::new(Fault::Garbage, one_line(&words, 400)),
    }
}

fn broke(error: &reqwest::Error) -> String {
    format!("the connection broke: {}", causes(error))
}

fn request_id(headers: &HeaderMap) -> Option<String> {
    let names = ["request-id", "x-request-id", "x-generation-id", "apim-request-id"];
    let value = names.iter().find_map(|name| headers.get(*name))?;
    Some(one_line(value.to_str().ok()?, 128)).filter(|id| !id.is_empty())
}
