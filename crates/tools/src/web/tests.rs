//! `fetch` and `web_search` against servers on loopback.
#![allow(clippy::disallowed_methods, reason = "tests stand outside the product's seams")]

mod fetching;
mod searching;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use mainstay_testkit::web::{Page, Visit, WebServer};
use serde_json::Value;

use super::{Fetch, Web};
use crate::keeper::Launch;
use crate::{Action, Grant, Invocation, Keeper, Outcome, Piece, Tool, Workplace};

fn workplace() -> Workplace {
    // Nothing here starts it.
    let keeper = Keeper::new(Launch {
        program: "/nonexistent".into(),
        arguments: Vec::new(),
        spool: "/nonexistent".into(),
        grace: Duration::ZERO,
    });
    Workplace::new("/", keeper)
}

async fn call(tool: &dyn Tool, arguments: &Value) -> Outcome {
    let workplace = workplace();
    tool.run(
        Invocation {
            id: "c",
            session: "s",
            arguments,
            workplace: &workplace,
            grant: Grant::NONE,
            target: None,
        },
        None,
    )
    .await
}

fn action(tool: &dyn Tool, arguments: &Value) -> Action {
    let workplace = workplace();
    tool.action(&Invocation {
        id: "c",
        session: "s",
        arguments,
        workplace: &workplace,
        grant: Grant::NONE,
        target: None,
    })
}

/// A tool that may reach these servers, though they are on this machine.
fn fetch(servers: &[&WebServer]) -> Fetch {
    let places: Vec<String> = servers.iter().map(|server| server.place()).collect();
    Fetch::new(Web::new(&places).unwrap())
}

fn said(outcome: &Outcome) -> String {
    let words = outcome.pieces.iter().filter_map(|piece| match piece {
        Piece::Said(words) => Some(words.as_str()),
        _ => None,
    });
    words.collect::<Vec<_>>().join("\n")
}

fn data(outcome: &Outcome) -> String {
    let words = outcome.pieces.iter().filter_map(|piece| match piece {
        Piece::Data(words) => Some(words.as_str()),
        _ => None,
    });
    words.collect::<Vec<_>>().join("\n")
}
