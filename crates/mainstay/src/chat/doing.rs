//! What the commands of the chat do.

use mainstay_agent::approvals::questions;
use mainstay_agent::approvals::requests::{self, RequestFilter};
use mainstay_agent::budget::dollars;
use mainstay_journal::entry::{Body, Entry};
use mainstay_journal::model_call::{self, By};
use mainstay_journal::process;
use mainstay_journal::turn::{Outcome, State, Turn};
use mainstay_message::{AssistantPart, Content};

use super::place::homely;
use super::slash::{self, Slash};
use super::status::tokens;
use super::talk::Talk;
use super::text::{Colour, Line, Style, clean};
use super::turning::Begin;
use crate::engine;
use crate::error::Error;
use crate::wording;

/// The keys, for whoever asks.
const KEYS: &[(&str, &str)] = &[
    ("Enter", "send; while a turn runs, queue"),
    ("Ctrl-S", "let the running turn hear it at its next step"),
    ("Alt-Enter, Ctrl-J", "a new line (or a backslash before Enter)"),
    ("Up, Down", "what was sent before"),
    ("Tab", "complete commands, models and @files"),
    ("/NAME words", "use the skill of this name; /skills shows them"),
    ("@picture.png", "send a picture along"),
    ("Ctrl-O", "show all of the last folded output"),
    ("Ctrl-C", "stop the turn; a second one leaves"),
    ("Ctrl-D", "leave"),
];

impl Talk<'_> {
    /// Says where one is.
    pub(super) fn greet(&mut self) {
        let (model, window) = self.place.model();
        (self.screen.status.model, self.screen.status.window) = (model.clone(), window);
        let head = Line::styled("Mainstay", Style::of(Colour::Cyan).strong())
            .and(&format!(" {}", env!("CARGO_PKG_VERSION")), Style::DIM)
            .and(&format!(" · {model} · {}", homely(&self.place.workspace)), Style::PLAIN);
        let help = "Type what to do. /help shows commands and keys.";
        self.screen.lines(vec![head, Line::dim(help)]);
        self.learn_words();
    }

    /// What can be completed.
    fn learn_words(&mut self) {
        let models = engine::model_names(self.place.context, &self.place.workspace);
        self.screen.vocabulary.models = models.unwrap_or_default();
        self.learn_skills();
        let sessions = self.place.sessions(50).unwrap_or_default();
        self.screen.vocabulary.sessions = sessions
            .into_iter()
            .map(|(session, _)| (session.id.to_string(), clean(&session.title)))
            .collect();
    }

    /// Shows what was said last in a session that is taken up.
    pub(super) fn recall(&mut self, turn: &Turn, entries: &[Entry]) {
        if turn.number > 1 {
            let before = u64::try_from(turn.number - 1).unwrap_or(0);
            self.screen.note(&format!("… {} before this", wording::count(before, "turn")));
        }
        for entry in entries {
            match &entry.body {
                Body::User { content } => self.screen.user(&words(content)),
                Body::Assistant { parts, .. } => {
                    for part in parts {
                        if let AssistantPart::Text(text) = part {
                            self.screen.said_before(text);
                        }
                    }
                }
                Body::Compaction(made) => self.screen.note(&wording::compaction(made)),
                Body::Restored { number } => self.screen.note(&wording::taken_back(*number)),
                Body::Result { .. } | Body::Notice { .. } | Body::End { .. } => {}
            }
        }
        if let Ok(Some(spent)) = self.place.spent() {
            self.screen.status.cost = spent.cost;
        }
        if let Some(work) = &self.work {
            self.screen.status.context = u64::try_from(work.size()).unwrap_or(0);
        }
        self.count_processes();
    }

    /// Does what a command says.
    pub(super) async fn command(&mut self, slash: Slash, rest: &str) {
        let done = match slash {
            Slash::Help => {
                self.help();
                Ok(())
            }
            Slash::Model => self.model(rest),
            Slash::New => self.new_session().await,
            Slash::Resume => self.resume(rest).await,
            Slash::Fork => self.fork(rest).await,
            Slash::Undo => self.undo(rest).await,
            Slash::Retry => self.retry(),
            Slash::Context => self.context(),
            Slash::Compact => self.compact(rest),
            Slash::Uncompact => self.uncompact(),
            Slash::Cost => self.cost(),
            Slash::Approvals => self.approvals(),
            Slash::Memory => self.memory(),
            Slash::Skills => self.skills(rest),
            Slash::Processes => self.processes(),
            Slash::Quit => {
                self.stop_and_leave();
                Ok(())
            }
        };
        if let Err(error) = done {
            self.failed(&error);
        }
    }

    fn help(&mut self) {
        let mut lines = Vec::new();
        let mut keys_from = slash::ALL.len();
        let commands = slash::ALL.iter().map(|(_, name, takes, what)| {
            (format!("/{name} {takes}").trim_end().to_owned(), (*what).to_owned())
        });
        let keys = KEYS.iter().map(|(key, what)| ((*key).to_owned(), (*what).to_owned()));
        let all: Vec<(String, String)> = commands.chain(keys).collect();
        let width = all.iter().map(|(left, _)| left.chars().count()).max().unwrap_or(0);
        for (left, what) in all {
            if keys_from == 0 {
                lines.push(Line::default());
            }
            keys_from = keys_from.wrapping_sub(1);
            let hang = " ".repeat(width + 4);
            lines.push(
                Line::styled(&format!("  {left:<width$}"), Style::BOLD)
                    .and(&format!("  {what}"), Style::PLAIN)
                    .hanging(&hang, Style::PLAIN),
            );
        }
        self.screen.lines(lines);
    }

    fn model(&mut self, rest: &str) -> Result<(), Error> {
        if rest.is_empty() {
            let (now, _) = self.place.model();
            let mut lines: Vec<Line> = Vec::new();
            let mut names = self.screen.vocabulary.models.clone();
            if !names.contains(&now) {
                names.insert(0, now.clone());
            }
            for name in names {
                let (mark, style) =
                    if name == now { ("▸ ", Style::BOLD) } else { ("  ", Style::PLAIN) };
                lines.push(Line::styled(&format!("{mark}{name}"), style));
            }
            lines.push(Line::dim("  /model PROVIDER/MODEL asks another one from now on."));
            self.screen.lines(lines);
            return Ok(());
        }
        self.place.ask(rest)?;
        if let Some(work) = &mut self.work {
            work.ask_from_now_on(self.place.agent.clone());
        }
        let (model, window) = self.place.model();
        self.screen.note(&format!("{model} is asked from now on"));
        (self.screen.status.model, self.screen.status.window) = (model, window);
        Ok(())
    }

    async fn new_session(&mut self) -> Result<(), Error> {
        self.part().await?;
        self.place.session = None;
        (self.screen.status.context, self.screen.status.cost) = (0, 0);
        self.learn_words();
        self.screen.note("a new session; the one before is kept");
        Ok(())
    }

    async fn resume(&mut self, rest: &str) -> Result<(), Error> {
        if rest.is_empty() {
            return self.list_sessions();
        }
        let session = self.place.find(rest)?;
        if self.place.session == Some(session.id) {
            self.screen.note("that is this session");
            return Ok(());
        }
        let before = self.place.session;
        self.part().await?;
        self.place.turn_to(&session).await?;
        if let Err(error) = self.take_up() {
            // Another process has it: back to where one was.
            self.place.session = before;
            return Err(error);
        }
        let (model, window) = self.place.model();
        (self.screen.status.model, self.screen.status.window) = (model, window);
        Ok(())
    }

    fn list_sessions(&mut self) -> Result<(), Error> {
        let sessions = self.place.sessions(15)?;
        let mut lines: Vec<Line> = Vec::new();
        for (session, turn) in &sessions {
            let this = self.place.session == Some(session.id);
            let unfinished = turn.as_ref().is_some_and(|turn| turn.state != State::Ended);
            let mark = if this { "▸ " } else { "  " };
            let line = Line::plain(&format!("{mark}{}", session.id))
                .and(&format!("  {}", wording::minute(session.used_at)), Style::DIM)
                .and(if unfinished { "  not finished" } else { "" }, Style::of(Colour::Yellow))
                .and(&format!("  {}", clean(&session.title)), Style::PLAIN);
            lines.push(line.cut());
        }
        lines.push(Line::dim(match lines.is_empty() {
            true => "There are no sessions yet.",
            false => "  /resume ID goes on with one; the start of its id is enough.",
        }));
        self.screen.lines(lines);
        Ok(())
    }

    /// Parts with the session: what runs for it in the background ends.
    pub(super) async fn part(&mut self) -> Result<(), Error> {
        if let Some(work) = self.work.take() {
            work.leave().await?;
        }
        if self.screen.status.processes > 0 {
            self.screen.note("what ran in the background for the session was ended");
            self.screen.status.processes = 0;
        }
        Ok(())
    }

    fn retry(&mut self) -> Result<(), Error> {
        let last = self.place.last_turn()?.map(|(turn, _)| turn);
        let Some(turn) = last else {
            self.screen.note("there is nothing to try again yet");
            return Ok(());
        };
        if turn.state != State::Ended || turn.outcome == Some(Outcome::Failed) {
            self.begin(Begin::Resume);
            return Ok(());
        }
        match self.place.last_input()? {
            Some(content) => {
                let shown = words(&content);
                self.begin(Begin::Say(content, shown));
            }
            None => self.screen.note("there is nothing to try again"),
        }
        Ok(())
    }

    fn cost(&mut self) -> Result<(), Error> {
        let mut lines = Vec::new();
        let told = |what: &str, spent: &model_call::Spent| {
            let calls = wording::count(u64::try_from(spent.calls).unwrap_or(0), "call");
            let usage = &spent.usage;
            Line::styled(&format!("  {what:<12}"), Style::BOLD)
                .and(&format!("{:<10}", dollars(spent.cost)), Style::PLAIN)
                .and(
                    &format!(
                        "{calls}, {} tokens in ({} from the cache), {} out",
                        tokens(usage.all_input()),
                        tokens(usage.cached),
                        tokens(usage.output)
                    ),
                    Style::DIM,
                )
                .hanging("              ", Style::PLAIN)
        };
        if let Some(spent) = self.place.spent()? {
            lines.push(told("session", &spent));
        }
        let day = 24 * 60 * 60 * 1000;
        let today = mainstay_store::wall_millis().div_euclid(day) * day;
        let (store, owner) = (&self.place.store, self.place.owner);
        let spent = store.read(|tx| model_call::spent(tx, owner, By::Day, today))?;
        if let Some(spent) = spent.first() {
            lines.push(told("today (UTC)", spent));
        }
        if lines.is_empty() {
            lines.push(Line::dim("Nothing was spent yet."));
        }
        self.screen.lines(lines);
        Ok(())
    }

    fn approvals(&mut self) -> Result<(), Error> {
        let (store, owner) = (&self.place.store, self.place.owner);
        let (waiting, questions, rules) = store.read(|tx| -> mainstay_agent::Result<_> {
            let waiting = requests::list(tx, owner, RequestFilter::Waiting)?;
            let questions = questions::list(tx, owner, RequestFilter::Waiting)?;
            Ok((waiting, questions, mainstay_agent::approvals::rules::remembered(tx, owner)?))
        })?;
        let mut lines: Vec<Line> = Vec::new();
        let command = |what: String| self.place.settings.command(&what);
        for approval in &waiting {
            let request = &approval.request;
            let words = format!("{} wants {}", request.tool, wording::line(&request.action));
            lines.push(asked(&words));
            let (yes, no) = (
                command(format!("approve {}", request.id)),
                command(format!("deny {}", request.id)),
            );
            let words = format!("  in session {}; decide: {yes} or {no}", request.session);
            lines.push(Line::dim(&words).hanging("  ", Style::DIM));
        }
        for waiting in &questions {
            lines.push(asked(&wording::line(&waiting.question.text)));
            let answer = command(format!("answer {} TEXT", waiting.question.id));
            let words = format!("  in session {}; answer: {answer}", waiting.question.session);
            lines.push(Line::dim(&words).hanging("  ", Style::DIM));
        }
        if lines.is_empty() {
            lines.push(Line::dim("Nothing waits for a decision."));
        }
        for rule in &rules {
            let words = clean(&wording::line(&rule.rule.describe()));
            lines.push(
                Line::styled("✓ ", Style::of(Colour::Green))
                    .and(&format!("always: {words}"), Style::PLAIN)
                    .and(&format!(", in {}", clean(&rule.workspace)), Style::DIM)
                    .hanging("  ", Style::PLAIN),
            );
        }
        if !rules.is_empty() {
            let forget = command("approvals forget ID".to_owned());
            lines.push(Line::dim(&format!("  Take one back: {forget}")));
        }
        self.screen.lines(lines);
        Ok(())
    }

    fn processes(&mut self) -> Result<(), Error> {
        if let Some(work) = &mut self.work {
            work.look_after_processes()?;
        }
        self.count_processes();
        let mut lines: Vec<Line> = Vec::new();
        for process in self.place.processes()? {
            let (mark, state) = match (process.state, &process.ending) {
                (process::State::Running, _) => {
                    ("● ", format!("runs since {}", wording::minute(process.started_at)))
                }
                (process::State::Ended, ending) => {
                    ("✗ ", format!("ended: {}", ending.as_deref().unwrap_or("how is not known")))
                }
            };
            let command = clean(&process.command);
            let command = command.lines().next().unwrap_or_default();
            let line = Line::plain(mark).and(command, Style::BOLD);
            lines.push(line.and(&format!("  {}", clean(&state)), Style::DIM).cut());
        }
        if lines.is_empty() {
            lines.push(Line::dim("Nothing runs in the background."));
        }
        self.screen.lines(lines);
        Ok(())
    }
}

fn asked(words: &str) -> Line {
    let mark = Line::styled("? ", Style::of(Colour::Yellow));
    mark.and(&clean(words), Style::BOLD).hanging("  ", Style::PLAIN)
}

/// The words of a message; pictures are named.
fn words(content: &[Content]) -> String {
    let told = |part: &&Content| {
        // What a skill says follows what was typed, and is long.
        !part.text().is_some_and(|text| text.starts_with(mainstay_agent::skills::CALLED))
    };
    let parts = content.iter().filter(told).map(|part| match part {
        Content::Text(text) => text.clone(),
        Content::Image(image) => format!("({})", image.media_type),
    });
    parts.collect::<Vec<_>>().join("\n")
}
