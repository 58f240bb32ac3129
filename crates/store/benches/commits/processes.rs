//! One writer in each of several processes.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::bare::timed;
use crate::contender::{Place, Sample};
use crate::threads::{insert, open};

/// The argument that makes this program a child.
pub(crate) const ROLE: &str = "--writing-child";

pub(crate) fn write(place: &Place, count: usize) -> Sample {
    let path = place.fresh("processes");
    let kept_open = open(&path);
    let mut children: Vec<Child> = (0..count).map(|_| spawn(&path)).collect();
    let mut lines: Vec<_> = children
        .iter_mut()
        .map(|child| BufReader::new(child.stdout.take().unwrap()).lines())
        .collect();
    for output in &mut lines {
        assert_eq!(output.next().unwrap().unwrap(), "ready");
    }
    for child in &mut children {
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }
    let sample = Sample::sum(lines.iter_mut().map(|output| {
        let done = output.next().unwrap().unwrap().parse().unwrap();
        let line = output.next().unwrap().unwrap();
        Sample { times: line.split(' ').map(|time| time.parse().unwrap()).collect(), done }
    }));
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    drop(kept_open);
    sample
}

fn spawn(store: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .arg(ROLE)
        .arg(store)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

pub(crate) fn child(store: &str) {
    let store = open(Path::new(store));
    let writer = format!("p{}", std::process::id());
    insert(&store, &format!("{writer}, warming up"), 0);
    println!("ready");
    std::io::stdin().lines().next().unwrap().unwrap();
    let sample = timed(|number| insert(&store, &writer, number));
    println!("{}", sample.done);
    let times: Vec<String> = sample.times.iter().map(f64::to_string).collect();
    println!("{}", times.join(" "));
}
