//! Generated lines are run for real, in a box that is thrown away, and what they did is compared with
//! the class that they were judged to have.
//!
//! A run is told by its seed; `MAINSTAY_TEST_LINES` says how many lines must have run, and
//! `MAINSTAY_TEST_SEED` which they are.

mod effects;
mod generate;
mod inside;

use std::path::PathBuf;
use std::process::Command;

use mainstay_agent::policy::command::Class;
use mainstay_testkit::capability::{Capability, INSIDE, LINES, SEED};

/// Namespaces of users, mounts, processes, networks, names and messages: nothing that a line does is
/// seen outside.
const BOX: [&str; 8] = ["-U", "-r", "-m", "-p", "-n", "-u", "-i", "-f"];

/// Lines that may do worse than their class, by a text that they contain, and why that is.
const KNOWN: [(&str, &str); 0] = [];

/// The lines of the table that end, and that leave the machine its memory.
fn table_lines() -> Vec<String> {
    let lines = super::table::lines().into_iter();
    let short = lines.filter(|(class, _)| *class <= Class::Execute).map(|(_, line)| line);
    short.filter(|line| !line.contains(":|:") && !line.contains("while true")).collect()
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Runs something in the box, in the test of this name, which is called a second time for it. Returns
/// what was reported, or `None` where there are no boxes.
fn boxed(test: &str, inside: impl FnOnce() -> inside::Outcome) -> Option<String> {
    if let Some(place) = std::env::var_os(INSIDE) {
        let place = PathBuf::from(place);
        let mut report = std::fs::File::create(place.join("report")).unwrap();
        inside::enter(&place.join("root"));
        std::io::Write::write_all(&mut report, inside().text().as_bytes()).unwrap();
        return None;
    }
    let works = Command::new("unshare").args(BOX).args(["ip", "link", "set", "lo", "up"]).status();
    if !Capability::NetworkNamespace.require(works.is_ok_and(|status| status.success())) {
        return None;
    }
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("root")).unwrap();
    let output = Command::new("unshare")
        .args(BOX)
        .arg("--kill-child")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("commands::differential::{test}"), "--nocapture"])
        .env(INSIDE, place.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "the box broke: {output:#?}");
    let report = std::fs::read_to_string(place.path().join("report")).unwrap();
    println!("{}", report.lines().next().unwrap_or_default());
    let known = |line: &str| KNOWN.iter().any(|(text, _)| line.contains(text));
    let worse: Vec<&str> = report.split("WORSE ").skip(1).filter(|line| !known(line)).collect();
    assert!(worse.is_empty(), "{} did worse:\n{}", worse.len(), worse.join(""));
    Some(report)
}

#[test]
fn slow_generated_lines_do_nothing_worse_than_their_class() {
    let (seed, wanted) = (number(SEED, 1), number(LINES, 150));
    let compare = || inside::compare(seed, u32::try_from(wanted).unwrap(), &table_lines());
    let test = "slow_generated_lines_do_nothing_worse_than_their_class";
    if let Some(report) = boxed(test, compare) {
        assert!(report.contains(&format!(" {wanted} ran")), "too few ran: {report}");
    }
}

#[test]
fn slow_lines_of_the_table_do_nothing_worse_than_their_class() {
    let test = "slow_lines_of_the_table_do_nothing_worse_than_their_class";
    boxed(test, || inside::compare_all(&table_lines()));
}
