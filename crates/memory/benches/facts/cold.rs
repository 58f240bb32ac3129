//! Recall in a process of its own that opens the store, asks once and ends. The system's cache of
//! the file is as warm as the machine keeps it.

use std::process::Command;
use std::time::Instant;

use mainstay_memory::MEMORY;
use mainstay_memory::facts::{self, Query};
use mainstay_store::{Location, Options, Schema, Store};

use crate::stage::median;

pub(crate) const ROLE: &str = "one-shot";

/// What one question costs a process that has done nothing else, in milliseconds and MiB.
pub(crate) struct Cold {
    pub(crate) open: f64,
    pub(crate) search: f64,
    pub(crate) memory: f64,
}

pub(crate) fn measure(store: &Location, questions: &[String]) -> Cold {
    let (mut open, mut search, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for question in questions {
        let itself = std::env::current_exe().unwrap();
        let output =
            Command::new(itself).args([ROLE, &store.to_string(), question]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8(output.stdout).unwrap();
        let figures: Vec<f64> =
            said.split_whitespace().map(|figure| figure.parse().unwrap()).collect();
        open.push(figures[0]);
        search.push(figures[1]);
        memory.push(figures[2]);
    }
    Cold { open: median(&mut open), search: median(&mut search), memory: median(&mut memory) }
}

pub(crate) fn child(store: &str, question: &str) {
    let start = Instant::now();
    let options = Options::new(Schema::new(&[MEMORY])).existing();
    let store = Store::open(&store.parse().unwrap(), options).unwrap();
    let open = start.elapsed();
    let start = Instant::now();
    let owner = store.read(|tx| tx.find_owner("ada")).unwrap().unwrap();
    let query = Query::new(question, 0);
    let found = store.read(|tx| facts::search(tx, owner, &query)).unwrap();
    let search = start.elapsed();
    assert!(!found.is_empty());
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: f64 = peak.trim().trim_end_matches(" kB").trim().parse().unwrap();
    println!("{} {} {}", open.as_secs_f64() * 1e3, search.as_secs_f64() * 1e3, kib / 1024.0);
}
