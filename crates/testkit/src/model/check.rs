//! Judges a request as the strictest real server of its shape would, in its words.

use serde_json::Value;

use super::Shape;
use super::http::header;
use super::request::list;

mod anthropic;
mod chat;
mod ollama;
mod responses;
mod tools;

/// Judges the body of a request. Each error is a sentence that a provider would send with a 400.
///
/// Blocks of reasoning must bear a proof that [`signature`](super::signature) or
/// [`sealed`](super::sealed) made for the model that is asked.
pub fn check(shape: Shape, body: &Value) -> Result<(), Vec<String>> {
    let mut findings = Findings::default();
    if body.is_object() {
        match shape {
            Shape::Chat => chat::check(body, &mut findings),
            Shape::Responses => responses::check(body, &mut findings),
            Shape::Anthropic => anthropic::check(body, &mut findings),
            Shape::Ollama => ollama::check(body, &mut findings),
        }
    } else {
        findings.say("The body must be a JSON object.");
    }
    findings.into_result()
}

/// Judges a request with its headers.
pub(super) fn request(
    shape: Shape,
    headers: &[(String, String)],
    body: &Value,
) -> Result<(), Vec<String>> {
    let mut findings = Findings::default();
    if !header(headers, "content-type").is_some_and(|kind| kind.starts_with("application/json")) {
        findings.say("The content-type must be application/json.");
    }
    if shape == Shape::Anthropic && header(headers, "anthropic-version").is_none() {
        findings.say("anthropic-version: header is required");
    }
    if let Err(more) = check(shape, body) {
        findings.said.extend(more);
    }
    findings.into_result()
}

/// What is wrong so far.
#[derive(Default)]
struct Findings {
    said: Vec<String>,
}

impl Findings {
    fn say(&mut self, words: impl Into<String>) {
        self.said.push(words.into());
    }

    fn say_unless(&mut self, holds: bool, words: impl FnOnce() -> String) {
        if !holds {
            self.said.push(words());
        }
    }

    fn into_result(self) -> Result<(), Vec<String>> {
        if self.said.is_empty() { Ok(()) } else { Err(self.said) }
    }
}

/// The model's name is there, and the client wants a stream.
fn model_and_stream(body: &Value, findings: &mut Findings) {
    let named = body["model"].as_str().is_some_and(|model| !model.is_empty());
    findings.say_unless(named, || "you must provide a model parameter".to_owned());
    findings.say_unless(body["stream"] == true, || {
        "stream: this server only streams; it must be true".to_owned()
    });
}

/// The letters that names of tools, and ids, are made of.
fn is_name(text: &str, longest: usize) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=longest).contains(&text.len()) && text.chars().all(fits)
}

/// A text that holds a JSON object.
fn holds_object(value: &Value) -> bool {
    let text = value.as_str();
    text.and_then(|text| serde_json::from_str::<Value>(text).ok()).is_some_and(|v| v.is_object())
}

fn is_filled(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

/// Alphabet, padding and length of base64.
fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '+' || c == '/';
    !body.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body.chars().all(fits)
}

/// A picture inside a URL, or the URL of one.
fn is_image_url(value: &Value) -> bool {
    let Some(url) = value.as_str() else { return false };
    let inside = url.strip_prefix("data:image/").and_then(|rest| rest.split_once(";base64,"));
    inside.is_some_and(|(_, data)| is_base64(data)) || url.starts_with("https://")
}

/// At most four places may be marked for the provider's cache.
fn cache_markers(body: &Value, findings: &mut Findings) {
    let markers = count_markers(body);
    findings.say_unless(markers <= 4, || {
        format!("A maximum of 4 blocks with cache_control may be provided. Found {markers}.")
    });
}

fn count_markers(value: &Value) -> usize {
    match value {
        Value::Array(values) => values.iter().map(count_markers).sum(),
        Value::Object(fields) => {
            let here = usize::from(fields.get("cache_control").is_some_and(Value::is_object));
            // What a tool is called with and what it takes are not the protocol's own.
            let is_foreign = |name: &str, value: &Value| match name {
                "input_schema" | "parameters" | "arguments" => true,
                // Of a call; that of a whole request is a list.
                "input" => value.is_object(),
                _ => false,
            };
            let below = fields.iter().filter(|(name, value)| !is_foreign(name, value));
            here + below.map(|(_, value)| count_markers(value)).sum::<usize>()
        }
        _ => 0,
    }
}

/// Top-level names that the shape does not have.
fn unknown_names<'b>(body: &'b Value, known: &[&str]) -> Vec<&'b str> {
    let names = body.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    names.filter(|name| !known.contains(name)).collect()
}

/// A number in a range, where it is there at all.
fn number_within(body: &Value, name: &str, range: (f64, f64), findings: &mut Findings) {
    let Some(value) = body.get(name) else { return };
    let (least, most) = range;
    let fits = value.as_f64().is_some_and(|number| (least..=most).contains(&number));
    findings.say_unless(fits, || {
        format!("Invalid '{name}': expected a number between {least} and {most}, but got {value}.")
    });
}

/// A limit on the output, where it is there at all.
fn whole_number(body: &Value, name: &str, least: u64, findings: &mut Findings) {
    let Some(value) = body.get(name) else { return };
    let fits = value.as_u64().is_some_and(|number| number >= least);
    findings.say_unless(fits, || {
        format!("Invalid '{name}': integer below minimum value. Expected a value >= {least}, but got {value} instead.")
    });
}
