//! Compacts a session, for the tests of several who want to.
//!
//! Usage: `compactor STORE MODEL_URL SESSION LEASE_MILLIS`. It says `held by PID`, or `compacting` and
//! then what came of it.

#![allow(clippy::expect_used, reason = "a tool of the tests")]

use std::sync::Arc;
use std::time::Duration;

use mainstay_agent::{Agent, Compacted, Opened, Settings};
use mainstay_journal::session;
use mainstay_llm::{Api, Candidate, Provider};
use mainstay_store::{Location, Options, Store};
use mainstay_tools::Keeper;
use mainstay_tools::keeper::Launch;
use tokio_util::sync::CancellationToken;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [store, url, typed, lease] = arguments.as_slice() else {
        panic!("Usage: compactor STORE MODEL_URL SESSION LEASE_MILLIS");
    };
    let location: Location = store.parse().expect("a store");
    let options = Options::new(mainstay_agent::schema()).existing();
    let store = Store::open(&location, options).expect("the store opens");
    let owner = store.write(|tx| tx.owner("me")).expect("an owner");
    let session = store.read(|tx| session::find(tx, owner, typed)).expect("a session");
    let keeper = Keeper::new(Launch {
        program: "/nonexistent".into(),
        arguments: Vec::new(),
        spool: "/nonexistent".into(),
        grace: Duration::ZERO,
    });
    let provider =
        Provider::without_key("local", Api::OpenAiChat, url.parse().expect("an address"));
    let candidate = Candidate::new(provider, "qwen");
    let lease = Duration::from_millis(lease.parse().expect("a number"));
    let settings = Settings { chain: vec![Arc::new(candidate)], lease, ..Settings::default() };
    let agent = Agent::new(store, owner, keeper, settings);
    let mut work = match agent.open(session.id).expect("an answer") {
        Opened::Got(work) => work,
        Opened::Held(holder) => return println!("held by {}", holder.process.pid),
    };
    println!("compacting");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let cancel = CancellationToken::new();
    match runtime.block_on(work.compact(None, &mut |_| {}, &cancel)) {
        Ok(Compacted::Made { number, .. }) => println!("made {number}"),
        Ok(Compacted::Not(why)) => println!("not: {why}"),
        Ok(Compacted::Stopped) => println!("stopped"),
        Err(error) => println!("error: {error}"),
    }
}
