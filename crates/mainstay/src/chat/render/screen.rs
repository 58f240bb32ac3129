//! What the chat shows, as a pure state: events and keys go in, lines to print and a picture of the
//! rows at the bottom come out.

use std::collections::VecDeque;

use mainstay_agent::{Event, Question, Request};

use crate::chat::input::completion::{Menu, Vocabulary};
use crate::chat::input::editor::Editor;
use crate::chat::input::history::History;
use crate::chat::input::prompt::{Prompt, Reply};
use crate::chat::render::calls::Call;
use crate::chat::render::status::{Status, tokens};
use crate::chat::render::stream::Stream;
use crate::chat::render::text::{Colour, Line, Style};
use crate::plain_text::clean;
use crate::wording;

/// The state of the chat.
pub(crate) struct Screen {
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// Milliseconds since the chat began.
    pub(crate) now: u64,
    /// What is finished and not printed yet.
    above: Vec<Line>,
    /// What was printed last, for the blank lines between blocks.
    pub(crate) block: Block,
    pub(crate) editor: Editor,
    pub(crate) history: History,
    pub(crate) vocabulary: Vocabulary,
    pub(crate) menu: Option<Menu>,
    /// Whether a menu is unwanted until the next word.
    pub(crate) menu_closed: bool,
    pub(crate) stream: Stream,
    pub(crate) thoughts: String,
    pub(crate) calls: Vec<Call>,
    /// The last call that shows less than came of it, for whoever wants to see all.
    done: Option<(Call, String)>,
    pub(crate) phase: Phase,
    /// What was sent and is not recorded yet.
    pub(crate) sending: Option<String>,
    /// What is sent when the turn has its answer.
    pub(crate) queue: VecDeque<String>,
    /// What the turn is to hear and has not heard yet.
    pub(crate) steering: VecDeque<String>,
    pub(crate) prompt: Option<Prompt>,
    pub(crate) status: Status,
    /// A word on what a key did.
    pub(crate) hint: Option<String>,
    /// Whether the next Ctrl-C leaves.
    pub(crate) leaving: bool,
}

/// What goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Idle,
    Working {
        since: u64,
    },
    /// Somebody pressed Ctrl-C.
    Stopping {
        since: u64,
    },
}

/// What a block of lines is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    Nothing,
    User,
    Words,
    Call,
    Note,
}

/// So many lines of a message of the user are shown.
const MESSAGE_LINES: usize = 12;

impl Screen {
    pub(crate) fn new(width: usize, height: usize, history: History) -> Self {
        Self {
            width,
            height,
            now: 0,
            above: Vec::new(),
            block: Block::Nothing,
            editor: Editor::default(),
            history,
            vocabulary: Vocabulary::default(),
            menu: None,
            menu_closed: false,
            stream: Stream::default(),
            thoughts: String::new(),
            calls: Vec::new(),
            done: None,
            phase: Phase::Idle,
            sending: None,
            queue: VecDeque::new(),
            steering: VecDeque::new(),
            prompt: None,
            status: Status::default(),
            hint: None,
            leaving: false,
        }
    }

    /// Time passed.
    pub(crate) fn tick(&mut self, now: u64) {
        self.now = now;
    }

    pub(crate) fn resized(&mut self, width: usize, height: usize) {
        self.width = width;
        self.height = height;
    }

    /// What is to be printed, once.
    pub(crate) fn take_above(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.above)
    }

    /// Whether a turn goes on.
    pub(crate) fn is_working(&self) -> bool {
        self.phase != Phase::Idle
    }

    /// Whether something moves by itself.
    pub(crate) fn is_moving(&self) -> bool {
        self.is_working() || self.sending.is_some()
    }

    /// A turn is about to begin, with words of the user or without.
    pub(crate) fn begin(&mut self, sending: Option<String>) {
        self.sending = sending;
        self.phase = Phase::Working { since: self.now };
        self.hint = None;
    }

    /// The turn is stopped.
    pub(crate) fn stop(&mut self) {
        if let Phase::Working { since } = self.phase {
            self.phase = Phase::Stopping { since };
        }
    }

    /// No turn goes on any more; an error says why it could not. What was not recorded is back in
    /// the editor, and so is what was not sent, unless the turn has its answer.
    pub(crate) fn ended(&mut self, answered: bool) {
        self.end_answer_text();
        self.phase = Phase::Idle;
        self.calls.clear();
        self.prompt = None;
        self.leaving = false;
        let unheard = std::mem::take(&mut self.steering);
        for words in unheard.into_iter().rev() {
            self.queue.push_front(words);
        }
        let mut back: Vec<String> = self.sending.take().into_iter().collect();
        if !answered {
            back.extend(self.queue.drain(..));
        }
        if !back.is_empty() {
            if !self.editor.is_empty() {
                back.push(self.editor.take());
            }
            self.editor.set(&back.join("\n"));
        }
    }

    /// Puts back into the editor what was to be heard last.
    pub(crate) fn take_steering_back(&mut self) {
        if let Some(words) = self.steering.pop_back() {
            self.editor.set(&words);
        }
    }

    /// The next of what is queued.
    pub(crate) fn next_queued(&mut self) -> Option<String> {
        self.queue.pop_front()
    }

    /// Takes an event of the turn in.
    pub(crate) fn event(&mut self, event: &Event) {
        match event {
            Event::Session { .. } => {}
            Event::Turn { resumed, .. } => {
                if let Some(words) = self.sending.take() {
                    self.user(&words);
                } else if *resumed {
                    self.note("Continuing the interrupted turn");
                }
            }
            Event::Text { delta } => self.add_answer_text(delta),
            Event::Reasoning { delta } => {
                self.thoughts.push_str(delta);
                // Only its end is shown.
                if self.thoughts.len() > 8_000 {
                    let cut = self.thoughts.floor_char_boundary(self.thoughts.len() - 4_000);
                    self.thoughts.drain(..cut);
                }
            }
            Event::Answer { model, usage, cost } => {
                self.end_answer_text();
                self.status.model.clone_from(model);
                if usage.total() > 0 {
                    self.status.context = usage.total();
                }
                #[expect(clippy::cast_possible_truncation, reason = "it is for reading")]
                let micros = (cost * 1e6).round() as i64;
                self.status.cost += micros;
            }
            Event::Steered { text } => {
                self.steering.pop_front();
                self.user(text);
            }
            Event::Recalled { memories } => {
                // They are recorded with the user's words.
                if let Some(words) = self.sending.take() {
                    self.user(&words);
                }
                self.note(&wording::recalled(memories));
            }
            Event::ToolCall { id, name, arguments } => {
                self.end_answer_text();
                let (id, name) = (id.clone(), clean(name));
                let arguments = arguments.clone();
                self.calls.push(Call { id, name, arguments, since: self.now });
            }
            Event::ToolResult { id, text, failed, .. } => self.call_done(id, text, *failed),
            Event::Compacting { tokens, .. } => self.note(&wording::compacting(*tokens)),
            Event::Compacted { before, after, summarised, .. } => {
                self.status.context = *after;
                self.note(&wording::compacted(*before, *after, *summarised));
            }
            Event::Notice { about, message, void } => {
                if *void {
                    let begun = self.stream.has_finished();
                    self.stream.void();
                    self.thoughts.clear();
                    if begun {
                        self.note("The answer broke off here; asking the model again");
                    }
                }
                // Ends of processes are told by the model too.
                let mark = if *about == "process" { "" } else { "note: " };
                self.note(&format!("{mark}{}", wording::line(message)));
            }
            Event::Parked { reason, resume_at, .. } => {
                self.parked(reason, *resume_at);
            }
            Event::End { outcome, reason, usage, cost, .. } => {
                self.end(outcome, reason.as_deref(), usage.total(), *cost);
            }
        }
    }

    /// The turn waits for something outside.
    pub(crate) fn parked(&mut self, reason: &str, resume_at: Option<i64>) {
        self.end_answer_text();
        let until = resume_at.map(|at| format!(" until {}", wording::time(at))).unwrap_or_default();
        self.warn(&format!("parked{until}: {}", wording::line(reason)));
        self.say("  /retry continues it.");
    }

    fn end(&mut self, outcome: &str, reason: Option<&str>, used: u64, cost: f64) {
        self.end_answer_text();
        match outcome {
            "answered" => {
                let took = match self.phase {
                    Phase::Working { since } | Phase::Stopping { since } => self.now - since,
                    Phase::Idle => 0,
                };
                let mut spent = vec![format!("{} s", took / 1000)];
                spent.push(format!("{} tokens", tokens(used)));
                if cost > 0.0 {
                    #[expect(clippy::cast_possible_truncation, reason = "it is for reading")]
                    let micros = (cost * 1e6).round() as i64;
                    spent.push(mainstay_agent::budget::dollars(micros));
                }
                self.note(&spent.join(" · "));
            }
            "cancelled" => self.warn("stopped; what was done is saved"),
            "parked" => {}
            other => {
                let reason = reason.unwrap_or(other);
                self.error(&wording::line(reason), &["/retry tries again."]);
            }
        }
    }

    fn add_answer_text(&mut self, delta: &str) {
        self.thoughts.clear();
        self.stream.push(delta);
        let lines = self.stream.finished(self.width.saturating_sub(1));
        self.print_answer_lines(lines);
    }

    /// Prints what is left of the words.
    fn end_answer_text(&mut self) {
        self.thoughts.clear();
        let lines = self.stream.end(self.width.saturating_sub(1));
        self.print_answer_lines(lines);
        if self.block == Block::Words {
            self.block = Block::Note;
        }
    }

    fn print_answer_lines(&mut self, lines: Vec<Line>) {
        if lines.is_empty() {
            return;
        }
        if self.block != Block::Words {
            self.begin_block(Block::Words);
        }
        self.above.extend(lines);
    }

    fn call_done(&mut self, id: &str, text: &str, failed: bool) {
        let Some(place) = self.calls.iter().position(|call| call.id == id) else { return };
        let call = self.calls.remove(place);
        if self.block != Block::Call {
            self.begin_block(Block::Call);
        }
        let folded = call.folded(text, failed);
        if folded.len() <= text.lines().count() {
            self.done = Some((call, text.to_owned()));
        }
        self.above.extend(folded);
    }

    /// Shows all of what came of the last call, or all of what is asked.
    pub(crate) fn show_whole(&mut self) {
        let lines = match (&self.prompt, &self.done) {
            (Some(prompt), _) => prompt.whole(),
            (None, Some((call, text))) => call.whole(text),
            (None, None) => return,
        };
        self.begin_block(Block::Note);
        self.above.extend(lines);
    }

    /// What the user said, now that it is recorded.
    pub(crate) fn user(&mut self, words: &str) {
        self.end_answer_text();
        self.begin_block(Block::User);
        let words = clean(words);
        let all: Vec<&str> = words.lines().collect();
        for (number, line) in all.iter().take(MESSAGE_LINES).enumerate() {
            let mark = if number == 0 { "› " } else { "  " };
            let style = Style::of(Colour::Cyan).strong();
            self.above.push(Line::styled(mark, style).and(line, Style::BOLD).hanging("  ", style));
        }
        if all.len() > MESSAGE_LINES {
            let more = all.len() - MESSAGE_LINES;
            self.above.push(Line::dim(&format!("  … {more} more lines, sent in full")));
        }
    }

    /// What a model said before this chat.
    pub(crate) fn said_before(&mut self, words: &str) {
        self.add_answer_text(words);
        self.end_answer_text();
    }

    /// Lines of the chat itself.
    pub(crate) fn lines(&mut self, lines: Vec<Line>) {
        self.end_answer_text();
        self.begin_block(Block::Note);
        self.above.extend(lines);
    }

    /// A remark.
    pub(crate) fn note(&mut self, words: &str) {
        self.begin_block(Block::Note);
        self.above.push(Line::dim(&clean(words)));
    }

    fn say(&mut self, words: &str) {
        self.above.push(Line::plain(&clean(words)).hanging("  ", Style::PLAIN));
    }

    fn warn(&mut self, words: &str) {
        self.begin_block(Block::Note);
        self.above.push(Line::styled(&clean(words), Style::of(Colour::Yellow)));
    }

    /// Something went wrong, and what to do about it.
    pub(crate) fn error(&mut self, words: &str, hints: &[&str]) {
        self.begin_block(Block::Note);
        let line = Line::styled("error: ", Style::of(Colour::Red).strong());
        self.above.push(line.and(&wording::line(&clean(words)), Style::PLAIN));
        for hint in hints {
            self.say(&format!("  {hint}"));
        }
    }

    fn begin_block(&mut self, block: Block) {
        if self.block != Block::Nothing {
            self.above.push(Line::default());
        }
        self.block = block;
    }

    /// Puts a question of the policy.
    pub(crate) fn ask(&mut self, request: Request) {
        self.prompt = Some(Prompt::policy(request, self.now));
    }

    /// Puts a question of the model.
    pub(crate) fn ask_words(&mut self, question: Question) {
        self.prompt = Some(Prompt::model(question, self.now));
    }

    /// Takes a question away that nobody has to answer any more.
    pub(crate) fn take_question_away(&mut self) {
        self.prompt = None;
    }

    pub(crate) fn answered(&mut self, reply: &Reply) {
        if let Some(prompt) = self.prompt.take() {
            self.begin_block(Block::Note);
            self.above.extend(prompt.answered(reply));
        }
    }
}
