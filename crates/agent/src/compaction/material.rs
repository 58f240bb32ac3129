//! Messages as plain text for the model that summarises them.

use mainstay_message::{AssistantPart, Content, Message};

/// How many bytes of a text are shown at most: of its beginning, and of its end.
#[derive(Clone, Copy)]
pub(super) struct Clip {
    pub(super) head: usize,
    pub(super) tail: usize,
}

const SAID: Clip = Clip { head: 4_000, tail: 1_500 };
const ARGUMENTS: Clip = Clip { head: 900, tail: 300 };
const RESULT: Clip = Clip { head: 700, tail: 300 };

/// A conversation in words, each part clipped. Thoughts are left out: they were for the moment.
pub(super) fn of(messages: &[Message]) -> String {
    let mut text = String::new();
    let mut say = |who: &str, words: &str| {
        text.push_str(&format!("[{who}]\n{}\n\n", words.trim()));
    };
    for message in messages {
        match message {
            Message::User(content) => {
                for part in content {
                    let words = words_of(part, SAID);
                    let who = if words.starts_with("[Mainstay: ") { "harness" } else { "user" };
                    say(who, &words);
                }
            }
            Message::Assistant(parts) => {
                for part in parts {
                    match part {
                        AssistantPart::Text(words) => say("agent", &clipped(words, SAID)),
                        AssistantPart::Call(call) => {
                            let words = clipped(&call.arguments, ARGUMENTS);
                            say(&format!("agent calls {}", call.name), &words);
                        }
                        AssistantPart::Reasoning(_) => {}
                    }
                }
            }
            Message::Results(results) => {
                for result in results {
                    let words: Vec<String> =
                        result.content.iter().map(|part| words_of(part, RESULT)).collect();
                    let how = if result.failed { "failed" } else { "gave" };
                    say(&format!("{} {how}", result.name), &words.join("\n"));
                }
            }
        }
    }
    text
}

fn words_of(part: &Content, most: Clip) -> String {
    match part {
        // The record of an earlier compaction is bounded, and stays whole.
        Content::Text(text) if text.starts_with(mainstay_journal::RECORD) => text.clone(),
        Content::Text(text) => clipped(text, most),
        Content::Image(image) => format!("(a picture, {})", image.media_type),
    }
}

/// The beginning and the end of a text that is longer than both.
pub(super) fn clipped(text: &str, Clip { head, tail }: Clip) -> String {
    if text.len() <= head + tail + 40 {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(head);
    let start = text.ceil_char_boundary(text.len() - tail);
    format!("{} [… {} bytes left out …] {}", &text[..end], start - end, &text[start..])
}

/// The text in so many bytes: where it is longer, its beginning, which may hold an earlier summary,
/// and its end.
pub(super) fn within(text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let most = most.saturating_sub(60);
    clipped(&text, Clip { head: most / 3, tail: most - most / 3 })
}

#[cfg(test)]
mod tests {
    use mainstay_message::{Call, CallResult, Reasoning};

    use super::*;

    #[test]
    fn every_kind_of_part_is_told_by_whom_it_is_and_is_bounded() {
        let words = |text: &str| vec![Content::Text(text.to_owned())];
        let call = Call {
            id: "1".to_owned(),
            name: "shell".to_owned(),
            arguments: format!("{{\"command\":\"{}\"}}", "x".repeat(9_000)),
            extra: None,
        };
        let result = CallResult {
            call: "1".to_owned(),
            name: "shell".to_owned(),
            content: words(&format!("first {} last", "é".repeat(9_000))),
            failed: true,
        };
        let thought = Reasoning { text: "secret thought".to_owned(), ..Reasoning::default() };
        let messages = [
            Message::User(vec![
                Content::Text("[Mainstay: a notice]".to_owned()),
                Content::Text("do it".to_owned()),
            ]),
            Message::Assistant(vec![
                AssistantPart::Reasoning(thought),
                AssistantPart::Text("I will".to_owned()),
                AssistantPart::Call(call),
            ]),
            Message::Results(vec![result]),
        ];
        let text = of(&messages);
        assert!(
            text.starts_with("[harness]\n[Mainstay: a notice]\n\n[user]\ndo it\n\n[agent]\nI will")
        );
        assert!(text.contains("[agent calls shell]") && text.contains("[shell failed]\nfirst "));
        assert!(text.contains(" last\n") && !text.contains("secret thought"));
        assert!(text.len() < 3_000, "{}", text.len());
    }

    #[test]
    fn a_text_is_cut_in_its_middle_to_what_there_is_room_for() {
        let text = format!("begin {} end", "ü".repeat(5_000));
        for most in [100, 1_000, 5_000] {
            let cut = within(text.clone(), most);
            assert!(cut.len() <= most + 10, "{most}: {}", cut.len());
            assert!(cut.starts_with("begin ") && cut.ends_with(" end"), "{cut}");
        }
        assert_eq!(within("short".to_owned(), 100), "short");
    }
}
