//! Completion: commands after a slash, files after an `@`, models after `/model`.

use crate::chat::commands::slash;
use crate::chat::render::text::{Colour, Line, Style};

/// What can be completed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vocabulary {
    pub(crate) models: Vec<String>,
    /// Sessions: their ids and titles.
    pub(crate) sessions: Vec<(String, String)>,
    /// Skills: their names and descriptions.
    pub(crate) skills: Vec<(String, String)>,
    /// Files and directories of the workspace, once they were asked for.
    pub(crate) files: Vec<String>,
}

impl Vocabulary {
    /// Whether there is a skill of this name.
    pub(crate) fn has_skill(&self, name: &str) -> bool {
        self.skills.iter().any(|(known, _)| known == name)
    }
}

/// What fits at the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Menu {
    /// The first byte of what is replaced.
    pub(crate) from: usize,
    items: Vec<Item>,
    chosen: usize,
    /// Whether somebody chose, and did not just type.
    stepped: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    word: String,
    note: String,
}

const MOST: usize = 50;
const ROWS: usize = 6;

impl Menu {
    /// What fits before the cursor. Returns `None` if nothing does, or if it is typed already.
    pub(crate) fn at(text: &str, cursor: usize, known: &Vocabulary) -> Option<Self> {
        let before = &text[..cursor];
        let (from, items) = match word_of(before) {
            Wanted::Command(typed) => (0, commands(typed, &known.skills)),
            Wanted::Model(from, typed) => (from, plain(&known.models, typed)),
            Wanted::Session(from, typed) => (from, sessions(&known.sessions, typed)),
            Wanted::File(from, typed) => (from, files(&known.files, typed)),
            Wanted::Nothing => return None,
        };
        let there = &before[from..];
        let finished = items.len() == 1 && items[0].word.trim_end() == there.trim_end();
        (!items.is_empty() && !finished).then_some(Self { from, items, chosen: 0, stepped: false })
    }

    /// Whether files are wanted at the cursor.
    pub(crate) fn wants_files(text: &str, cursor: usize) -> bool {
        matches!(word_of(&text[..cursor]), Wanted::File(..))
    }

    /// Chooses the next or the one before.
    pub(crate) fn step(&mut self, down: bool) {
        let count = self.items.len();
        self.stepped = true;
        self.chosen = if down { self.chosen + 1 } else { self.chosen + count - 1 } % count;
    }

    /// Whether somebody chose from it.
    pub(crate) fn is_chosen_from(&self) -> bool {
        self.stepped
    }

    /// The word that is chosen.
    pub(crate) fn word(&self) -> &str {
        self.items.get(self.chosen).map_or("", |item| item.word.as_str())
    }

    /// The rows of the menu, around what is chosen.
    pub(crate) fn rows(&self, most: usize) -> Vec<Line> {
        let most = most.clamp(1, ROWS);
        let from = (self.chosen + 1).saturating_sub(most);
        let shown = self.items.iter().enumerate().skip(from).take(most);
        let width = shown.clone().map(|(_, item)| item.word.chars().count()).max().unwrap_or(0);
        shown
            .map(|(place, item)| {
                let (mark, style) = if place == self.chosen {
                    ("▸ ", Style::of(Colour::Cyan).strong())
                } else {
                    ("  ", Style::PLAIN)
                };
                let word = format!("{mark}{:<width$}", item.word);
                Line::styled(&word, style).and(&format!("  {}", item.note), Style::DIM).cut()
            })
            .collect()
    }
}

enum Wanted<'a> {
    Command(&'a str),
    Model(usize, &'a str),
    Session(usize, &'a str),
    File(usize, &'a str),
    Nothing,
}

fn word_of(before: &str) -> Wanted<'_> {
    if before.starts_with('/') && !before.contains(char::is_whitespace) {
        // A second slash makes it a path.
        return if before[1..].contains('/') { Wanted::Nothing } else { Wanted::Command(before) };
    }
    for command in ["/model ", "/resume "] {
        if let Some(typed) = before.strip_prefix(command) {
            let from = command.len();
            return match command {
                "/model " => Wanted::Model(from, typed),
                _ => Wanted::Session(from, typed),
            };
        }
    }
    let start = before
        .rfind(char::is_whitespace)
        .map_or(0, |place| place + before[place..].chars().next().map_or(1, char::len_utf8));
    match before[start..].strip_prefix('@') {
        Some(typed) => Wanted::File(start, typed),
        None => Wanted::Nothing,
    }
}

fn commands(typed: &str, skills: &[(String, String)]) -> Vec<Item> {
    let skills =
        skills.iter().filter(|(name, _)| name.starts_with(&typed[1..]) && !slash::is_command(name));
    let skills = skills
        .map(|(name, note)| Item { word: format!("/{name} "), note: note.clone() })
        .take(MOST);
    let all = slash::ALL.iter().filter(|(_, name, ..)| name.starts_with(&typed[1..]));
    all.map(|(_, name, takes, note)| {
        let end = if takes.is_empty() { "" } else { " " };
        Item { word: format!("/{name}{end}"), note: format!("{takes} {note}").trim().to_owned() }
    })
    .chain(skills)
    .collect()
}

fn plain(words: &[String], typed: &str) -> Vec<Item> {
    let mut fitting: Vec<(u32, &String)> =
        words.iter().filter_map(|word| Some((rank(word, typed)?, word))).collect();
    fitting.sort_by_key(|(rank, _)| *rank);
    let item = |(_, word): (u32, &String)| Item { word: word.clone(), note: String::new() };
    fitting.into_iter().take(MOST).map(item).collect()
}

fn sessions(sessions: &[(String, String)], typed: &str) -> Vec<Item> {
    let typed = typed.to_lowercase();
    let fitting = sessions
        .iter()
        .filter(|(id, title)| id.starts_with(&typed) || title.to_lowercase().contains(&typed));
    fitting.take(MOST).map(|(id, title)| Item { word: id.clone(), note: title.clone() }).collect()
}

fn files(files: &[String], typed: &str) -> Vec<Item> {
    let mut fitting: Vec<(u32, &String)> =
        files.iter().filter_map(|file| Some((rank(file, typed)?, file))).collect();
    fitting.sort_by_key(|(rank, file)| (*rank, file.len()));
    fitting
        .into_iter()
        .take(MOST)
        .map(|(_, file)| Item { word: format!("@{file}"), note: String::new() })
        .collect()
}

/// How well a word fits what was typed, the lower the better. Returns `None` if it does not.
fn rank(word: &str, typed: &str) -> Option<u32> {
    let (word, typed) = (word.to_lowercase(), typed.to_lowercase());
    let name = word.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    if word.starts_with(&typed) {
        return Some(0);
    }
    if name.starts_with(&typed) {
        return Some(1);
    }
    if word.contains(&typed) {
        return Some(2);
    }
    // The letters in their order, with others between.
    let mut letters = word.chars();
    typed.chars().all(|letter| letters.any(|other| other == letter)).then_some(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Vocabulary {
        Vocabulary {
            models: vec!["local/qwen".into(), "anthropic/claude".into()],
            sessions: vec![("0abc".into(), "Mend the tests".into())],
            skills: vec![
                ("release-notes".into(), "Writes notes".into()),
                ("retry".into(), "hidden".into()),
            ],
            files: ["src/", "src/main.rs", "src/chat/text.rs", "README.md"]
                .map(str::to_owned)
                .to_vec(),
        }
    }

    fn completions(text: &str) -> Vec<String> {
        let menu = Menu::at(text, text.len(), &known());
        menu.map(|menu| menu.items.into_iter().map(|item| item.word).collect()).unwrap_or_default()
    }

    #[test]
    fn what_fits_depends_on_where_the_cursor_is() {
        assert_eq!(completions("/re"), ["/resume ", "/retry", "/release-notes "]);
        assert_eq!(completions("/rel"), ["/release-notes "]);
        assert_eq!(completions("/model cl"), ["anthropic/claude", "local/qwen"]);
        assert_eq!(completions("/resume mend"), ["0abc"]);
        assert_eq!(completions("look at @main"), ["@src/main.rs"]);
        assert_eq!(completions("@te"), ["@src/chat/text.rs"]);
        assert_eq!(completions("@rm")[0], "@README.md");
        assert_eq!(completions("me@main"), Vec::<String>::new());
        assert_eq!(completions("/etc/pa"), Vec::<String>::new());
        assert_eq!(completions("/quit"), Vec::<String>::new());
        assert_eq!(completions("a 語@src"), Vec::<String>::new());
        assert_eq!(completions("a\u{3000}@src/m"), ["@src/main.rs"]);
    }

    #[test]
    fn choosing_goes_round() {
        let mut menu = Menu::at("/re", 3, &known()).unwrap();
        menu.step(false);
        assert_eq!(menu.word(), "/release-notes ");
        menu.step(true);
        assert_eq!(menu.word(), "/resume ");
        assert_eq!(menu.rows(1).len(), 1);
    }
}
