//! The chat in situations, on a virtual screen.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use mainstay_agent::{Event, Friction};
use mainstay_message::Usage;
use serde_json::{Value, json};

use crate::chat::input::history::History;
use crate::chat::input::keys::KeyAction;
use crate::chat::input::prompt::tests::request;
use crate::chat::render::paint::{Colours, Painter};
use crate::chat::render::screen::Screen;
use crate::chat::tests::virtual_screen::{screen, shown};

/// A chat and the screen it is drawn on.
struct Chat {
    screen: Screen,
    painter: Painter,
    terminal: vt100::Parser,
    columns: u16,
}

impl Chat {
    fn new(rows: u16, columns: u16, colours: Colours) -> Self {
        let mut state = Screen::new(columns.into(), rows.into(), History::default());
        state.status.model = "local/qwen".to_owned();
        state.status.window = Some(128_000);
        Self {
            screen: state,
            painter: Painter::new(colours, columns.into()),
            terminal: screen(rows, columns),
            columns,
        }
    }

    fn draw(&mut self) {
        let above = self.screen.take_above();
        let bytes = self.painter.draw(&above, self.screen.live());
        self.terminal.process(bytes.as_bytes());
    }

    fn events(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.screen.event(&event);
            self.draw();
        }
    }

    fn type_in(&mut self, text: &str) {
        for letter in text.chars() {
            self.press(KeyCode::Char(letter), KeyModifiers::NONE);
        }
    }

    fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Option<KeyAction> {
        let act = self.screen.key(KeyEvent::new(code, modifiers));
        if let Some(KeyAction::Send(words)) = &act {
            self.screen.begin(Some(words.clone()));
        }
        self.draw();
        act
    }

    fn enter(&mut self) -> Option<KeyAction> {
        self.press(KeyCode::Enter, KeyModifiers::NONE)
    }

    fn control(&mut self, letter: char) -> Option<KeyAction> {
        self.press(KeyCode::Char(letter), KeyModifiers::CONTROL)
    }

    /// Sends a message, which is recorded at once.
    fn send(&mut self, text: &str) {
        self.type_in(text);
        self.enter();
        self.events([Event::Turn { id: "t".into(), number: 1, resumed: false }]);
    }

    fn wait(&mut self, millis: u64) {
        self.screen.tick(self.screen.now + millis);
        self.draw();
    }

    /// What is on the screen, with the cursor.
    fn seen(&self) -> String {
        let (row, column) = self.terminal.screen().cursor_position();
        let hidden = self.terminal.screen().hide_cursor();
        let cursor = if hidden { "hidden".to_owned() } else { format!("{row}:{column}") };
        format!("{}\n[cursor {cursor}]", shown(&self.terminal).join("\n"))
    }

    /// The rows in which something has a colour, with the colours of their words.
    fn colours(&self) -> String {
        let terminal = self.terminal.screen();
        let (rows, _) = terminal.size();
        let mut told = Vec::new();
        for row in 0..rows.get() {
            let mut parts: Vec<(vt100::Color, String)> = Vec::new();
            for column in 0..self.columns {
                let Some(cell) = terminal.cell(row, column) else { continue };
                match parts.last_mut() {
                    Some((colour, text)) if *colour == cell.fgcolor() => {
                        text.push_str(cell.contents());
                    }
                    _ => parts.push((cell.fgcolor(), cell.contents().to_owned())),
                }
            }
            let coloured = parts.iter().filter(|(colour, text)| {
                *colour != vt100::Color::Default && !text.trim().is_empty()
            });
            let words: Vec<String> = coloured
                .map(|(colour, text)| {
                    let name = match colour {
                        vt100::Color::Idx(1) => "red",
                        vt100::Color::Idx(2) => "green",
                        vt100::Color::Idx(3) => "yellow",
                        vt100::Color::Idx(4) => "blue",
                        vt100::Color::Idx(5) => "magenta",
                        vt100::Color::Idx(6) => "cyan",
                        _ => "other",
                    };
                    format!("{name}({})", text.trim())
                })
                .collect();
            if !words.is_empty() {
                told.push(words.join(" "));
            }
        }
        told.join("\n")
    }
}

fn text(delta: &str) -> Event {
    Event::Text { delta: delta.to_owned() }
}

fn call(id: &str, name: &str, arguments: Value) -> Event {
    Event::ToolCall { id: id.to_owned(), name: name.to_owned(), arguments }
}

fn result(id: &str, name: &str, failed: bool, text: &str) -> Event {
    Event::ToolResult { id: id.to_owned(), name: name.to_owned(), failed, text: text.to_owned() }
}

fn answer() -> Event {
    let usage = Usage { input: 12_000, output: 345, ..Usage::default() };
    Event::Answer { model: "local/qwen".to_owned(), usage, cost: 0.0123 }
}

fn end(outcome: &'static str) -> Event {
    let usage = Usage { input: 12_000, output: 345, ..Usage::default() };
    Event::End { outcome, answer: String::new(), reason: None, usage, cost: 0.0123 }
}

#[test]
fn an_answer_streams_with_code() {
    let mut chat = Chat::new(24, 70, Colours::On);
    chat.send("How do I read a file in Rust?");
    chat.wait(2_000);
    chat.events([Event::Reasoning { delta: "The user wants **std::fs**.\nSimple enough".into() }]);
    insta::assert_snapshot!("streaming_1_thoughts", chat.seen());
    chat.events([
        text("Use `std::fs::read_to_string`, which reads "),
        text("the *whole* file at once:\n\n```rust\nuse std::fs;\n\nfn main() -> std::io::Result<()> {\n"),
        text("    // Reads it.\n    let text = fs::read_to_string(\"a.txt\")?;\n    println!(\"{te"),
    ]);
    insta::assert_snapshot!("streaming_2_in_the_middle", chat.seen());
    chat.events([
        text("xt}\");\n    Ok(())\n}\n```\n\nThat is all:\n\n1. open\n2. read"),
        answer(),
        end("answered"),
    ]);
    chat.screen.ended(true);
    chat.draw();
    insta::assert_snapshot!("streaming_3_done", chat.seen());
    insta::assert_snapshot!("streaming_4_colours", chat.colours());
}

#[test]
fn tools_run_and_are_folded() {
    let mut chat = Chat::new(24, 70, Colours::On);
    chat.send("Run the tests");
    chat.events([
        text("I look at the files and run the tests.\n"),
        answer(),
        call("1", "read_file", json!({ "path": "src/main.rs" })),
        call("2", "shell", json!({ "command": "cargo test --workspace" })),
    ]);
    chat.wait(3_200);
    insta::assert_snapshot!("tools_1_running", chat.seen());
    let output: String = (1..=30).map(|line| format!("test {line} ... ok\n")).collect();
    let output = format!("exit code 0 (3.1 s)\n<data k7k7k7>\n{output}</data k7k7k7>");
    chat.events([
        result("1", "read_file", false, "<data a1>\nfn main() {}\n</data a1>"),
        result("2", "shell", false, &output),
        call("3", "shell", json!({ "command": "false" })),
        result("3", "shell", true, "exit code 1 (0.0 s)"),
    ]);
    insta::assert_snapshot!("tools_2_folded", chat.seen());
    chat.control('o');
    insta::assert_snapshot!("tools_3_unfolded", chat.seen());
}

#[test]
fn a_change_is_shown_in_colour() {
    let mut chat = Chat::new(24, 70, Colours::On);
    chat.send("Mend it");
    let diff = "Changed src/main.rs:\n<data q>\n@@ -1,3 +1,4 @@\n fn main() {\n-    let a = 1;\n\
        +    let a = 2;\n+    let b = 3;\n }\n</data q>";
    chat.events([
        call("1", "edit_file", json!({ "path": "src/main.rs", "old": "1", "new": "2" })),
        result("1", "edit_file", false, diff),
        call("2", "write_file", json!({ "path": "notes.md", "content": "# Notes\n\nDone.\n" })),
        result("2", "write_file", false, "Created notes.md (15 B)."),
    ]);
    insta::assert_snapshot!("change_1", chat.seen());
    insta::assert_snapshot!("change_2_colours", chat.colours());
}

#[test]
fn the_policy_asks() {
    let mut chat = Chat::new(20, 70, Colours::On);
    chat.send("Clear up");
    chat.events([text("I remove what was built.\n"), answer()]);
    chat.screen.ask(request("to run `rm -rf target && cargo clean`", Friction::Key));
    chat.draw();
    assert!(!chat.seen().contains("[y] once"), "{}", chat.seen());
    chat.wait(1_000);
    insta::assert_snapshot!("question_1", chat.seen());
    chat.type_in("r");
    chat.type_in("keep it");
    insta::assert_snapshot!("question_2_reason", chat.seen());
    let act = chat.enter();
    assert!(matches!(act, Some(KeyAction::Reply(_))), "{act:?}");
    insta::assert_snapshot!("question_3_denied", chat.seen());
}

#[test]
fn a_question_that_does_not_fit_shows_how_it_begins_and_says_what_is_left_out() {
    let long = format!("to run `rm -rf everything; echo {}`", "padding ".repeat(300));
    for (rows, columns) in [(24, 80), (8, 18), (5, 40)] {
        let mut chat = Chat::new(rows, columns, Colours::Off);
        chat.send("Clear up");
        chat.screen.ask(request(&long, Friction::Key));
        chat.wait(1_000);
        let seen = chat.seen();
        assert!(seen.contains("? shell wants"), "{rows}x{columns}:\n{seen}");
        assert!(seen.contains(" more"), "{rows}x{columns}:\n{seen}");
        assert!(seen.contains("always:"), "{rows}x{columns}:\n{seen}");
        chat.type_in("r");
        chat.type_in("no");
        assert!(chat.seen().contains("› no"), "{rows}x{columns}:\n{}", chat.seen());
    }
}

#[test]
fn a_narrow_screen_without_colours() {
    let mut chat = Chat::new(24, 20, Colours::Off);
    chat.send("What is in this directory, please?");
    chat.events([
        call("1", "shell", json!({ "command": "ls --long --all /some/where" })),
        result("1", "shell", false, "exit code 0 (0.0 s)\n<data a>\na_rather_long_name.txt\n</data a>"),
        text("There is **one** file:\n\n| name | size |\n|---|---|\n| a_rather_long_name.txt | 12 |\n\n- and that is all there is\n"),
        answer(),
    ]);
    chat.type_in("thank you very much");
    insta::assert_snapshot!("narrow", chat.seen());
    assert_eq!(chat.colours(), "");
    for width in 2..20u16 {
        let mut chat = Chat::new(5, width, Colours::Off);
        chat.send("hello");
        chat.events([text("some words that are long\n\nand more"), call("1", "shell", json!({}))]);
        chat.screen.ask(request("to run `x`", Friction::Key));
        chat.draw();
        chat.type_in("x");
    }
}

#[test]
fn messages_are_queued_and_steer() {
    let mut chat = Chat::new(20, 70, Colours::On);
    chat.send("Do a lot");
    chat.events([call("1", "shell", json!({ "command": "make" }))]);
    chat.type_in("then do this");
    assert_eq!(chat.enter(), None);
    chat.type_in("not that file!");
    assert_eq!(chat.control('s'), Some(KeyAction::Steer("not that file!".into())));
    insta::assert_snapshot!("queue_1_waiting", chat.seen());
    chat.events([
        result("1", "shell", false, "exit code 0 (0.1 s)"),
        Event::Steered { text: "not that file!".into() },
        text("I leave that file alone.\n\n"),
    ]);
    insta::assert_snapshot!("queue_2_heard", chat.seen());
    chat.events([answer(), end("answered")]);
    chat.screen.ended(true);
    assert_eq!(chat.screen.next_queued().as_deref(), Some("then do this"));
}

#[test]
fn what_was_not_sent_comes_back_when_the_turn_has_no_answer() {
    let mut chat = Chat::new(20, 70, Colours::On);
    chat.send("Do a lot");
    chat.type_in("first");
    chat.enter();
    chat.type_in("second");
    chat.control('s');
    chat.type_in("third");
    assert_eq!(chat.control('c'), Some(KeyAction::Stop));
    chat.events([end("cancelled")]);
    chat.screen.ended(false);
    chat.draw();
    assert_eq!(chat.screen.next_queued(), None);
    insta::assert_snapshot!("queue_3_back", chat.seen());
}

#[test]
fn what_is_not_recorded_is_not_shown_as_sent() {
    let mut chat = Chat::new(12, 60, Colours::On);
    chat.type_in("hello there");
    assert_eq!(chat.enter(), Some(KeyAction::Send("hello there".into())));
    assert!(!chat.seen().contains("› hello there"), "{}", chat.seen());
    assert!(chat.seen().contains("sending: hello there"), "{}", chat.seen());
    chat.screen.error("the disk is full", &[]);
    chat.screen.ended(false);
    chat.draw();
    assert!(chat.seen().contains("› hello there\n"), "back in the editor: {}", chat.seen());
}

#[test]
fn completion_offers_what_fits() {
    let mut chat = Chat::new(16, 70, Colours::On);
    chat.screen.vocabulary.models = vec!["local/qwen".into(), "anthropic/claude".into()];
    chat.type_in("/");
    insta::assert_snapshot!("completion_1_commands", chat.seen());
    for _ in 0..3 {
        chat.press(KeyCode::Down, KeyModifiers::NONE);
    }
    assert_eq!(
        chat.enter(),
        Some(KeyAction::Command(crate::chat::commands::slash::Slash::New, String::new()))
    );
    chat.type_in("/mo");
    chat.press(KeyCode::Tab, KeyModifiers::NONE);
    chat.type_in("cl");
    chat.press(KeyCode::Tab, KeyModifiers::NONE);
    assert_eq!(chat.screen.editor.whole(), "/model anthropic/claude");
    chat.control('u');
    for letter in "see ".chars() {
        chat.press(KeyCode::Char(letter), KeyModifiers::NONE);
    }
    assert_eq!(chat.press(KeyCode::Char('@'), KeyModifiers::NONE), Some(KeyAction::FindFiles));
    chat.screen.found_files(vec!["src/main.rs".into(), "README.md".into()]);
    chat.type_in("ma");
    insta::assert_snapshot!("completion_2_files", chat.seen());
    chat.press(KeyCode::Tab, KeyModifiers::NONE);
    assert_eq!(chat.screen.editor.whole(), "see @src/main.rs ");
}

#[test]
fn what_comes_from_outside_cannot_speak_to_the_terminal() {
    let mut chat = Chat::new(24, 70, Colours::On);
    chat.send("Try it");
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[H\u{9b}31mgone\u{7f}\u{8}\u{8}\u{1b}[?1049h";
    let framed = format!("{evil}\n<data a>\n{evil}\n</data a>");
    let arguments = json!({ "command": evil, "path": evil, "content": evil });
    let mut events = vec![text(evil), text(&format!("\n\n```rust\n{evil}\n```\n"))];
    for name in ["shell", "edit_file", "write_file", "grep", evil] {
        events.push(call(name, name, arguments.clone()));
        events.push(result(name, name, false, &framed));
        events.push(call(name, name, arguments.clone()));
        events.push(result(name, name, true, &framed));
    }
    events.push(Event::Notice { about: "retry", message: evil.into(), void: true });
    events.push(Event::Steered { text: evil.into() });
    events.push(Event::Reasoning { delta: evil.into() });
    events.push(Event::Parked {
        why: mainstay_journal::turn::ParkReason::Approval,
        reason: evil.into(),
        resume_at: None,
        requests: Vec::new(),
        questions: Vec::new(),
    });
    let mut sent = String::new();
    for event in events {
        chat.screen.event(&event);
        let above = chat.screen.take_above();
        sent.push_str(&chat.painter.draw(&above, chat.screen.live()));
    }
    chat.screen.ask(request(evil, Friction::Key));
    chat.screen.paste(evil);
    sent.push_str(&chat.painter.draw(&[], chat.screen.live()));
    chat.screen.take_question_away();
    chat.screen.paste(evil);
    sent.push_str(&chat.painter.draw(&[], chat.screen.live()));
    for forbidden in ["owned", "\u{1b}[2J", "\u{1b}[H", "\u{9b}", "\u{7}", "\u{8}", "1049"] {
        assert!(!sent.contains(forbidden), "{forbidden:?} in {sent:?}");
    }
    assert!(sent.contains("gone"));
}

#[test]
fn a_new_size_leaves_the_picture_whole() {
    let mut chat = Chat::new(20, 70, Colours::On);
    chat.send("hello");
    chat.events([text(
        "A paragraph that is finished and stays where it is.\n\nAnd one that is not",
    )]);
    chat.type_in("a line in the editor that is rather long, as lines go in editors");
    for columns in [40u16, 25, 90] {
        let size = |number| std::num::NonZeroU16::new(number).unwrap();
        chat.terminal.screen_mut().set_size(size(20), size(columns));
        chat.screen.resized(columns.into(), 20);
        chat.painter.resized(columns.into());
        chat.columns = columns;
        chat.draw();
    }
    chat.events([text(" is now.\n\n"), answer(), end("answered")]);
    chat.screen.ended(true);
    chat.draw();
    let seen = chat.seen();
    assert_eq!(seen.matches("local/qwen").count(), 1, "{seen}");
    assert!(seen.contains("And one that is not is now."), "{seen}");
}
