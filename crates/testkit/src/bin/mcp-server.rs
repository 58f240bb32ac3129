//! An MCP server with memories that speaks through its standard input and output, honest or broken:
//!
//!     mcp-server well 'the user likes tabs'
//!
//! It appends each call to the file that the variable `CALLS` names, as a line of JSON.
#![allow(clippy::disallowed_methods, reason = "a program of the tests")]

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use mainstay_testkit::mcp::{McpServer, Mood};
use serde_json::Value;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let word = arguments.next().unwrap_or_default();
    let Some((_, mood)) = Mood::ALL.into_iter().find(|(name, _)| *name == word) else {
        eprintln!("Usage: mcp-server MOOD [MEMORY…]");
        return ExitCode::from(2);
    };
    if mood == Mood::Stillborn {
        eprintln!("there is no database");
        return ExitCode::from(7);
    }
    let server = McpServer::new(arguments, mood);
    match serve(&server) {
        Ok(code) => code,
        // Whoever asked is gone.
        Err(_) => ExitCode::SUCCESS,
    }
}

fn serve(server: &McpServer) -> io::Result<ExitCode> {
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line?) else { continue };
        let is_call = message["method"] == "tools/call";
        match server.mood() {
            Mood::Dumb => continue,
            Mood::Hangs if is_call => continue,
            Mood::Dies if is_call => return Ok(ExitCode::from(3)),
            Mood::Garbage if is_call => {
                writeln!(output, "Welcome! {{ this is no message")?;
                continue;
            }
            Mood::Floods if is_call => loop {
                writeln!(output, "{}", "flood ".repeat(1_000))?;
            },
            _ => {}
        }
        let Some(mut answer) = server.answer(&message) else { continue };
        if is_call {
            note(server)?;
            if server.mood() == Mood::Refuses {
                answer["result"] = serde_json::json!({
                    "content": [{ "type": "text", "text": "not you" }], "isError": true,
                });
            }
        }
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the last call down.
fn note(server: &McpServer) -> io::Result<()> {
    let (Some(path), Some(call)) = (std::env::var_os("CALLS"), server.calls().pop()) else {
        return Ok(());
    };
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
    writeln!(file, "{call}")
}
