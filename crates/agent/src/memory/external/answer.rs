//! What a provider answered, read as memories.
//!
//! Servers agree on nothing but that there is a list somewhere, and that its items are texts or have
//! one. Whatever is not understood is taken as text: the model can read it.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::super::Memory;

/// The longest memory, in characters, and the most of all that one provider says.
const LONGEST: usize = 1_000;
const MOST: usize = 5_000;
/// How many items of a list are looked at.
const ITEMS: usize = 100;
/// How deep a list may lie.
const DEEPEST: usize = 4;
/// What a memory scores whose provider does not say.
const USUAL_SCORE: f64 = 0.5;

/// Under these names lists of memories are found, the likeliest first.
const LISTS: [&str; 12] = [
    "memories",
    "results",
    "facts",
    "items",
    "nodes",
    "entities",
    "notes",
    "documents",
    "matches",
    "entries",
    "observations",
    "data",
];
/// Under these names a memory has its text.
const TEXTS: [&str; 9] = [
    "text",
    "memory",
    "content",
    "fact",
    "observation",
    "summary",
    "document",
    "body",
    "information",
];
const IDS: [&str; 4] = ["id", "uuid", "key", "memory_id"];
const SCORES: [&str; 3] = ["score", "similarity", "relevance"];

/// The memories in an answer, the best first.
pub(super) fn memories(answer: &Value) -> Vec<Memory> {
    let Some(list) = list_in(answer, DEEPEST) else {
        return memory(answer, 0).into_iter().collect();
    };
    list.iter().take(ITEMS).enumerate().filter_map(|(place, item)| memory(item, place)).collect()
}

/// The memories in what a tool said in words: JSON is read as such, all else is a memory.
pub(super) fn memories_in_words(texts: &[String]) -> Vec<Memory> {
    let mut found: Vec<Memory> = Vec::new();
    for text in texts.iter().take(ITEMS) {
        match serde_json::from_str::<Value>(text) {
            Ok(value @ (Value::Array(_) | Value::Object(_))) => found.extend(memories(&value)),
            _ => found.extend(memory(&Value::String(text.clone()), found.len())),
        }
    }
    found
}

/// What a new memory is known by, where an answer says so.
pub(super) fn id(answer: &Value) -> Option<String> {
    let id = IDS.iter().find_map(|name| word(answer.get(name)?))?;
    Some(id).filter(|id| !id.is_empty())
}

/// Cuts memories to what may be brought.
pub(super) fn bound(memories: &mut Vec<Memory>, limit: usize) {
    memories.truncate(limit);
    let mut room = MOST;
    memories.retain_mut(|memory| {
        let longest = LONGEST.min(room);
        if let Some((end, _)) = memory.text.char_indices().nth(longest) {
            memory.text.truncate(end);
            memory.text.push_str(" …");
        }
        room -= memory.text.chars().count().min(room);
        longest > 0
    });
}

fn list_in(answer: &Value, depth: usize) -> Option<&Vec<Value>> {
    match answer {
        Value::Array(list) => Some(list),
        Value::Object(object) if depth > 0 => {
            let named = LISTS.iter().filter_map(|name| object.get(*name));
            named.filter_map(|value| list_in(value, depth - 1)).next()
        }
        _ => None,
    }
}

fn memory(item: &Value, place: usize) -> Option<Memory> {
    let text = match item {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        Value::Object(object) => {
            let named = TEXTS.iter().find_map(|name| object.get(*name).and_then(Value::as_str));
            // A name with observations, an episode with its parts: all of it says more than a field.
            named.map_or_else(|| item.to_string(), str::to_owned)
        }
        other => other.to_string(),
    };
    if text.trim().is_empty() {
        return None;
    }
    let score = SCORES.iter().find_map(|name| item.get(name).and_then(Value::as_f64));
    // Without scores the order of the list decides.
    #[expect(clippy::cast_precision_loss, reason = "a list has few items")]
    let usual = USUAL_SCORE - place as f64 / 1_000.0;
    let score =
        score.filter(|score| score.is_finite()).map_or(usual, |score| score.clamp(0.0, 1.0));
    let id = id(item).unwrap_or_else(|| name_of(&text));
    Some(Memory { id, text, score, ..Memory::default() })
}

/// What a memory without a name is known by: the same text is the same memory.
fn name_of(text: &str) -> String {
    Sha256::digest(text).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

fn word(value: &Value) -> Option<String> {
    let word = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    Some(word.chars().filter(|c| !c.is_whitespace() && !c.is_control()).take(100).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outline(found: &[Memory]) -> Vec<(&str, &str, f64)> {
        found.iter().map(|one| (one.id.as_str(), one.text.as_str(), one.score)).collect()
    }

    #[test]
    fn the_shapes_that_servers_answer_in_are_understood() {
        let ours = json!({ "memories": [{ "text": "a", "id": "1", "score": 0.8 }, "b"] });
        let found = memories(&ours);
        assert_eq!(outline(&found), [("1", "a", 0.8), (found[1].id.as_str(), "b", 0.499)]);
        assert_eq!(found[1].id, memories(&json!(["b"]))[0].id, "known by its text");
        let theirs =
            json!({ "results": { "results": [{ "memory": "c", "id": 7, "score": 3.5 }] } });
        assert_eq!(outline(&memories(&theirs)), [("7", "c", 1.0)]);
        let graph = json!({ "entities": [{ "name": "Ada", "observations": ["likes tabs"] }], "relations": [] });
        let found = memories(&graph);
        assert!(found.len() == 1 && found[0].text.contains("likes tabs"), "{found:?}");
        assert_eq!(memories(&json!({ "memories": [] })), []);
        assert_eq!(memories(&json!({ "memories": [null, "", { "text": " " }] })), []);
    }

    #[test]
    fn words_are_memories_and_json_in_words_is_read() {
        let texts = ["the user likes tabs".to_owned(), json!({ "facts": ["x", "y"] }).to_string()];
        let found = memories_in_words(&texts);
        let texts: Vec<&str> = found.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(texts, ["the user likes tabs", "x", "y"]);
        assert!(memories_in_words(&[]).is_empty());
    }

    #[test]
    fn whatever_a_provider_says_is_bounded() {
        let long = "é".repeat(3_000);
        let mut found = memories(&json!(vec![long.as_str(); 500]));
        bound(&mut found, 50);
        let total: usize = found.iter().map(|one| one.text.chars().count()).sum();
        assert!(found.len() == 5 && total <= MOST + 5 * 2, "{} of {total}", found.len());
        let deep = (0..50).fold(json!(["x"]), |inner, _| json!({ "data": inner }));
        assert_eq!(memories(&deep).len(), 1, "too deep for a list, and still something");
        let id = json!([{ "id": format!("a b\n{}", "c".repeat(500)), "text": "t" }]);
        assert_eq!(memories(&id)[0].id.len(), 100);
    }
}
