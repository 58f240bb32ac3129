//! What of an entry can be searched.

use mainstay_message::{AssistantPart, Content};
use serde_json::Value;

use super::Who;
use crate::entry::Body;

/// Bytes at the beginning and at the end of a long text that are searched.
const END: usize = 16 << 10;

/// Who said it, and its words; `None` where there are none.
pub(super) fn of(stored: &str) -> Option<(Who, String)> {
    let Ok(body) = serde_json::from_str::<Body>(stored) else {
        // An entry that does not read back, or one of a later version, is searched as it is stored.
        return said(Who::Notice, stored);
    };
    match body {
        Body::User { content } => said(Who::User, &contents(&content)),
        Body::Assistant { parts, .. } => said(Who::Assistant, &answer(&parts)),
        Body::Result { result, .. } => said(Who::Tool, &contents(&result.content)),
        Body::Notice { text, .. } => said(Who::Notice, &text),
        // The entries that it stands for are searched themselves; it adds what was made of them.
        Body::Compaction(compaction) => {
            said(Who::Notice, compaction.summary.as_deref().unwrap_or_default())
        }
        Body::Restored { .. } => None,
        Body::End { reason, .. } => said(Who::Notice, reason.as_deref().unwrap_or_default()),
    }
}

fn said(who: Who, text: &str) -> Option<(Who, String)> {
    let text = bounded(text.trim());
    (!text.is_empty()).then_some((who, text))
}

fn contents(content: &[Content]) -> String {
    let texts: Vec<&str> = content.iter().filter_map(Content::text).collect();
    texts.join("\n")
}

fn answer(parts: &[AssistantPart]) -> String {
    let mut out = String::new();
    for part in parts {
        match part {
            AssistantPart::Text(text) => line(&mut out, text),
            AssistantPart::Call(call) => {
                line(&mut out, &call.name);
                match serde_json::from_str(&call.arguments) {
                    Ok(arguments) => strings(&arguments, &mut out),
                    Err(_) => line(&mut out, &call.arguments),
                }
            }
            AssistantPart::Reasoning(_) => {}
        }
    }
    out
}

/// The words of a call's arguments, without the marks of JSON.
fn strings(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => line(out, text),
        Value::Number(number) => line(out, &number.to_string()),
        Value::Array(values) => values.iter().for_each(|value| strings(value, out)),
        Value::Object(values) => values.values().for_each(|value| strings(value, out)),
        Value::Null | Value::Bool(_) => {}
    }
}

fn line(out: &mut String, text: &str) {
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str(text);
}

fn bounded(text: &str) -> String {
    if text.len() <= 2 * END {
        return text.to_owned();
    }
    let head = &text[..text.floor_char_boundary(END)];
    let tail = &text[text.ceil_char_boundary(text.len() - END)..];
    format!("{head}\n…\n{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_an_entry_are_searched_and_not_the_marks_around_them() {
        let call = serde_json::json!({ "assistant": { "model": "m", "parts": [
            { "text": "I look." },
            { "reasoning": { "origin": "m", "text": "hidden" } },
            { "call": { "id": "1", "name": "shell",
                        "arguments": "{\"command\":\"ls\\n-l\",\"deep\":[{\"a\":7}]}" } },
        ] } });
        let expected = "I look.\nshell\nls\n-l\n7";
        assert_eq!(of(&call.to_string()), Some((Who::Assistant, expected.to_owned())));
        assert_eq!(of(r#"{"notice":{"text":" "}}"#), None);
        assert_eq!(of(r#"{"end":{"outcome":"answered"}}"#), None);
        let odd = "{\"later\":\"version\"}";
        assert_eq!(of(odd), Some((Who::Notice, odd.to_owned())));
    }

    #[test]
    fn of_a_long_text_both_ends_are_searched() {
        let text = format!("first {} last", "é".repeat(100_000));
        let body = Body::notice(text);
        let (_, words) = of(&serde_json::to_string(&body).unwrap()).unwrap();
        assert!(words.len() < 2 * END + 10 && words.starts_with("first "), "{}", words.len());
        assert!(words.ends_with(" last"));
    }
}
