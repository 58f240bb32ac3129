//! Sending an answer, whole or broken on purpose.

use std::io;
use std::time::Duration;

use super::http::{Framing, LAST_CHUNK, chunk, head};
use super::listener::{Connection, Next, Silence};
use super::render;
use super::{Gate, Shape};

/// How often a held answer looks at its gate; between two looks it watches the client.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// How an answer is sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Delivery {
    pub(super) gate: Option<Gate>,
    pub(super) after: Duration,
    pub(super) between: Duration,
    pub(super) piece: Option<usize>,
    pub(super) comments: bool,
    pub(super) reset: bool,
    pub(super) end: End,
}

/// How an answer ends.
#[derive(Clone, Debug, Default)]
pub(super) enum End {
    #[default]
    Whole,
    CutBeforeFirstByte,
    CutAfter(usize),
    CutInside(usize),
    StallBeforeFirstByte,
    StallAfter(usize),
    DripAfter {
        events: usize,
        drip: Vec<u8>,
    },
    WholeAfter(usize),
    WithoutMarker,
    ErrorAfter {
        events: usize,
        kind: String,
        words: String,
    },
    GarbageAfter(usize),
}

/// An answer as bytes, not sent yet.
pub(super) struct Rendered {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) framing: Framing,
    pub(super) events: Vec<Vec<u8>>,
}

/// What follows the last event.
#[derive(Clone, PartialEq, Eq)]
enum Last {
    End,
    Cut,
    Stall,
    Drip(Vec<u8>),
}

impl Delivery {
    /// Sends an answer and says what becomes of the connection.
    pub(super) fn send(
        &self,
        mut answer: Rendered,
        shape: Shape,
        connection: &mut Connection,
    ) -> io::Result<Next> {
        let cut = if self.reset { Next::Reset } else { Next::Close };
        while self.gate.as_ref().is_some_and(|gate| !gate.is_open()) {
            if connection.silence(Some(LOOK_AGAIN))? == Silence::Gone {
                return Ok(Next::Close);
            }
        }
        if !self.after.is_zero() && connection.silence(Some(self.after))? == Silence::Gone {
            return Ok(Next::Close);
        }
        match self.end {
            End::CutBeforeFirstByte => return Ok(cut),
            End::StallBeforeFirstByte => {
                connection.silence(None)?;
                return Ok(cut);
            }
            _ => {}
        }
        let last = self.shorten(&mut answer.events, shape);
        if self.comments && shape != Shape::Ollama {
            for event in &mut answer.events {
                event.splice(0..0, *b": PROCESSING\n\n");
            }
        }
        connection.send(&head(answer.status, &answer.headers, answer.framing))?;
        let pieces = match self.piece {
            Some(size) => {
                answer.events.concat().chunks(size).map(<[u8]>::to_vec).collect::<Vec<_>>()
            }
            None => answer.events,
        };
        let sent: usize = pieces.iter().map(Vec::len).sum();
        for (number, piece) in pieces.iter().enumerate() {
            let pause = number > 0 && !self.between.is_zero();
            if pause && connection.silence(Some(self.between))? == Silence::Gone {
                return Ok(Next::Close);
            }
            match answer.framing {
                Framing::Chunked => connection.send(&chunk(piece))?,
                Framing::Length(_) => connection.send(piece)?,
            }
        }
        match last {
            Last::End => match answer.framing {
                Framing::Chunked => connection.send(LAST_CHUNK).map(|()| Next::Keep),
                Framing::Length(length) if length == sent => Ok(Next::Keep),
                // The client waits for more than there is; only the end of the connection tells.
                Framing::Length(_) => Ok(cut),
            },
            Last::Cut => Ok(cut),
            Last::Stall => {
                connection.silence(None)?;
                Ok(cut)
            }
            Last::Drip(drip) => {
                while connection.silence(Some(self.between))? == Silence::Over {
                    connection.send(&chunk(&drip))?;
                }
                Ok(Next::Close)
            }
        }
    }

    /// Panics where the answer has too few events for the end that the script wants: a test that
    /// believes to cut must cut.
    pub(super) fn assert_possible(&self, events: usize) {
        let needed = match self.end {
            End::Whole | End::CutBeforeFirstByte | End::StallBeforeFirstByte => 0,
            End::WithoutMarker => 1,
            End::CutInside(whole) => whole + 1,
            End::CutAfter(whole)
            | End::StallAfter(whole)
            | End::DripAfter { events: whole, .. }
            | End::WholeAfter(whole)
            | End::ErrorAfter { events: whole, .. }
            | End::GarbageAfter(whole) => whole,
        };
        assert!(needed <= events, "The reply has {events} events, and the script wants {needed}.");
    }

    /// Leaves of the events what is to be sent.
    fn shorten(&self, events: &mut Vec<Vec<u8>>, shape: Shape) -> Last {
        match &self.end {
            End::Whole | End::CutBeforeFirstByte | End::StallBeforeFirstByte => Last::End,
            End::CutAfter(whole) => {
                events.truncate(*whole);
                Last::Cut
            }
            End::CutInside(whole) => {
                events.truncate(whole + 1);
                if let Some(event) = events.last_mut() {
                    event.truncate(event.len() / 2);
                }
                Last::Cut
            }
            End::StallAfter(whole) => {
                events.truncate(*whole);
                Last::Stall
            }
            End::DripAfter { events: whole, drip } => {
                events.truncate(*whole);
                Last::Drip(drip.clone())
            }
            End::WholeAfter(whole) => {
                events.truncate(*whole);
                Last::End
            }
            End::WithoutMarker => {
                events.pop();
                Last::End
            }
            End::ErrorAfter { events: whole, kind, words } => {
                events.truncate(*whole);
                events.extend(render::error_events(shape, kind, words));
                Last::End
            }
            End::GarbageAfter(whole) => {
                events.truncate(*whole);
                events.push(render::garbage(shape));
                Last::End
            }
        }
    }
}
