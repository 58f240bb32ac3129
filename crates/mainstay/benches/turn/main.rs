//! What a turn costs, as ratios measured in one run: `cargo bench -p mainstay`.
//!
//! The machine may be noisy and slow: nothing here judges an absolute time, except where a start is
//! compared with that of `/bin/true`, measured beside it. Ends with 1 when a bar does not hold.
#![allow(clippy::disallowed_methods, reason = "a benchmark stands outside the product's seams")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is a benchmark's error")]

mod bare;
mod growth;
mod long;
mod measure;
mod memory;
mod report;
mod round;
mod scene;
mod start;
mod writes;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some(bare::WORD) => bare::run(&words[1..]),
        Some(scene::SERVE) => scene::serve(&words[1..]),
        _ => {
            let mut report = report::Report::default();
            round::measure(&mut report);
            growth::measure(&mut report);
            start::measure(&mut report);
            memory::measure(&mut report);
            writes::measure(&mut report);
            long::measure(&mut report);
            report.end();
        }
    }
}
