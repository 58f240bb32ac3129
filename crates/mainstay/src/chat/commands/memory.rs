//! `/memory`: what is remembered, and what of it came into the session.

use mainstay_agent::memory::recalled;
use mainstay_journal::entry;
use mainstay_memory::facts::{self, Fact, List};
use mainstay_memory::notes::{self, Note, Scope};

use crate::chat::conversation::Conversation;
use crate::chat::render::text::{Line, Style};
use crate::error::Error;
use crate::plain_text::clean;
use crate::wording;

/// So many of the newest facts are shown.
const SHOWN: usize = 10;

impl Conversation<'_> {
    pub(crate) fn memory(&mut self) -> Result<(), Error> {
        let (store, owner) = (&self.place.store, self.place.owner);
        let workspace = self.place.workspace.display().to_string();
        let list = List { limit: SHOWN, ..List::default() };
        let (user, here, newest, count) = store.read(|tx| -> mainstay_memory::Result<_> {
            Ok((
                notes::read(tx, owner, Scope::User)?,
                notes::read(tx, owner, Scope::Workspace(&workspace))?,
                facts::list(tx, owner, &list)?,
                facts::count(tx, owner)?,
            ))
        })?;
        let entries = match self.place.session {
            Some(id) => store.read(|tx| entry::all(tx, id))?,
            None => Vec::new(),
        };
        let mut lines = Vec::new();
        heading(&mut lines, "About you, for every new session", &user, note);
        heading(&mut lines, "About this workspace, for every new session here", &here, note);
        let title = match usize::try_from(count) {
            Ok(count) if count > newest.len() => format!("Facts, the newest of {count}"),
            _ => "Facts".to_owned(),
        };
        heading(&mut lines, &title, &newest, fact);
        let came = recalled(&entries);
        heading(&mut lines, "Recalled in this session", &came, |memory| {
            item(&memory.id, &memory.text, "")
        });
        if lines.is_empty() {
            let add = self.place.paths.command("memory add TEXT");
            lines.push(Line::dim(&format!("Nothing is remembered yet. Add a fact: {add}")));
        }
        self.screen.lines(lines);
        Ok(())
    }
}

fn heading<T>(lines: &mut Vec<Line>, title: &str, items: &[T], shown: impl Fn(&T) -> Line) {
    if !items.is_empty() {
        lines.push(Line::styled(title, Style::BOLD));
        lines.extend(items.iter().map(shown));
    }
}

fn note(note: &Note) -> Line {
    item("-", &note.text, &note.source)
}

fn fact(fact: &Fact) -> Line {
    item(&fact.id.to_string(), &fact.content, &format!("trust {:.2}, {}", fact.trust, fact.source))
}

fn item(mark: &str, text: &str, known: &str) -> Line {
    let mark = clean(mark);
    let hang = " ".repeat(mark.chars().count() + 3);
    let line = Line::dim(&format!("  {mark} ")).and(&clean(&wording::line(text)), Style::PLAIN);
    let line =
        if known.is_empty() { line } else { line.and(&format!("  {}", clean(known)), Style::DIM) };
    line.hanging(&hang, Style::PLAIN)
}
