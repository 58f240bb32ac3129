//! The agent from outside: real processes, a real store, a scripted model.
#![allow(clippy::disallowed_methods, reason = "tests may do as they like")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is a test's error")]

mod approving;
mod approving_killed;
mod background;
mod cancelling;
mod chatting;
mod children;
mod choices;
mod choices_killed;
mod compacted;
mod compacting;
mod delegating;
mod demo;
mod faults;
mod hooks;
mod hooks_gone_bad;
mod inputs;
mod killed;
mod odd;
mod offered;
mod past;
mod postgres;
mod providers;
mod providers_gone_bad;
mod redaction;
mod remembering;
mod remembering_hurt;
mod sandbox;
mod searching;
mod sessions;
mod sharing;
mod skills;
mod skills_proposed;
mod tainting;
mod terminal;
mod tools_in_turns;
mod turns;
mod undo;
mod web;
mod world;
