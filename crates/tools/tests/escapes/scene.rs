//! A user with files, a repository and a terminal, and a keeper whose commands are in a sandbox.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use mainstay_testkit::process::{Running, example};
use mainstay_tools::sandbox::{Network, Sandbox, Wishes};
use serde_json::Value;
use tempfile::TempDir;

use crate::attempts::Attempt;

const LONG: Duration = Duration::from_secs(30);
/// Where a command may write besides the workspace and its scratch.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
    "/dev/mqueue",
];
/// Files of the user, with what is in them. What is secret is hidden.
const FILES: &[(&str, &str)] = &[
    ("home/plain", "plain\n"),
    ("home/.bashrc", "# begins\n"),
    ("home/.profile", "# begins\n"),
    ("home/.zshrc", "# begins\n"),
    ("home/.gitconfig", "[user]\nname = user\n"),
    ("home/.config/fish/config.fish", "# begins\n"),
    ("home/.config/autostart/x.desktop", "[Desktop Entry]\n"),
    ("home/.local/bin/tool", "#!/bin/sh\n"),
    ("home/.cache/starship/init.zsh", "# prompt\n"),
    ("home/.cache/p10k-instant-prompt-user.zsh", "# prompt\n"),
    ("home/.cache/pre-commit/repo/hook", "#!/bin/sh\n"),
    ("home/.ssh/id", "SECRET-door\n"),
    ("home/.ssh/authorized_keys", "SECRET-keys\n"),
    ("home/.mainstay/config.toml", "key = \"SECRET-configuration\"\n"),
    ("home/directory/one", "one\n"),
    ("outside/file", "outside\n"),
    ("outside/deep/er/file", "deep\n"),
    ("other/.git/config", "[core]\nbare = false\n"),
    ("other/.git/HEAD", "ref: refs/heads/main\n"),
];
/// What is looked at of the workspace: what git runs, and what says where a repository is.
const KEPT: &[&str] = &[
    "work/.git/config",
    "work/.git/hooks",
    "work/.git/info",
    "work/.git/modules/deep/library/config",
    "work/.git/modules/deep/library/hooks",
    "work/.git/modules/deep/library/info",
    "work/.git/worktrees/tree/commondir",
    "work/.git/worktrees/tree/gitdir",
    "work/deep/library/.git",
];

pub(crate) struct Scene {
    directory: TempDir,
    names: Vec<(String, String)>,
    somebody: Running,
    asks: ChildStdin,
    agent: Running,
    tells: ChildStdin,
}

/// Everything outside, in a form that can be compared.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outside {
    files: BTreeMap<PathBuf, String>,
    somebody: String,
}

/// The users that a test can be: who is not root is only himself.
pub(crate) fn users() -> Vec<Option<u32>> {
    if rustix::process::geteuid().is_root() { vec![None, Some(64_321)] } else { vec![None] }
}

impl Scene {
    /// With a sandbox.
    pub(crate) fn new(user: Option<u32>) -> Self {
        Self::with(user, |root| Some(sandbox(root)))
    }

    /// Without one.
    pub(crate) fn open(user: Option<u32>) -> Self {
        Self::with(user, |_| None)
    }

    pub(crate) fn with(user: Option<u32>, sandbox: impl Fn(&Path) -> Option<Sandbox>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        let pristine = pristine();
        let all = pristine.join("user/.");
        assert!(Command::new("cp").arg("-a").arg(all).arg(&root).status().unwrap().success());
        if let Some(user) = user {
            let owner = format!("{user}:{user}");
            assert!(
                Command::new("chown").args(["-Rh", &owner]).arg(&root).status().unwrap().success()
            );
        }
        let as_user = |program: &Path| match user {
            None => Command::new(program),
            Some(user) => {
                let mut command = Command::new("setpriv");
                let (user, group) = (format!("--reuid={user}"), format!("--regid={user}"));
                command.args([&user, &group, "--clear-groups"]).arg(program);
                command
            }
        };
        let mut somebody = as_user(Path::new("/usr/bin/python3"));
        somebody.arg("-c").arg(include_str!("outside.py")).current_dir("/").stdin(Stdio::piped());
        let mut somebody = Running::spawn(&mut somebody);
        let said: Value = serde_json::from_str(&somebody.next_line(LONG).unwrap()).unwrap();
        let asks = somebody.stdin().unwrap();
        let mut names: Vec<(String, String)> = [
            ("HOME", "home"),
            ("WORK", "work"),
            ("TMP", "scratch"),
            ("OUT", "outside"),
            ("OTHER", "other"),
            ("SPOOL", "spool"),
        ]
        .iter()
        .map(|(name, path)| (format!("@{name}@"), root.join(path).display().to_string()))
        .collect();
        for (name, value) in said.as_object().unwrap() {
            names.push((format!("@{name}@"), value.to_string().trim_matches('"').to_owned()));
        }
        let sandbox = serde_json::to_string(&sandbox(&root)).unwrap();
        let mut agent = as_user(&pristine.join("agent"));
        agent.arg("confined").arg(root.join("spool")).arg(sandbox).arg("-").stdin(Stdio::piped());
        agent.current_dir("/").env("OF_THE_AGENT", "SECRET-variable");
        let mut agent = Running::spawn(&mut agent);
        let tells = agent.stdin().unwrap();
        Self { directory, names, somebody, asks, agent, tells }
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        fs::canonicalize(self.directory.path()).unwrap().join(path)
    }

    /// What an attempt wrote, and how it ended.
    pub(crate) fn run(&mut self, attempt: &Attempt) -> Option<String> {
        self.try_text(&attempt.text())
    }

    pub(crate) fn run_text(&mut self, text: &str) -> String {
        self.try_text(text).unwrap_or_else(|| panic!("no answer to {text}"))
    }

    fn try_text(&mut self, text: &str) -> Option<String> {
        let mut text = text.to_owned();
        for (name, value) in &self.names {
            text = text.replace(name, value);
        }
        writeln!(self.tells, "{}", serde_json::to_string(&text).unwrap()).ok()?;
        let answer = self.agent.next_line(LONG)?;
        let (output, end): (String, String) = serde_json::from_str(&answer).unwrap();
        Some(format!("{output}\n{end}"))
    }

    /// How it is outside now.
    pub(crate) fn outside(&mut self) -> Outside {
        self.try_outside().expect("somebody outside is there")
    }

    /// The same, where somebody may be gone.
    pub(crate) fn try_outside(&mut self) -> Option<Outside> {
        let mut files = BTreeMap::new();
        for path in ["home", "outside", "other"].iter().chain(KEPT) {
            look(&self.at(path), &mut files);
        }
        // That nothing came to be beside them.
        let beside = fs::read_dir(self.at("")).unwrap().map(|entry| entry.unwrap().file_name());
        let mut beside: Vec<_> = beside.collect();
        beside.sort();
        files.insert("beside".into(), format!("{beside:?}"));
        for path in ["work/.git", "work/deep", "work/deep/library"] {
            let found = fs::symlink_metadata(self.at(path)).ok();
            let found = found.map(|found| (found.ino(), found.is_dir()));
            files.insert(self.at(path), format!("{found:?}"));
        }
        writeln!(self.asks).ok()?;
        let somebody = self.somebody.next_line(LONG)?;
        Some(Outside { files, somebody })
    }

    /// Puts the files back. Returns `false` if that does not make good what was done.
    pub(crate) fn is_restored(&mut self, before: Option<&Outside>) -> bool {
        let put_back = "cd $0 && rm -rf home outside other work scratch && for d in home outside other \
                        work scratch; do cp -a $1/user/$d . && chown -Rh $2:$2 $d || exit; done";
        let user = fs::metadata(self.at("")).unwrap().uid().to_string();
        let mut command = Command::new("sh");
        command.args(["-c", put_back]).arg(self.at("")).arg(pristine()).arg(user);
        let is_put_back = command.status().unwrap().success();
        let after = self.try_outside();
        is_put_back
            && after.zip(before).is_some_and(|(after, before)| after.somebody == before.somebody)
            && self.try_text("true").is_some()
    }

    /// Files that were written inside and hold what is secret.
    pub(crate) fn leaks(&self) -> Vec<String> {
        let mut files = BTreeMap::new();
        for path in ["work", "scratch"] {
            look(&self.at(path), &mut files);
        }
        let leaking = files.into_iter().filter(|(_, what)| what.contains("SECRET-"));
        leaking.map(|(path, _)| path.display().to_string()).collect()
    }
}

pub(crate) fn sandbox(root: &Path) -> Sandbox {
    let home = root.join("home");
    let environment = vec![("HOME".into(), home.clone().into()), ("PATH".into(), "/bin".into())];
    let usual = Wishes::default().sandbox(&root.join("work"), &environment, &[]).unwrap();
    let mut write: Vec<PathBuf> = vec![root.join("work"), root.join("scratch")];
    write.extend(DEVICES.iter().map(PathBuf::from));
    let mut hide = usual.hide.clone();
    hide.extend([home.join(".mainstay"), root.join("spool")]);
    Sandbox { write, hide, network: Network::Closed, ..usual }
}

/// What every scene is a copy of, with the program beside it where everybody can run it.
fn pristine() -> PathBuf {
    static PRISTINE: OnceLock<TempDir> = OnceLock::new();
    let directory = PRISTINE.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        fs::copy(example("agent"), directory.path().join("agent")).unwrap();
        let user = directory.path().join("user");
        fs::create_dir(&user).unwrap();
        furnish(&fs::canonicalize(user).unwrap());
        directory
    });
    directory.path().to_owned()
}

fn furnish(root: &Path) {
    for (path, text) in FILES {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        fs::write(root.join(path), text).unwrap();
    }
    for path in ["work", "library", "scratch", "spool"] {
        fs::create_dir(root.join(path)).unwrap();
    }
    symlink("plain", root.join("home/link")).unwrap();
    fs::set_permissions(root.join("home/.local/bin/tool"), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(root, Permissions::from_mode(0o755)).unwrap();
    for (directory, words) in [
        ("library", &["init", "-q"][..]),
        ("library", &["commit", "-q", "--allow-empty", "-m", "first"]),
        ("work", &["init", "-q"]),
        ("work", &["commit", "-q", "--allow-empty", "-m", "first"]),
        ("work", &["submodule", "--quiet", "add", "../library", "deep/library"]),
        ("work", &["worktree", "add", "-q", "../tree"]),
    ] {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=n", "-c", "user.email=e", "-c", "protocol.file.allow=always"]);
        let ended = git.args(words).current_dir(root.join(directory)).output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
    }
    fs::write(root.join("work/file"), "mine\n").unwrap();
}

/// All that can be told of a file and of what is below it, but for when it was read.
fn look(path: &Path, files: &mut BTreeMap<PathBuf, String>) {
    let Ok(found) = fs::symlink_metadata(path) else {
        files.insert(path.to_owned(), "gone".to_owned());
        return;
    };
    let content = if found.is_file() {
        String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()
    } else if found.is_symlink() {
        fs::read_link(path).unwrap().display().to_string()
    } else {
        String::new()
    };
    let mut attributes = vec![0; 4096];
    let length = rustix::fs::llistxattr(path, &mut attributes[..]).unwrap_or(0);
    let told = format!(
        "{:o} {}:{} {} links, changed {}.{} and {}.{}, {:?}: {content}",
        found.mode(),
        found.uid(),
        found.gid(),
        found.nlink(),
        found.mtime(),
        found.mtime_nsec(),
        found.ctime(),
        found.ctime_nsec(),
        std::ffi::OsStr::from_bytes(&attributes[..length]),
    );
    files.insert(path.to_owned(), told);
    if found.is_dir() {
        for entry in fs::read_dir(path).unwrap().flatten() {
            look(&entry.path(), files);
        }
    }
}
