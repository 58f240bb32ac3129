//! The `fetch` tool.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream;
use mainstay_message::causes;
use mainstay_message::{Image, ToolSpec};
use reqwest::StatusCode;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, LOCATION};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::body::{self, Body};
use super::client::Web;
use super::document::{self, Document};
use super::place;
use crate::aside::aside;
use crate::reader::{Pages, Reader};
use crate::tool::{Action, Concurrency, Invocation, Replay, Tool, Traits};
use crate::{Fact, Outcome, Piece, WholeOutput, schema};

/// The most addresses of a call, and how many are fetched at once.
const MOST: usize = 10;
const AT_ONCE: usize = 4;
/// The usual times for one address, and for all of a call.
const EACH: Duration = Duration::from_secs(30);
const ALL: Duration = Duration::from_secs(100);
/// How often an address may lead to another.
const REDIRECTS: usize = 5;
/// The most text that one call shows.
const SHOWN: usize = 60_000;

/// Gets documents from the web and makes them readable.
pub struct Fetch {
    web: Web,
    /// The time for one address, and for all of a call.
    pub(super) times: (Duration, Duration),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// At most 10.
    #[serde(deserialize_with = "one_or_many")]
    urls: Vec<String>,
    /// First byte of the text to show, to read on in a long one.
    offset: Option<usize>,
}

impl Fetch {
    /// A tool that goes this way.
    pub fn new(web: Web) -> Self {
        Self { web, times: (EACH, ALL) }
    }
}

impl Tool for Fetch {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "fetch".to_owned(),
            description: "Gets web pages (as Markdown), other text, pictures and PDF files by GET."
                .to_owned(),
            parameters: schema::parameters::<Arguments>(),
        }
    }

    fn traits(&self) -> Traits {
        Traits { replay: Replay::Pure, concurrency: Concurrency::Parallel, wall: ALL + EACH }
    }

    fn action(&self, call: &Invocation<'_>) -> Action {
        let Ok(given) = schema::arguments::<Arguments>(call.arguments) else {
            // Nothing is done then.
            return Action::Read;
        };
        let mut names: Vec<String> = Vec::new();
        for url in given.urls.iter().filter_map(|text| place::read(text).ok()) {
            let name = place::name(&url);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if names.is_empty() { Action::Read } else { Action::Network(names) }
    }

    fn run<'a>(&'a self, call: Invocation<'a>, _plan: Option<&'a Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            match schema::arguments::<Arguments>(call.arguments) {
                Ok(given) => self.fetch_all(&given, call.workplace.reader.as_ref()).await,
                Err(outcome) => outcome,
            }
        })
    }
}

/// What came of one address.
struct Got {
    /// Words of the harness.
    said: String,
    /// The final address and the title, where there are such.
    head: String,
    text: String,
    image: Option<Image>,
    /// Whether it is what was wanted.
    good: bool,
    /// Where words came from.
    origin: Option<String>,
}

impl Got {
    fn failed(said: String) -> Self {
        let head = String::new();
        let text = String::new();
        Self { said, head, text, image: None, good: false, origin: None }
    }
}

impl Fetch {
    async fn fetch_all(&self, given: &Arguments, reader: Option<&Reader>) -> Outcome {
        if given.urls.is_empty() || given.urls.len() > MOST {
            return Outcome::failed(format!("Give 1 to {MOST} addresses. Nothing was fetched."));
        }
        let addresses: Vec<Result<Url, String>> =
            given.urls.iter().map(|text| place::read(text)).collect();
        // Whoever allowed the call allowed these.
        let meant: Vec<Url> = addresses.iter().flatten().cloned().collect();
        let end = Instant::now() + self.times.1;
        let fetching: Vec<BoxFuture<'_, Got>> = addresses
            .into_iter()
            .map(|address| -> BoxFuture<'_, Got> {
                Box::pin(self.fetch_within(address, &meant, reader, end))
            })
            .collect();
        let all: Vec<Got> = stream::iter(fetching).buffered(AT_ONCE).collect().await;
        outcome(given, all)
    }

    /// Fetches an address within its time and that of the call.
    async fn fetch_within(
        &self,
        address: Result<Url, String>,
        meant: &[Url],
        reader: Option<&Reader>,
        end: Instant,
    ) -> Got {
        let url = match address {
            Ok(url) => url,
            Err(wrong) => return Got::failed(wrong),
        };
        let each = self.times.0;
        let deadline = end.min(Instant::now() + each);
        match timeout_at(deadline, self.fetch(&url, meant, reader)).await {
            Ok(got) => got,
            Err(_) if Instant::now() >= end => {
                Got::failed("the whole call ran out of time".to_owned())
            }
            Err(_) => Got::failed(format!("it took longer than {} s", each.as_secs_f32())),
        }
    }

    async fn fetch(&self, url: &Url, meant: &[Url], reader: Option<&Reader>) -> Got {
        let landed = match self.follow(url, meant).await {
            Ok(landed) => landed,
            Err(got) => return got,
        };
        let Landed { url: last, status, content_type, body } = landed;
        let mut got = Got::failed(status.as_u16().to_string());
        let kind = document::kind(&content_type);
        if !kind.is_empty() {
            got.said.push_str(&format!(" ({kind})"));
        }
        got.origin = Some(place::name(&last));
        if last != *url {
            got.head.push_str(&format!("URL: {last}\n"));
        }
        let cut = body.cut;
        let address = last.clone();
        let reading = aside("document", move || {
            let body = body.unpacked()?;
            let cut = cut || body.cut;
            document::read(body, &content_type, &address).map(|document| (document, cut))
        });
        let read = match reading.await {
            Ok(read) => read,
            Err(error) => Err(format!("could not read it: {error}")),
        };
        got.good = status.is_success();
        match read {
            Ok((Document::Text { title, text }, cut)) => {
                if cut {
                    got.said.push_str(", cut off at the size limit");
                }
                if !title.is_empty() {
                    got.head.push_str(&format!("Title: {title}\n"));
                }
                got.text = text;
            }
            Ok((Document::Image(image), _)) => got.image = Some(image),
            Ok((Document::Pdf(bytes), _)) => match pdf(reader, bytes).await {
                Ok(text) => got.text = text,
                Err(wrong) => {
                    got.said.push_str(&format!(": {wrong}"));
                    got.good = false;
                }
            },
            Err(wrong) => {
                got.said.push_str(&format!(": {wrong}"));
                got.good = false;
            }
        }
        got
    }

    /// Gets a document, through as many redirects as are allowed. Each step is checked like the
    /// first, and one to a host that nobody named is left to the model: it may be another question
    /// for the policy.
    async fn follow(&self, url: &Url, meant: &[Url]) -> Result<Landed, Got> {
        let mut url = url.clone();
        for _ in 0..=REDIRECTS {
            let request = self.web.request(&url).map_err(Got::failed)?;
            let response = request
                .header(ACCEPT, "text/html, application/xhtml+xml, text/*;q=0.9, */*;q=0.8")
                .header(ACCEPT_ENCODING, "gzip")
                .send()
                .await
                .map_err(|error| Got::failed(causes(&error)))?;
            let status = response.status();
            let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
            let location = header(LOCATION).filter(|_| is_redirect(status));
            let Some(location) = location else {
                let content_type = header(CONTENT_TYPE).unwrap_or_default().to_owned();
                let body = body::read(response).await.map_err(Got::failed)?;
                return Ok(Landed { url, status, content_type, body });
            };
            let next = place::join(&url, location).map_err(Got::failed)?;
            if let Some(refused) = self.web.refuses(&next) {
                return Err(Got::failed(format!("it redirects elsewhere; {refused}")));
            }
            if !meant.iter().any(|meant| place::same(meant, &next)) {
                let said = "it redirects to another host; fetch that address if you want it";
                let mut got = Got::failed(said.to_owned());
                got.head = format!("{next}\n");
                return Err(got);
            }
            url = next;
        }
        Err(Got::failed(format!("too many redirects; {REDIRECTS} were followed")))
    }
}

/// The end of a chain of redirects.
struct Landed {
    url: Url,
    status: StatusCode,
    content_type: String,
    body: Body,
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

async fn pdf(reader: Option<&Reader>, bytes: Vec<u8>) -> Result<String, String> {
    let reader = reader.ok_or_else(|| "PDF files cannot be read here".to_owned())?;
    Ok(reader.pdf_bytes(bytes, Pages::ALL).await?.text())
}

/// What the model reads of all addresses, and what is kept.
fn outcome(given: &Arguments, all: Vec<Got>) -> Outcome {
    let share = SHOWN / all.len().max(1);
    let mut outcome = Outcome { failed: all.iter().all(|got| !got.good), ..Outcome::default() };
    let mut whole = String::new();
    let mut cut = false;
    for (address, got) in given.urls.iter().zip(all) {
        let (part, note) = part(&got.text, given.offset.unwrap_or(0), share);
        cut |= part.len() < got.text.len();
        let address = short(address);
        outcome.pieces.push(Piece::Said(format!("{address}: {}.{note}", got.said)));
        if !got.head.is_empty() || !part.is_empty() {
            let line = if got.head.is_empty() || part.is_empty() { "" } else { "\n" };
            outcome.pieces.push(Piece::Data(format!("{}{line}{part}", got.head)));
        }
        outcome.pieces.extend(got.image.map(Piece::Image));
        whole.push_str(&format!("{address}\n{}\n{}\n\n", got.head, got.text));
        let fact = got.origin.map(|origin| Fact::Outside { origin });
        outcome.facts.extend(fact.filter(|fact| !outcome.facts.contains(fact)));
    }
    outcome.whole = cut.then(|| Box::new(WholeOutput { bytes: whole.into_bytes(), spooled: None }));
    outcome
}

/// The part of a text that is shown, and what is said of it.
fn part(text: &str, offset: usize, share: usize) -> (&str, String) {
    let from = text.floor_char_boundary(offset);
    let to = text.floor_char_boundary(from.saturating_add(share));
    let note = match (from, to) {
        (0, to) if to == text.len() => String::new(),
        (from, to) if to == text.len() => format!(" Its text from byte {from} to its end, {to}:"),
        (from, to) => format!(" Bytes {from} to {to} of {}; read on with offset {to}:", text.len()),
    };
    (&text[from..to], note)
}

/// Outside words within the harness' own: on one line, and not many.
fn short(text: &str) -> String {
    let mut short: String =
        text.chars().filter(|letter| !letter.is_control()).take(200).collect::<String>();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// Some models write one address where a list is meant.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Urls {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Urls::deserialize(deserializer)? {
        Urls::One(url) => vec![url],
        Urls::Many(urls) => urls,
    })
}
