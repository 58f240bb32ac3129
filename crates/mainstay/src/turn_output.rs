//! What is told of a turn: the answer to standard output, everything else to standard error; or
//! every event as one line of JSON.

use std::io::{self, IsTerminal};

use mainstay_agent::skills;
use mainstay_agent::{Event, Question, Request, TurnEnding, TurnReport};
use mainstay_journal::turn::{BudgetLimit, BudgetScope, Outcome, ParkReason};
use mainstay_message::Usage;
use serde_json::{Value, json};

use crate::chat::render::calls::brief;
use crate::error::Error;
use crate::paths::Paths;
use crate::plain_text::{printable, printable_json};
use crate::{outlet, printing, redaction, wording};

/// Tells a turn.
pub(crate) struct TurnOutput {
    json: bool,
    /// Whether somebody watches: progress is for people.
    watched: bool,
    session: String,
    /// What a parked turn waits for.
    requests: Vec<Request>,
    questions: Vec<Question>,
    /// Whether a skill was proposed.
    proposed: bool,
    /// Whether the last event was told.
    over: bool,
}

impl TurnOutput {
    /// Tells in JSON, or in words.
    pub(crate) fn new(json: bool) -> Self {
        let watched = !json && io::stderr().is_terminal();
        Self {
            json,
            watched,
            session: String::new(),
            requests: Vec::new(),
            questions: Vec::new(),
            proposed: false,
            over: false,
        }
    }

    /// Tells one event.
    pub(crate) fn event(&mut self, event: &Event) {
        if let Event::Session { id, .. } = event {
            self.session.clone_from(id);
        }
        if let Event::Parked { requests, questions, .. } = event {
            self.requests.clone_from(requests);
            self.questions.clone_from(questions);
        }
        self.proposed |= matches!(
            event,
            Event::ToolResult { name, failed: false, .. } if name == skills::PROPOSE
        );
        self.over |= matches!(event, Event::End { .. });
        if self.json {
            if let Ok(line) = serde_json::to_string(event) {
                self.print_line(&line, matches!(event, Event::End { .. }));
            }
            return;
        }
        match event {
            Event::ToolCall { name, arguments, .. } if self.watched => {
                say(&format!("> {name} {}", first_line(&brief(name, arguments))));
            }
            Event::ToolResult { text, failed, .. } if self.watched => {
                let mark = if *failed { "failed: " } else { "" };
                say(&format!("  {mark}{}", first_line(text)));
            }
            Event::Recalled { memories } if self.watched => say(&wording::recalled(memories)),
            Event::Compacting { tokens, .. } if self.watched => {
                say(&format!("note: {}", wording::compacting(*tokens)));
            }
            Event::Compacted { before, after, summarised, .. } => {
                say(&format!("note: {}", wording::compacted(*before, *after, *summarised)));
            }
            Event::Notice { message, .. } => say(&format!("note: {}", wording::line(message))),
            _ => {}
        }
    }

    /// Tells how the turn ended: the answer, or what to do next.
    pub(crate) fn ended(&self, ended: &TurnReport, paths: &Paths) {
        if self.json {
            return;
        }
        if self.proposed {
            let look = paths.command("skills proposals");
            say(&format!("note: a skill was proposed; review it with `{look}`"));
        }
        let resume = paths.command(&format!("resume {}", self.session));
        match &ended.ending {
            TurnEnding::Over(Outcome::Answered, _) => {
                print_answer(&ended.answer);
                if self.watched {
                    let next = paths.command(&format!("run --session {} …", self.session));
                    say(&format!("({}; continue with: {next})", spent(ended)));
                }
            }
            TurnEnding::Over(Outcome::Cancelled, None) => say("stopped; what was done is saved"),
            TurnEnding::Over(Outcome::Cancelled, Some(reason)) => {
                say(&format!("stopped; what was done is saved: {}", one_line(reason)));
            }
            TurnEnding::Over(how, reason) => {
                let reason = reason.as_deref().unwrap_or(how.as_str());
                say(&format!("error: {}", one_line(reason)));
                say(&format!("hint: Everything so far is saved. Continue with `{resume}`."));
            }
            TurnEnding::Parked(parked) => {
                let resume_at = parked.reason.resume_at();
                let when =
                    resume_at.map(|at| format!(" until {}", wording::time(at))).unwrap_or_default();
                say(&format!("parked{when}: {}", one_line(&parked.text)));
                for hint in self.ways_on(&parked.reason, paths, &resume) {
                    say(&format!("hint: {hint}"));
                }
            }
        }
    }

    /// What lets a parked turn go on.
    fn ways_on(&self, reason: &ParkReason, paths: &Paths, resume: &str) -> Vec<String> {
        let mut ways = Vec::new();
        for request in &self.requests {
            let which = match self.requests.len() {
                1 => String::new(),
                _ => format!("{}. ", wording::line(&wording::wants(request))),
            };
            ways.push(format!(
                "{which}Allow it: `{}`; refuse it: `{}`.",
                paths.command(&format!("approve {}", request.id)),
                paths.command(&format!("deny {}", request.id))
            ));
        }
        for question in &self.questions {
            let answer = paths.command(&format!("answer {} TEXT", question.id));
            let choices = match question.choices.as_slice() {
                [] => String::new(),
                choices => {
                    let choices: Vec<String> =
                        choices.iter().map(|choice| one_line(choice)).collect();
                    format!(" ({})", choices.join(", "))
                }
            };
            ways.push(format!("Answer{choices}: `{answer}`."));
        }
        ways.push(match (ways.len(), reason.root()) {
            (0, ParkReason::Budget { scope: BudgetScope::Turn, limit: BudgetLimit::Money }) => {
                format!("Raise the budget: `{resume} --budget USD`.")
            }
            (0, ParkReason::Budget { scope, limit }) => {
                let setting = match (scope, limit) {
                    (BudgetScope::Turn, BudgetLimit::Tokens) => "turn_tokens",
                    (BudgetScope::Turn, BudgetLimit::Calls) => "turn_calls",
                    (BudgetScope::Turn, BudgetLimit::Money) => "turn_usd",
                    (BudgetScope::Session, _) => "session_usd",
                    (BudgetScope::Day, BudgetLimit::Calls) => "day_calls",
                    (BudgetScope::Day, BudgetLimit::Money | BudgetLimit::Tokens) => "day_usd",
                };
                let tomorrow = match scope {
                    BudgetScope::Day => ", or wait for tomorrow",
                    BudgetScope::Turn | BudgetScope::Session => "",
                };
                format!("Raise `budget.{setting}` in config.toml{tomorrow}, then run `{resume}`.")
            }
            (
                0,
                ParkReason::Approval
                | ParkReason::Answer
                | ParkReason::Provider { .. }
                | ParkReason::TurnTime
                | ParkReason::Child { .. }
                | ParkReason::Unrecorded,
            ) => format!("Continue with `{resume}`."),
            _ if self.requests.is_empty() => format!("Then continue with `{resume}`."),
            _ => format!("Then continue with `{resume}`; add --yes to allow everything else too."),
        });
        ways
    }

    /// Says something besides; in JSON there is nothing to say.
    pub(crate) fn aside(&self, words: &str) {
        if !self.json {
            say(words);
        }
    }

    /// Tells that there was no turn to tell of, and why.
    pub(crate) fn no_turn(&mut self, outcome: &str, reason: &str) {
        self.aside(reason);
        self.end(&json!({ "outcome": outcome, "reason": reason }));
    }

    /// Tells an error that came before or instead of an ending: in words, and as the last event.
    pub(crate) fn error(&mut self, error: &Error) {
        say(&format!("error: {}", error.message));
        for hint in &error.hints {
            say(&format!("hint: {hint}"));
        }
        self.error_as_event(error);
    }

    /// Tells an error whose words were said already.
    pub(crate) fn error_as_event(&mut self, error: &Error) {
        let Error { kind, message, hints } = error;
        self.end(&json!({
            "outcome": "failed",
            "reason": message,
            "error": { "kind": kind, "message": message, "hints": hints },
        }));
    }

    /// Tells the last event, unless one was told.
    fn end(&mut self, more: &Value) {
        if !self.json || std::mem::replace(&mut self.over, true) {
            return;
        }
        let mut event =
            json!({ "type": "end", "answer": "", "usage": Usage::default(), "cost": 0.0 });
        if let (Some(event), Some(more)) = (event.as_object_mut(), more.as_object()) {
            event.extend(more.clone());
        }
        self.print_line(&event.to_string(), true);
    }

    /// Prints an event. A reader that has seen enough, or is behind, is no reason to stop: the work is
    /// recorded. The last event is not left out.
    fn print_line(&self, line: &str, last: bool) {
        let line = format!("{}\n", printable_json(&redaction::shared().text(line)));
        let session = &self.session;
        let told = |missed: u64| {
            let message = format!(
                "{missed} events were left out, because nobody read them; `mainstay sessions show \
                 {session}` has all of it"
            );
            let event = Event::Notice { about: "behind", message, void: false };
            let mut line = serde_json::to_vec(&event).unwrap_or_default();
            line.push(b'\n');
            line
        };
        if last {
            outlet::stdout().put_always(line.as_bytes(), told);
        } else {
            outlet::stdout().put(line.as_bytes(), told);
        }
    }
}

fn spent(ended: &TurnReport) -> String {
    let tokens = ended.usage.total();
    match ended.cost {
        0 => format!("{tokens} tokens"),
        cost => format!("{tokens} tokens, {}", mainstay_agent::budget::dollars(cost)),
    }
}

fn first_line(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let mut shown: String = line.chars().filter(|letter| !letter.is_control()).take(120).collect();
    if shown.len() < line.len() {
        shown.push_str(" …");
    }
    shown
}

/// Prints the answer, with a line end after it.
fn print_answer(answer: &str) {
    outlet::stderr().settle();
    let mut answer = printing::shown(answer);
    if !answer.ends_with('\n') {
        answer.push('\n');
    }
    // Nothing comes before it that could be missed.
    outlet::stdout().put_always(answer.as_bytes(), |_| Vec::new());
}

/// Says a line to standard error, after what was printed before it.
fn say(line: &str) {
    outlet::stdout().settle();
    let line = format!("{}\n", printing::shown(line));
    outlet::stderr().put(line.as_bytes(), |missed| {
        format!("note: {missed} lines were not shown, because nobody read them\n").into_bytes()
    });
}

/// What others wrote, in one line. A sequence that it begins takes up none of our words behind it.
fn one_line(text: &str) -> String {
    printable(&wording::unbroken(text)).into_owned()
}

#[cfg(test)]
mod tests {
    use mainstay_agent::Friction;
    use mainstay_journal::{CallId, SessionId, TurnId};
    use mainstay_store::Id;

    use super::*;
    use crate::chat::input::prompt::tests::request;
    use crate::paths::Globals;

    fn parked(
        requests: Vec<Request>,
        questions: Vec<Question>,
        reason: &ParkReason,
    ) -> Vec<String> {
        let globals = Globals { home: Some("/h".into()), ..Globals::default() };
        let paths = Paths::resolve(&globals).unwrap();
        let output = TurnOutput { requests, questions, ..TurnOutput::new(false) };
        output.ways_on(reason, &paths, "mainstay --home /h resume X")
    }

    #[test]
    fn a_request_is_decided_by_a_command_that_can_be_pasted() {
        let one = request("to run `ls`", Friction::Key);
        let id = one.id;
        assert_eq!(
            parked(vec![one], Vec::new(), &ParkReason::Approval),
            [
                format!(
                    "Allow it: `mainstay --home /h approve {id}`; refuse it: `mainstay --home /h \
                     deny {id}`."
                ),
                "Then continue with `mainstay --home /h resume X`; add --yes to allow everything \
                 else too."
                    .to_owned(),
            ]
        );
    }

    #[test]
    fn several_requests_are_told_apart_by_what_they_want() {
        let requests = vec![
            request("to run `ls`", Friction::Key),
            request("to run `rm`\n`rm again`\u{1b}[2J", Friction::Key),
        ];
        let hints = parked(requests, Vec::new(), &ParkReason::Approval);
        assert_eq!(hints.len(), 3);
        assert!(hints[0].starts_with("shell wants to run `ls`. Allow it: `"), "{hints:?}");
        assert!(hints[1].starts_with("shell wants to run `rm`; `rm again`"), "{hints:?}");
        assert!(!hints[1].contains('\u{1b}'), "{hints:?}");
    }

    #[test]
    fn a_question_is_answered_and_names_its_choices() {
        let question = Question {
            id: Id::new(),
            session: SessionId::new(),
            turn: TurnId::new(),
            call: CallId::new(),
            text: "Which colour?".to_owned(),
            choices: vec!["red".to_owned(), "blue".to_owned()],
            asked_at: 0,
        };
        let id = question.id;
        assert_eq!(
            parked(Vec::new(), vec![question], &ParkReason::Answer),
            [
                format!("Answer (red, blue): `mainstay --home /h answer {id} TEXT`."),
                "Then continue with `mainstay --home /h resume X`.".to_owned(),
            ]
        );
    }

    #[test]
    fn without_a_question_the_turn_is_continued_or_given_more_money() {
        let hints = |reason: ParkReason| parked(Vec::new(), Vec::new(), &reason).join(" ");
        let budget = |scope| ParkReason::Budget { scope, limit: BudgetLimit::Money };
        let child = |because: ParkReason| ParkReason::Child {
            session: SessionId::new(),
            because: Some(Box::new(because)),
        };
        let go_on = "Continue with `mainstay --home /h resume X`.";
        assert_eq!(hints(ParkReason::Provider { until: 5 }), go_on);
        assert_eq!(hints(ParkReason::TurnTime), go_on);
        assert_eq!(hints(child(ParkReason::TurnTime)), go_on);
        let more = "Raise the budget: `mainstay --home /h resume X --budget USD`.";
        assert_eq!(hints(budget(BudgetScope::Turn)), more);
        assert_eq!(hints(child(budget(BudgetScope::Turn))), more);
        assert!(hints(budget(BudgetScope::Session)).contains("budget.session_usd"));
        assert!(hints(budget(BudgetScope::Day)).contains("budget.day_usd"));
        let calls = |scope| ParkReason::Budget { scope, limit: BudgetLimit::Calls };
        assert!(hints(calls(BudgetScope::Turn)).contains("budget.turn_calls"));
        assert!(hints(calls(BudgetScope::Day)).contains("budget.day_calls"));
    }

    #[test]
    fn a_call_is_one_line_whatever_it_holds() {
        let line = |arguments: &Value| first_line(&brief("shell", arguments));
        assert_eq!(line(&json!({ "command": "\nls\nrm" })), "ls …");
        assert_eq!(line(&json!({ "x": 1 })), "{\"x\":1}");
        assert!(!line(&json!({ "command": "a\u{1b}[2J" })).contains('\u{1b}'));
        assert!(first_line(&"x".repeat(500)).chars().count() < 130);
    }
}
