//! Skills in the chat: what there is, what is proposed, and what is called for by its name.

use mainstay_agent::skills::{self, Proposal, ProposalFilter, ProposalState, visible};
use mainstay_message::Content;
use mainstay_store::ProcessIdentity;

use crate::chat::commands::slash;
use crate::chat::conversation::Conversation;
use crate::chat::render::text::{Colour, Line, Style};
use crate::commands::skills::shelf;
use crate::error::Error;
use crate::plain_text::clean;
use crate::wording;

/// So many lines of a change are shown.
const SHOWN: usize = 200;

impl Conversation<'_> {
    /// Learns which skills there are, for completion and for calls by name.
    pub(crate) fn load_skills(&mut self) {
        let found = self.place.agent.skills(&self.place.workspace);
        let told = |skill: skills::Skill| {
            let note = clean(&wording::line(&skill.front.description));
            (skill.front.name, note)
        };
        self.screen.vocabulary.skills = found.skills.into_iter().map(told).collect();
    }

    /// What is sent along with a message that calls for a skill. Returns `None` if it calls for none.
    pub(crate) fn called_skill(&mut self, words: &str) -> Result<Option<Content>, String> {
        let is_known = |name: &str| self.screen.vocabulary.has_skill(name);
        let Some(name) = slash::skill(words, is_known) else { return Ok(None) };
        let invoked = match self.place.agent.invoked(&self.place.workspace, words) {
            None => return Err(format!("the skill {name} no longer exists; see /skills")),
            Some(invoked) => invoked?,
        };
        let path = clean(&invoked.skill.path.display().to_string());
        self.screen.note(&format!("skill {name} from {path}"));
        Ok(Some(Content::Text(invoked.told)))
    }

    /// Does what `/skills` says.
    pub(crate) fn skills(&mut self, rest: &str) -> Result<(), Error> {
        let shelf = shelf(&self.place.paths);
        skills::settle(&self.place.store, self.place.owner, &shelf)?;
        let mut words = rest.split_whitespace();
        let (verb, typed) = (words.next(), words.next());
        match (verb, typed) {
            (None, _) => self.list_skills(),
            (Some("approve"), Some(typed)) => {
                let found = self.proposal(typed)?;
                self.show_change(&found);
                let by = by();
                let (store, owner) = (&self.place.store, self.place.owner);
                let approved = skills::approve(store, owner, &shelf, found.id, &by)?;
                self.load_skills();
                let name = &approved.name;
                self.screen.note(&format!("Approved. Use it with /{name}; new sessions know it"));
                Ok(())
            }
            (Some("reject"), Some(typed)) => {
                let found = self.proposal(typed)?;
                skills::reject(&self.place.store, self.place.owner, found.id, &by())?;
                self.screen.note(&format!("Rejected; {} stays as it is", found.name));
                Ok(())
            }
            _ => Err(Error::usage("invalid argument for /skills; use approve ID or reject ID")
                .hint("/skills alone lists the skills.")),
        }
    }

    fn proposal(&self, typed: &str) -> Result<Proposal, Error> {
        let owner = self.place.owner;
        Ok(self.place.store.read(|tx| skills::find_proposal(tx, owner, typed))?)
    }

    fn list_skills(&mut self) -> Result<(), Error> {
        self.load_skills();
        let owner = self.place.owner;
        let waiting =
            self.place.store.read(|tx| skills::list(tx, owner, ProposalFilter::Waiting))?;
        let found = self.place.agent.skills(&self.place.workspace);
        let mut lines: Vec<Line> = Vec::new();
        for skill in &found.skills {
            let hidden = found.shadowed.iter().filter(|it| it.skill.front.name == skill.front.name);
            let hidden = match hidden.count() {
                0 => String::new(),
                number => format!(", hides {}", wording::count(number as u64, "other")),
            };
            let description = clean(&wording::line(&skill.front.description));
            lines.push(
                Line::styled(&format!("  /{}", skill.front.name), Style::BOLD)
                    .and(&format!("  {description}"), Style::PLAIN)
                    .and(&format!("  {}{hidden}", skill.origin.as_str()), Style::DIM)
                    .hanging("    ", Style::PLAIN),
            );
        }
        if found.skills.is_empty() {
            lines.push(Line::dim("No skills."));
        }
        for warning in &found.warnings {
            let words = clean(&wording::line(&warning.to_string()));
            lines.push(
                Line::styled("! ", Style::of(Colour::Yellow))
                    .and(&format!("unusable: {words}"), Style::PLAIN)
                    .hanging("  ", Style::PLAIN),
            );
        }
        self.screen.lines(lines);
        for proposal in &waiting {
            self.show_change(proposal);
        }
        if !waiting.is_empty() {
            let words = "  /skills approve ID to use it, /skills reject ID to discard it.";
            self.screen.lines(vec![Line::dim(words)]);
        }
        Ok(())
    }

    /// Shows what a proposal changes.
    fn show_change(&mut self, proposal: &Proposal) {
        let what = if proposal.base.is_none() { "proposes" } else { "proposes to change" };
        let reason = clean(&visible(&wording::line(&proposal.reason)));
        let head = Line::styled("? ", Style::of(Colour::Yellow))
            .and(&format!("{} {what} {}: {reason}", proposal.id, proposal.name), Style::BOLD)
            .hanging("  ", Style::PLAIN);
        let mut lines = vec![head];
        if let Some(origin) = &proposal.origin {
            let words = format!("  its session had read text from {}", clean(origin));
            lines.push(Line::styled(&words, Style::of(Colour::Yellow)));
        }
        if proposal.state == ProposalState::Waiting {
            match skills::preview(&shelf(&self.place.paths), proposal) {
                Ok((before, after)) => {
                    let diff = skills::diff(&before, &after);
                    let count = diff.lines().count();
                    lines.extend(diff.lines().take(SHOWN).map(changed));
                    if count > SHOWN {
                        let more =
                            self.place.paths.command(&format!("skills proposals {}", proposal.id));
                        let words = format!("  … {} more lines: {more}", count - SHOWN);
                        lines.push(Line::dim(&words));
                    }
                }
                Err(error) => lines.push(Line::dim(&format!("  {error}"))),
            }
        }
        self.screen.lines(lines);
    }
}

fn changed(line: &str) -> Line {
    let style = match line.as_bytes().first() {
        Some(b'+') => Style::of(Colour::Green),
        Some(b'-') => Style::of(Colour::Red),
        _ => Style::DIM,
    };
    Line::styled(&format!("  {}", clean(line)), style)
}

fn by() -> String {
    format!("/skills in a chat ({})", ProcessIdentity::current())
}
