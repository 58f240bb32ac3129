//! The wire formats: each has an encoder, which writes a request straight to bytes, and a decoder,
//! which reads one event at a time. Neither knows of sockets, retries or other candidates.

mod anthropic;
mod chat;
mod classify;
mod conversation;
mod ids;
mod json;
mod ollama;
mod quirks;
mod responses;
mod said;
mod tokens;

#[cfg(test)]
mod validity;

use mainstay_message::Usage;

pub(crate) use classify::{Verdict, classify};
pub(crate) use quirks::{Parameter, Quirks, Retreat};
pub(crate) use said::Said;

use crate::stream::Collector;
use crate::{Api, Candidate, Request, Stop};

/// The body of a request.
pub(crate) fn encode(
    candidate: &Candidate,
    request: &Request<'_>,
    quirks: &Quirks,
) -> Result<Vec<u8>, serde_json::Error> {
    match candidate.provider.api {
        Api::OpenAiChat => chat::encode(candidate, request, quirks),
        Api::OpenAiResponses => responses::encode(candidate, request, quirks),
        Api::Anthropic => anthropic::encode(candidate, request, quirks),
        Api::Ollama => ollama::encode(candidate, request, quirks),
    }
}

/// The limit of output that a request names, if it names one.
pub(crate) fn max_output(
    candidate: &Candidate,
    request: &Request<'_>,
    quirks: &Quirks,
) -> Option<u32> {
    if candidate.provider.api == Api::Anthropic {
        return Some(anthropic::most(candidate, request, quirks));
    }
    let most = request.max_output.or(candidate.max_output)?;
    Some(quirks.output_cap.map_or(most, |cap| most.min(cap)))
}

/// What an event means for the stream as a whole.
#[derive(Debug)]
pub(crate) enum Wrong {
    /// The provider reports an error inside the stream.
    Said(Said),
    /// The event is not what the format says.
    Garbage(String),
}

impl From<serde_json::Error> for Wrong {
    fn from(error: serde_json::Error) -> Wrong {
        Wrong::Garbage(format!("could not read an event: {error}"))
    }
}

/// How far the stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More must come.
    Open,
    /// The answer is whole, but more may come, such as the usage.
    Whole,
    /// Nothing more will come.
    Ended,
}

/// What a decoder learned besides the parts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ending {
    pub(crate) stop: Option<Stop>,
    pub(crate) usage: Option<Usage>,
}

/// Reads the events of one answer.
pub(crate) enum Decoder {
    Chat(chat::Decoder),
    Responses(responses::Decoder),
    Anthropic(anthropic::Decoder),
    Ollama(ollama::Decoder),
}

impl Decoder {
    pub(crate) fn new(api: Api) -> Decoder {
        match api {
            Api::OpenAiChat => Decoder::Chat(chat::Decoder::default()),
            Api::OpenAiResponses => Decoder::Responses(responses::Decoder::default()),
            Api::Anthropic => Decoder::Anthropic(anthropic::Decoder::default()),
            Api::Ollama => Decoder::Ollama(ollama::Decoder::default()),
        }
    }

    /// Takes the data of one event.
    pub(crate) fn event(
        &mut self,
        data: &[u8],
        into: &mut Collector<'_>,
    ) -> Result<Progress, Wrong> {
        match self {
            Decoder::Chat(decoder) => decoder.event(data, into),
            Decoder::Responses(decoder) => decoder.event(data, into),
            Decoder::Anthropic(decoder) => decoder.event(data, into),
            Decoder::Ollama(decoder) => decoder.event(data, into),
        }
    }

    /// Takes a whole answer that was not streamed.
    pub(crate) fn whole(
        &mut self,
        body: &[u8],
        into: &mut Collector<'_>,
    ) -> Result<Progress, Wrong> {
        match self {
            Decoder::Chat(decoder) => decoder.event(body, into),
            Decoder::Responses(decoder) => decoder.whole(body, into),
            Decoder::Anthropic(decoder) => decoder.whole(body, into),
            Decoder::Ollama(decoder) => decoder.event(body, into),
        }
    }

    /// Why the model stopped and what it took, as far as was told.
    pub(crate) fn ending(&self) -> Ending {
        match self {
            Decoder::Chat(decoder) => decoder.ending(),
            Decoder::Responses(decoder) => decoder.ending(),
            Decoder::Anthropic(decoder) => decoder.ending(),
            Decoder::Ollama(decoder) => decoder.ending(),
        }
    }
}
