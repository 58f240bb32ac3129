//! Durable commits a second, as ratios to the disk and to a bare SQLite loop, in one run.
//!
//! The machine may be noisy, so every contender runs in every round and the figures are medians
//! over the rounds; compare the ratios, not the absolute numbers.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark is a test"
)]

mod bare;
mod contender;
mod processes;
mod threads;

use contender::{Contender, Figures};

const ROUNDS: usize = 7;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [role, store] = arguments.as_slice()
        && role == processes::ROLE
    {
        return processes::child(store);
    }
    let place = contender::Place::new();
    println!("{ROUNDS} rounds on {}, medians", place.description());
    let contenders: Vec<Contender> = vec![
        Contender::new("raw write and fdatasync", bare::sync),
        Contender::new("bare SQLite loop, FULL", bare::sqlite),
        Contender::new("store, 1 writer", |place| threads::write(place, 1)),
        Contender::new("store, 8 writers", |place| threads::write(place, 8)),
        Contender::new("store, 64 writers", |place| threads::write(place, 64)),
        Contender::new("store, 1 process", |place| processes::write(place, 1)),
        Contender::new("store, 2 processes", |place| processes::write(place, 2)),
        Contender::new("store, 4 processes", |place| processes::write(place, 4)),
        Contender::new("store, 8 processes", |place| processes::write(place, 8)),
        Contender::new("reads, no writer", |place| threads::read(place, 0)),
        Contender::new("reads beside 8 writers", |place| threads::read(place, 8)),
    ];
    let figures = contender::run(&contenders, &place, ROUNDS);
    table(&contenders, &figures);
    if !bars(&figures) {
        std::process::exit(1);
    }
}

fn table(contenders: &[Contender], figures: &[Figures]) {
    let (raw, bare) = (figures[0].rate, figures[1].rate);
    println!(
        "\n{:<26}{:>10}{:>10}{:>10}{:>11}{:>11}{:>11}",
        "", "per s", "× raw", "× bare", "p50 ms", "p99 ms", "worst ms"
    );
    for (contender, figures) in contenders.iter().zip(figures) {
        println!(
            "{:<26}{:>10.0}{:>10.2}{:>10.2}{:>11.3}{:>11.3}{:>11.1}",
            contender.name,
            figures.rate,
            figures.rate / raw,
            figures.rate / bare,
            figures.median,
            figures.slow,
            figures.worst,
        );
    }
}

/// The promises, each as a ratio measured in this run.
fn bars(figures: &[Figures]) -> bool {
    let ratio = |one: usize, other: usize| contender::ratio(&figures[one], &figures[other]);
    let worst = figures[8].worst;
    println!();
    [
        bar("one writer, to the bare loop", ratio(2, 1), ">= 0.5", |ratio| ratio >= 0.5),
        bar("64 writers, to the bare loop", ratio(4, 1), ">= 5", |ratio| ratio >= 5.0),
        bar("eight processes, to one", ratio(8, 5), ">= 1", |ratio| ratio >= 1.0),
        bar("longest wait of eight processes, s", worst / 1000.0, "< 0.5", |wait| wait < 0.5),
    ]
    .iter()
    .all(|holds| *holds)
}

fn bar(name: &str, value: f64, wanted: &str, holds: fn(f64) -> bool) -> bool {
    let verdict = if holds(value) { "holds" } else { "DOES NOT HOLD" };
    println!("{name:<38}{value:>8.2}   wanted {wanted:<8}{verdict}");
    holds(value)
}
