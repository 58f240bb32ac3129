//! The words between an agent and its keeper: JSON frames, each behind its length.

use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::ending::Ended;
use super::job::Job;
use super::status::Status;
use crate::sandbox::Specification;

/// A longer frame is a mistake.
const LONGEST: usize = 16 << 20;

/// What an agent asks. The number comes back with the answer; nobody waits for the answer to 0.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) number: u64,
    pub(crate) asks: Asks,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Asks {
    /// Takes part in a session; the answer lists its jobs.
    Attach { session: String },
    /// Starts a job that is not known yet. The answer comes at once.
    Start { job: Box<Job>, around: Around },
    /// Starts a job that is not known yet. The answer is its end.
    Run { job: Box<Job>, around: Around },
    /// Gets a job ready, whose process waits at a gate that comes with this as a descriptor. The answer
    /// is its end, or that it is not known where it cannot begin any more.
    Prepare { job: Box<Job>, around: Around },
    /// The answer is the end of the job.
    Await { key: String },
    /// How the job stands.
    Poll { key: String },
    /// Output from an offset.
    Read { key: String, offset: u64, limit: u64 },
    /// Bytes for its input.
    Write {
        key: String,
        #[serde(with = "encoded")]
        bytes: Vec<u8>,
    },
    /// The end of its input.
    CloseInput { key: String },
    /// Kills it with all it started. The answer comes when it is gone.
    Stop { key: String },
    /// Kills all jobs of a session. The answer comes when they are gone.
    StopSession { session: String },
    /// Secrets, by names that may be shown, that no output is to hold. Nobody waits for the answer.
    Secrets { secrets: Vec<(String, String)> },
    /// Hands this connection over: it becomes the input and the output of the job that is started with
    /// this key. After the answer it is the job's.
    Lend { key: String },
    /// The jobs of a session.
    List { session: String },
    /// Kills the jobs of all sessions of this connection. The answer comes when they are gone.
    Leave,
}

/// Where the environment and the sandbox of a job stand. They are long, and mostly the same from job to
/// job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Around {
    /// In the job.
    Told,
    /// In the last job of this connection that told them.
    AsBefore,
}

/// What surrounds a job, as one side of a connection remembers it.
#[derive(Debug, Default)]
pub(crate) struct Surroundings(Option<(Environment, Option<Specification>)>);

type Environment = Vec<(String, String)>;

impl Surroundings {
    /// Takes out of a job what the other side knows.
    pub(crate) fn shorten(&mut self, job: &mut Job) -> Around {
        let Job { environment, sandbox, .. } = job;
        match &self.0 {
            Some((known, around)) if known == environment && around == sandbox => {
                (*environment, *sandbox) = (Vec::new(), None);
                Around::AsBefore
            }
            _ => {
                self.0 = Some((environment.clone(), sandbox.clone()));
                Around::Told
            }
        }
    }

    /// Puts back what the other side took out. An error when it was never told.
    pub(crate) fn complete(&mut self, job: &mut Job, around: Around) -> io::Result<()> {
        match (around, &self.0) {
            (Around::Told, _) => self.0 = Some((job.environment.clone(), job.sandbox.clone())),
            (Around::AsBefore, Some((environment, sandbox))) => {
                (job.environment, job.sandbox) = (environment.clone(), sandbox.clone());
            }
            (Around::AsBefore, None) => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "nothing was told before"));
            }
        }
        Ok(())
    }
}

/// What a keeper says. Number 0 answers nothing: it is news.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Reply {
    pub(crate) number: u64,
    pub(crate) says: Says,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Says {
    Done,
    Jobs(Vec<Status>),
    Standing(Box<Status>),
    Ended(Box<Ended>),
    Output(Part),
    UnknownKey,
    Refused(String),
    /// A background job ended, or the last process that a job left behind.
    News {
        key: String,
        session: String,
        ended: Box<Ended>,
    },
}

/// A part of a job's output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Part {
    /// Where it starts; after the offset that was asked for if bytes were dropped.
    pub(crate) offset: u64,
    #[serde(with = "encoded")]
    pub(crate) bytes: Vec<u8>,
    /// How much there is in all.
    pub(crate) total: u64,
}

/// Turns a message into a frame.
pub(crate) fn frame(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, message)?;
    let length = frame.len() - 4;
    if length > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the message is too long"));
    }
    frame[..4].copy_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    Ok(frame)
}

/// Bytes that arrive in any pieces, and the messages in them.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    bytes: Vec<u8>,
    taken: usize,
}

impl Incoming {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.taken > 0 {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether what came first is this greeting. Returns `None` if too little came.
    pub(crate) fn begins_with(&mut self, greeting: &[u8]) -> Option<bool> {
        let begun = self.bytes.get(self.taken..self.taken + greeting.len())?;
        self.taken += greeting.len();
        Some(begun == greeting)
    }

    /// The next whole message; an error when the other side does not speak this language.
    pub(crate) fn next<M: DeserializeOwned>(&mut self) -> io::Result<Option<M>> {
        let rest = &self.bytes[self.taken..];
        let Some((length, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > LONGEST {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the message is too long"));
        }
        let Some(message) = rest.get(..length) else { return Ok(None) };
        let message = serde_json::from_slice(message)?;
        self.taken += 4 + length;
        Ok(Some(message))
    }
}

/// Bytes as base 64, so that any output fits into JSON.
pub(crate) mod encoded {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        STANDARD.decode(text.as_bytes()).map_err(D::Error::custom)
    }
}

/// The same for bytes that may be absent.
pub(crate) mod maybe_encoded {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::encoded;

    pub(crate) fn serialize<S: Serializer>(
        bytes: &Option<Vec<u8>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match bytes {
            Some(bytes) => encoded::serialize(bytes, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<u8>>, D::Error> {
        #[derive(Deserialize)]
        struct Bytes(#[serde(with = "encoded")] Vec<u8>);
        Ok(Option::<Bytes>::deserialize(deserializer)?.map(|bytes| bytes.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_whole_however_they_are_cut() {
        let bytes = vec![0, 255, 10];
        let asks = Asks::Write { key: "k".to_owned(), bytes: bytes.clone() };
        let one = frame(&Request { number: 7, asks }).unwrap();
        let stream = [one.clone(), one].concat();
        for step in 1..stream.len() {
            let mut incoming = Incoming::default();
            let mut seen = 0;
            for piece in stream.chunks(step) {
                incoming.push(piece);
                while let Some(request) = incoming.next::<Request>().unwrap() {
                    assert!(matches!(request.asks, Asks::Write { bytes: b, .. } if b == bytes));
                    seen += 1;
                }
            }
            assert_eq!(seen, 2);
        }
    }

    #[test]
    fn what_surrounds_a_job_is_told_once_and_again_when_it_changes() {
        let job = |value: &str| Job {
            key: "k".to_owned(),
            session: "s".to_owned(),
            program: crate::keeper::Program::Line("true".to_owned()),
            directory: "/".into(),
            environment: vec![("NAME".to_owned(), value.to_owned())],
            limits: crate::keeper::Limits::default(),
            input: false,
            background: false,
            given: None,
            streams: crate::keeper::Streams::default(),
            sandbox: None,
        };
        let (mut here, mut there) = (Surroundings::default(), Surroundings::default());
        let told = ["a", "a", "b", "b", "a"].map(|value| {
            let mut sent = job(value);
            let around = here.shorten(&mut sent);
            there.complete(&mut sent, around).unwrap();
            assert_eq!(sent, job(value));
            around
        });
        let (told_now, before) = (Around::Told, Around::AsBefore);
        assert_eq!(told, [told_now, before, told_now, before, told_now]);
        assert!(Surroundings::default().complete(&mut job("a"), before).is_err());
    }

    #[test]
    fn a_foreign_language_is_refused() {
        let mut incoming = Incoming::default();
        incoming.push(b"GET / HTTP/1.1\r\n");
        assert!(incoming.next::<Request>().is_err());
    }
}
