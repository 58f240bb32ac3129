//! The bare loop: the same requests over the same kind of connection, and `sh -c`. No journal, no
//! keeper, no limits: what any agent pays.

use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

pub(crate) const WORD: &str = "--bare-loop";

/// A command that runs the bare loop against a model.
pub(crate) fn command(url: &str, directory: &std::path::Path, like: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([WORD, url, like])
        .current_dir(directory)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(std::process::Stdio::null());
    command
}

/// Runs it; prints the time of each round in microseconds.
pub(crate) fn run(words: &[String]) {
    let (url, like) = (&words[0], &words[1]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(rounds(url, like));
}

async fn rounds(url: &str, like: &str) {
    // The first request of the product, so that the same bytes are sent.
    let mut request: Value = serde_json::from_str(like).unwrap();
    let client =
        reqwest::Client::builder().use_preconfigured_tls(no_certificates()).build().unwrap();
    let address = format!("{url}/v1/chat/completions");
    loop {
        let start = Instant::now();
        let body = serde_json::to_vec(&request).unwrap();
        let answer = client
            .post(&address)
            .header("content-type", "application/json")
            .body(body)
            .send()
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap();
        let (text, calls) = parse(&answer);
        if calls.is_empty() {
            assert!(!text.is_empty());
            return;
        }
        let messages = request["messages"].as_array_mut().unwrap();
        messages.push(json!({ "role": "assistant", "content": null, "tool_calls": calls }));
        for call in &calls {
            let arguments = call["function"]["arguments"].as_str().unwrap();
            let arguments: Value = serde_json::from_str(arguments).unwrap();
            let output = Command::new("sh")
                .args(["-c", arguments["command"].as_str().unwrap()])
                .stdin(std::process::Stdio::null())
                .output()
                .unwrap();
            let text = format!(
                "exit code {}\n{}",
                output.status.code().unwrap(),
                String::from_utf8_lossy(&output.stdout)
            );
            messages.push(json!({ "role": "tool", "tool_call_id": call["id"], "content": text }));
        }
        println!("{}", start.elapsed().as_micros());
    }
}

/// Puts the pieces of a stream together.
fn parse(stream: &[u8]) -> (String, Vec<Value>) {
    let (mut text, mut calls) = (String::new(), Vec::<Value>::new());
    for line in std::str::from_utf8(stream).unwrap().lines() {
        let Some(data) = line.strip_prefix("data: ") else { continue };
        if data == "[DONE]" {
            break;
        }
        let event: Value = serde_json::from_str(data).unwrap();
        let delta = &event["choices"][0]["delta"];
        text.push_str(delta["content"].as_str().unwrap_or_default());
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            let index = usize::try_from(piece["index"].as_u64().unwrap_or(0)).unwrap();
            if index == calls.len() {
                calls.push(json!({ "type": "function", "id": piece["id"],
                    "function": { "name": piece["function"]["name"], "arguments": "" } }));
            }
            let more = piece["function"]["arguments"].as_str().unwrap_or_default();
            let before = calls[index]["function"]["arguments"].as_str().unwrap().to_owned();
            calls[index]["function"]["arguments"] = json!(before + more);
        }
    }
    (text, calls)
}

/// Loading certificates is no part of a loop over loopback.
fn no_certificates() -> rustls::ClientConfig {
    rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth()
}
