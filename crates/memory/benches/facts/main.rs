//! Adding and recalling facts as their number grows.
//!
//! Usage: `cargo bench -p mainstay-memory -- [SIZE…]`, by default 1000 10000 100000. One store grows
//! through the sizes; figures are medians. Exits 1 where a bar does not hold.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark is a test"
)]

mod cold;
mod report;
mod sentences;
mod stage;

use report::Report;
use stage::{Figures, Stage};

const RECALL_MS: f64 = 20.0;
const LOG_MIB: f64 = 14.0;

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|given| given != "--bench").collect();
    if let [role, store, query] = arguments.as_slice()
        && role == cold::ROLE
    {
        return cold::child(store, query);
    }
    let mut sizes: Vec<usize> =
        arguments.iter().map(|size| size.parse().expect("sizes are numbers")).collect();
    if sizes.is_empty() {
        sizes = vec![1_000, 10_000, 100_000];
    }
    sizes.sort_unstable();
    let mut stage = Stage::new();
    let mut report = Report::default();
    let figures: Vec<Figures> = sizes.iter().map(|size| stage.grow(*size)).collect();
    for (size, figures) in sizes.iter().zip(&figures) {
        println!("\n{size} facts");
        show(&mut report, figures);
    }
    println!();
    compare(&mut report, &sizes, &figures);
    report.end();
}

fn show(report: &mut Report, figures: &Figures) {
    report.note("adding, 50 a commit", &format!("{:.3} ms a fact", figures.add_in_batch));
    report.note("adding, one a commit", &format!("{:.3} ms", figures.add_alone));
    report.note(
        "  of which computing, outside the transaction",
        &format!("{:.3} ms", figures.prepare),
    );
    report.at_most("recall of the top 5, median", figures.recall.median, RECALL_MS, " ms");
    report.note("  of which computing", &format!("{:.2} ms", figures.recall.computing));
    report.note("recall of the top 5, 95th percentile", &format!("{:.2} ms", figures.recall.slow));
    report.at_most(
        "recall by the most common words, median",
        figures.asked.common.median,
        RECALL_MS,
        " ms",
    );
    report.note("  of which computing", &format!("{:.2} ms", figures.asked.common.computing));
    report.at_most("recall in a process of its own, median", figures.cold.search, RECALL_MS, " ms");
    report.note("  opening the store there", &format!("{:.2} ms", figures.cold.open));
    report.note("  its peak memory", &format!("{:.1} MiB", figures.cold.memory));
    report.note("probe, median", &format!("{:.2} ms", figures.asked.probe));
    report.note("related, median", &format!("{:.2} ms", figures.asked.related));
    report.note("reason over two, median", &format!("{:.2} ms", figures.asked.reason));
    report.note(
        "contradictions of the newest 500",
        &format!("{:.1} ms", figures.asked.contradictions),
    );
    report.at_least("searches that find the fact they were made of", figures.found, 0.95);
    report.note("file", &format!("{:.0} bytes a fact", figures.bytes));
    report.at_most("longest write-ahead log", figures.longest_log, LOG_MIB, " MiB");
}

fn compare(report: &mut Report, sizes: &[usize], figures: &[Figures]) {
    for (pair, sizes) in figures.windows(2).zip(sizes.windows(2)) {
        let what = |name: &str| format!("{name}, {} to {}", sizes[1], sizes[0]);
        let [before, after] = pair else { continue };
        report.at_most(&what("adding, one a commit"), after.quiet_add / before.quiet_add, 2.0, "×");
        // Facts of a batch share pages, and the fewer the more pages there are.
        report.note(
            &what("adding in a batch"),
            &format!("{:.2}×", after.add_in_batch / before.add_in_batch),
        );
        report.at_most(&what("bytes a fact"), after.bytes / before.bytes, 1.2, "×");
        report
            .note(&what("recall"), &format!("{:.2}×", after.recall.median / before.recall.median));
    }
}
