//! What the tests of skills run: all changes of the home's skills, one after the other, so that two names
//! can be exchanged at each of their system calls. `shelfwork ROOT` prints what it read.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a program of the tests")]

use std::path::PathBuf;

use mainstay_agent::skills::{Shelf, SkillFiles};

fn main() {
    let root = PathBuf::from(std::env::args().nth(1).unwrap());
    let shelf = Shelf::at(root.join("skills"));
    let new = SkillFiles::read(&root.join("source/one")).unwrap();
    let before = shelf.read("one");
    println!("{before:?}");
    let before = before.ok().flatten().map(|files| files.hash());
    let Ok(locked) = shelf.lock() else { return };
    println!("{:?}", locked.put("one", &new, before.as_deref()));
    println!("{:?}", locked.remove("one"));
    println!("{:?}", locked.restore("one"));
    println!("{:?}", shelf.read("one"));
    println!("{:?}", locked.empty_trash());
}
