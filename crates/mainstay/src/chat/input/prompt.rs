//! A question to the person at the terminal: the policy's, with deny as the default, or the model's.

use crossterm::event::{KeyCode, KeyModifiers};
use mainstay_agent::{Friction, Question, Request, Verdict};
use serde_json::Value;

use crate::chat::input::editor::{Editor, Motion};
use crate::chat::render::calls::changed;
use crate::chat::render::text::{Colour, Line, Style, Wrap};
use crate::plain_text::clean;
use crate::wording;

/// Keys that were pressed before a question could be read are no answer to it.
const TOO_SOON: u64 = 500;
/// So many rows of an action are shown; a longer one is shown whole above.
const ACTION_ROWS: usize = 12;
/// So many lines of what it would write.
const CHANGE_ROWS: usize = 8;

/// A question that waits for an answer.
pub(crate) struct Prompt {
    kind: PromptKind,
    /// When it appeared, on the screen's clock.
    since: u64,
    stage: Stage,
    reply: Editor,
}

/// Who asks.
enum PromptKind {
    Policy(Request),
    Model(Question),
}

/// What the next key means.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    /// It chooses.
    Choosing,
    /// It is a letter of the word that makes this verdict count.
    Word(Verdict),
    /// It is a letter of the reason for a no.
    Reason,
    /// It is a letter of the answer.
    Answer,
}

/// What a key made of the question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Verdict(Verdict),
    Words(String),
}

impl Prompt {
    pub(crate) fn policy(request: Request, now: u64) -> Self {
        let kind = PromptKind::Policy(request);
        Self { kind, since: now, stage: Stage::Choosing, reply: Editor::default() }
    }

    pub(crate) fn model(question: Question, now: u64) -> Self {
        let kind = PromptKind::Model(question);
        Self { kind, since: now, stage: Stage::Answer, reply: Editor::default() }
    }

    /// What stays above: what was asked, and what was answered.
    pub(crate) fn answered(&self, reply: &Reply) -> Vec<Line> {
        let asked = match &self.kind {
            PromptKind::Policy(request) => wording::wants(request),
            PromptKind::Model(question) => question.text.clone(),
        };
        let (mark, said) = match reply {
            Reply::Verdict(Verdict::Once) => ("✓", "allowed once".to_owned()),
            Reply::Verdict(Verdict::Session) => ("✓", "allowed for this session".to_owned()),
            Reply::Verdict(Verdict::Always) => ("✓", "always allowed".to_owned()),
            Reply::Verdict(Verdict::Deny { reason: None }) => ("✗", "denied".to_owned()),
            Reply::Verdict(Verdict::Deny { reason: Some(reason) }) => {
                ("✗", format!("denied: {reason}"))
            }
            Reply::Words(words) => ("›", words.clone()),
        };
        let mut lines = Vec::new();
        for (number, line) in clean(&asked).lines().enumerate() {
            let mark = if number == 0 { "? " } else { "  " };
            let line = Line::styled(mark, Style::of(Colour::Yellow)).and(line, Style::PLAIN);
            lines.push(line.hanging("  ", Style::PLAIN));
        }
        lines.push(Line::styled(&format!("  {mark} {}", clean(&said)), Style::BOLD));
        lines
    }

    /// What a key does; an answer, where it is one.
    pub(crate) fn key(
        &mut self,
        code: KeyCode,
        modifiers: KeyModifiers,
        now: u64,
    ) -> Option<Reply> {
        let letters = !modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        if self.stage == Stage::Choosing {
            if self.is_too_soon(now) {
                return None;
            }
            return match code {
                KeyCode::Char('y') if letters => self.yes(Verdict::Once),
                KeyCode::Char('s') if letters && self.always().is_some() => {
                    self.yes(Verdict::Session)
                }
                KeyCode::Char('a') if letters && self.always().is_some() => {
                    self.yes(Verdict::Always)
                }
                KeyCode::Char('r') if letters => {
                    self.stage = Stage::Reason;
                    None
                }
                KeyCode::Char('n') if letters => Some(deny(None)),
                KeyCode::Enter | KeyCode::Esc => Some(deny(None)),
                _ => None,
            };
        }
        match code {
            KeyCode::Enter => return self.finished(),
            KeyCode::Esc => {
                self.reply.set("");
                match self.stage {
                    Stage::Word(_) => return Some(deny(None)),
                    Stage::Reason => self.stage = Stage::Choosing,
                    _ => {}
                }
            }
            KeyCode::Char(letter) if letters => self.reply.insert(letter.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace => self.reply.remove(Motion::Left),
            KeyCode::Delete => self.reply.remove(Motion::Right),
            KeyCode::Left => self.reply.go(Motion::Left),
            KeyCode::Right => self.reply.go(Motion::Right),
            KeyCode::Home => self.reply.go(Motion::Start),
            KeyCode::End => self.reply.go(Motion::End),
            KeyCode::Char('u') => self.reply.remove(Motion::Start),
            KeyCode::Char('w') => self.reply.remove(Motion::WordLeft),
            _ => {}
        }
        None
    }

    fn is_too_soon(&self, now: u64) -> bool {
        now.saturating_sub(self.since) < TOO_SOON
    }

    /// Takes a paste in where words are wanted; a choice is made by a key.
    pub(crate) fn paste(&mut self, text: &str) {
        if self.stage != Stage::Choosing && !matches!(self.stage, Stage::Word(_)) {
            self.reply.paste_in(text);
        }
    }

    fn yes(&mut self, verdict: Verdict) -> Option<Reply> {
        let PromptKind::Policy(Request { friction, .. }) = &self.kind else { return None };
        match friction {
            Friction::Key => Some(Reply::Verdict(verdict)),
            Friction::Word { .. } => {
                self.stage = Stage::Word(verdict);
                None
            }
        }
    }

    fn finished(&mut self) -> Option<Reply> {
        let words = self.reply.take();
        let words = words.trim();
        match &self.stage {
            Stage::Choosing => None,
            Stage::Word(verdict) if words == Friction::WORD => {
                Some(Reply::Verdict(verdict.clone()))
            }
            Stage::Word(_) => Some(deny(None)),
            Stage::Reason => Some(deny((!words.is_empty()).then(|| words.to_owned()))),
            Stage::Answer if words.is_empty() => None,
            Stage::Answer => Some(Reply::Words(self.choice(words))),
        }
    }

    /// A number stands for the choice with that number.
    fn choice(&self, words: &str) -> String {
        match &self.kind {
            PromptKind::Model(question) => question.meant(words).to_owned(),
            PromptKind::Policy(_) => words.to_owned(),
        }
    }

    fn always(&self) -> Option<&str> {
        match &self.kind {
            PromptKind::Policy(request) => request.always.as_deref(),
            PromptKind::Model(_) => None,
        }
    }

    /// The rows of the question and its keys, and the cursor where words are wanted.
    pub(crate) fn rows(&self, width: usize, now: u64) -> (Vec<Line>, Option<(usize, usize)>) {
        let mut lines = Vec::new();
        match &self.kind {
            PromptKind::Policy(request) => self.policy_lines(request, now, &mut lines),
            PromptKind::Model(question) => {
                for (number, line) in clean(&question.text).lines().enumerate() {
                    let mark = if number == 0 { "? " } else { "  " };
                    let line = Line::styled(mark, Style::of(Colour::Yellow)).and(line, Style::BOLD);
                    lines.push(line.hanging("  ", Style::PLAIN));
                }
                for (number, choice) in question.choices.iter().enumerate() {
                    let line = format!("  {}. {}", number + 1, clean(choice));
                    lines.push(Line::plain(&line).hanging("     ", Style::PLAIN));
                }
            }
        }
        let mut rows: Vec<Line> = lines.iter().flat_map(|line| line.rows(width)).collect();
        if self.stage == Stage::Choosing {
            return (rows, None);
        }
        let (reply, (row, column)) = self.reply.rows(width);
        let cursor = (rows.len() + row, column);
        rows.extend(reply);
        (rows, Some(cursor))
    }

    fn policy_lines(&self, request: &Request, now: u64, lines: &mut Vec<Line>) {
        let mark = Style::of(Colour::Yellow).strong();
        let wants = wording::wants(request);
        let mut action = wants.lines();
        let first = action.next().unwrap_or_default();
        lines.push(Line::styled("? ", mark).and(first, Style::BOLD).hanging("  ", Style::PLAIN));
        let rest: Vec<&str> = action.collect();
        for line in rest.iter().take(ACTION_ROWS) {
            lines.push(Line::styled(&format!("  {line}"), Style::BOLD).hanging("  ", Style::PLAIN));
        }
        if rest.len() > ACTION_ROWS {
            let more = rest.len() - ACTION_ROWS;
            lines.push(Line::dim(&format!("  … {more} more lines (Ctrl-O shows them)")));
        }
        let change = change(&request.arguments);
        lines.extend(change.iter().take(CHANGE_ROWS).cloned());
        if change.len() > CHANGE_ROWS {
            let more = change.len() - CHANGE_ROWS;
            lines.push(Line::dim(&format!("  … {more} more lines (Ctrl-O shows them)")));
        }
        if let Some(reason) = &request.reason {
            lines
                .push(Line::dim(&format!("  because {}", clean(reason))).hanging("  ", Style::DIM));
        }
        match &self.stage {
            // What is not heard yet is not offered yet.
            Stage::Choosing if self.is_too_soon(now) => lines.push(Line::dim("  …")),
            Stage::Choosing => {
                lines.push(
                    Line::plain("  ")
                        .and("[Enter] deny", Style::BOLD)
                        .and("  [y] once", Style::PLAIN)
                        .and(
                            if request.always.is_some() { "  [s] session  [a] always" } else { "" },
                            Style::PLAIN,
                        )
                        .and("  [r] say why not", Style::PLAIN)
                        .hanging("  ", Style::PLAIN),
                );
                if let Some(always) = &request.always {
                    let line = format!("  session or always: {}", clean(always));
                    lines.push(Line::dim(&line).hanging("  ", Style::DIM));
                }
            }
            Stage::Word(_) => {
                let because = request.friction.because().unwrap_or_default();
                let line = format!("  Type {} and Enter, because {because}.", Friction::WORD);
                lines.push(Line::plain(&line).hanging("  ", Style::PLAIN));
            }
            Stage::Reason => lines.push(Line::plain("  Why not? The model will read it.")),
            Stage::Answer => {}
        }
    }

    /// All that is asked, for whoever wants to read it before answering.
    pub(crate) fn whole(&self) -> Vec<Line> {
        let text = match &self.kind {
            PromptKind::Policy(request) => &request.action,
            PromptKind::Model(question) => &question.text,
        };
        let mut lines: Vec<Line> =
            clean(text).lines().map(|line| Line::plain(&format!("  {line}"))).collect();
        if let PromptKind::Policy(request) = &self.kind {
            lines.extend(change(&request.arguments));
        }
        lines
    }
}

/// What a call would write, as far as its arguments say it.
fn change(arguments: &Value) -> Vec<Line> {
    let part = |name: &str, mark: &str| {
        let text = arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        let lines = clean(text);
        lines.lines().map(|line| changed(&format!("{mark}{line}"))).collect::<Vec<_>>()
    };
    [("patch", ""), ("old", "-"), ("new", "+"), ("content", "+")]
        .iter()
        .flat_map(|(name, mark)| part(name, mark))
        .map(|mut line| {
            line.wrap = Wrap::Words;
            line.hanging("    ", Style::PLAIN)
        })
        .collect()
}

fn deny(reason: Option<String>) -> Reply {
    Reply::Verdict(Verdict::Deny { reason })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use mainstay_agent::policy::ActionClass;
    use mainstay_journal::{CallId, SessionId, TurnId};
    use mainstay_store::Id;

    pub(crate) fn request(action: &str, friction: Friction) -> Request {
        Request {
            id: Id::new(),
            session: SessionId::new(),
            turn: TurnId::new(),
            call: CallId::new(),
            tool: "shell".to_owned(),
            class: ActionClass::Execute,
            arguments: "{}".into(),
            action: action.to_owned(),
            reason: Some("it deletes files".to_owned()),
            always: Some("the command `rm`".to_owned()),
            friction,
            asked_at: 0,
            expires_at: 0,
        }
    }

    fn typed(prompt: &mut Prompt, keys: &[KeyCode]) -> Option<Reply> {
        keys.iter().fold(None, |_, code| prompt.key(*code, KeyModifiers::NONE, 10_000))
    }

    fn letters(word: &str) -> Vec<KeyCode> {
        word.chars().map(KeyCode::Char).collect()
    }

    #[test]
    fn deny_is_the_default_and_yes_is_a_key() {
        let fresh = || Prompt::policy(request("to run `rm -r x`", Friction::Key), 0);
        for key in [KeyCode::Enter, KeyCode::Esc, KeyCode::Char('n')] {
            assert_eq!(typed(&mut fresh(), &[key]), Some(deny(None)), "{key:?}");
        }
        let once = Some(Reply::Verdict(Verdict::Once));
        assert_eq!(typed(&mut fresh(), &letters("y")), once);
        assert_eq!(typed(&mut fresh(), &letters("a")), Some(Reply::Verdict(Verdict::Always)));
        for key in [KeyCode::Char('Y'), KeyCode::Char(' '), KeyCode::Tab, KeyCode::Up] {
            assert_eq!(typed(&mut fresh(), &[key]), None, "{key:?}");
        }
        let mut prompt = fresh();
        typed(&mut prompt, &letters("rnot now"));
        assert_eq!(typed(&mut prompt, &[KeyCode::Enter]), Some(deny(Some("not now".into()))));
    }

    #[test]
    fn what_would_be_written_is_shown_before_it_is() {
        let mut request = request("to change a.txt", Friction::Key);
        let new: String = (0..20).map(|line| format!("line {line}\n")).collect();
        request.arguments = serde_json::json!({ "path": "a.txt", "old": "x\ny", "new": new });
        let prompt = Prompt::policy(request, 0);
        let (rows, _) = prompt.rows(60, 10_000);
        let shown: Vec<String> = rows.iter().map(Line::text).collect();
        assert_eq!(shown[1..4], ["  -x", "  -y", "  +line 0"]);
        assert!(shown.contains(&"  … 14 more lines (Ctrl-O shows them)".to_owned()), "{shown:?}");
        assert_eq!(prompt.whole().len(), 1 + 2 + 20);
    }

    #[test]
    fn a_key_on_its_way_when_the_question_appears_is_no_answer() {
        let mut prompt = Prompt::policy(request("to run `ls`", Friction::Key), 1_000);
        assert_eq!(prompt.key(KeyCode::Char('y'), KeyModifiers::NONE, 1_100), None);
        assert_eq!(prompt.key(KeyCode::Enter, KeyModifiers::NONE, 1_400), None);
        assert!(prompt.key(KeyCode::Enter, KeyModifiers::NONE, 1_600).is_some());
    }

    #[test]
    fn where_a_key_is_not_enough_the_word_is_typed() {
        let because = "this is the fourth within a minute".to_owned();
        let fresh = || {
            Prompt::policy(request("to run `ls`", Friction::Word { because: because.clone() }), 0)
        };
        let mut prompt = fresh();
        assert_eq!(typed(&mut prompt, &letters("y")), None);
        typed(&mut prompt, &letters("yes"));
        assert_eq!(typed(&mut prompt, &[KeyCode::Enter]), Some(Reply::Verdict(Verdict::Once)));
        let mut prompt = fresh();
        typed(&mut prompt, &letters("yye"));
        assert_eq!(typed(&mut prompt, &[KeyCode::Enter]), Some(deny(None)));
    }

    #[test]
    fn where_there_is_no_always_its_key_does_nothing() {
        let mut request = request("to run `ls`", Friction::Key);
        request.always = None;
        let mut prompt = Prompt::policy(request, 0);
        assert_eq!(typed(&mut prompt, &letters("a")), None);
    }

    #[test]
    fn a_number_answers_with_its_choice() {
        let question = Question {
            id: Id::new(),
            session: SessionId::new(),
            turn: TurnId::new(),
            call: CallId::new(),
            text: "Which one?".into(),
            choices: vec!["red".into(), "blue".into()],
            asked_at: 0,
        };
        let mut prompt = Prompt::model(question.clone(), 0);
        typed(&mut prompt, &letters("2"));
        assert_eq!(typed(&mut prompt, &[KeyCode::Enter]), Some(Reply::Words("blue".into())));
        let mut prompt = Prompt::model(question, 0);
        assert_eq!(typed(&mut prompt, &[KeyCode::Enter]), None);
        typed(&mut prompt, &letters("green"));
        assert_eq!(typed(&mut prompt, &[KeyCode::Enter]), Some(Reply::Words("green".into())));
    }
}
