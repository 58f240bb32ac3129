//! Every prefix of every journal makes messages that a provider accepts.

use mainstay_message::Reasoning;
use proptest::prelude::*;

use super::*;
use crate::TurnId;
use crate::compaction::Compaction;
use crate::ledger::Ledger;

/// What is wrong with a list of messages; nothing if it is well-formed.
fn fault(messages: &[Message]) -> Option<String> {
    let mut names = std::collections::BTreeSet::new();
    for (index, message) in messages.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|index| messages.get(index));
        let after = messages.get(index + 1);
        match message {
            Message::User(content) => {
                if content.is_empty() || content.iter().any(is_blank) {
                    return Some(format!("message {index} is empty"));
                }
                if matches!(before, Some(Message::User(_))) {
                    return Some(format!("message {index} follows one of the same side"));
                }
            }
            Message::Assistant(parts) => {
                if !matches!(before, Some(Message::User(_) | Message::Results(_))) {
                    return Some(format!("message {index} answers nothing"));
                }
                let calls: Vec<&str> = calls(parts);
                for call in &calls {
                    if !names.insert((*call).to_owned()) {
                        return Some(format!("the call {call} is asked for twice"));
                    }
                }
                let results: Vec<&str> = match after {
                    Some(Message::Results(results)) => {
                        results.iter().map(|result| result.call.as_str()).collect()
                    }
                    _ => Vec::new(),
                };
                if calls != results {
                    return Some(format!("message {index} asks for {calls:?}, gets {results:?}"));
                }
            }
            Message::Results(results) => {
                if !matches!(before, Some(Message::Assistant(_))) {
                    return Some(format!("message {index} holds results of nothing"));
                }
                if results.is_empty() || results.iter().any(|result| result.content.is_empty()) {
                    return Some(format!("message {index} holds an empty result"));
                }
            }
        }
    }
    None
}

fn calls(parts: &[AssistantPart]) -> Vec<&str> {
    parts
        .iter()
        .filter_map(|part| match part {
            AssistantPart::Call(call) => Some(call.id.as_str()),
            _ => None,
        })
        .collect()
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,8}", Just(String::new()), Just(" \n".to_owned())]
}

fn long_text() -> impl Strategy<Value = String> {
    prop_oneof![3 => text(), 1 => Just("long output\n".repeat(40))]
}

/// Compactions that make sense and such that do not.
fn compaction() -> impl Strategy<Value = Body> {
    let summary = prop::option::of(text());
    (-2_i64..6, -3_i64..30, -3_i64..30, prop::collection::vec(-2_i64..30, 0..4), summary).prop_map(
        |(number, through, trimmed, keeps, summary)| {
            let ledger = Ledger { first: "go".to_owned(), ..Ledger::default() };
            let made = Compaction {
                number,
                through,
                trimmed,
                keeps,
                summary,
                ledger,
                ..Compaction::default()
            };
            Body::Compaction(Box::new(made))
        },
    )
}

/// Bodies whose calls are named by their place, and whose results name any call, also none.
fn bodies() -> impl Strategy<Value = Vec<Body>> {
    let long = format!("{{\"content\":\"{}\"}}", "é".repeat(600));
    let arguments = prop::sample::select(vec!["{}".to_owned(), long, "[".repeat(700)]);
    let body = prop_oneof![
        text().prop_map(|text| Body::User { content: vec![Content::Text(text)] }),
        (text(), 0_usize..4, any::<bool>(), arguments).prop_map(
            |(text, calls, thinks, arguments)| {
                let mut parts = vec![AssistantPart::Text(text)];
                if thinks {
                    parts.insert(0, AssistantPart::Reasoning(Reasoning::default()));
                }
                for _ in 0..calls {
                    parts.push(AssistantPart::Call(Call {
                        id: String::new(),
                        name: "shell".to_owned(),
                        arguments: arguments.to_owned(),
                        extra: None,
                    }));
                }
                Body::Assistant { parts, model: "local/m".to_owned() }
            }
        ),
        (0_usize..12, long_text()).prop_map(|(call, text)| Body::Result {
            result: CallResult {
                call: call.to_string(),
                name: "shell".to_owned(),
                content: vec![Content::Text(text)],
                failed: false,
            },
            facts: Vec::new(),
            // Some are the same.
            fingerprint: if call % 3 == 0 { "f".to_owned() } else { String::new() },
            whole: None,
        }),
        text().prop_map(Body::notice),
        compaction(),
        (-1_i64..6).prop_map(|number| Body::Restored { number }),
        prop_oneof![Just(Outcome::Answered), Just(Outcome::Failed), Just(Outcome::Cancelled)]
            .prop_map(|outcome| Body::End { outcome, reason: None }),
    ];
    prop::collection::vec(body, 0..24).prop_map(|mut bodies| {
        let mut number = 0;
        for body in &mut bodies {
            let Body::Assistant { parts, .. } = body else { continue };
            for part in parts {
                if let AssistantPart::Call(call) = part {
                    call.id = number.to_string();
                    number += 1;
                }
            }
        }
        bodies
    })
}

fn entries(bodies: Vec<Body>) -> Vec<Entry> {
    let turn = TurnId::new();
    (1..).zip(bodies).map(|(seq, body)| Entry { seq, turn, at: 0, body }).collect()
}

proptest! {
    #[test]
    fn every_prefix_of_every_journal_is_well_formed(bodies in bodies()) {
        let entries = entries(bodies);
        for length in 0..=entries.len() {
            let messages = transcript(&entries[..length]);
            prop_assert_eq!(fault(&messages), None, "{:#?}", messages);
        }
    }

    #[test]
    fn what_is_pushed_is_what_is_computed_anew(bodies in bodies(), split in 0_usize..24) {
        let mut entries = entries(bodies);
        // What changes the view comes before what is pushed.
        let rest = entries.split_off(split.min(entries.len()));
        let rest: Vec<Entry> = rest
            .into_iter()
            .filter(|entry| !matches!(entry.body, Body::Compaction(_) | Body::Restored { .. }))
            .collect();
        let mut grown = Transcript::of(&entries);
        for entry in &rest {
            grown.push(&entry.body, entry.at);
        }
        entries.extend(rest);
        let anew = transcript(&entries);
        prop_assert_eq!(grown.messages(), &anew[..]);
    }

    #[test]
    fn a_preview_is_what_will_be_shown(bodies in bodies(), made in compaction()) {
        let mut entries = entries(bodies);
        let seq = entries.len() as i64 + 1;
        let Body::Compaction(compaction) = &made else { unreachable!() };
        let previewed = preview(&entries, compaction);
        entries.push(Entry { seq, turn: TurnId::new(), at: 0, body: made });
        prop_assert_eq!(previewed, transcript(&entries));
    }

    #[test]
    fn a_cut_splits_no_group_and_keeps_what_was_asked_and_said_last(
        bodies in bodies(),
        budget in 0_usize..3000,
    ) {
        let entries = entries(bodies);
        let size = |body: &Body| format!("{body:?}").len();
        let Some(cut) = crate::cut(&entries, budget, size) else { return Ok(()) };
        let standing = Standing::of(&entries);
        prop_assert!(cut.through > standing.through);
        // The last answer and the last words of the user are in the tail, or kept.
        let answers = |entry: &&Entry| matches!(entry.body, Body::Assistant { .. });
        let last = entries.iter().rfind(answers).map(|entry| entry.seq);
        prop_assert!(last.is_some_and(|last| last > cut.through));
        let said = |entry: &&Entry| matches!(entry.body, Body::User { .. });
        if let Some(last) = entries.iter().rfind(said) {
            prop_assert!(last.seq > cut.through || cut.keeps.contains(&last.seq));
        }
        // What came of the calls before the cut is before it too.
        let results = |messages: Vec<Message>| -> Vec<CallResult> {
            let results = messages.into_iter().filter_map(|message| match message {
                Message::Results(results) => Some(results),
                _ => None,
            });
            results.flatten().collect()
        };
        let before = results(shown_through(&entries, cut.through));
        prop_assert_eq!(&before[..], &results(transcript(&entries))[..before.len()]);
    }

    #[test]
    fn what_is_taken_back_never_was(bodies in bodies(), number in 1_i64..4) {
        let mut entries = entries(bodies);
        let seq = entries.len() as i64 + 1;
        let body = Body::Restored { number };
        entries.push(Entry { seq, turn: TurnId::new(), at: 0, body });
        let restored = transcript(&entries);
        let never: Vec<Entry> = entries
            .iter()
            .map(|entry| match &entry.body {
                // Its place stays, so that the others are where they were.
                Body::Compaction(made) if made.number >= number => {
                    Entry { body: Body::Restored { number: i64::MAX }, ..entry.clone() }
                }
                _ => entry.clone(),
            })
            .collect();
        prop_assert_eq!(restored, transcript(&never));
    }

    #[test]
    fn a_result_that_was_recorded_is_never_lost_from_the_view(bodies in bodies()) {
        // Results that directly follow their call, as the engine writes them.
        let mut ordered = Vec::new();
        for body in bodies {
            let asked = match &body {
                Body::Assistant { parts, .. } => {
                    calls(parts).into_iter().map(str::to_owned).collect()
                }
                Body::Result { .. } | Body::Compaction(_) | Body::Restored { .. } => continue,
                _ => Vec::new(),
            };
            ordered.push(body);
            for call in asked.into_iter().rev() {
                ordered.push(Body::Result {
                    result: CallResult {
                        content: vec![Content::Text(format!("result of {call}"))],
                        call,
                        name: "shell".to_owned(),
                        failed: false,
                    },
                    facts: Vec::new(), fingerprint: String::new(),
                    whole: None,
                });
            }
        }
        let expected = ordered.iter().filter(|body| matches!(body, Body::Result { .. })).count();
        let messages = transcript(&entries(ordered));
        let shown: Vec<&CallResult> = messages
            .iter()
            .filter_map(|message| match message {
                Message::Results(results) => Some(results),
                _ => None,
            })
            .flatten()
            .collect();
        prop_assert_eq!(shown.len(), expected);
        for result in shown {
            let words = format!("result of {}", result.call);
            prop_assert_eq!(result.content[0].text(), Some(words.as_str()));
        }
    }
}

#[test]
fn a_call_without_a_result_is_told_as_in_doubt() {
    let call = Call {
        id: "c1".to_owned(),
        name: "shell".to_owned(),
        arguments: "{}".to_owned(),
        extra: None,
    };
    let messages = transcript(&entries(vec![
        Body::User { content: vec![Content::Text("go".to_owned())] },
        Body::Assistant { parts: vec![AssistantPart::Call(call)], model: "m".to_owned() },
    ]));
    let Some(Message::Results(results)) = messages.last() else {
        panic!("no results: {messages:?}");
    };
    let words = results[0].content[0].text().unwrap();
    assert!(words.contains("did not report back"), "{words}");
}

#[test]
fn a_notice_that_comes_while_a_call_runs_stands_after_its_result() {
    let call = Call {
        id: "c1".to_owned(),
        name: "shell".to_owned(),
        arguments: "{}".to_owned(),
        extra: None,
    };
    let result = CallResult {
        call: "c1".to_owned(),
        name: "shell".to_owned(),
        content: vec![Content::Text("done".to_owned())],
        failed: false,
    };
    let messages = transcript(&entries(vec![
        Body::User { content: vec![Content::Text("go".to_owned())] },
        Body::Assistant { parts: vec![AssistantPart::Call(call)], model: "m".to_owned() },
        Body::notice("a process ended"),
        Body::Result { result, facts: Vec::new(), fingerprint: String::new(), whole: None },
    ]));
    assert!(matches!(&messages[2], Message::Results(results) if results.len() == 1));
    assert!(matches!(&messages[3], Message::User(_)), "{messages:?}");
}
