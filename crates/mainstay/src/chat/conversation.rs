//! The loop of the chat: keys, events of the turn and questions come in, pictures go out.

use std::io;
use std::time::Duration;

use crossterm::event::{Event as TerminalEvent, EventStream, KeyEventKind};
use futures_util::StreamExt as _;
use mainstay_agent::{Event, OpenSession};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinError;
use tokio::time::{Instant, sleep_until};

use crate::chat::asker::{AskerMessage, Questions};
use crate::chat::input::files;
use crate::chat::input::keys::KeyAction;
use crate::chat::place::Place;
use crate::chat::render::paint::Painter;
use crate::chat::render::screen::Screen;
use crate::chat::terminal;
use crate::chat::terminal::Terminal;
use crate::chat::turn::{FinishedTurn, RunningTurn};
use crate::error::Error;
use crate::exit::Exit;
use crate::interrupt;

/// Pictures are drawn no closer together than this.
const FRAME: Duration = Duration::from_millis(16);
/// How often what moves by itself is drawn.
const MOVE: Duration = Duration::from_millis(100);
/// How often the background is looked at while nothing else goes on.
const LOOK: Duration = Duration::from_secs(2);

/// How long nothing is looked at where nothing can have changed.
const REST: Duration = Duration::from_secs(3600);

/// A chat that goes on.
pub(crate) struct Conversation<'a> {
    pub(crate) place: Place<'a>,
    pub(crate) screen: Screen,
    painter: Painter,
    /// The session; a turn has it while it runs.
    pub(crate) session: Option<OpenSession>,
    pub(crate) turn: Option<RunningTurn>,
    questions: Questions,
    /// Whether the chat ends when the turn has.
    pub(crate) leaving: bool,
    /// Whether the terminal is gone: nothing is drawn and no key is heard any more.
    gone: bool,
    began: Instant,
    drawn: Option<Instant>,
    dirty: bool,
    pub(crate) ask: UnboundedSender<AskerMessage>,
    found: UnboundedSender<Vec<String>>,
}

/// What happened.
enum ChatEvent {
    Input(Option<io::Result<TerminalEvent>>),
    TurnEvent(Event),
    Asked(AskerMessage),
    Files(Vec<String>),
    Ended(Box<Result<FinishedTurn, JoinError>>),
    /// Somebody wants the program to stop what it does, or to end.
    Interrupted,
    Terminated,
    /// The terminal has another size.
    Resized,
    /// The terminal is gone.
    HungUp,
    Time,
}

/// What comes from outside the turn.
struct Sources {
    input: EventStream,
    asked: UnboundedReceiver<AskerMessage>,
    files: UnboundedReceiver<Vec<String>>,
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
    hang_up: Option<Signal>,
    resized: Option<Signal>,
    gone: UnboundedReceiver<()>,
}

impl<'a> Conversation<'a> {
    /// Talks until somebody leaves.
    pub(crate) async fn run_until_left(
        place: Place<'a>,
        screen: Screen,
        painter: Painter,
    ) -> Result<Exit, Error> {
        let (ask, asked) = unbounded_channel();
        let (found, files) = unbounded_channel();
        let (closed, gone) = unbounded_channel();
        terminal::watch(closed);
        let mut sources = Sources {
            input: EventStream::new(),
            asked,
            files,
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
            resized: listen(SignalKind::window_change())?,
            gone,
        };
        let mut conversation = Self {
            place,
            screen,
            painter,
            session: None,
            turn: None,
            questions: Questions::default(),
            leaving: false,
            gone: false,
            began: Instant::now(),
            drawn: None,
            dirty: true,
            ask,
            found,
        };
        conversation.fit();
        conversation.greet();
        if conversation.place.session.is_some() {
            conversation.open_current_session()?;
        }
        conversation.run(&mut sources).await;
        conversation.leave().await
    }

    async fn run(&mut self, sources: &mut Sources) {
        loop {
            if self.leaving && self.turn.is_none() {
                return;
            }
            if !self.gone && self.draw().is_err() {
                self.hung_up();
            }
            match self.next(sources).await {
                ChatEvent::Input(Some(Ok(input))) => self.input(input).await,
                ChatEvent::Input(_) | ChatEvent::HungUp => self.hung_up(),
                ChatEvent::Resized => self.fit(),
                ChatEvent::Terminated => self.stop_and_leave(),
                ChatEvent::Interrupted => {
                    let key = crossterm::event::KeyCode::Char('c');
                    let control = crossterm::event::KeyModifiers::CONTROL;
                    self.key(crossterm::event::KeyEvent::new(key, control)).await;
                }
                ChatEvent::TurnEvent(event) => {
                    self.show_event(&event);
                    while let Some(event) =
                        self.turn.as_mut().and_then(|turn| turn.events.try_recv().ok())
                    {
                        self.show_event(&event);
                    }
                }
                ChatEvent::Asked(message) => self.questions.take(message, &mut self.screen),
                ChatEvent::Files(files) => self.screen.found_files(files),
                ChatEvent::Ended(ended) => self.turn_ended(*ended),
                ChatEvent::Time => self.check_background(),
            }
            for panic in terminal::panics() {
                self.screen.error(&format!("internal error: {panic}"), &[]);
            }
            self.dirty = true;
        }
    }

    async fn next(&mut self, sources: &mut Sources) -> ChatEvent {
        let now = Instant::now();
        let wait = match self.drawn {
            _ if self.gone => now + REST,
            _ if self.dirty => self.drawn.map_or(now, |drawn| drawn + FRAME),
            _ if self.screen.is_moving() => now + MOVE,
            _ if self.screen.status.processes > 0 => now + LOOK,
            _ => now + REST,
        };
        let (events, task) = match &mut self.turn {
            Some(turn) => (Some(&mut turn.events), Some(&mut turn.task)),
            None => (None, None),
        };
        tokio::select! {
            biased;
            () = received(&mut sources.terminate) => ChatEvent::Terminated,
            () = received(&mut sources.hang_up) => ChatEvent::Terminated,
            () = received(&mut sources.interrupt) => ChatEvent::Interrupted,
            Some(()) = sources.gone.recv() => ChatEvent::HungUp,
            () = received(&mut sources.resized) => ChatEvent::Resized,
            input = sources.input.next(), if !self.gone => ChatEvent::Input(input),
            event = async { events?.recv().await }, if events.is_some() => match event {
                Some(event) => ChatEvent::TurnEvent(event),
                // The turn is over; how, its task says.
                None => match task {
                    Some(task) => ChatEvent::Ended(Box::new(task.await)),
                    None => ChatEvent::Time,
                },
            },
            Some(message) = sources.asked.recv() => ChatEvent::Asked(message),
            Some(files) = sources.files.recv() => ChatEvent::Files(files),
            () = sleep_until(wait) => ChatEvent::Time,
        }
    }

    async fn input(&mut self, input: TerminalEvent) {
        match input {
            TerminalEvent::Key(key) if key.kind != KeyEventKind::Release => self.key(key).await,
            TerminalEvent::Paste(text) => self.screen.paste(&text),
            // A new size is heard as a signal too: a key in the same moment would swallow this event.
            TerminalEvent::Resize(..) => terminal::look_again(),
            _ => {}
        }
    }

    /// Draws for the size that the terminal has now.
    fn fit(&mut self) {
        let (columns, rows) = Terminal::size();
        self.screen.resized(columns, rows);
        self.painter.resized(columns);
    }

    async fn key(&mut self, key: crossterm::event::KeyEvent) {
        self.tick();
        let Some(act) = self.screen.key(key) else { return };
        match act {
            KeyAction::Send(words) => self.send(&words),
            KeyAction::Steer(words) => self.steer(&words),
            KeyAction::Stop => self.cancel(),
            KeyAction::Leave => self.stop_and_leave(),
            KeyAction::Abandon => self.abandon(),
            KeyAction::Command(slash, rest) => self.command(slash, &rest).await,
            KeyAction::Reply(reply) => self.questions.answer(reply, &mut self.screen),
            KeyAction::FindFiles => files::find(&self.place.workspace, &self.found),
            KeyAction::NextMode => {
                if let Err(error) = self.next_mode() {
                    self.failed(&error);
                }
            }
            KeyAction::Redraw => self.redraw(),
        }
    }

    pub(crate) fn stop_and_leave(&mut self) {
        self.cancel();
        self.screen.stop();
        self.leaving = true;
    }

    /// With the terminal gone there is nobody left to talk to. The turn is stopped like by a key, so
    /// that what it runs does not go on for nobody.
    fn hung_up(&mut self) {
        self.gone = true;
        self.stop_and_leave();
    }

    /// Leaves without waiting: what was recorded is, and the keeper ends what runs.
    fn abandon(&mut self) -> ! {
        let _ = terminal::write(&self.painter.clear());
        terminal::give_back();
        if let Some(way_back) = self.place.way_back() {
            terminal::say(&format!("left in the middle of a turn; continue with: {way_back}"));
        }
        std::process::exit(Exit::Interrupted.code().into());
    }

    /// Says good-bye, ends what runs in the background, and gives the terminal back.
    async fn leave(mut self) -> Result<Exit, Error> {
        self.screen.lines(Vec::new());
        let above = self.screen.take_above();
        let last = self.painter.draw(&above, crate::chat::render::paint::Live::default());
        let _ = terminal::write(&last);
        let _ = terminal::write(&self.painter.clear());
        terminal::give_back();
        if let Some(way_back) = self.place.way_back() {
            terminal::say(&format!("continue with: {way_back}"));
        }
        if let Some(session) = self.session.take() {
            session.leave().await?;
        }
        self.place.agent.leave().await;
        Ok(Exit::Done)
    }

    pub(crate) fn failed(&mut self, error: &Error) {
        let hints: Vec<String> =
            error.hints.iter().map(|hint| self.place.paths.completed(hint)).collect();
        let hints: Vec<&str> = hints.iter().map(String::as_str).collect();
        self.screen.error(&error.message, &hints);
    }

    pub(crate) fn count_processes(&mut self) {
        if let Ok(processes) = self.place.processes() {
            let running = processes
                .iter()
                .filter(|process| process.state == mainstay_journal::process::State::Running);
            self.screen.status.processes = u64::try_from(running.count()).unwrap_or(0);
        }
    }

    /// Looks whether something in the background ended.
    fn check_background(&mut self) {
        if self.screen.status.processes == 0 || self.screen.is_working() {
            return;
        }
        if let Some(session) = &mut self.session {
            // What cannot be written down now is told with the next turn.
            let _ = session.look_after_processes();
        }
        self.count_processes();
    }

    pub(crate) fn tick(&mut self) {
        let since = self.began.elapsed().as_millis();
        self.screen.tick(u64::try_from(since).unwrap_or(u64::MAX));
    }

    fn draw(&mut self) -> io::Result<()> {
        if self.drawn.is_some_and(|drawn| drawn.elapsed() < FRAME) {
            return Ok(());
        }
        // The turn does not wait for a terminal that takes nothing; all is drawn when it does again.
        if terminal::is_behind() {
            self.drawn = Some(Instant::now());
            return Ok(());
        }
        self.tick();
        let above = self.screen.take_above();
        let picture = self.painter.draw(&above, self.screen.live());
        if !picture.is_empty() {
            terminal::write(&picture)?;
        }
        self.drawn = Some(Instant::now());
        self.dirty = false;
        Ok(())
    }

    /// Clears the screen and draws what is live; what was printed is in the scrollback.
    fn redraw(&mut self) {
        let cleared = format!("{}\x1b[H\x1b[2J", self.painter.clear());
        let _ = terminal::write(&cleared);
    }
}

/// Hears a signal, unless whoever started the program wants it ignored.
fn listen(kind: SignalKind) -> Result<Option<Signal>, Error> {
    interrupt::ignore_signals();
    if interrupt::is_ignored(kind.as_raw_value()) {
        return Ok(None);
    }
    let heard = signal(kind);
    heard.map(Some).map_err(|error| Error::failed(format!("could not listen for signals: {error}")))
}

async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}
