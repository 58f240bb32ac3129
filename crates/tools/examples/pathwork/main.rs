//! What the tests of paths run: one act on a workspace, so that two names can be exchanged at each of
//! its system calls. `pathwork ROOT ACT` prints all that a model would be told.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a program of the tests")]

mod acts;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [root, act] = &arguments[..] else { panic!("ROOT ACT") };
    println!("{}", acts::Scene::new(root.into(), acts::Walls::None).act(act));
}
