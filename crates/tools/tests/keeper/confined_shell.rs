//! The `shell` tool in a sandbox: what a call is granted, and what the model is told.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;

use mainstay_testkit::capability::Capability;
use mainstay_tools::sandbox::{Confinement, Network, ProcessWay, Sandbox, Wishes};
use mainstay_tools::{Grant, Invocation, Outcome, Piece, Shell, Tool, Workplace};
use serde_json::json;

use crate::scene::{Scene, in_time};

/// A workspace with a repository, and a place beside it.
struct Place {
    scene: Scene,
    workplace: Workplace,
    calls: u32,
}

impl Place {
    fn new() -> Self {
        let scene = Scene::new();
        let root = fs::canonicalize(scene.directory.path()).unwrap();
        let work = root.join("work");
        for path in [&work, &root.join("beside")] {
            fs::create_dir(path).unwrap();
        }
        let made = std::process::Command::new("git").args(["init", "-q"]).arg(&work).status();
        assert!(made.unwrap().success());
        let environment = vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())];
        let usual = Wishes::default().sandbox(&work, &environment, &[]).unwrap();
        let write = vec![work.clone(), "/dev/null".into()];
        let hide = vec![root.join("spool")];
        let sandbox = Sandbox { write, hide, network: Network::Closed, ..usual };
        let mut workplace = Workplace::new(&work, scene.keeper.clone());
        workplace.environment = environment;
        workplace.confinement = Confinement::to(sandbox);
        Self { scene, workplace, calls: 0 }
    }

    fn at(&self, path: &str) -> PathBuf {
        fs::canonicalize(self.scene.directory.path()).unwrap().join(path)
    }

    async fn run(&mut self, grant: &Grant, command: &str) -> Outcome {
        self.calls += 1;
        let (id, arguments) = (format!("call {}", self.calls), json!({ "command": command }));
        let workplace = &self.workplace;
        let call = Invocation {
            id: &id,
            session: "session",
            arguments: &arguments,
            workplace,
            grant,
            target: None,
        };
        let plan = Shell.plan(call).await;
        in_time(Shell.run(call, plan.as_ref())).await
    }
}

fn told(outcome: &Outcome) -> String {
    let pieces = outcome.pieces.iter().map(|piece| match piece {
        Piece::Said(words) => words.clone(),
        other => format!("{other:?}"),
    });
    pieces.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn a_grant_holds_for_its_call_and_for_no_other() {
    let mut place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let reach = format!("bash -c 'echo > /dev/tcp/127.0.0.1/{port}'");
    let write = format!("echo x > {}", place.at("beside/file").display());
    let network = Grant { network: true, write: Vec::new() };
    let directory = Grant { network: false, write: vec![place.at("beside")] };
    for (grant, reaches, writes) in [
        (Grant::NONE, false, false),
        (&network, true, false),
        (&directory, false, true),
        (Grant::NONE, false, false),
    ] {
        assert_eq!(!place.run(grant, &reach).await.failed, reaches, "{grant:?}");
        assert_eq!(!place.run(grant, &write).await.failed, writes, "{grant:?}");
    }
    place.scene.keeper.leave().await;
}

#[tokio::test]
async fn what_git_runs_is_kept_and_what_can_be_done_instead_is_said() {
    if !Capability::ProcessNamespace.require(ProcessWay::of_kernel() == ProcessWay::Namespace) {
        return;
    }
    let mut place = Place::new();
    let before = fs::read(place.at("work/.git/config")).unwrap();
    let outcome = place.run(Grant::NONE, "git config user.name x").await;
    assert!(outcome.failed && told(&outcome).contains("git -c name=value"), "{outcome:?}");
    let outcome = place.run(Grant::NONE, "chmod 777 ../beside").await;
    assert!(outcome.failed && told(&outcome).contains("the rest is read-only"), "{outcome:?}");
    assert_eq!(fs::read(place.at("work/.git/config")).unwrap(), before);
    // Git outside puts another file into the place of this one; that is kept again.
    let outside = std::process::Command::new("git")
        .args(["config", "user.name", "somebody"])
        .current_dir(place.at("work"))
        .status();
    assert!(outside.unwrap().success());
    let outcome = place.run(Grant::NONE, "echo evil >> .git/config").await;
    assert!(outcome.failed, "{outcome:?}");
    let commit = "git -c user.name=n -c user.email=e commit -q --allow-empty -m x && git checkout -q -b y \
                  && git stash list && git branch && git worktree list";
    assert!(!place.run(Grant::NONE, commit).await.failed);
    place.scene.keeper.leave().await;
}

#[tokio::test]
async fn a_file_that_leads_git_elsewhere_is_removed_and_that_is_said() {
    let mut place = Place::new();
    let outcome = place.run(Grant::NONE, "echo /tmp > .git/commondir").await;
    assert!(told(&outcome).contains("commondir was removed"), "{outcome:?}");
    assert!(!place.at("work/.git/commondir").exists());
    place.scene.keeper.leave().await;
}
