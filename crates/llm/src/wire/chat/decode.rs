//! The events of chat completions, as OpenAI and everyone else writes them.

use mainstay_message::{Reasoning, Usage};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::Stop;
use crate::stream::{Collector, Draft};
use crate::wire::tokens::{Counted, Tokens};
use crate::wire::{Ending, Progress, Said, Wrong};

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Counted<Counts>,
    x_groq: Option<Groq>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Groq {
    #[serde(default)]
    usage: Counted<Counts>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: Option<u64>,
    delta: Option<Delta>,
    /// In an answer that was not streamed.
    message: Option<Delta>,
    finish_reason: Option<String>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<Value>,
    refusal: Option<String>,
    reasoning_content: Option<Value>,
    /// The same under its other name; servers in between write both.
    reasoning: Option<Value>,
    reasoning_details: Option<Vec<Value>>,
    tool_calls: Option<Vec<Fragment>>,
}

#[derive(Deserialize)]
struct Fragment {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionFragment>,
    extra_content: Option<Value>,
}

#[derive(Deserialize)]
struct FunctionFragment {
    name: Option<String>,
    arguments: Option<Value>,
}

#[derive(Deserialize)]
struct Counts {
    #[serde(default)]
    prompt_tokens: Option<Tokens>,
    #[serde(default)]
    completion_tokens: Option<Tokens>,
    #[serde(default)]
    prompt_tokens_details: Counted<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Counted<CompletionDetails>,
    /// DeepSeek's name for what came from its cache.
    #[serde(default)]
    prompt_cache_hit_tokens: Counted<Tokens>,
}

#[derive(Clone, Copy, Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Counted<Tokens>,
    #[serde(default)]
    cache_write_tokens: Counted<Tokens>,
}

#[derive(Clone, Copy, Deserialize)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Counted<Tokens>,
}

impl Counts {
    fn usage(&self) -> Usage {
        // A detail that is wrong is left out; the sums it belongs to are known.
        let number = |tokens: Counted<Tokens>| tokens.known().unwrap_or_default().0;
        let details = self.prompt_tokens_details.known();
        let prompt = self.prompt_tokens.unwrap_or_default().0;
        let cached = details.map_or(Counted::Absent, |details| details.cached_tokens);
        let cached = number(cached.or(self.prompt_cache_hit_tokens)).min(prompt);
        let written = details.map_or(0, |details| number(details.cache_write_tokens));
        let written = written.min(prompt - cached);
        let reasoning = self.completion_tokens_details.known();
        Usage {
            input: prompt - cached - written,
            cached,
            cache_written: written,
            output: self.completion_tokens.unwrap_or_default().0,
            reasoning: reasoning.map_or(0, |details| number(details.reasoning_tokens)),
        }
    }
}

/// Where a call of the stream stands among the parts.
struct Slot {
    index: Option<u64>,
    /// The id as the server wrote it, to tell fragments without an index apart.
    id: String,
    at: usize,
}

/// Reads chunks.
#[derive(Default)]
pub(crate) struct Decoder {
    slots: Vec<Slot>,
    /// OpenRouter's details of reasoning, to be sent back as they came.
    details: Vec<Value>,
    thought: Option<usize>,
    /// Whether anything like an answer came.
    any: bool,
    stop: Option<Stop>,
    usage: Option<Usage>,
}

impl Decoder {
    pub(crate) fn event(
        &mut self,
        data: &[u8],
        into: &mut Collector<'_>,
    ) -> Result<Progress, Wrong> {
        if data.trim_ascii() == b"[DONE]" {
            if !self.any {
                return Err(Wrong::Garbage("the stream contained no answer".to_owned()));
            }
            self.seal(into);
            // The marker alone is an end too: some servers name no reason.
            self.stop.get_or_insert(Stop::End);
            return Ok(Progress::Ended);
        }
        if data.trim_ascii().is_empty() {
            return Ok(self.progress());
        }
        let chunk: Chunk = serde_json::from_slice(data)?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(Wrong::Said(Said::of(&error)));
        }
        match chunk.usage.or(chunk.x_groq.map(|groq| groq.usage).unwrap_or_default()) {
            Counted::Absent => {}
            Counted::Known(counts) => self.usage = Some(counts.usage()),
            Counted::Nonsense => self.usage = None,
        }
        for choice in chunk.choices.into_iter().flatten() {
            if choice.index.unwrap_or(0) == 0 {
                self.any = true;
                self.choice(choice, into)?;
            }
        }
        Ok(self.progress())
    }

    fn progress(&self) -> Progress {
        if self.stop.is_some() { Progress::Whole } else { Progress::Open }
    }

    fn choice(&mut self, choice: Choice, into: &mut Collector<'_>) -> Result<(), Wrong> {
        if let Some(error) = choice.error.filter(|error| !error.is_null()) {
            return Err(Wrong::Said(Said::of(&error)));
        }
        if let Some(delta) = choice.delta.or(choice.message) {
            self.delta(delta, into);
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            self.stop = Some(match reason.as_str() {
                "length" | "max_tokens" | "model_length" => Stop::Length,
                "content_filter" | "refusal" | "safety" => Stop::Refused,
                "error" => {
                    let words = "the provider ended the answer with an error".to_owned();
                    return Err(Wrong::Said(Said { words, ..Said::default() }));
                }
                _ if self.slots.is_empty() => Stop::End,
                _ => Stop::Calls,
            });
            self.seal(into);
        }
        Ok(())
    }

    fn delta(&mut self, delta: Delta, into: &mut Collector<'_>) {
        let detailed = delta.reasoning_details.is_some();
        for detail in delta.reasoning_details.into_iter().flatten() {
            self.detail(detail, into);
        }
        match delta.reasoning_content.or(delta.reasoning) {
            Some(Value::String(words)) if !words.is_empty() => {
                if detailed {
                    self.thought(into);
                }
                into.thought(&words);
            }
            _ => {}
        }
        match delta.content {
            Some(Value::String(words)) => into.text(&words),
            Some(Value::Array(parts)) => parts.iter().for_each(|part| piece(part, into)),
            _ => {}
        }
        if let Some(words) = delta.refusal {
            into.text(&words);
        }
        for fragment in delta.tool_calls.into_iter().flatten() {
            self.fragment(fragment, into);
        }
    }

    /// The part that holds the details of reasoning.
    fn thought(&mut self, into: &mut Collector<'_>) {
        if self.thought.is_none() {
            self.thought = Some(into.push(Draft::Reasoning(Reasoning::default())));
        }
    }

    /// Keeps a detail; fragments of one text become one detail again.
    fn detail(&mut self, detail: Value, into: &mut Collector<'_>) {
        self.thought(into);
        into.grow();
        let same = |a: &Value, b: &Value| {
            a.get("type") == b.get("type") && a.get("index") == b.get("index")
        };
        let Some(last) = self.details.last_mut().filter(|last| same(last, &detail)) else {
            self.details.push(detail);
            return;
        };
        let (Value::Object(last), Value::Object(detail)) = (last, detail) else { return };
        for (key, value) in detail {
            match (last.get_mut(&key), value) {
                (Some(Value::String(so_far)), Value::String(more))
                    if matches!(key.as_str(), "text" | "summary" | "data") =>
                {
                    so_far.push_str(&more);
                }
                (_, Value::Null) => {}
                (_, value) => {
                    last.insert(key, value);
                }
            }
        }
    }

    fn seal(&mut self, into: &mut Collector<'_>) {
        if self.details.is_empty() {
            return;
        }
        let details = Value::Array(std::mem::take(&mut self.details)).to_string();
        if let Some(Draft::Reasoning(reasoning)) = self.thought.and_then(|at| into.draft(at)) {
            reasoning.sealed = Some(details);
        }
    }

    fn fragment(&mut self, fragment: Fragment, into: &mut Collector<'_>) {
        let id = fragment.id.unwrap_or_default();
        let function = fragment.function;
        let name = function.as_ref().and_then(|function| function.name.as_deref()).unwrap_or("");
        let slot = self.slot(fragment.index, &id, name).map(|slot| slot.at);
        let at = match slot.filter(|at| name.is_empty() || !id.is_empty() || !is_whole(*at, into)) {
            Some(at) => {
                into.name(at, name);
                at
            }
            None => {
                let name = name.to_owned();
                let arguments = String::new();
                let draft = Draft::Call { id: id.clone(), name, arguments, extra: None };
                let at = into.push(draft);
                self.slots.push(Slot { index: fragment.index, id, at });
                at
            }
        };
        match function.and_then(|function| function.arguments) {
            Some(Value::String(words)) => into.append(at, &words),
            Some(Value::Null) | None => {}
            Some(whole) => into.append(at, &whole.to_string()),
        }
        if let Some(content) = fragment.extra_content {
            let origin = into.origin().to_owned();
            if let Some(Draft::Call { extra, .. }) = into.draft(at) {
                *extra = Some(serde_json::json!({"origin": origin, "extra_content": content}));
            }
        }
    }

    /// The call that a fragment belongs to, or `None` if it begins one.
    fn slot(&self, index: Option<u64>, id: &str, name: &str) -> Option<&Slot> {
        match index {
            // Some servers send every call whole with the index 0: another id is another call.
            Some(_) => self.slots.iter().rev().find(|slot| slot.index == index).filter(|slot| {
                id.is_empty() || slot.id.is_empty() || slot.id == id || name.is_empty()
            }),
            None if !id.is_empty() => {
                let last = self.slots.last()?;
                (last.id == id && name.is_empty()).then_some(last)
            }
            None if name.is_empty() => self.slots.last(),
            None => None,
        }
    }

    pub(crate) fn ending(&self) -> Ending {
        Ending { stop: self.stop, usage: self.usage }
    }
}

/// Whether a call's arguments are complete. A named fragment without an id then begins another call.
fn is_whole(at: usize, into: &mut Collector<'_>) -> bool {
    let Some(Draft::Call { arguments, .. }) = into.draft(at) else { return false };
    arguments.starts_with('{') && serde_json::from_str::<IgnoredAny>(arguments).is_ok()
}

/// Mistral writes content in parts: text, and thoughts that hold texts.
fn piece(part: &Value, into: &mut Collector<'_>) {
    let text = |value: &Value| value.get("text").and_then(Value::as_str).map(str::to_owned);
    match part.get("type").and_then(Value::as_str) {
        Some("thinking") => {
            let inner = part.get("thinking").and_then(Value::as_array);
            let words: Vec<String> = inner.into_iter().flatten().filter_map(text).collect();
            words.iter().for_each(|words| into.thought(words));
        }
        _ => {
            if let Some(words) = text(part) {
                into.text(&words);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use mainstay_message::AssistantPart;
    use serde_json::json;

    use super::*;

    /// The parts of a stream of these deltas.
    fn parts(deltas: &[Value]) -> Vec<AssistantPart> {
        let mut listener = |_: crate::Event<'_>| {};
        let mut collector = Collector::new("p/m".to_owned(), &mut listener);
        let mut decoder = Decoder::default();
        for delta in deltas {
            let chunk = json!({"choices": [{"index": 0, "delta": delta}]}).to_string();
            let progress = decoder.event(chunk.as_bytes(), &mut collector).unwrap();
            assert_eq!(progress, Progress::Open);
        }
        assert_eq!(decoder.event(b"[DONE]", &mut collector).unwrap(), Progress::Ended);
        let mut number = 0;
        collector.finish(&[], || {
            number += 1;
            format!("fresh{number}")
        })
    }

    /// Each call as `id name arguments`.
    fn calls(fragments: &[Value]) -> Vec<String> {
        let deltas: Vec<Value> = fragments.iter().map(|one| json!({"tool_calls": one})).collect();
        parts(&deltas)
            .into_iter()
            .map(|part| match part {
                AssistantPart::Call(call) => {
                    format!("{} {} {}", call.id, call.name, call.arguments)
                }
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn fragments_of_calls_find_their_call_in_every_dialect() {
        let named = |name: &str, arguments: &str| json!({"name": name, "arguments": arguments});
        let more = |arguments: &str| json!({"arguments": arguments});
        let expected = ["a one {\"x\":1}", "b two {}"];
        // As OpenAI sends them, interleaved.
        let openai = calls(&[
            json!([{"index": 0, "id": "a", "function": named("one", "")}]),
            json!([{"index": 1, "id": "b", "function": named("two", "{")}]),
            json!([{"index": 0, "function": more("{\"x\"")}, {"index": 1, "function": more("}")}]),
            json!([{"index": 0, "function": more(":1}")}]),
        ]);
        assert_eq!(openai, expected);
        // Whole calls, all with the index 0.
        let zero = calls(&[
            json!([{"index": 0, "id": "a", "function": named("one", "{\"x\":1}")}]),
            json!([{"index": 0, "id": "b", "function": named("two", "{}")}]),
        ]);
        assert_eq!(zero, expected);
        // Id and name repeated in each fragment.
        let repeated = calls(&[
            json!([{"index": 0, "id": "a", "function": named("one", "{\"x\"")}]),
            json!([{"index": 0, "id": "a", "function": named("one", ":1}")}]),
            json!([{"index": 1, "id": "b", "function": named("two", "{}")}]),
        ]);
        assert_eq!(repeated, expected);
        // Without an index.
        let bare = calls(&[
            json!([{"id": "a", "function": named("one", "{\"x\"")}, {"function": more(":1}")}]),
            json!([{"id": "b", "function": {"name": "two", "arguments": {}}}]),
        ]);
        assert_eq!(bare, expected);
        // Without ids, and with one id for all.
        for id in [Value::Null, json!("same")] {
            let whole = calls(&[
                json!([{"index": 0, "id": id, "function": named("one", "{}")}]),
                json!([{"index": 1, "id": id, "function": named("two", "{}")}]),
            ]);
            let first = if id.is_null() { "fresh1" } else { "same" };
            let second = if id.is_null() { "fresh2" } else { "fresh1" };
            assert_eq!(whole, [format!("{first} one {{}}"), format!("{second} two {{}}")]);
        }
    }

    #[test]
    fn reasoning_is_read_under_each_of_its_names() {
        let thought = |deltas: &[Value]| match parts(deltas).remove(0) {
            AssistantPart::Reasoning(reasoning) => (reasoning.text, reasoning.sealed),
            other => panic!("{other:?}"),
        };
        let plain = ("ab".to_owned(), None);
        for name in ["reasoning_content", "reasoning"] {
            assert_eq!(thought(&[json!({name: "a"}), json!({name: "b", "content": "x"})]), plain);
        }
        assert_eq!(thought(&[json!({"reasoning": "ab", "reasoning_content": "ab"})]), plain);
        let mistral = json!({"content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "ab"}]},
            {"type": "text", "text": "x"}]});
        assert_eq!(thought(&[mistral]), plain);
        // OpenRouter's details are kept as they came, their fragments joined.
        let detail = |text: &str, signature: Value| {
            json!({"reasoning": text, "reasoning_details": [{"type": "reasoning.text", "index": 0,
                   "format": "f", "text": text, "signature": signature}]})
        };
        let (text, sealed) = thought(&[detail("a", Value::Null), detail("b", json!("s"))]);
        assert_eq!(text, "ab");
        let kept: Value = serde_json::from_str(&sealed.unwrap()).unwrap();
        assert_eq!(
            kept,
            json!([{"type": "reasoning.text", "index": 0, "format": "f", "text": "ab", "signature": "s"}])
        );
    }

    #[test]
    fn an_error_or_nothing_at_all_is_no_answer() {
        let mut listener = |_: crate::Event<'_>| {};
        let mut collector = Collector::new("p/m".to_owned(), &mut listener);
        let mut event = |data: &str| Decoder::default().event(data.as_bytes(), &mut collector);
        assert!(matches!(event("[DONE]"), Err(Wrong::Garbage(_))));
        assert!(matches!(event(r#"{"error":{"message":"no"}}"#), Err(Wrong::Said(_))));
        assert!(matches!(event("{"), Err(Wrong::Garbage(_))));
        let failed = r#"{"choices":[{"delta":{},"finish_reason":"error"}]}"#;
        assert!(matches!(event(failed), Err(Wrong::Said(_))));
        // Deltas of other choices are nobody's.
        let other = r#"{"choices":[{"index":1,"delta":{"content":"x"},"finish_reason":"stop"}]}"#;
        assert!(matches!(event(other), Ok(Progress::Open)));
    }
}
