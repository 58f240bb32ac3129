//! A turn of the chat: begun, steered, stopped, and taken in when it is over.

use mainstay_agent::skills::PROPOSE;
use mainstay_agent::{Compacted, Event, OpenSession, Steering, TurnEnding, TurnReport};
use mainstay_journal::turn::{Outcome, State};
use mainstay_message::Content;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::chat::asker::ChatAsker;
use crate::chat::conversation::Conversation;
use crate::chat::input::pictures;
use crate::choices::Changes;
use crate::error::Error;

/// What a turn is begun with.
pub(crate) enum TurnStart {
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
pub(crate) struct RunningTurn {
    pub(crate) task: JoinHandle<FinishedTurn>,
    pub(crate) events: UnboundedReceiver<Event>,
    cancel: CancellationToken,
    steering: Steering,
    /// Whether the turn was begun before, and has choices of its own.
    is_taken_up: bool,
}

/// A session that a turn gives back, and how the turn ended.
pub(crate) type FinishedTurn = (OpenSession, Result<Option<TurnReport>, mainstay_agent::Error>);

impl Conversation<'_> {
    /// Sends words as a new turn. What cannot be sent is back in the editor.
    pub(crate) fn send(&mut self, words: &str) {
        match self.content(words) {
            Ok(content) => self.begin(TurnStart::Say(content, words.to_owned())),
            Err(wrong) => {
                self.screen.error(&wrong, &[]);
                self.screen.begin(Some(words.to_owned()));
                self.screen.ended(false);
            }
        }
    }

    /// Compacts the session: now, or before the next round of the turn that goes on.
    pub(crate) fn compact(&mut self, rest: &str) -> Result<(), Error> {
        let focus = (!rest.is_empty()).then(|| rest.to_owned());
        match &self.turn {
            Some(turn) => {
                turn.steering.compact(focus);
                self.screen.note("The conversation will be compacted before the next step");
            }
            None if self.place.session.is_none() => {
                self.screen.note("Nothing to compact yet");
            }
            None => self.begin(TurnStart::Compact(focus)),
        }
        Ok(())
    }

    pub(crate) fn steer(&mut self, words: &str) {
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
    pub(crate) fn begin(&mut self, begin: TurnStart) {
        let session = match self.session.take().map_or_else(|| self.open(), Ok) {
            Ok(session) => session,
            Err(error) => {
                self.failed(&error);
                if let TurnStart::Say(_, words) = begin {
                    self.screen.begin(Some(words));
                    self.screen.ended(false);
                }
                return;
            }
        };
        let is_taken_up = matches!(begin, TurnStart::Resume);
        let (session, changes) = if is_taken_up {
            match self.place.for_last_turn(session) {
                Ok(chosen) => chosen,
                Err(error) => return self.failed(&error),
            }
        } else {
            (session, Changes::default())
        };
        let (sender, events) = unbounded_channel();
        let cancel = CancellationToken::new();
        let steering = session.steering();
        let (task, words) = match begin {
            TurnStart::Say(content, words) => (Task::Turn(content), Some(words)),
            TurnStart::Resume => (Task::Resume, None),
            TurnStart::Compact(focus) => (Task::Compact(focus), None),
        };
        self.screen.begin(words);
        let task = tokio::spawn(run(session, task, changes, sender, cancel.clone()));
        self.turn = Some(RunningTurn { task, events, cancel, steering, is_taken_up });
    }

    /// Takes the session up.
    pub(crate) fn open(&mut self) -> Result<OpenSession, Error> {
        self.place.open_session(Some(ChatAsker(self.ask.clone())))
    }

    pub(crate) fn show_event(&mut self, event: &Event) {
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
            self.screen.note("A skill was proposed; review it with /skills");
        }
    }

    pub(crate) fn turn_ended(&mut self, ended: Result<FinishedTurn, JoinError>) {
        self.tick();
        let Some(mut turn) = self.turn.take() else { return };
        while let Ok(event) = turn.events.try_recv() {
            self.show_event(&event);
        }
        // What the turn did not hear is queued by the screen, in words.
        while turn.steering.take_back().is_some() {}
        let mut answered = false;
        match ended {
            Ok((session, Ok(ended))) => {
                answered = matches!(
                    ended.map(|ended| ended.ending),
                    Some(TurnEnding::Over(Outcome::Answered, _))
                );
                self.session =
                    if turn.is_taken_up { self.with_own_choices(session) } else { Some(session) };
            }
            // The record may have gone on without us: the session is taken up anew.
            Ok((session, Err(error))) => {
                drop(session);
                self.failed(&error.into());
            }
            Err(crash) => self.screen.error(
                &format!("the turn ended because of an internal error: {crash}"),
                &["What it did is saved; /retry continues it."],
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
    pub(crate) fn open_current_session(&mut self) -> Result<(), Error> {
        let session = self.open()?;
        self.session = Some(session);
        let Some((turn, entries)) = self.place.last_turn()? else { return Ok(()) };
        self.show_last_turn(&turn, &entries);
        if turn.state == State::Ended {
            return Ok(());
        }
        match turn.resume_at() {
            Some(at) if at > mainstay_store::wall_millis() => {
                self.screen.parked(&turn.reason.unwrap_or_default(), Some(at));
            }
            _ => self.begin(TurnStart::Resume),
        }
        Ok(())
    }

    pub(crate) fn cancel(&self) {
        if let Some(turn) = &self.turn {
            turn.cancel.cancel();
        }
    }
}

/// Does a turn and gives the session back.
async fn run(
    mut session: OpenSession,
    task: Task,
    mut changes: Changes,
    events: UnboundedSender<Event>,
    cancel: CancellationToken,
) -> FinishedTurn {
    let mut observer = |event| {
        let changes = changes.at(&event);
        // The chat listens as long as the turn runs.
        let _ = events.send(event);
        for change in changes {
            let _ = events.send(change);
        }
    };
    let ended = match task {
        Task::Turn(content) => {
            let input = mainstay_agent::Input { content, key: None };
            session.turn(&input, &mut observer, &cancel).await.map(Some)
        }
        Task::Resume => session.resume(&mut observer, &cancel).await,
        Task::Compact(focus) => {
            session.compact(focus, &mut observer, &cancel).await.map(|compacted| {
                // What was made was told.
                let message = match compacted {
                    Compacted::Made { .. } => return None,
                    Compacted::Not(why) => format!("not compacted: {why}"),
                    Compacted::Stopped => "stopped; not compacted".to_owned(),
                };
                observer(Event::Notice { about: "compaction", message, void: false });
                None
            })
        }
    };
    (session, ended)
}
