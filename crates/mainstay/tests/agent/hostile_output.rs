//! Whatever others write, what reaches a terminal is text, and no line of theirs looks like one of ours.

use mainstay_testkit::model::{ModelRequest, Reply};
use serde_json::json;

use crate::approving::waiting;
use crate::terminal::Terminal;
use crate::world::World;

/// Clears the screen, sets the title, colours, turns the line round, goes back, and begins lines.
const HOSTILE: &str = "x\u{1b}[2J\u{1b}]0;owned\u{7}\u{1b}[31m\u{9b}2J\u{202e}\u{2028}y\rFORGED\n\
                       FORGED\n[9 2026-01-01 10:00] FORGED\u{b}FORGED\u{8}\u{85}FORGED\u{2066}z\
                       \u{1b}]8;;http://e\u{1b}\\\u{1b}]52;c;eA==\u{7}\u{200b}\u{e0041}\u{61c}\u{1b}";
/// A command whose output does the same.
const COMMAND: &str =
    "printf 'a\\033[2J\\007\\302\\2332J\\342\\200\\256\\rFORGED\\nFORGED\\n'; echo made > made";
const SIZE: (u16, u16) = (40, 200);

fn world() -> World {
    World::new(|asked: &ModelRequest| match asked.results().len() {
        0 if asked.body.to_string().contains("fail") => Reply::status(400, HOSTILE),
        0 if asked.body.to_string().contains("quizzical") => {
            Reply::call_of("ask_user", json!({ "question": HOSTILE, "choices": [HOSTILE, "b"] }))
        }
        0 if asked.body.to_string().contains("please") => {
            Reply::call_of("shell", json!({ "command": format!("./run '{HOSTILE}'") }))
        }
        0 => Reply::text(HOSTILE).call("shell", json!({ "command": COMMAND })),
        1 => Reply::call_of(format!("no{HOSTILE}tool"), json!({ "a": HOSTILE })),
        2 => Reply::call_of("write_file", json!({ "path": HOSTILE, "content": HOSTILE })),
        _ => Reply::text(HOSTILE),
    })
}

/// What a command writes to a terminal, which must be text.
fn shown(world: &World, words: &[&str]) -> String {
    let (_, written) = Terminal::start(world, SIZE, words).ended_with_text();
    let mut text = written.replace("\r\n", "\n");
    for ours in ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m", "\u{1b}[36m"] {
        text = text.replace(ours, "");
    }
    let is_text = |letter: char| {
        matches!(letter, '\n' | '\t')
            || !(letter.is_control()
                || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}')
                || matches!(letter, '\u{2060}'..='\u{206f}' | '\u{200b}' | '\u{200e}' | '\u{200f}')
                || matches!(letter, '\u{e0000}'..='\u{e007f}' | '\u{61c}' | '\u{ad}' | '\u{feff}'))
    };
    let wrong = text.chars().find(|letter| !is_text(*letter));
    assert!(wrong.is_none(), "{words:?} wrote {wrong:?}:\n{text:?}");
    text
}

fn forged_lines(text: &str) -> Vec<&str> {
    let forged = |line: &&str| line.starts_with("FORGED") || line.starts_with("[9 2026-01-01");
    text.lines().filter(forged).collect()
}

#[test]
fn every_command_shows_hostile_words_as_text_in_their_place() {
    let world = world();
    let id = world.run(&["run", "--yes", "--json", HOSTILE]).ended_with(0).session();
    world.run(&["memory", "add", HOSTILE]);
    world.run(&["run", &format!("please {HOSTILE}")]).ended_with(3);
    let request = waiting(&world.run(&["approvals", "--json"]).ended_with(0)).remove(0);
    let mut seen = 0;
    for words in [
        &["sessions", "list"][..],
        &["sessions", "show", &id],
        &["sessions", "show", &id, "--at", "4"],
        &["sessions", "search", "FORGED"],
        &["audit", &id],
        &["context", &id],
        &["models"],
        &["cost"],
        &["undo", &id, "--list"],
        &["memory", "list"],
        &["approvals"],
        &["approvals", "--json"],
        &["deny", &request],
        &["sessions", "export", &id],
        &["sessions", "rename", &id, HOSTILE],
        &["run", "--no-such-option", HOSTILE],
        &["doctor"],
    ] {
        let text = shown(&world, words);
        seen += usize::from(text.contains("FORGED"));
        // A refusal repeats what was typed, as the person who typed it sees it.
        let typed = words.contains(&HOSTILE);
        assert!(typed || forged_lines(&text).is_empty(), "{words:?}:\n{text}");
    }
    assert!(seen >= 8, "only {seen} commands had hostile words to show");
}

#[test]
fn an_answer_and_an_error_of_a_provider_are_text_while_they_come_in() {
    let world = world();
    for words in [
        &["run", "--yes", HOSTILE][..],
        &["run", "--yes", "--json", HOSTILE],
        &["run", "fail"],
        &["run", "please"],
    ] {
        let text = shown(&world, words);
        assert!(text.contains("FORGED"), "{words:?}:\n{text}");
    }
}

/// Where hostile words come from, and a command that shows them.
const CELLS: [(&str, &[&str]); 18] = [
    ("a question and its choices", &["approvals"]),
    ("a question and its choices, decided or not", &["approvals", "--all"]),
    ("a question in the record", &["sessions", "show", "ID"]),
    ("a question in the audit", &["audit", "ID"]),
    ("a question as context", &["context", "ID"]),
    ("a question that is resumed", &["resume", "ID"]),
    ("the name of a skill's file", &["skills", "list"]),
    ("the name of a file in the workspace", &["undo", "ID", "--list"]),
    ("a name that is not there", &["sessions", "show", "HOSTILE"]),
    ("a request that is not there", &["approve", "HOSTILE"]),
    ("a setting that is not there", &["config", "get", "HOSTILE"]),
    ("a model that is not there", &["run", "--model", "HOSTILE", "x"]),
    ("a profile that is not there", &["--profile", "HOSTILE", "sessions", "list"]),
    ("a file to import", &["sessions", "import", "HOSTILE"]),
    ("an answer", &["answer", "QUESTION", "HOSTILE"]),
    ("an answer in the list", &["approvals", "--all"]),
    ("the value of a setting", &["config", "show"]),
    ("the value of a setting, looked after", &["doctor"]),
];

#[test]
fn questions_names_and_settings_are_text_in_every_command() {
    let world = world();
    let skill = world.workspace().join(".agents/skills/x\u{1b}[2J\u{202e}FORGED");
    std::fs::create_dir_all(&skill).unwrap();
    std::fs::write(
        skill.join("SKILL.md"),
        format!("---\nname: x\ndescription: {HOSTILE:?}\n---\n"),
    )
    .unwrap();
    world.configure_more(
        "\n[profiles.\"x\\u001b[2J\\u202eFORGED\"]\nmodel = \"\\u001b[2JFORGED\"\n",
    );
    let id = world.run(&["run", "--json", "quizzical"]).ended_with(3).session();
    let list = world.run(&["approvals", "--json"]).ended_with(0);
    let list: serde_json::Value = serde_json::from_str(&list.stdout).unwrap();
    let question = list["questions"][0]["id"].as_str().unwrap().to_owned();
    for (source, words) in CELLS {
        let meant = |word: &&'static str| match *word {
            "ID" => id.clone(),
            "QUESTION" => question.clone(),
            "HOSTILE" => HOSTILE.to_owned(),
            word => word.to_owned(),
        };
        let words: Vec<String> = words.iter().map(meant).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let text = shown(&world, &words);
        let typed = words.contains(&HOSTILE);
        assert!(typed || forged_lines(&text).is_empty(), "{source}, {words:?}:\n{text}");
    }
}
