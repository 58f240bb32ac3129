//! Acts of file tools, snapshots and undo below a directory that somebody exchanges for a link.
//!
//! ```text
//! root/workspace/d/…            what they work on
//! root/workspace/to-outside     a link to root/outside, where the same names are
//! root/workspace/to-home        a link to root/home, which no tool opens
//! ```

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use mainstay_store::BlobHash;
use mainstay_tools::keeper::Launch;
use mainstay_tools::sandbox::{Confinement, Sandbox};
use mainstay_tools::snapshot::{Limits, Manifest, PathChange, Scan, State, escaped, restore};
use mainstay_tools::{
    Action, EditSlots, Grant, Invocation, Keeper, Piece, Seen, Workplace, file_tools,
};
use serde_json::{Value, json};

/// What is in the files of the workspace.
const INSIDE: &str = "inside\n";

/// Each act, how often it is raced, and the link that its directory is exchanged for: what changes something must not reach
/// what is outside, and what reads must not reach what no tool opens.
#[allow(dead_code, reason = "the program is told which")]
pub(crate) const ACTS: [(&str, usize, &str); 9] = [
    ("write", 1_000, "to-outside"),
    ("create", 200, "to-outside"),
    ("edit", 1_000, "to-outside"),
    ("restore", 1_000, "to-outside"),
    ("read", 1_000, "to-home"),
    ("list", 200, "to-home"),
    ("glob", 200, "to-home"),
    ("grep", 200, "to-home"),
    ("snapshot", 1_000, "to-home"),
];

/// What holds an act besides the tools themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "the program uses one of them")]
pub(crate) enum Walls {
    /// Nothing.
    None,
    /// The sandbox.
    Sandbox,
}

/// A workspace with something outside of it.
pub(crate) struct Scene {
    root: PathBuf,
    workplace: Workplace,
    runtime: tokio::runtime::Runtime,
}

/// Makes the directories and files of a scene.
#[allow(dead_code, reason = "the tests do that")]
pub(crate) fn prepare(root: &Path) {
    for place in ["workspace/d", "outside", "home"] {
        fs::create_dir_all(root.join(place)).unwrap();
        let content = if place == "home" { "CANARY\n" } else { INSIDE };
        fill(&root.join(place), content);
    }
    for place in ["outside", "home"] {
        fs::write(root.join(place).join("canary-name"), "CANARY\n").unwrap();
        symlink(format!("../{place}"), root.join(format!("workspace/to-{place}"))).unwrap();
    }
}

/// Puts the files of a directory back as they are before an act.
#[allow(dead_code, reason = "the tests do that")]
pub(crate) fn fill(directory: &Path, content: &str) {
    for name in ["f", "added", "mode"] {
        let path = directory.join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    let _ = fs::create_dir(directory.join("empty"));
    let _ = fs::remove_dir_all(directory.join("made"));
    let _ = fs::remove_file(directory.join("gone"));
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
}

impl Scene {
    pub(crate) fn new(root: PathBuf, walls: Walls) -> Self {
        let keeper = Keeper::new(Launch {
            program: "/nonexistent".into(),
            arguments: Vec::new(),
            spool: "/nonexistent".into(),
            grace: Duration::ZERO,
        });
        let workspace = root.join("workspace");
        let confinement = match walls {
            Walls::None => Confinement::default(),
            Walls::Sandbox => Confinement::to(Sandbox {
                write: vec![workspace.clone()],
                hide: vec![root.join("home")],
                ..Sandbox::default()
            }),
        };
        let workplace = Workplace {
            forbidden: vec![root.join("home")],
            edit_slots: EditSlots::in_directory(root.join("edits")),
            confinement,
            ..Workplace::new(workspace, keeper)
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { root, workplace, runtime }
    }

    /// Does an act and answers all that a model is told of it.
    pub(crate) fn act(&self, act: &str) -> String {
        match act {
            "write" => self.call("write_file", &json!({ "path": "d/f", "content": "mine\n" })),
            "create" => {
                self.call("write_file", &json!({ "path": "d/made/x/f", "content": "mine\n" }))
            }
            "edit" => {
                let edit = json!({ "path": "d/f", "old": INSIDE.trim(), "new": "mine" });
                self.call("edit_file", &edit)
            }
            "read" => self.call("read_file", &json!({ "path": "d/f" })),
            "list" => self.call("list", &json!({ "path": ".", "depth": 3 })),
            "glob" => self.call("glob", &json!({ "pattern": "**/*" })),
            "grep" => self.call("grep", &json!({ "pattern": "." })),
            "snapshot" => self.snapshot(),
            "restore" => self.restore(),
            _ => panic!("{act}"),
        }
    }

    /// Judges, plans and runs a call, as the engine does.
    fn call(&self, tool: &str, arguments: &Value) -> String {
        let tool = file_tools().into_iter().find(|it| it.spec().name == tool).unwrap();
        // What was written before is not remembered.
        let workplace = Workplace { seen: Seen::default(), ..self.workplace.clone() };
        let call = |target| Invocation {
            id: "call",
            session: "session",
            arguments,
            workplace: &workplace,
            grant: Grant::NONE,
            target,
        };
        let target = match tool.action(&call(None)) {
            Action::Write(path) if !path.starts_with(&self.workplace.workspace) => {
                return "asked".to_owned();
            }
            Action::Write(path) => Some(path),
            _ => None,
        };
        let outcome = self.runtime.block_on(async {
            let plan = tool.plan(call(target.as_deref())).await;
            tool.run(call(target.as_deref()), plan.as_ref()).await
        });
        let words = outcome.pieces.iter().map(|piece| match piece {
            Piece::Said(words) | Piece::Data(words) => words.clone(),
            _ => String::new(),
        });
        words.collect()
    }

    fn snapshot(&self) -> String {
        let mut kept = String::new();
        let scanned = Scan::run(
            &self.workplace,
            &mut Manifest::default(),
            &Limits::default(),
            &mut |_, bytes| {
                kept.push_str(&String::from_utf8_lossy(&bytes));
                Ok(())
            },
        );
        format!("{kept}{scanned:?}")
    }

    /// Puts back a file, one that is gone, a mode and directories, and removes what was added.
    fn restore(&self) -> String {
        let file = |content: &str, mode: u32| State::File {
            mode,
            objects: BlobHash::of(content.as_bytes()).to_string(),
            size: content.len() as u64,
        };
        let inside = || file(INSIDE, 0o644);
        let directory = || State::Directory { mode: 0o700 };
        let steps: Vec<PathChange> = [
            ("d", State::Directory { mode: 0o755 }, State::Directory { mode: 0o750 }),
            ("d/f", inside(), file("before\n", 0o600)),
            ("d/gone", State::Absent, file("before\n", 0o600)),
            ("d/added", inside(), State::Absent),
            ("d/mode", inside(), file(INSIDE, 0o600)),
            ("d/empty", State::Directory { mode: 0o755 }, State::Absent),
            ("d/made", State::Absent, directory()),
            ("d/made/link", State::Absent, State::Link { target: "f".to_owned() }),
        ]
        .into_iter()
        .map(|(path, from, to)| {
            let path = escaped(&self.root.join("workspace").join(path));
            PathChange { path, from, to }
        })
        .collect();
        let mut fetch = |hash: &str| {
            let known = ["before\n", INSIDE].map(str::as_bytes);
            let found = known.into_iter().find(|it| BlobHash::of(it).to_string() == hash);
            found.map(<[u8]>::to_vec).ok_or_else(|| "no such object".to_owned())
        };
        format!("{:?}", restore(&self.workplace, &steps, &mut fetch))
    }
}
