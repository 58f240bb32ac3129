//! A client small enough to see all bytes.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use mainstay_testkit::model::{ModelServer, Shape};
use serde_json::Value;

/// Long enough for any machine; a test that needs it has failed.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// A connection to the server.
pub(crate) struct Client {
    reader: BufReader<TcpStream>,
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// As HTTP demands.
    Whole,
    /// The connection was closed before that.
    Closed,
    /// The connection was reset before that.
    Reset,
    /// Nothing came any more.
    Silent,
}

/// An answer as far as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Zero where not even the head came.
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    /// One element a chunk; one element in all where the body had a length.
    pub(crate) chunks: Vec<Vec<u8>>,
    pub(crate) ending: Ending,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.chunks.concat()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text()).unwrap()
    }
}

/// One request on a connection of its own.
pub(crate) fn ask(server: &ModelServer, shape: Shape, body: &Value) -> Answer {
    Client::new(server).ask(shape, body)
}

impl Client {
    pub(crate) fn new(server: &ModelServer) -> Self {
        Self::at(&server.url())
    }

    pub(crate) fn at(url: &str) -> Self {
        let stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        Self { reader: BufReader::new(stream) }
    }

    /// Waits no longer than this for the next byte.
    pub(crate) fn patience(self, time: Duration) -> Self {
        self.reader.get_ref().set_read_timeout(Some(time)).unwrap();
        self
    }

    pub(crate) fn ask(&mut self, shape: Shape, body: &Value) -> Answer {
        self.send(shape, &body.to_string());
        self.read()
    }

    pub(crate) fn send(&mut self, shape: Shape, body: &str) {
        let path = format!("{}{}", shape.base_path(), shape.endpoint());
        self.send_to("POST", &path, body);
    }

    pub(crate) fn send_to(&mut self, method: &str, path: &str, body: &str) {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
             Anthropic-Version: 2023-06-01\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.send_bytes(request.as_bytes());
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).unwrap();
    }

    pub(crate) fn read(&mut self) -> Answer {
        let mut answer =
            Answer { status: 0, headers: Vec::new(), chunks: Vec::new(), ending: Ending::Whole };
        if let Err(ending) = self.read_into(&mut answer) {
            answer.ending = ending;
        }
        answer
    }

    fn read_into(&mut self, answer: &mut Answer) -> Result<(), Ending> {
        let line = self.line()?;
        answer.status = line.split(' ').nth(1).unwrap().parse().unwrap();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(": ") else { break };
            answer.headers.push((name.to_owned(), value.to_owned()));
        }
        if let Some(length) = answer.header("content-length") {
            let length = length.parse().unwrap();
            return self.bytes(length, answer);
        }
        assert_eq!(answer.header("transfer-encoding"), Some("chunked"));
        loop {
            let size = usize::from_str_radix(&self.line()?, 16).unwrap();
            if size == 0 {
                assert_eq!(self.line()?, "");
                return Ok(());
            }
            self.bytes(size, answer)?;
            assert_eq!(self.line()?, "");
        }
    }

    fn bytes(&mut self, length: usize, answer: &mut Answer) -> Result<(), Ending> {
        let mut bytes = Vec::new();
        let read = self.reader.by_ref().take(length as u64).read_to_end(&mut bytes);
        let came = bytes.len();
        answer.chunks.push(bytes);
        read.map_err(|error| ending(&error))?;
        if came < length { Err(Ending::Closed) } else { Ok(()) }
    }

    fn line(&mut self) -> Result<String, Ending> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(_) if line.ends_with("\r\n") => Ok(line.trim_end().to_owned()),
            Ok(_) => Err(Ending::Closed),
            Err(error) => Err(ending(&error)),
        }
    }
}

fn ending(error: &std::io::Error) -> Ending {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Ending::Silent,
        ErrorKind::ConnectionReset => Ending::Reset,
        _ => panic!("an unexpected error: {error}"),
    }
}
