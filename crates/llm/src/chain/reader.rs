//! The body of a response, from bytes to an answer, whichever way the server frames it.

use crate::stream::{Collector, Lines, Sse, TooLong};
use crate::wire::{Decoder, Ending, Progress, Said, Wrong};
use crate::{Api, Limits};

/// How the body is framed; its first byte tells, because servers mislabel it.
enum Framing {
    Unknown,
    Events(Lines, Sse),
    Objects(Lines),
    /// No stream at all: an answer in one piece, or a page of somebody in between.
    Whole(Vec<u8>),
}

/// So many bytes of a line that has no end yet are a sign of life: it is long, and not dripping.
const SIGN_BYTES: usize = 1 << 10;

/// Reads one body.
pub(super) struct Reader {
    framing: Framing,
    decoder: Decoder,
    progress: Progress,
    api: Api,
    event_bytes: usize,
    left: usize,
    /// Whether a whole line came since that was last asked.
    sign: bool,
    /// Bytes since the last sign of life.
    unsigned: usize,
    /// The first bytes, to show when nothing else can be said.
    head: Vec<u8>,
    events: bool,
}

impl From<TooLong> for Wrong {
    fn from(_: TooLong) -> Wrong {
        Wrong::Garbage("an event of the stream is longer than allowed".to_owned())
    }
}

impl Reader {
    pub(super) fn new(api: Api, limits: &Limits) -> Reader {
        Reader {
            framing: Framing::Unknown,
            decoder: Decoder::new(api),
            progress: Progress::Open,
            api,
            event_bytes: limits.event_bytes,
            left: limits.answer_bytes,
            sign: false,
            unsigned: 0,
            head: Vec::new(),
            events: false,
        }
    }

    /// Takes the next bytes.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        into: &mut Collector<'_>,
    ) -> Result<Progress, Wrong> {
        let too_long = || Wrong::Garbage("the answer is longer than allowed".to_owned());
        self.left = self.left.checked_sub(bytes.len()).ok_or_else(too_long)?;
        let room = 300_usize.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        self.recognise(bytes);
        let decoder = &mut self.decoder;
        let progress = &mut self.progress;
        let events = &mut self.events;
        let sign = &mut self.sign;
        let mut event = |data: &[u8]| -> Result<(), Wrong> {
            // What follows the end marker is nobody's.
            if *progress != Progress::Ended {
                *progress = decoder.event(data, into)?;
                *events = true;
            }
            Ok(())
        };
        match &mut self.framing {
            Framing::Unknown => {}
            Framing::Events(lines, sse) => lines.feed(bytes, |line| {
                *sign |= !line.is_empty();
                match sse.line(line)? {
                    Some(data) => event(&data),
                    None => Ok(()),
                }
            })?,
            Framing::Objects(lines) => lines.feed(bytes, |line| {
                *sign |= !line.is_empty();
                event(line)
            })?,
            Framing::Whole(body) => body.extend_from_slice(bytes),
        }
        self.unsigned += bytes.len();
        if self.sign || self.unsigned >= SIGN_BYTES {
            self.sign = true;
            self.unsigned = 0;
        }
        Ok(self.progress)
    }

    /// Whether the server gave a sign of life since this was last asked.
    pub(super) fn take_sign(&mut self) -> bool {
        std::mem::take(&mut self.sign)
    }

    fn recognise(&mut self, bytes: &[u8]) {
        if !matches!(self.framing, Framing::Unknown) {
            return;
        }
        let Some(first) = bytes.trim_ascii_start().first() else { return };
        let lines = Lines::new(self.event_bytes);
        self.framing = match (self.api, first) {
            (_, b'<') => Framing::Whole(Vec::new()),
            (Api::Ollama, _) => Framing::Objects(lines),
            (_, b'{' | b'[') => Framing::Whole(Vec::new()),
            _ => Framing::Events(lines, Sse::new(self.event_bytes)),
        };
    }

    /// Takes the end of the body. The answer is whole only if its end marker came.
    pub(super) fn end(&mut self, into: &mut Collector<'_>) -> Result<(), Wrong> {
        if self.progress == Progress::Ended {
            return Ok(());
        }
        let last = match &mut self.framing {
            Framing::Unknown => None,
            Framing::Events(lines, sse) => {
                let rest = lines.rest();
                let whole = if rest.is_empty() { None } else { sse.line(&rest)? };
                whole.or_else(|| sse.end())
            }
            Framing::Objects(lines) => Some(lines.rest()),
            Framing::Whole(body) => {
                let body = std::mem::take(body);
                self.progress = match self.decoder.whole(&body, into) {
                    Ok(progress) => progress,
                    Err(Wrong::Said(said)) => return Err(Wrong::Said(said)),
                    Err(Wrong::Garbage(_)) => Progress::Open,
                };
                None
            }
        };
        if let Some(data) = last {
            match self.decoder.event(&data, into) {
                Ok(progress) => self.progress = progress,
                Err(Wrong::Said(said)) => return Err(Wrong::Said(said)),
                // A last event that was cut: what counts is whether the marker came before it.
                Err(Wrong::Garbage(_)) => {}
            }
        }
        if self.progress == Progress::Open {
            Err(Wrong::Garbage(self.unfinished()))
        } else {
            Ok(())
        }
    }

    fn unfinished(&self) -> String {
        let head = Said::read(&self.head).words;
        match (&self.framing, head.is_empty()) {
            (_, true) => "the answer is empty".to_owned(),
            (Framing::Whole(_), false) => format!("the answer is not what was asked for: {head}"),
            (_, false) if self.events => "the stream ended without its end marker".to_owned(),
            (_, false) => format!("the stream ended without its end marker: {head}"),
        }
    }

    pub(super) fn ending(&self) -> Ending {
        self.decoder.ending()
    }
}
