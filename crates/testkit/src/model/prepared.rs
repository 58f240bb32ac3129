//! Rounds for benchmarks: answers that are rendered once, requests that are scanned and not parsed.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::delivery::Delivery;
use super::http::{LAST_CHUNK, Request, chunk, head};
use super::listener::{Connection, Handler, Listener, Next};
use super::render::{Occasion, render};
use super::{Catalogue, Reply, Rounds, Shape, check};

/// Whether requests are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checking {
    /// Each one, as [`check`](super::check) does; what is wrong is said on standard error too.
    Strict,
    /// None.
    Trusting,
}

/// A server of [`Rounds`] that costs as little as it can. An answer leaves in one piece, and tells
/// its usage whether the client asked for it or not.
pub struct PreparedServer {
    listener: Listener,
}

impl PreparedServer {
    /// Starts on a port; 0 is any free one.
    pub fn start(port: u16, rounds: Rounds, checking: Checking) -> Self {
        let handler = Prepared {
            checking,
            run: fastrand::u32(..),
            state: Mutex::new(State { rounds, answers: HashMap::new() }),
        };
        Self { listener: Listener::start(port, Arc::new(handler)) }
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.listener.port())
    }
}

struct Prepared {
    checking: Checking,
    run: u32,
    state: Mutex<State>,
}

struct State {
    rounds: Rounds,
    /// By shape and round.
    answers: HashMap<(Shape, usize), Arc<[u8]>>,
}

impl Prepared {
    fn answer(&self, shape: Shape, results: usize) -> Arc<[u8]> {
        let mut state = self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let State { rounds, answers } = &mut *state;
        let round = rounds.round(results);
        let answer = answers.entry((shape, round)).or_insert_with(|| {
            let number = round as u64 + 1;
            let tag = format!("{:08x}{number:04x}", self.run);
            let occasion = Occasion { tag, number, ..Occasion::typical() };
            let answer = render(&rounds.after_results(results), shape, &occasion);
            let mut bytes = head(answer.status, &answer.headers, answer.framing);
            bytes.extend(answer.events.iter().flat_map(|event| chunk(event)));
            bytes.extend_from_slice(LAST_CHUNK);
            bytes.into()
        });
        Arc::clone(answer)
    }

    fn refusal(&self, request: &Request, shape: Shape) -> Option<String> {
        if self.checking == Checking::Trusting {
            return None;
        }
        let judgement = match serde_json::from_slice::<Value>(&request.body) {
            Ok(body) => check::request(shape, &request.headers, &body),
            Err(error) => Err(vec![format!("The body is not valid JSON: {error}")]),
        };
        let said = judgement.err()?;
        for words in &said {
            eprintln!("A request is refused ({shape}): {words}");
        }
        said.into_iter().next()
    }
}

impl Handler for Prepared {
    fn handle(&self, request: Request, connection: &mut Connection) -> io::Result<Next> {
        let shape = Shape::of_path(&request.path).filter(|_| request.method == "POST");
        let Some(shape) = shape else {
            return Delivery::default().send(
                Catalogue::default().answer(&request),
                Shape::Chat,
                connection,
            );
        };
        if let Some(words) = self.refusal(&request, shape) {
            let answer = render(&Reply::status(400, words), shape, &Occasion::typical());
            return Delivery::default().send(answer, shape, connection);
        }
        let results = count_results(shape, &request.body);
        connection.send(&self.answer(shape, results))?;
        Ok(Next::Keep)
    }
}

/// Counts the results in a conversation without parsing it: members such as `"role": "tool"`. Inside
/// a text their quotes would have backslashes before them.
fn count_results(shape: Shape, body: &[u8]) -> usize {
    let (name, value): (&[u8], &[u8]) = match shape {
        Shape::Chat | Shape::Ollama => (b"\"role\"", b"\"tool\""),
        Shape::Responses => (b"\"type\"", b"\"function_call_output\""),
        Shape::Anthropic => (b"\"type\"", b"\"tool_result\""),
    };
    let is_value_of_name = |&at: &usize| {
        let before = body[..at].trim_ascii_end().strip_suffix(b":");
        before.is_some_and(|before| before.trim_ascii_end().ends_with(name))
    };
    positions(body, value).filter(is_value_of_name).count()
}

/// Where a text has a word, by Horspool's way: most bytes of the text are never looked at.
fn positions<'t>(text: &'t [u8], word: &'t [u8]) -> impl Iterator<Item = usize> + 't {
    let last = word.len() - 1;
    let mut skips = [word.len(); 256];
    for (index, byte) in word[..last].iter().enumerate() {
        skips[usize::from(*byte)] = last - index;
    }
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(window) = text.get(at..at + word.len()) {
            let here = at;
            at += skips[usize::from(window[last])];
            if window == word {
                return Some(here);
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn results_are_counted_as_a_parser_would_count_them() {
        let body = json!({"messages": [
            {"role": "user", "content": "\"role\":\"tool\" and \"type\": \"tool_result\""},
            {"role": "tool", "content": "\"role\":\"tool\""},
            {"role": "assistant", "content": "tool", "name": "tool"},
            {"role": "tool", "content": "x"},
            {"role": "user", "content": [
                {"type": "tool_result", "content": "tool_result"},
                {"type": "text", "text": "tool_result"},
            ]},
            {"type": "function_call_output", "output": "\"type\":\"function_call_output\""},
        ]});
        for text in [body.to_string(), serde_json::to_string_pretty(&body).unwrap()] {
            let count = |shape| count_results(shape, text.as_bytes());
            assert_eq!(count(Shape::Chat), 2);
            assert_eq!(count(Shape::Ollama), 2);
            assert_eq!(count(Shape::Anthropic), 1);
            assert_eq!(count(Shape::Responses), 1);
        }
        assert_eq!(count_results(Shape::Chat, b""), 0);
        assert_eq!(count_results(Shape::Chat, b"\"tool\""), 0);
    }
}
