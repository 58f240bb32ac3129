//! Many processes at once on one home: all are served, and none is told to come back later.

use std::process::Stdio;
use std::time::Duration;

use mainstay_testkit::model::{ModelRequest, Reply};
use mainstay_testkit::process::Running;
use mainstay_testkit::thorough;

use crate::world::World;

/// A hang guard, and nothing that a loaded machine could miss.
const SOON: Duration = Duration::from_secs(300);

#[test]
fn heavy_hundreds_of_turns_at_once_all_end_well() {
    let world = World::new(|_: &ModelRequest| Reply::text("hello"));
    let members = usize::try_from(thorough::size(40, 300)).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let stderr = |number: usize| directory.path().join(number.to_string());
    // Not even the store is there when they begin.
    let all: Vec<Running> = (0..members)
        .map(|number| {
            let mut command = world.command(&["run", "hi"]);
            let file = std::fs::File::create(stderr(number)).unwrap();
            Running::spawn(command.stdin(Stdio::null()).stderr(file))
        })
        .collect();
    for (number, mut member) in all.into_iter().enumerate() {
        let status = member.wait(SOON);
        let said = std::fs::read_to_string(stderr(number)).unwrap();
        assert!(status.success(), "{number}: {status}: {said}");
        assert_eq!(member.next_line(SOON).as_deref(), Some("hello"), "{number}: {said}");
    }
    let told = world.run(&["sessions", "list", "--json", "--limit", "1000"]).ended_with(0);
    let sessions: Vec<serde_json::Value> = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(sessions.len(), members);
    world.run(&["store", "check"]).ended_with(0);
}
