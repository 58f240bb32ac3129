//! What the journal makes of a session with compactions anywhere, sensible or not, is a valid request
//! too.

use mainstay_journal::compaction::Compaction;
use mainstay_journal::entry::{Body, Entry};
use mainstay_journal::{TurnId, transcript};

use super::*;

/// The bodies that make these messages. Of the words some are long, so that they are shortened.
fn bodies(messages: Vec<Message>) -> Vec<Body> {
    let mut bodies = Vec::new();
    for message in messages {
        match message {
            Message::User(content) => bodies.push(Body::User { content }),
            Message::Assistant(mut parts) => {
                for part in &mut parts {
                    if let AssistantPart::Call(call) = part
                        && call.arguments == "{}"
                    {
                        call.arguments = json!({ "content": "é\"".repeat(500) }).to_string();
                    }
                }
                bodies.push(Body::Assistant { parts, model: "p/m".to_owned() });
            }
            Message::Results(results) => {
                for mut result in results {
                    let fingerprint = result.name.clone();
                    for part in &mut result.content {
                        if let Content::Text(text) = part {
                            *text = text.repeat(100);
                        }
                    }
                    bodies.push(Body::Result { result, facts: vec![], fingerprint, whole: None });
                }
            }
        }
    }
    bodies
}

fn compaction() -> impl Strategy<Value = Body> {
    let marks = (-1_i64..24, -1_i64..24, prop::collection::vec(0_i64..24, 0..3));
    (1_i64..4, marks, prop::option::of(any_text())).prop_map(|(number, marks, summary)| {
        let (through, trimmed, keeps) = marks;
        let made = Compaction { number, through, trimmed, keeps, summary, ..Compaction::default() };
        Body::Compaction(Box::new(made))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn every_prefix_of_every_compacted_journal_is_a_valid_request(
        rounds in prop::collection::vec(round(), 1..5),
        made in prop::collection::vec((0_usize..24, compaction()), 1..4),
        restored in prop::option::of((0_usize..24, 0_i64..4)),
        effort in prop::sample::select(vec![None, Some(Effort::High)]),
    ) {
        let mut bodies = bodies(rounds.concat());
        let restored = restored.map(|(place, number)| (place, Body::Restored { number }));
        for (place, body) in made.into_iter().chain(restored) {
            bodies.insert(place.min(bodies.len()), body);
        }
        let turn = TurnId::new();
        let entries: Vec<Entry> =
            (1..).zip(bodies).map(|(seq, body)| Entry { seq, turn, at: 0, body }).collect();
        let tools = tools();
        for length in 0..=entries.len() {
            let messages = transcript(&entries[..length]);
            let request = Request {
                system: "be brief",
                tools: &tools,
                messages: &messages,
                effort,
                ..Request::default()
            };
            for api in Api::ALL {
                let candidate = candidate("p", api, "http://127.0.0.1:1/v1", "m");
                let body = body(&candidate, &request);
                let judgement = check(shape(api), &body);
                prop_assert!(judgement.is_ok(), "{api}: {judgement:?}\n{body:#}");
            }
        }
    }
}
