//! A provider's error, in whichever shape it was written.

use serde_json::Value;

use crate::attempt::one_line;

/// What an error says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Said {
    /// The status inside the error, where it names one.
    pub(crate) status: Option<u16>,
    /// Its typed names, in small letters: `type`, `code`, `status`.
    pub(crate) codes: Vec<String>,
    /// The parameter it is about.
    pub(crate) param: Option<String>,
    /// The words, in one line.
    pub(crate) words: String,
    /// A wait in seconds that the body tells.
    pub(crate) retry_seconds: Option<f64>,
}

/// How much of a provider's words is kept.
const MOST: usize = 400;

impl Said {
    /// Reads the body of a response that is an error. What is no JSON is taken as words.
    pub(crate) fn read(body: &[u8]) -> Said {
        match serde_json::from_slice::<Value>(body) {
            Ok(value) => Said::of(&value),
            Err(_) => {
                let text = String::from_utf8_lossy(&body[..body.len().min(8192)]);
                Said { words: one_line(&readable(&text), MOST), ..Said::default() }
            }
        }
    }

    /// Reads an error that is already a value: the whole body, or the object under `error`.
    pub(crate) fn of(value: &Value) -> Said {
        let value = value.get(0).unwrap_or(value);
        let error = match value.get("error") {
            Some(error) if !error.is_null() => error,
            _ => value,
        };
        let mut said = Said::default();
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let message = match error {
            Value::String(words) => Some(words.clone()),
            _ => text(error.get("message")).or_else(|| text(value.get("message"))).or_else(|| {
                error.get("detail").map(|detail| text(Some(detail)).unwrap_or(detail.to_string()))
            }),
        };
        let metadata = error.get("metadata");
        // An aggregator's own sentence says less than the one of the provider behind it.
        let upstream = text(metadata.and_then(|metadata| metadata.get("raw")));
        let mut words = message.unwrap_or_else(|| value.to_string());
        if let Some(upstream) = upstream.filter(|upstream| !upstream.is_empty()) {
            words = format!("{words}: {upstream}");
        }
        said.words = one_line(&words, MOST);
        for key in ["type", "code", "status"] {
            match error.get(key) {
                Some(Value::String(code)) => said.codes.push(code.to_ascii_lowercase()),
                Some(Value::Number(number)) => {
                    let status = number.as_u64().and_then(|number| u16::try_from(number).ok());
                    said.status = said.status.or(status.filter(|s| (400..600).contains(s)));
                }
                _ => {}
            }
        }
        said.param = text(error.get("param")).filter(|param| !param.is_empty());
        if metadata.is_some_and(|metadata| metadata.get("reasons").is_some()) {
            said.codes.push("moderation".to_owned());
        }
        said.retry_seconds = error.get("details").and_then(retry_delay);
        said
    }
}

/// Google's way to name a wait: `{"@type": "…RetryInfo", "retryDelay": "37s"}`.
fn retry_delay(details: &Value) -> Option<f64> {
    let delays = details.as_array()?.iter().filter_map(|detail| detail.get("retryDelay")?.as_str());
    delays.filter_map(|delay| delay.strip_suffix('s')?.parse().ok()).next()
}

/// The words of a page: its markup would fill the line.
fn readable(text: &str) -> String {
    if !text.trim_start().starts_with('<') {
        return text.to_owned();
    }
    let mut words = String::new();
    let mut inside = false;
    for letter in text.chars() {
        match letter {
            '<' => inside = true,
            '>' => {
                inside = false;
                words.push(' ');
            }
            _ if !inside => words.push(letter),
            _ => {}
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_of_error_gives_its_words() {
        for (body, words) in [
            (
                r#"{"error":{"message":"No such model","type":"x","code":"model_not_found"}}"#,
                "No such model",
            ),
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                "Overloaded",
            ),
            (r#"{"error":"model not found"}"#, "model not found"),
            (
                r#"[{"error":{"code":429,"message":"Slow down","status":"RESOURCE_EXHAUSTED"}}]"#,
                "Slow down",
            ),
            (r#"{"object":"error","message":"Bad\nid","type":"invalid_request_error"}"#, "Bad id"),
            (r#"{"detail":"Not Found"}"#, "Not Found"),
            (
                r#"{"error":{"message":"Provider returned error","metadata":{"raw":"busy"}}}"#,
                "Provider returned error: busy",
            ),
            ("<html><head><title>502 Bad Gateway</title></head></html>", "502 Bad Gateway"),
            ("upstream connect error", "upstream connect error"),
        ] {
            assert_eq!(Said::read(body.as_bytes()).words, words);
        }
    }

    #[test]
    fn typed_names_and_waits_are_found() {
        let said = Said::read(
            br#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"m",
                "details":[{"@type":"RetryInfo","retryDelay":"37.5s"}]}}"#,
        );
        assert_eq!(said.status, Some(429));
        assert_eq!(said.codes, ["resource_exhausted"]);
        assert_eq!(said.retry_seconds, Some(37.5));
    }
}
