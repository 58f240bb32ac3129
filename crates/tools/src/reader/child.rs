//! The child that reads a document: its limits, its input, its answer.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, getppid, setrlimit};

use super::{Pages, pdf};

/// The most memory: a gibibyte of addresses.
const MEMORY: u64 = 1 << 30;
/// Seconds of the processor.
const WORK: u64 = 20;
/// The largest document: 64 MiB.
const INPUT: u64 = 64 << 20;
/// Room for what recurses.
const STACK: usize = 16 << 20;
/// How often it is looked whether the agent lives.
const STEP: Duration = Duration::from_millis(100);

/// Reads the document at standard input and answers at standard output. The words are the agent's
/// process, the first page and the number of pages.
pub fn serve(words: impl Iterator<Item = OsString>) -> ExitCode {
    let mut numbers = words.map(|word| word.to_str()?.parse::<u64>().ok());
    let mut next = || numbers.next().flatten();
    let (Some(agent), Some(first), Some(count)) = (next(), next(), next()) else {
        return ExitCode::FAILURE;
    };
    confine();
    watch(agent);
    let reading = thread::Builder::new().stack_size(STACK).spawn(move || {
        let mut bytes = Vec::new();
        let read = io::stdin().lock().take(INPUT + 1).read_to_end(&mut bytes);
        match read {
            Err(error) => Err(format!("could not read it: {error}")),
            Ok(_) if bytes.len() as u64 > INPUT => Err("it is larger than 64 MiB".to_owned()),
            Ok(_) => pdf::read(bytes, Pages { first, count }),
        }
    });
    let Some(answer) = reading.ok().and_then(|reading| reading.join().ok()) else {
        return ExitCode::FAILURE;
    };
    let written = serde_json::to_vec(&answer)
        .map_err(io::Error::from)
        .and_then(|answer| io::stdout().lock().write_all(&answer));
    if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Takes away what a reader does not need. A limit that the system does not have is none.
fn confine() {
    let limits = [
        (Resource::As, MEMORY),
        (Resource::Cpu, WORK),
        (Resource::Fsize, 0),
        (Resource::Core, 0),
        (Resource::Nofile, 3),
    ];
    for (resource, most) in limits {
        let _ = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    }
}

/// Ends this process when the agent has gone.
fn watch(agent: u64) {
    let lives = move || {
        let parent = getppid().map(Pid::as_raw_nonzero);
        parent.is_some_and(|parent| u64::try_from(parent.get()) == Ok(agent))
    };
    // Without the thread the limit on its work ends it.
    let _ = thread::Builder::new().stack_size(64 << 10).spawn(move || {
        while lives() {
            thread::sleep(STEP);
        }
        std::process::exit(1);
    });
}
