//! A turn of the chat: begun, steered, stopped, and taken in when it is over.

use mainstay_agent::skills::PROPOSE;
use mainstay_agent::{Compacted, Event, OpenSession, Steering, TurnEnding, TurnReport};
use mainstay_journal::turn::{Outcome, State};
use mainstay_message::Content;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use super::face::Face;
use super::pictures;
use super::talk::Talk;
use crate::choices::Changes;
use crate::error::Error;

/// What a turn is begun with.
pub(super) enum Begin {
    /// Words and pictures, and how they look.
    Say(Vec<Content>, String),
    /// The turn that is there.
    Resume,
    /// No turn: the session is compacted, looking after this.
    Compact(Option<String>),
}

/// What is done with a session.
enum Task {
    Turn(Vec<Content>),
    Resume,
    Compact(Option<String>),
}

/// A turn that runs.
pub(super) struct Running {
    pub(super) task: JoinHandle<Back>,
    pub(super) told: UnboundedReceiver<Event>,
    cancel: CancellationToken,
    steering: Steering,
    /// Whether the turn was begun before, and has choices of its own.
    is_taken_up: bool,
}

/// A session that a turn gives back, and how the turn ended.
pub(super) type Back = (OpenSession, Result<Option<TurnReport>, mainstay_agent::Error>);

impl Talk<'_> {
    /// Sends words as a new turn. What cannot be sent is back in the editor.
    pub(super) fn send(&mut self, words: &str) {
        match self.content(words) {
            Ok(content) => self.begin(Begin::Say(content, words.to_owned())),
            Err(wrong) => {
                self.screen.error(&wrong, &[]);
                self.screen.begin(Some(words.to_owned()));
                self.screen.ended(false);
            }
        }
    }

    /// Compacts the session: now, or before the next round of the turn that goes on.
    pub(super) fn compact(&mut self, rest: &str) -> Result<(), Error> {
        let focus = (!rest.is_empty()).then(|| rest.to_owned());
        match &self.turn {
            Some(turn) => {
                turn.steering.compact(focus);
                self.screen.note("the conversation is compacted before the next step");
            }
            None if self.place.session.is_none() => {
                self.screen.note("there is nothing to compact yet");
            }
            None => self.begin(Begin::Compact(focus)),
        }
        Ok(())
    }

    pub(super) fn steer(&mut self, words: &str) {
        let content = self.content(words);
        match (&self.turn, content) {
            (Some(turn), Ok(content)) => turn.steering.push(content),
            (_, Err(wrong)) => {
                self.screen.error(&wrong, &[]);
                self.screen.take_steering_back();
            }
            // The turn has just ended; what it did not hear is sent after it.
            (None, Ok(_)) => {}
        }
    }

    fn content(&mut self, words: &str) -> Result<Vec<Content>, String> {
        let home = crate::env::HOME.get().map(std::path::PathBuf::from);
        let mut content = pictures::content(words, &self.place.workspace, home.as_deref())?;
        content.extend(self.called_skill(words)?);
        Ok(content)
    }

    /// Begins a turn, or goes on with one.
    pub(super) fn begin(&mut self, begin: Begin) {
        let work = match self.work.take().map_or_else(|| self.open(), Ok) {
            Ok(work) => work,
            Err(error) => {
                self.failed(&error);
                if let Begin::Say(_, words) = begin {
                    self.screen.begin(Some(words));
                    self.screen.ended(false);
                }
                return;
            }
        };
        let is_taken_up = matches!(begin, Begin::Resume);
        let (work, changes) = match is_taken_up {
            false => (work, Changes::default()),
            true => match self.place.for_last_turn(work) {
                Ok(chosen) => chosen,
                Err(error) => return self.failed(&error),
            },
        };
        let (sender, told) = unbounded_channel();
        let cancel = CancellationToken::new();
        let steering = work.steering();
        let (task, words) = match begin {
            Begin::Say(content, words) => (Task::Turn(content), Some(words)),
            Begin::Resume => (Task::Resume, None),
            Begin::Compact(focus) => (Task::Compact(focus), None),
        };
        self.screen.begin(words);
        let task = tokio::spawn(run(work, task, changes, sender, cancel.clone()));
        self.turn = Some(Running { task, told, cancel, steering, is_taken_up });
    }

    /// Takes the session up.
    pub(super) fn open(&mut self) -> Result<OpenSession, Error> {
        self.place.work(Some(Face(self.ask.clone())))
    }

    pub(super) fn told(&mut self, event: &Event) {
        self.tick();
        if let Event::Session { id, .. } = event
            && self.place.session.is_none()
            && let Ok(session) = self.place.find(id)
        {
            self.place.session = Some(session.id);
        }
        self.screen.event(event);
        if matches!(event, Event::ToolResult { name, .. } if name == "process") {
            self.count_processes();
        }
        if matches!(event, Event::ToolResult { name, failed: false, .. } if name == PROPOSE) {
            self.screen.note("a skill was proposed and waits for you: /skills");
        }
    }

    pub(super) fn turn_ended(&mut self, ended: Result<Back, JoinError>) {
        self.tick();
        let Some(mut turn) = self.turn.take() else { return };
        while let Ok(event) = turn.told.try_recv() {
            self.told(&event);
        }
        // What the turn did not hear is queued by the screen, in words.
        while turn.steering.take_back().is_some() {}
        let mut answered = false;
        match ended {
            Ok((work, Ok(ended))) => {
                answered = matches!(
                    ended.map(|ended| ended.ending),
                    Some(TurnEnding::Over(Outcome::Answered, _))
                );
                self.work = match turn.is_taken_up {
                    true => self.with_own_choices(work),
                    false => Some(work),
                };
            }
            // The record may have gone on without us: the session is taken up anew.
            Ok((work, Err(error))) => {
                drop(work);
                self.failed(&error.into());
            }
            Err(crash) => self.screen.error(
                &format!("the turn was ended by an error of the program: {crash}"),
                &["What it did is recorded; /retry goes on with it."],
            ),
        }
        self.count_processes();
        self.screen.ended(answered);
        if !self.leaving
            && let Some(words) = self.screen.next_queued()
        {
            self.send(&words);
        }
    }

    /// The session with the choices of the chat, after a turn that had its own.
    fn with_own_choices(&mut self, work: OpenSession) -> Option<OpenSession> {
        (self.screen.status.model, self.screen.status.window) = self.place.model();
        self.place.for_next_turn(work).map_err(|error| self.failed(&error)).ok()
    }

    /// Shows the session that is taken up, and finishes its last turn where that is not over.
    pub(super) fn take_up(&mut self) -> Result<(), Error> {
        let work = self.open()?;
        self.work = Some(work);
        let Some((turn, entries)) = self.place.last_turn()? else { return Ok(()) };
        self.recall(&turn, &entries);
        if turn.state == State::Ended {
            return Ok(());
        }
        match turn.resume_at() {
            Some(at) if at > mainstay_store::wall_millis() => {
                self.screen.parked(&turn.reason.unwrap_or_default(), Some(at));
            }
            _ => self.begin(Begin::Resume),
        }
        Ok(())
    }

    pub(super) fn cancel(&self) {
        if let Some(turn) = &self.turn {
            turn.cancel.cancel();
        }
    }
}

/// Does a turn and gives the session back.
async fn run(
    mut work: OpenSession,
    task: Task,
    mut changes: Changes,
    told: UnboundedSender<Event>,
    cancel: CancellationToken,
) -> Back {
    let mut observer = |event| {
        let changes = changes.at(&event);
        // The chat listens as long as the turn runs.
        let _ = told.send(event);
        for change in changes {
            let _ = told.send(change);
        }
    };
    let ended = match task {
        Task::Turn(content) => {
            let input = mainstay_agent::Input { content, key: None };
            work.turn(&input, &mut observer, &cancel).await.map(Some)
        }
        Task::Resume => work.resume(&mut observer, &cancel).await,
        Task::Compact(focus) => {
            work.compact(focus, &mut observer, &cancel).await.map(|compacted| {
                // What was made was told.
                let message = match compacted {
                    Compacted::Made { .. } => return None,
                    Compacted::Not(why) => format!("nothing was compacted: {why}"),
                    Compacted::Stopped => "stopped; nothing was compacted".to_owned(),
                };
                observer(Event::Notice { about: "compaction", message, void: false });
                None
            })
        }
    };
    (work, ended)
}
