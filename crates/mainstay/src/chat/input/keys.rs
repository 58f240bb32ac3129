//! What keys do.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::chat::commands::slash::{self, Slash};
use crate::chat::input::completion::Menu;
use crate::chat::input::editor::Motion;
use crate::chat::input::prompt::Reply;
use crate::chat::render::screen::{Phase, Screen};

/// What has to be done because of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyAction {
    /// Send this as a new turn.
    Send(String),
    /// Let the running turn hear this.
    Steer(String),
    /// Stop the turn.
    Stop,
    /// Leave, when the turn is stopped.
    Leave,
    /// Leave at once.
    Abandon,
    /// Do what a command says.
    Command(Slash, String),
    /// Somebody answered the question.
    Reply(Reply),
    /// Find the files of the workspace.
    FindFiles,
    /// Go on to the next mode.
    NextMode,
    /// Draw everything anew.
    Redraw,
}

/// The longest message.
const LONGEST: usize = 4 << 20;

impl Screen {
    /// Takes a paste in.
    pub(crate) fn paste(&mut self, text: &str) {
        if let Some(prompt) = &mut self.prompt {
            prompt.paste(text);
            return;
        }
        self.history.edited();
        self.editor.paste_in(text);
        self.refresh_menu();
    }

    /// Takes a key in.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Option<KeyAction> {
        let (code, modifiers) = (key.code, key.modifiers);
        let control = modifiers.contains(KeyModifiers::CONTROL);
        let was_leaving = std::mem::take(&mut self.leaving);
        self.hint = None;
        match code {
            KeyCode::Char('c') if control => return self.interrupt(was_leaving),
            KeyCode::Char('l') if control => return Some(KeyAction::Redraw),
            KeyCode::Char('o') if control => {
                self.show_whole();
                return None;
            }
            _ => {}
        }
        if let Some(prompt) = &mut self.prompt {
            let reply = prompt.key(code, modifiers, self.now)?;
            self.answered(&reply);
            return Some(KeyAction::Reply(reply));
        }
        if code == KeyCode::BackTab {
            if matches!(self.phase, Phase::Idle) {
                return Some(KeyAction::NextMode);
            }
            self.hint = Some("The mode can be changed when the turn is over.".to_owned());
            return None;
        }
        if control && code == KeyCode::Char('d') {
            if self.editor.is_empty() {
                return Some(KeyAction::Leave);
            }
            self.editor.remove(Motion::Right);
            self.changed();
            return None;
        }
        if self.menu_key(code, modifiers) {
            return None;
        }
        let alt = modifiers.contains(KeyModifiers::ALT);
        let newline = modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SHIFT);
        match code {
            KeyCode::Enter if newline => self.insert("\n"),
            KeyCode::Enter if self.editor.folded()[..self.editor.cursor()].ends_with('\\') => {
                self.editor.remove(Motion::Left);
                self.insert("\n");
            }
            KeyCode::Enter => return self.enter(),
            KeyCode::Char('j') if control => self.insert("\n"),
            KeyCode::Char('s') if control => return self.steer(),
            _ => {
                self.edit(code, control, alt);
                if self.wants_files() {
                    return Some(KeyAction::FindFiles);
                }
            }
        }
        None
    }

    /// The files of the workspace are known.
    pub(crate) fn found_files(&mut self, files: Vec<String>) {
        self.vocabulary.files = files;
        self.refresh_menu();
    }

    fn interrupt(&mut self, was_leaving: bool) -> Option<KeyAction> {
        match self.phase {
            Phase::Working { .. } => {
                self.stop();
                Some(KeyAction::Stop)
            }
            Phase::Stopping { .. } if was_leaving => Some(KeyAction::Abandon),
            // It leaves when what runs has been ended: that takes a moment, and nothing is left behind.
            Phase::Stopping { .. } => {
                self.leaving = true;
                Some(KeyAction::Leave)
            }
            Phase::Idle if !self.editor.is_empty() => {
                // What was written can be had back.
                let written = self.editor.take();
                self.history.add(&written);
                self.changed();
                None
            }
            Phase::Idle if was_leaving => Some(KeyAction::Leave),
            Phase::Idle => {
                self.leaving = true;
                self.hint = Some("Ctrl-C again to leave".to_owned());
                None
            }
        }
    }

    /// Sends what is written, or queues it while a turn goes on.
    fn enter(&mut self) -> Option<KeyAction> {
        let typed = self.editor.whole();
        let words = typed.trim();
        if words.is_empty() {
            return None;
        }
        if words.len() > LONGEST {
            self.hint = Some("Longer than 4 MiB; put it into a file.".to_owned());
            return None;
        }
        let is_known = |name: &str| self.vocabulary.has_skill(name);
        let skill = slash::skill(words, is_known).is_some();
        match slash::parse(words).filter(|_| !skill) {
            Some(Err(wrong)) => {
                self.hint = Some(wrong);
                return None;
            }
            Some(Ok((slash, rest))) => {
                let rest = rest.to_owned();
                let name = words[1..].split(char::is_whitespace).next().unwrap_or_default();
                if slash::is_command(name) && self.vocabulary.has_skill(name) {
                    self.hint = Some(format!(
                        "/{name} is a command; to use the skill, ask for it in words"
                    ));
                }
                if self.is_working() && !slash.works_during_a_turn() {
                    self.hint = Some("A turn is running; wait, or stop it with Ctrl-C.".to_owned());
                    return None;
                }
                self.history.add(words);
                self.editor.set("");
                self.changed();
                return Some(KeyAction::Command(slash, rest));
            }
            None => {}
        }
        let words = words.to_owned();
        self.history.add(&words);
        self.editor.set("");
        self.changed();
        if self.is_working() {
            self.queue.push_back(words);
            self.hint = Some("queued; Ctrl-S sends it to the running turn".to_owned());
            return None;
        }
        Some(KeyAction::Send(words))
    }

    /// Lets the running turn hear what is written, or what is queued.
    fn steer(&mut self) -> Option<KeyAction> {
        if !matches!(self.phase, Phase::Working { .. }) {
            self.hint = Some("Ctrl-S works only while a turn is running.".to_owned());
            return None;
        }
        let written = self.editor.whole();
        let words = match written.trim() {
            "" => self.queue.pop_front()?,
            words => {
                self.history.add(words);
                let words = words.to_owned();
                self.editor.set("");
                words
            }
        };
        self.changed();
        self.steering.push_back(words.clone());
        Some(KeyAction::Steer(words))
    }

    fn menu_key(&mut self, code: KeyCode, modifiers: KeyModifiers) -> bool {
        let Some(menu) = &mut self.menu else { return false };
        let control = modifiers.contains(KeyModifiers::CONTROL);
        match code {
            KeyCode::Up => menu.step(false),
            KeyCode::Down => menu.step(true),
            KeyCode::Char('p') if control => menu.step(false),
            KeyCode::Char('n') if control => menu.step(true),
            KeyCode::Esc => {
                self.menu = None;
                self.menu_closed = true;
            }
            KeyCode::Tab => self.accept(),
            KeyCode::Enter if menu.is_chosen_from() => {
                self.accept();
                // A command that needs nothing more is done at once.
                let whole = self.editor.folded();
                return !whole.starts_with('/') || whole.ends_with(' ');
            }
            _ => return false,
        }
        true
    }

    /// Writes the word that is chosen from the menu.
    fn accept(&mut self) {
        let Some(menu) = self.menu.take() else { return };
        let word = menu.word();
        // A directory can be gone into further, a file is finished.
        let open = word.ends_with(['/', ' ']);
        let end = if open || !word.starts_with('@') { "" } else { " " };
        self.editor.replace_back_to(menu.from, &format!("{word}{end}"));
        self.changed();
    }

    fn edit(&mut self, code: KeyCode, control: bool, alt: bool) {
        let word = control || alt;
        match code {
            KeyCode::Up => return self.up(),
            KeyCode::Down => return self.down(),
            KeyCode::Char('p') if control => return self.up(),
            KeyCode::Char('n') if control => return self.down(),
            KeyCode::Left if word => self.editor.go(Motion::WordLeft),
            KeyCode::Right if word => self.editor.go(Motion::WordRight),
            KeyCode::Left => self.editor.go(Motion::Left),
            KeyCode::Right => self.editor.go(Motion::Right),
            KeyCode::Home if control => self.editor.go(Motion::Start),
            KeyCode::End if control => self.editor.go(Motion::End),
            KeyCode::Home => self.editor.go(Motion::LineStart),
            KeyCode::End => self.editor.go(Motion::LineEnd),
            KeyCode::Backspace if word => self.editor.remove(Motion::WordLeft),
            KeyCode::Backspace => self.editor.remove(Motion::Left),
            KeyCode::Delete if word => self.editor.remove(Motion::WordRight),
            KeyCode::Delete => self.editor.remove(Motion::Right),
            KeyCode::Char(letter) if control => match letter {
                'a' => self.editor.go(Motion::LineStart),
                'e' => self.editor.go(Motion::LineEnd),
                'b' => self.editor.go(Motion::Left),
                'f' => self.editor.go(Motion::Right),
                'h' => self.editor.remove(Motion::Left),
                'w' => self.editor.remove(Motion::WordLeft),
                'u' => self.editor.remove(Motion::LineStart),
                'k' => self.editor.remove(Motion::LineEnd),
                'y' => self.editor.put_back(),
                _ => return,
            },
            KeyCode::Char(letter) if alt => match letter {
                'b' => self.editor.go(Motion::WordLeft),
                'f' => self.editor.go(Motion::WordRight),
                'd' => self.editor.remove(Motion::WordRight),
                _ => return,
            },
            KeyCode::Char(letter) => {
                if letter == ' ' {
                    self.menu_closed = false;
                }
                return self.insert(letter.encode_utf8(&mut [0; 4]));
            }
            _ => return,
        }
        self.changed();
    }

    fn insert(&mut self, text: &str) {
        self.editor.insert(text);
        self.changed();
    }

    fn up(&mut self) {
        if self.editor.go_rows(-1, self.editor_width()) {
            return;
        }
        if let Some(older) = self.history.older(&self.editor.whole()) {
            self.editor.set(&older);
        }
    }

    fn down(&mut self) {
        if self.editor.go_rows(1, self.editor_width()) {
            return;
        }
        if let Some(newer) = self.history.newer() {
            self.editor.set(&newer);
        }
    }

    fn editor_width(&self) -> usize {
        self.width.saturating_sub(1).max(4)
    }

    fn changed(&mut self) {
        self.history.edited();
        if self.editor.is_empty() {
            self.menu_closed = false;
        }
        self.refresh_menu();
    }

    fn refresh_menu(&mut self) {
        let (text, cursor) = (self.editor.folded(), self.editor.cursor());
        self.menu = if self.menu_closed { None } else { Menu::at(text, cursor, &self.vocabulary) };
    }

    fn wants_files(&self) -> bool {
        let (text, cursor) = (self.editor.folded(), self.editor.cursor());
        text[..cursor].ends_with('@') && Menu::wants_files(text, cursor)
    }
}
