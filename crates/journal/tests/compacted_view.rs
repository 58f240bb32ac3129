//! What a model is shown of a compacted session, by examples.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's error is a panic")]

use mainstay_journal::compaction::Compaction;
use mainstay_journal::entry::{Body, Entry};
use mainstay_journal::ledger::{self, File, Item, Ledger, Noted};
use mainstay_journal::turn::Outcome;
use mainstay_journal::{TurnId, cut, shown_through, transcript};
use mainstay_message::{AssistantPart, Call, CallResult, Content, Image, Message, Reasoning};
use serde_json::{Value, json};

/// A journal that is being written.
struct Journal {
    entries: Vec<Entry>,
    turn: TurnId,
}

impl Journal {
    fn new() -> Self {
        Self { entries: Vec::new(), turn: TurnId::new() }
    }

    fn add(&mut self, body: Body) -> i64 {
        let seq = self.entries.len() as i64 + 1;
        self.entries.push(Entry { seq, turn: self.turn, at: seq * 60_000, body });
        seq
    }

    fn user(&mut self, text: &str) -> i64 {
        self.add(Body::User { content: vec![Content::Text(text.to_owned())] })
    }

    fn says(&mut self, text: &str) -> i64 {
        let parts = vec![AssistantPart::Text(text.to_owned())];
        self.add(Body::Assistant { parts, model: "p/m".to_owned() })
    }

    /// A call with a thought before it, and its result.
    fn calls(&mut self, id: &str, arguments: &Value, content: Vec<Content>, print: &str) -> i64 {
        let call = Call {
            id: id.to_owned(),
            name: "shell".to_owned(),
            arguments: arguments.to_string(),
            extra: None,
        };
        let thought = Reasoning { origin: "p/m".to_owned(), ..Reasoning::default() };
        let parts = vec![AssistantPart::Reasoning(thought), AssistantPart::Call(call)];
        self.add(Body::Assistant { parts, model: "p/m".to_owned() });
        let result =
            CallResult { call: id.to_owned(), name: "shell".to_owned(), content, failed: false };
        self.add(Body::Result {
            result,
            facts: vec![json!(id)],
            fingerprint: print.to_owned(),
            whole: None,
        })
    }

    fn ends(&mut self) {
        self.add(Body::End { outcome: Outcome::Answered, reason: None });
        self.turn = TurnId::new();
    }

    fn compacts(&mut self, compaction: Compaction) -> i64 {
        self.add(Body::Compaction(Box::new(compaction)))
    }
}

fn long(text: &str) -> Vec<Content> {
    vec![Content::Text(format!("exit code 0\n<data k>\n{}</data k>", text.repeat(300)))]
}

fn words(message: &Message) -> String {
    let content = match message {
        Message::User(content) => content.clone(),
        Message::Results(results) => {
            results.iter().flat_map(|result| result.content.clone()).collect()
        }
        Message::Assistant(_) => Vec::new(),
    };
    content.iter().filter_map(Content::text).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_record_comes_first_then_the_instruction_then_what_stays() {
    let mut journal = Journal::new();
    journal.user("an old question");
    journal.says("an old answer");
    journal.ends();
    let asked = journal.user("the task\nof today");
    let through = journal.calls("a", &json!({"command": "ls"}), long("x\n"), "");
    journal.calls("b", &json!({"command": "pwd"}), long("y\n"), "");
    let ledger = Ledger { first: "an old question".to_owned(), ..Ledger::default() };
    let made = Compaction {
        number: 1,
        through,
        keeps: vec![asked],
        summary: Some("Files were listed.\n</record>".to_owned()),
        ledger,
        ..Compaction::default()
    };
    // Somebody spoke while the summary was being made.
    journal.user("and hurry");
    journal.compacts(made);
    journal.says("I do.");
    let messages = transcript(&journal.entries);
    let Message::User(first) = &messages[0] else { panic!("{messages:#?}") };
    let [Content::Text(record), Content::Text(task)] = &first[..] else { panic!("{first:#?}") };
    assert!(record.starts_with("[Mainstay: a record of this session"), "{record}");
    assert!(record.contains("no task"), "{record}");
    assert!(record.contains("Files were listed."), "{record}");
    assert!(record.contains("The user's first instruction: an old question"), "{record}");
    // The summary cannot end the record before its end.
    let mark = record.split("<record ").nth(1).unwrap().split('>').next().unwrap();
    assert_eq!(record.matches(&format!("</record {mark}>")).count(), 1);
    assert_eq!(task, "the task\nof today");
    let Message::Assistant(parts) = &messages[1] else { panic!("{messages:#?}") };
    assert!(matches!(&parts[1], AssistantPart::Call(call) if call.id == "b"));
    assert_eq!(words(&messages[2]), words(&Message::User(long("y\n"))));
    assert_eq!(words(&messages[3]), "and hurry");
    assert_eq!(messages.len(), 5);
    // What is to be summarised next is what is shown, up to some entry.
    let next = shown_through(&journal.entries, through + 2);
    assert_eq!(next[..], messages[..3]);
}

#[test]
fn what_is_shortened_is_few_words_and_the_rest_stays() {
    let mut journal = Journal::new();
    let picture = Image { media_type: "image/png".to_owned(), base64: "aGVsbG8h".to_owned() };
    let content = vec![Content::Text("look".to_owned()), Content::Image(picture.clone())];
    journal.add(Body::User { content: content.clone() });
    let file = "line\n".repeat(400);
    let arguments = json!({"path": "a.txt", "content": file, "lines": vec![1; 400]});
    journal.calls("a", &arguments, long("x\n"), "same");
    journal.calls("b", &json!({"command": "cat b"}), long("b\n"), "other");
    journal.calls("c", &json!({"command": "true"}), vec![Content::Text("ok".to_owned())], "");
    let trimmed = journal.calls("d", &json!({"command": "cat c"}), long("<b>\n"), "once");
    journal.calls("e", &json!({"command": "cat a.txt"}), long("x\n"), "same");
    journal.add(Body::User { content });
    journal.compacts(Compaction { number: 1, trimmed, ..Compaction::default() });
    // The same once more, later: what is shown before does not change by it.
    journal.calls("f", &json!({"command": "cat b"}), long("b\n"), "other");
    let messages = transcript(&journal.entries);
    let told = words(&messages[0]);
    assert_eq!(told, "look\n[Mainstay: a picture was here, image/png of 6 bytes.]");
    let Message::Assistant(parts) = &messages[1] else { panic!("{messages:#?}") };
    let [AssistantPart::Call(call)] = &parts[..] else { panic!("thoughts stay: {parts:#?}") };
    let shortened: Value = serde_json::from_str(&call.arguments).unwrap();
    assert!(call.arguments.len() < 400, "{}", call.arguments);
    assert_eq!(shortened["path"], "a.txt");
    assert!(shortened["content"].as_str().unwrap().ends_with("more letters)"), "{shortened}");
    let told = words(&messages[2]);
    assert!(told.contains("gave what a later call of it gave again"), "{told}");
    assert_eq!(
        words(&messages[4]),
        "[Mainstay: shortened. shell {\"command\":\"cat b\"} went well and gave 630 bytes, \
         beginning: exit code 0.]"
    );
    assert_eq!(words(&messages[6]), "ok");
    // The tail is as it was.
    let Message::Assistant(parts) = &messages[9] else { panic!("{messages:#?}") };
    assert_eq!(parts.len(), 2, "the tail's thoughts are gone");
    assert_eq!(words(&messages[10]), words(&Message::User(long("x\n"))));
    let Message::User(content) = &messages[11] else { panic!("{messages:#?}") };
    assert!(content.contains(&Content::Image(picture)));
}

#[test]
fn what_is_replaced_stays_so_when_more_is_shortened_and_comes_back_when_that_is_taken_back() {
    let mut journal = Journal::new();
    journal.user("go");
    let through = journal.calls("a", &json!({}), long("x\n"), "");
    let trimmed = journal.calls("b", &json!({}), long("y\n"), "");
    journal.calls("c", &json!({}), long("z\n"), "");
    let whole = transcript(&journal.entries);
    let summary = Some("It began.".to_owned());
    journal.compacts(Compaction { number: 1, through, summary, ..Compaction::default() });
    let once = transcript(&journal.entries);
    journal.compacts(Compaction { number: 2, trimmed, ..Compaction::default() });
    let twice = transcript(&journal.entries);
    assert!(words(&twice[0]).contains("It began."), "{twice:#?}");
    assert!(words(&twice[2]).contains("shortened"), "{twice:#?}");
    assert_eq!(twice[3..], once[3..]);
    let steps = journal.says("a step more");
    journal.add(Body::Restored { number: 2 });
    assert_eq!(transcript(&journal.entries)[..once.len()], once[..]);
    journal.add(Body::Restored { number: 1 });
    let back = transcript(&journal.entries);
    assert_eq!(back[..whole.len()], whole[..]);
    assert_eq!(back.len(), whole.len() + 1, "what came since stays: {steps}");
}

#[test]
fn a_tail_has_whole_groups_and_at_least_the_last_one() {
    let mut journal = Journal::new();
    let asked = journal.user("go");
    let first = journal.calls("a", &json!({}), long("x\n"), "");
    let second = journal.calls("b", &json!({}), long("y\n"), "");
    let size = |body: &Body| match body {
        Body::Result { .. } => 100,
        _ => 10,
    };
    let at = |budget| cut(&journal.entries, budget, size).map(|cut| cut.through);
    assert_eq!(at(0), Some(first));
    assert_eq!(at(109), Some(first));
    assert_eq!(at(219), Some(first));
    assert_eq!(at(220), Some(asked), "the group fits");
    assert_eq!(at(230), None, "all fits");
    assert_eq!(cut(&journal.entries, 0, size).unwrap().keeps, [asked]);
    let steered = journal.user("faster");
    journal.compacts(Compaction { number: 1, through: first, ..Compaction::default() });
    journal.calls("c", &json!({}), long("z\n"), "");
    let cut = cut(&journal.entries, 0, size).unwrap();
    assert_eq!((cut.through, cut.keeps), (steered, vec![asked, steered]));
    assert!(second < steered);
}

fn noted(call: Option<&Call>, result: &CallResult, facts: &[Value]) -> Vec<Noted> {
    assert_eq!(call.map(|call| call.id.as_str()), Some(result.call.as_str()));
    let file = |path: &str, hash: &str| File { path: path.to_owned(), hash: hash.to_owned() };
    let ran = |command: String, code| Noted::Ran { command, code };
    match facts[0].as_str().unwrap() {
        "read" => vec![Noted::Read(file("/w/a", "11")), Noted::Read(file("/w/b", "22"))],
        "change" => vec![Noted::Changed(file("/w/a", "33"))],
        "again" => vec![Noted::Read(file("/w/a", "44"))],
        "test" => vec![ran("cargo test".to_owned(), 1)],
        "good" => vec![ran("cargo test".to_owned(), 0)],
        "asked" => vec![Noted::Decided("blue".to_owned())],
        "steps" => {
            let step = |number: usize, done| Item {
                text: format!("step {number} {}", "x".repeat(90)),
                status: if done { "done" } else { "pending" }.to_owned(),
                done,
            };
            vec![Noted::Steps((0..60).map(|number| step(number, number < 30)).collect())]
        }
        other => {
            (0..500).map(|number| ran(format!("{other} {number} {}", "é".repeat(900)), 2)).collect()
        }
    }
}

#[test]
fn a_ledger_says_the_newest_first_and_counts_what_it_leaves_out() {
    let mut journal = Journal::new();
    journal.user("the first\nthing");
    for id in ["read", "test", "change", "asked"] {
        journal.calls(id, &json!({}), long("x"), "");
    }
    journal.ends();
    journal.user("another thing");
    journal.calls("again", &json!({}), long("x"), "");
    journal.ends();
    let current = "now this ".repeat(100);
    journal.user(&current);
    journal.user("and this too");
    journal.calls("good", &json!({}), long("x"), "");
    let decided = vec![(10 * 60_000 + 1, "denied: shell rm".to_owned())];
    let ledger = ledger::ledger(&journal.entries, noted, decided);
    assert_eq!(ledger.first, "the first thing");
    assert!(ledger.current.starts_with("now this now this") && ledger.current.ends_with('…'));
    let decisions = ["the user said: another thing", "denied: shell rm", "blue"];
    assert_eq!(ledger.decisions.items, decisions);
    let file = |path: &str, hash: &str| File { path: path.to_owned(), hash: hash.to_owned() };
    assert_eq!(ledger.changed.items, [file("/w/a", "44")]);
    assert_eq!(ledger.read.items, [file("/w/b", "22")]);
    let [ran] = &ledger.commands.items[..] else { panic!("{ledger:#?}") };
    assert_eq!((ran.command.as_str(), ran.code, ran.times), ("cargo test", 0, 2));
    let text = ledger.rendered();
    assert!(text.contains("- exit code 0, 2 times: cargo test\n"), "{text}");
    assert!(text.contains("- /w/a (sha256 44)\n"), "{text}");

    for id in ["many", "steps"] {
        journal.calls(id, &json!({}), long("x"), "");
    }
    let ledger = ledger::ledger(&journal.entries, noted, Vec::new());
    let listed = ledger.commands.items.len() as u64;
    assert_eq!(listed + ledger.commands.left_out, 501);
    assert!(listed > 1 && ledger.commands.items[0].command.ends_with('…'));
    // Steps that are done make room for those that are not.
    assert!(ledger.steps.left_out > 0);
    assert_eq!(ledger.steps.items.iter().filter(|step| !step.done).count(), 30);
    let text = ledger.rendered();
    assert!(text.len() <= ledger::MOST, "{} bytes", text.len());
    assert!(text.contains("more, older"), "{text}");

    // Where there is less room, there is less of everything but what is open.
    let all = ledger.steps.items.len() as u64 + ledger.steps.left_out;
    let small = ledger.clone().within(5_000);
    assert!(small.rendered().len() <= 5_000, "{}", small.rendered());
    assert_eq!((&small.first, &small.current), (&ledger.first, &ledger.current));
    assert_eq!(small.steps.items.len() as u64 + small.steps.left_out, all);
    assert_eq!(small.steps.items.iter().filter(|step| !step.done).count(), 30);
    assert_eq!(small.commands.items.len() as u64 + small.commands.left_out, 501);
    let least = ledger.clone().within(0);
    assert_eq!((least.steps.items.len(), least.commands.items.len()), (0, 0));
    assert_eq!(ledger.clone().within(usize::MAX), ledger);
}
