//! The scripted model as a program, for benchmarks and tests that need it outside of their process:
//! rounds of tool calls, then a text. It ends when its standard input is closed.
//!
//!     model-server --rounds 100 --command 'echo {k} >> counter' --trusting

use std::io::{self, Read, Write};
use std::process::ExitCode;

use mainstay_testkit::model::{Checking, PreparedServer, rounds};
use serde_json::json;

const USAGE: &str = "\
Usage: model-server [--rounds N] [--parallel N] [--tool NAME] [--command TEXT] [--final TEXT] [--port P] [--trusting]
  --rounds N      rounds of tool calls before the final text; 1 by default
  --parallel N    calls in each round; 1 by default
  --tool NAME     the tool that is called, with an argument `command`; `shell` by default
  --command TEXT  that argument; {k} in it is the number of the call, from 0
  --final TEXT    what is said in the end
  --port P        where to listen; any free port by default
  --trusting      take requests as they are, without judging them";

struct Options {
    rounds: usize,
    parallel: usize,
    tool: String,
    command: String,
    end: Option<String>,
    port: u16,
    checking: Checking,
}

fn main() -> ExitCode {
    match options(std::env::args().skip(1)) {
        Ok(options) => match serve(options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&format!("Standard input or output failed: {error}.")),
        },
        Err(words) => fail(&format!("{words}\n{USAGE}")),
    }
}

fn fail(words: &str) -> ExitCode {
    eprintln!("{words}");
    ExitCode::from(2)
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        rounds: 1,
        parallel: 1,
        tool: "shell".to_owned(),
        command: "echo {k}".to_owned(),
        end: None,
        port: 0,
        checking: Checking::Strict,
    };
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{name} needs a value."));
        match name.as_str() {
            "--rounds" => options.rounds = number(&value()?)?,
            "--parallel" => options.parallel = number(&value()?)?,
            "--tool" => options.tool = value()?,
            "--command" => options.command = value()?,
            "--final" => options.end = Some(value()?),
            "--port" => options.port = number(&value()?)?,
            "--trusting" => options.checking = Checking::Trusting,
            _ => return Err(format!("{name} is not a valid option.")),
        }
    }
    if options.parallel == 0 {
        return Err("A round has at least one call.".to_owned());
    }
    Ok(options)
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("{text} is not a valid number."))
}

fn serve(options: Options) -> io::Result<()> {
    let Options { tool, command, .. } = options;
    let mut script = rounds(options.rounds, move |k| {
        (tool.clone(), json!({"command": command.replace("{k}", &k.to_string())}))
    })
    .in_parallel(options.parallel);
    if let Some(end) = options.end {
        script = script.finally(end);
    }
    let server = PreparedServer::start(options.port, script, options.checking);
    let mut output = io::stdout();
    writeln!(output, "{}", server.url())?;
    output.flush()?;
    let mut ignored = [0; 1024];
    while io::stdin().read(&mut ignored)? > 0 {}
    Ok(())
}
