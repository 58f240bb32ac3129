//! The `web_search` tool: SearXNG, or a service with a key.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use mainstay_message::ToolSpec;
use mainstay_message::causes;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;
use url::Url;

use super::client::Web;
use super::{body, html, place};
use crate::tool::{Action, Concurrency, Exposure, Invocation, Replay, Tool, Traits};
use crate::{Fact, Outcome, schema};

const USUAL: usize = 8;
const MOST: usize = 20;
/// The longest query, the longest title and the longest snippet.
const LONGEST_QUERY: usize = 400;
const LONGEST_TITLE: usize = 200;
const LONGEST_SNIPPET: usize = 500;
const PATIENCE: Duration = Duration::from_secs(20);

/// Searches the web.
pub struct WebSearch {
    web: Web,
    engine: Engine,
}

/// Gets a key when it is needed. The error says what to do.
pub type KeySource = Arc<dyn Fn() -> BoxFuture<'static, Result<String, String>> + Send + Sync>;

/// Who searches.
#[derive(Clone)]
pub enum Engine {
    /// A SearXNG instance.
    Searxng(Url),
    /// Brave's service, at its address or another.
    Brave(Url, KeySource),
    /// Tavily's service.
    Tavily(Url, KeySource),
}

impl fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} at {}", self.name(), self.address())
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    query: String,
    /// How many results; 8 if left out, at most 20.
    count: Option<usize>,
}

struct SearchResult {
    title: String,
    url: String,
    snippet: String,
}

impl WebSearch {
    /// A tool that asks this engine.
    pub fn new(web: Web, engine: Engine) -> Self {
        Self { web, engine }
    }

    async fn search(&self, given: &Arguments) -> Result<Outcome, String> {
        let query = given.query.trim();
        if query.is_empty() || query.len() > LONGEST_QUERY {
            return Err(format!("a query has 1 to {LONGEST_QUERY} bytes"));
        }
        let count = given.count.unwrap_or(USUAL).clamp(1, MOST);
        let answer = timeout(PATIENCE, self.ask(query, count)).await.map_err(|_| {
            format!("{} did not answer within {} s", self.engine.name(), PATIENCE.as_secs())
        })??;
        let found = self.engine.results(&answer, count).ok_or_else(|| {
            format!("the answer from {} is not a list of results", self.engine.name())
        })?;
        let origin = place::name(self.engine.address());
        if found.is_empty() {
            return Ok(Outcome::said("No results. Try other words."));
        }
        let mut lines = String::new();
        for (number, found) in (1..).zip(&found) {
            lines.push_str(&format!("{number}. {}\n   {}\n", found.title, found.url));
            if !found.snippet.is_empty() {
                lines.push_str(&format!("   {}\n", found.snippet));
            }
        }
        Ok(Outcome::default().data(lines).fact(Fact::Outside { origin }))
    }

    async fn ask(&self, query: &str, count: usize) -> Result<Value, String> {
        let name = self.engine.name();
        let request = self.engine.request(&self.web, query, count).await?;
        let sent = request.header(ACCEPT, "application/json").send().await;
        let response =
            sent.map_err(|error| format!("could not reach {name}: {}", causes(&error)))?;
        let status = response.status();
        let body = body::read(response).await?.unpacked()?;
        if !status.is_success() {
            return Err(self.engine.refused(status.as_u16()));
        }
        serde_json::from_slice(&body.bytes)
            .map_err(|_| format!("the answer from {name} is not valid JSON"))
    }
}

impl Engine {
    fn name(&self) -> &'static str {
        match self {
            Engine::Searxng(_) => "SearXNG",
            Engine::Brave(..) => "Brave",
            Engine::Tavily(..) => "Tavily",
        }
    }

    fn address(&self) -> &Url {
        match self {
            Engine::Searxng(base) | Engine::Brave(base, _) | Engine::Tavily(base, _) => base,
        }
    }

    async fn request(
        &self,
        web: &Web,
        query: &str,
        count: usize,
    ) -> Result<reqwest::RequestBuilder, String> {
        let client = web.trusted(self.address())?;
        let below = |path: &str| {
            let mut url = self.address().clone();
            let base = url.path().trim_end_matches('/').to_owned();
            url.set_path(&format!("{base}{path}"));
            url
        };
        Ok(match self {
            Engine::Searxng(_) => {
                let mut url = below("/search");
                url.query_pairs_mut().append_pair("q", query).append_pair("format", "json");
                client.get(url)
            }
            Engine::Brave(_, key) => {
                let mut url = below("/res/v1/web/search");
                let count = count.to_string();
                url.query_pairs_mut().append_pair("q", query).append_pair("count", &count);
                client.get(url).header("x-subscription-token", secret(&key().await?)?)
            }
            Engine::Tavily(_, key) => {
                let body = json!({ "query": query, "max_results": count });
                let key = secret(&format!("Bearer {}", key().await?))?;
                let request = client.post(below("/search")).header(AUTHORIZATION, key);
                request.header(CONTENT_TYPE, "application/json").body(body.to_string())
            }
        })
    }

    fn results(&self, answer: &Value, count: usize) -> Option<Vec<SearchResult>> {
        let (results, snippet) = match self {
            Engine::Searxng(_) | Engine::Tavily(..) => (answer.get("results")?, "content"),
            // Without results there is no such part.
            Engine::Brave(..) => match answer.get("web") {
                Some(web) => (web.get("results")?, "description"),
                None => {
                    answer.get("type")?;
                    return Some(Vec::new());
                }
            },
        };
        let results = results.as_array()?.iter().filter_map(|result| {
            let url = result.get("url")?.as_str()?;
            let text = |name: &str, longest: usize| {
                plain(result.get(name).and_then(Value::as_str).unwrap_or_default(), longest)
            };
            // What is no address cannot be fetched.
            let url = place::read(url).ok()?.to_string();
            Some(SearchResult {
                title: text("title", LONGEST_TITLE),
                url,
                snippet: text(snippet, LONGEST_SNIPPET),
            })
        });
        Some(results.take(count).collect())
    }

    fn refused(&self, status: u16) -> String {
        let name = self.name();
        match (self, status) {
            (Engine::Searxng(_), 403) => format!(
                "{name} refused (403): its settings must allow the json format; the user can fix that"
            ),
            (_, 401 | 403) => {
                format!("{name} refused the key ({status}); the user has to check it")
            }
            (_, 402 | 429) => format!("{name} accepts no more searches right now ({status})"),
            _ => format!("{name} failed with status {status}"),
        }
    }
}

fn secret(value: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| "the key contains characters that cannot be sent".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

/// Words without markup, on one line, and not too many.
fn plain(text: &str, longest: usize) -> String {
    let words = html::plain_text(text);
    let end = words.floor_char_boundary(longest);
    if end < words.len() { format!("{} …", &words[..end]) } else { words }
}

impl Tool for WebSearch {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "web_search".to_owned(),
            description: "Searches the web: titles, addresses and snippets. Read on with fetch."
                .to_owned(),
            parameters: schema::parameters::<Arguments>(),
        }
    }

    fn traits(&self) -> Traits {
        Traits {
            replay: Replay::Pure,
            concurrency: Concurrency::Parallel,
            wall: PATIENCE + Duration::from_secs(70),
        }
    }

    fn exposure(&self) -> Exposure {
        Exposure::ByDefault
    }

    fn action(&self, _call: &Invocation<'_>) -> Action {
        Action::Network(vec![place::name(self.engine.address())])
    }

    fn run<'a>(&'a self, call: Invocation<'a>, _plan: Option<&'a Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let given = match schema::arguments::<Arguments>(call.arguments) {
                Ok(given) => given,
                Err(outcome) => return outcome,
            };
            match self.search(&given).await {
                Ok(outcome) => outcome,
                Err(wrong) => Outcome::failed(format!("The search failed: {wrong}.")),
            }
        })
    }
}
