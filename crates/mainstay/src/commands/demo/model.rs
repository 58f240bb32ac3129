//! A server on the loopback that stands for a model's provider: OpenAI's chat completions, as a
//! stream, from the script.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use super::script::{self, Says};

/// The longest request that is read.
const LONGEST: u64 = 4 << 20;
/// How long a client may take to send it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Starts the server. It answers for as long as the process lives and keeps nothing between requests.
pub(super) fn serve() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let address = listener.local_addr()?;
    std::thread::Builder::new().name("script".to_owned()).spawn(move || {
        for stream in listener.incoming().flatten() {
            // A request that breaks off is the client's to send again.
            let _ = converse(&stream);
        }
    })?;
    Ok(address)
}

/// Answers one request and ends the connection.
fn converse(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let body = request(stream)?;
    let answer = match serde_json::from_slice::<Value>(&body) {
        Ok(asked) => stream_of(&script::next(&results(&asked))),
        Err(error) => refusal(&error),
    };
    let mut stream = stream;
    stream.write_all(answer.as_bytes())
}

/// The body of a request. The path is not looked at: there is one thing to ask for.
fn request(stream: &TcpStream) -> io::Result<Vec<u8>> {
    let mut reader = BufReader::new(stream).take(LONGEST);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().map_err(|_| io::ErrorKind::InvalidData)?;
            }
            Some(_) => {}
            None if line.trim_end().is_empty() => break,
            None => {}
        }
    }
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body)?;
    Ok(body)
}

/// The texts of all results in a conversation.
fn results(asked: &Value) -> Vec<String> {
    let messages = asked["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    results.map(|message| text(&message["content"])).collect()
}

/// Words, whether they come alone or in parts.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

fn stream_of(says: &Says) -> String {
    let (delta, reason) = match says {
        Says::Call { number, tool, arguments } => (
            json!({ "role": "assistant", "tool_calls": [{
                "index": 0, "id": format!("call_{number}"), "type": "function",
                "function": { "name": tool, "arguments": arguments },
            }] }),
            "tool_calls",
        ),
        Says::Text(text) => (json!({ "role": "assistant", "content": text }), "stop"),
    };
    let mut answer = head("200 OK", "text/event-stream");
    for (delta, reason) in [(delta, None), (json!({}), Some(reason))] {
        let chunk = json!({
            "id": "script", "object": "chat.completion.chunk", "created": 0, "model": "script",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }],
        });
        answer.push_str(&format!("data: {chunk}\n\n"));
    }
    answer.push_str("data: [DONE]\n\n");
    answer
}

fn refusal(error: &serde_json::Error) -> String {
    let said = json!({ "error": { "message": format!("the request is not JSON: {error}") } });
    format!("{}{said}", head("400 Bad Request", "application/json"))
}

/// The end of the connection is the end of the answer.
fn head(status: &str, kind: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n")
}
