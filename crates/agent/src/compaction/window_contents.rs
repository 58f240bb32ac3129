//! What fills a window, in words for a person who has to do something about it.

use crate::session::context::{self, Context};
use crate::session::open::OpenSession;

/// So many parts are named.
const NAMED: usize = 3;
/// Parts below this share of all are not worth a word.
const LEAST: u64 = 5;

impl OpenSession {
    /// What the next request is filled with.
    pub(super) fn window_contents(&self) -> String {
        let messages = self.conversation.transcript.settled();
        let window = self.agent.window();
        let tokens = u64::try_from(self.conversation.size.tokens()).unwrap_or(0);
        describe_window(&context::measured_as(
            &self.conversation.prompt,
            &self.tools.specs,
            messages,
            tokens,
            window,
        ))
    }
}

fn describe_window(context: &Context) -> String {
    let all = context.tokens.max(1);
    let mut parts: Vec<_> = context.parts.iter().collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.tokens));
    let named: Vec<String> = parts
        .iter()
        .map(|part| (part, part.tokens.saturating_mul(100) / all))
        .filter(|(_, share)| *share >= LEAST)
        .take(NAMED)
        .map(|(part, share)| format!("{} ({share} %)", part.name))
        .collect();
    let window = context.window.map(|window| format!(" of {window}")).unwrap_or_default();
    let mut text = format!("about {}{window} tokens are used by {}", context.tokens, list(&named));
    if let Some(large) = context.largest.first().filter(|large| large.tokens * 10 >= all) {
        text.push_str(&format!(
            "; the largest result is from {} {} with {} tokens",
            large.tool, large.asked, large.tokens
        ));
    }
    text
}

fn list(words: &[String]) -> String {
    match words {
        [] => "many small things".to_owned(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ContextPart, LargeResult};

    #[test]
    fn the_largest_parts_come_first_and_the_small_ones_not_at_all() {
        let part = |name: &str, tokens| ContextPart { name: name.to_owned(), bytes: 0, tokens };
        let context = Context {
            parts: vec![part("tools", 100), part("your messages", 700), part("answers", 10)],
            largest: vec![LargeResult {
                tool: "shell".to_owned(),
                asked: "{}".to_owned(),
                tokens: 200,
            }],
            tokens: 810,
            window: Some(1_000),
            counted: None,
        };
        assert_eq!(
            describe_window(&context),
            "about 810 of 1000 tokens are used by your messages (86 %) and tools (12 %); the \
             largest result is from shell {} with 200 tokens"
        );
    }
}
