//! Counts of tokens, as providers write them. A count that cannot be one is taken for unknown: it is
//! no reason to throw away an answer that was paid for, and it must not enter a sum.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// More than a window of any model: whoever counts so many in one answer counts something else.
const MOST: u64 = 1_000_000_000;

/// How many tokens: a whole number within reason, which some servers write as `12.0` or `"12"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tokens(pub(crate) u64);

impl Tokens {
    fn read(value: &Value) -> Option<Self> {
        let count = match value {
            Value::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
            Value::String(digits) => digits.trim().parse().ok(),
            _ => None,
        };
        count.filter(|count| *count <= MOST).map(Self)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked before")]
fn whole(number: f64) -> Option<u64> {
    let in_reach = number.fract() == 0.0 && (0.0..=MOST as f64).contains(&number);
    in_reach.then_some(number as u64)
}

impl<'de> Deserialize<'de> for Tokens {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::read(&value).ok_or_else(|| D::Error::custom(format!("{value} is no count of tokens")))
    }
}

/// What a provider says of its counting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Counted<T> {
    /// Nothing.
    #[default]
    Absent,
    /// These counts.
    Known(T),
    /// Something that cannot be.
    Nonsense,
}

impl<T> Counted<T> {
    /// The counts, if they are known.
    pub(crate) fn known(self) -> Option<T> {
        match self {
            Self::Known(counts) => Some(counts),
            Self::Absent | Self::Nonsense => None,
        }
    }

    /// This, or the other where this says nothing.
    pub(crate) fn or(self, other: Self) -> Self {
        if matches!(self, Self::Absent) { other } else { self }
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Counted<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Value::deserialize(deserializer)? {
            Value::Null => Self::Absent,
            // Which would be read as the fields of a structure, in their order.
            Value::Array(_) => Self::Nonsense,
            value => serde_json::from_value(value).map_or(Self::Nonsense, Self::Known),
        })
    }
}

#[cfg(test)]
mod tests {
    use mainstay_message::{AssistantPart, Usage};
    use serde_json::json;

    use super::*;
    use crate::Api;
    use crate::stream::Collector;
    use crate::wire::{Decoder, Progress};

    /// A streamed answer in each format, with these counts of input and output.
    fn answers(input: &Value, output: &Value) -> Vec<(Api, Vec<Value>)> {
        let chat = vec![
            json!({"choices": [{"index": 0, "delta": {"content": "paid for"}}]}),
            json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
            json!({"choices": [],
                "usage": {"prompt_tokens": input, "completion_tokens": output}}),
        ];
        let item = json!({"type": "message", "content": [{"text": "paid for"}]});
        let usage = json!({"input_tokens": input, "output_tokens": output});
        let responses = vec![
            json!({"type": "response.output_item.done", "item": item}),
            json!({"type": "response.completed",
                "response": {"status": "completed", "output": [item], "usage": usage}}),
        ];
        let anthropic = vec![
            json!({"type": "message_start",
                "message": {"usage": {"input_tokens": input, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0,
                "content_block": {"type": "text", "text": "paid for"}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
                "usage": {"output_tokens": output}}),
            json!({"type": "message_stop"}),
        ];
        let ollama = vec![json!({"message": {"content": "paid for"}, "done": true,
            "prompt_eval_count": input, "eval_count": output})];
        vec![
            (Api::OpenAiChat, chat),
            (Api::OpenAiResponses, responses),
            (Api::Anthropic, anthropic),
            (Api::Ollama, ollama),
        ]
    }

    /// The usage of an answer whose words are all there.
    fn usage(api: Api, events: &[Value]) -> Option<Usage> {
        let mut listener = |_: crate::Event<'_>| {};
        let mut collector = Collector::new("p/m".to_owned(), &mut listener);
        let mut decoder = Decoder::new(api);
        for event in events {
            let read = decoder.event(event.to_string().as_bytes(), &mut collector);
            read.unwrap_or_else(|wrong| panic!("{api:?}: {wrong:?} of {event}"));
        }
        if api == Api::OpenAiChat {
            assert_eq!(decoder.event(b"[DONE]", &mut collector).unwrap(), Progress::Ended);
        }
        let parts = collector.finish(&[], String::new);
        assert_eq!(parts, [AssistantPart::Text("paid for".to_owned())], "{api:?}");
        decoder.ending().usage
    }

    #[test]
    fn counts_that_cannot_be_are_unknown_and_the_answer_is_kept() {
        let nonsense = [
            json!(-1),
            json!(i64::MIN),
            json!(2.5),
            json!(-0.5),
            json!(1_000_000_001_u64),
            json!(u64::MAX),
            json!(1e300),
            json!("many"),
            json!("-3"),
            json!(""),
            json!(true),
            json!([7]),
            json!({"n": 7}),
        ];
        for bad in &nonsense {
            for (input, output) in [(bad, &json!(5)), (&json!(5), bad)] {
                for (api, events) in answers(input, output) {
                    assert_eq!(usage(api, &events), None, "{api:?} {input} {output}");
                }
            }
        }
    }

    #[test]
    fn whole_numbers_are_counts_however_they_are_written() {
        for seven in [json!(7), json!(7.0), json!("7"), json!(" 7 ")] {
            for (api, events) in answers(&seven, &json!(5)) {
                let counted = usage(api, &events).unwrap();
                assert_eq!((counted.input, counted.output), (7, 5), "{api:?} {seven}");
            }
        }
    }

    #[test]
    fn a_usage_that_is_no_object_is_unknown_and_a_wrong_detail_is_left_out() {
        for usage_field in [json!(-1), json!("none"), json!([])] {
            let events = [
                json!({"choices": [{"index": 0, "delta": {"content": "paid for"}}]}),
                json!({"choices": [], "usage": usage_field}),
            ];
            assert_eq!(usage(Api::OpenAiChat, &events), None, "{usage_field}");
        }
        for details in [json!({"cached_tokens": -4}), json!("none")] {
            let events = [
                json!({"choices": [{"index": 0, "delta": {"content": "paid for"}}]}),
                json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2,
                    "prompt_tokens_details": details,
                    "completion_tokens_details": {"reasoning_tokens": "?"}}}),
            ];
            let counted = usage(Api::OpenAiChat, &events).unwrap();
            assert_eq!((counted.input, counted.cached, counted.output), (9, 0, 2), "{details}");
        }
    }
}
