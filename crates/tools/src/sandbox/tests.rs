#![allow(clippy::disallowed_methods, reason = "tests stand outside the product's seams")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use mainstay_testkit::capability::Capability;

use super::landlock::Abi;
use super::layers::{Inner, Outer, Tcp};
use super::*;

/// A user with a secret, a workspace and something outside of it.
struct Place {
    _directory: tempfile::TempDir,
    root: PathBuf,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        for (path, text) in [
            ("work/file", "mine"),
            ("home/.ssh/id", "secret"),
            ("home/.ssh/config", "shown"),
            ("home/.bashrc", "plain"),
            ("home/.cache/thing", "cached"),
            ("outside", "others'"),
        ] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        Self { _directory: directory, root }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn sandbox(&self) -> Sandbox {
        Sandbox {
            write: vec![self.at("work")],
            hide: vec![self.at("home/.ssh")],
            show: vec![self.at("home/.ssh/config")],
            ..Sandbox::default()
        }
    }
}

/// Does something on a thread inside.
fn inside<T: Send>(sandbox: &Sandbox, abi: Abi, work: impl FnOnce() -> T + Send) -> T {
    let outer = Outer::new(sandbox, abi, Tcp::Closed, None, None).unwrap();
    let inner = Inner::new(sandbox, abi).unwrap();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            outer.put_on().unwrap();
            inner.put_on().unwrap();
            work()
        });
        thread.join().unwrap()
    })
}

fn is_refused<T>(result: io::Result<T>) -> bool {
    match result {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
            true
        }
    }
}

#[test]
fn every_version_of_landlock_keeps_writes_inside_and_secrets_hidden() {
    if !Capability::Landlock.require(Abi::of_kernel().0 > 0) {
        return;
    }
    for version in 1..=Abi::of_kernel().0 {
        let place = Place::new();
        inside(&place.sandbox(), Abi(version), || {
            let at = |path| place.at(path);
            fs::write(at("work/file"), "changed").unwrap();
            fs::write(at("work/new"), "new").unwrap();
            fs::remove_file(at("work/new")).unwrap();
            assert!(is_refused(fs::write(at("outside"), "")), "{version}");
            assert!(is_refused(fs::write(at("beside"), "")), "{version}");
            assert!(is_refused(fs::remove_file(at("outside"))), "{version}");
            assert!(is_refused(fs::create_dir(at("home/new"))), "{version}");
            assert!(is_refused(fs::write(at("home/.bashrc"), "evil")), "{version}");
            assert!(is_refused(fs::read(at("home/.ssh/id"))), "{version}");
            assert!(is_refused(fs::write(at("home/.ssh/id"), "")), "{version}");
            assert_eq!(fs::read_to_string(at("home/.ssh/config")).unwrap(), "shown");
            assert_eq!(fs::read_to_string(at("home/.bashrc")).unwrap(), "plain");
            fs::read("/etc/passwd").unwrap();
            fs::write("/dev/null", "").unwrap_err();
        });
        assert_eq!(fs::read_to_string(place.at("outside")).unwrap(), "others'");
        assert_eq!(fs::read_to_string(place.at("home/.ssh/id")).unwrap(), "secret");
        assert_eq!(fs::read_to_string(place.at("work/file")).unwrap(), "changed");
    }
}

#[test]
fn a_secret_is_not_moved_nor_linked_to_where_it_can_be_read() {
    let place = Place::new();
    inside(&place.sandbox(), Abi::of_kernel(), || {
        let (secret, work) = (place.at("home/.ssh/id"), place.at("work/id"));
        fs::rename(&secret, &work).unwrap_err();
        fs::hard_link(&secret, &work).unwrap_err();
        std::os::unix::fs::symlink(&secret, &work).unwrap();
        assert!(is_refused(fs::read(&work)));
        assert!(is_refused(fs::read("/proc/self/root".to_owned() + secret.to_str().unwrap())));
    });
}

#[test]
fn a_file_is_moved_between_directories_of_the_workspace() {
    let place = Place::new();
    fs::create_dir(place.at("work/sub")).unwrap();
    inside(&place.sandbox(), Abi::of_kernel(), || {
        fs::rename(place.at("work/file"), place.at("work/sub/file")).unwrap();
        fs::hard_link(place.at("work/sub/file"), place.at("work/again")).unwrap();
    });
}

#[test]
fn what_comes_to_be_beside_a_secret_is_read_once_the_layer_is_renewed() {
    let place = Place::new();
    let inner = Inner::new(&place.sandbox(), Abi::of_kernel()).unwrap();
    fs::write(place.at("home/later"), "later").unwrap();
    assert!(inner.is_stale());
    let read = inside(&place.sandbox(), Abi::of_kernel(), || fs::read(place.at("home/later")));
    assert_eq!(read.unwrap(), b"later");
}

fn environment(home: &Path) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    vec![("HOME".into(), home.into()), ("PATH".into(), "/usr/bin:/bin".into())]
}

#[test]
fn the_usual_sandbox_writes_caches_and_hides_keys_and_what_is_mainstays() {
    let place = Place::new();
    let home = place.at("home");
    for path in [".mainstay", ".cargo/registry", ".cargo/bin", ".npm", ".config/gh"] {
        fs::create_dir_all(home.join(path)).unwrap();
    }
    for path in ["huggingface/token", "pip", "pre-commit", "starship", "zsh", "ms-playwright"] {
        fs::create_dir_all(home.join(".cache").join(path)).unwrap();
    }
    let own = [home.join(".mainstay"), place.at("store.db"), place.at("store.db-wal")];
    let sandbox =
        Wishes::default().sandbox_with(&[], &place.at("work"), &environment(&home), &own).unwrap();
    for path in ["work", "home/.cache/pip", "home/.cargo/registry", "home/.npm"] {
        assert!(sandbox.write.contains(&place.at(path)), "{path}: {:?}", sandbox.write);
    }
    for path in ["home", "home/.cargo", "home/.cargo/bin", "home/.config", "home/.cache"] {
        assert!(!sandbox.write.contains(&place.at(path)), "{path}");
    }
    // What a prompt, a shell or a hook starts.
    for name in ["pre-commit", "starship", "zsh", "ms-playwright"] {
        let path = home.join(".cache").join(name);
        assert!(!sandbox.write.iter().any(|write| path.starts_with(write)), "{name}");
    }
    for path in [
        "home/.mainstay/config.toml",
        "store.db",
        "store.db-wal",
        "home/.config/gh/hosts.yml",
        "home/.ssh/id",
        "home/.Xauthority",
        "home/.config/github-copilot/hosts.json",
        "home/snap/firefox/common/.mozilla/firefox/x/cookies.sqlite",
        "home/.local/share/fish/fish_history",
        "home/.m2/settings.xml",
        "home/.s3cfg",
        "home/.authinfo",
        "home/.cache/huggingface/token",
        "home/.local/share/com.vercel.cli/auth.json",
    ] {
        assert!(sandbox.hides(&place.at(path)), "{path}");
    }
    assert!(!sandbox.hides(&place.at("home/.ssh/config")));
    let off = Wishes { mode: Mode::Off, ..Wishes::default() };
    assert_eq!(off.sandbox(&place.at("work"), &environment(&home), &own), None);
}

#[test]
fn what_a_user_says_is_added_and_what_is_mainstays_is_never_shown() {
    let place = Place::new();
    let home = place.at("home");
    fs::create_dir_all(home.join(".mainstay")).unwrap();
    fs::create_dir_all(home.join("notes")).unwrap();
    let wishes = Wishes {
        write: vec!["~/notes".to_owned()],
        hide: vec![place.at("outside").display().to_string()],
        show: vec!["~/.ssh".to_owned(), "~/.mainstay".to_owned()],
        ..Wishes::default()
    };
    let own = [home.join(".mainstay")];
    let sandbox = wishes.sandbox_with(&[], &place.at("work"), &environment(&home), &own).unwrap();
    assert!(sandbox.write.contains(&home.join("notes")));
    assert!(sandbox.hides(&place.at("outside")));
    assert!(!sandbox.hides(&home.join(".ssh/id")));
    assert!(sandbox.hides(&home.join(".mainstay/store.db")));
}

#[test]
fn a_link_in_the_workspace_does_not_widen_the_next_sandbox() {
    let place = Place::new();
    std::os::unix::fs::symlink(place.at("home"), place.at("work/target")).unwrap();
    fs::write(place.at("work/.git"), format!("gitdir: {}", place.at("home").display())).unwrap();
    let mut environment = environment(&place.at("nowhere"));
    environment.push(("CARGO_TARGET_DIR".into(), place.at("work/target").into()));
    let sandbox =
        Wishes::default().sandbox_with(&[], &place.at("work"), &environment, &[]).unwrap();
    assert!(!sandbox.write.contains(&place.at("home")), "{:?}", sandbox.write);
}

#[test]
fn git_can_write_to_the_repository_that_a_worktree_or_a_subdirectory_belongs_to() {
    let place = Place::new();
    let git = |words: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.args(["-c", "user.name=n", "-c", "user.email=e"]).args(words);
        let ended = command.current_dir(place.at("work")).output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    git(&["worktree", "add", "-q", "../tree"]);
    fs::create_dir(place.at("work/sub")).unwrap();
    for workspace in ["tree", "work/sub"] {
        let usual = Wishes::default();
        let sandbox =
            usual.sandbox_with(&[], &place.at(workspace), &environment(&place.at("home")), &[]);
        let write = sandbox.unwrap().write;
        assert!(write.contains(&place.at("work/.git")), "{workspace}: {write:?}");
        assert!(!write.contains(&place.at("work")), "{workspace}");
    }
}

#[test]
fn a_directory_for_all_caches_is_not_written_as_a_whole_wherever_it_is() {
    let place = Place::new();
    fs::create_dir_all(place.at("caches/uv")).unwrap();
    let mut environment = environment(&place.at("home"));
    environment.push(("XDG_CACHE_HOME".into(), place.at("caches").into()));
    let sandbox =
        Wishes::default().sandbox_with(&[], &place.at("work"), &environment, &[]).unwrap();
    assert!(sandbox.write.contains(&place.at("caches/uv")), "{:?}", sandbox.write);
    assert!(!sandbox.write.contains(&place.at("caches")), "{:?}", sandbox.write);
}

#[test]
fn a_home_in_a_place_for_scratch_is_not_written_but_for_work_and_caches() {
    let place = Place::new();
    for path in ["home/project", "home/.npm", "scratch"] {
        fs::create_dir_all(place.at(path)).unwrap();
    }
    let (home, root) = (place.at("home"), place.root.to_str().unwrap());
    let sandbox = Wishes::default()
        .sandbox_with(&[root], &home.join("project"), &environment(&home), &[])
        .unwrap();
    inside(&sandbox, Abi::of_kernel(), || {
        assert!(is_refused(fs::write(home.join(".bashrc"), "evil")));
        assert!(is_refused(fs::write(home.join(".profile"), "evil")));
        for path in ["home/project/new", "home/.npm/new", "scratch/new"] {
            fs::write(place.at(path), "new").unwrap();
        }
    });
    assert!(!sandbox.writes(&home.join(".bashrc")) && sandbox.writes(&home.join("project/x")));
    // Where it is the workspace itself there is nothing else to write.
    let sandbox = Wishes::default().sandbox_with(&[root], &home, &environment(&home), &[]).unwrap();
    inside(&sandbox, Abi::of_kernel(), || fs::write(home.join(".bashrc"), "mine").unwrap());
}

#[test]
fn a_grant_widens_a_copy_of_the_sandbox_and_nothing_widens_the_sandbox() {
    let place = Place::new();
    let sandbox = Sandbox {
        network: Network::Closed,
        keep: vec![place.at("work/.git/config"), place.at("work/.git/hooks")],
        ..place.sandbox()
    };
    let confinement = Confinement::to(sandbox.clone());
    let specified = |grant: &Grant| confinement.specification(grant).unwrap().read().unwrap();
    assert_eq!(specified(Grant::NONE), sandbox);
    let network = specified(&Grant { network: true, write: Vec::new() });
    assert_eq!(network, Sandbox { network: Network::Open, ..sandbox.clone() });
    let granted = vec![place.at("outside"), place.at("work/.git/hooks")];
    let wider = specified(&Grant { network: false, write: granted.clone() });
    assert_eq!(wider.write, [&sandbox.write[..], &granted].concat());
    assert_eq!((wider.network, wider.keep), (Network::Closed, vec![sandbox.keep[0].clone()]));
    assert_eq!(specified(Grant::NONE), sandbox);
}

#[test]
fn a_read_only_sandbox_writes_scratch_and_nothing_of_the_workspace() {
    let place = Place::new();
    fs::create_dir(place.at("beside")).unwrap();
    let write = vec![place.at("work"), "/srv".into(), "/tmp".into(), "/dev/null".into()];
    let reading = Sandbox { write, ..place.sandbox() }.read_only(&place.at("work"));
    assert_eq!(reading.write, [PathBuf::from("/tmp"), "/dev/null".into()]);
    assert_eq!(reading.network, Network::Closed);
    inside(&reading, Abi::of_kernel(), || {
        assert!(is_refused(fs::write(place.at("work/file"), "changed")));
        assert!(is_refused(fs::write(place.at("work/new"), "new")));
        fs::write(place.at("beside/new"), "new").unwrap();
        assert_eq!(fs::read_to_string(place.at("work/file")).unwrap(), "mine");
    });
}

#[test]
fn the_secrets_of_the_machine_are_hidden_from_root() {
    if !rustix::process::geteuid().is_root() || !Path::new("/etc/shadow").exists() {
        return;
    }
    let place = Place::new();
    let usual = Wishes::default();
    let sandbox =
        usual.sandbox_with(&[], &place.at("work"), &environment(&place.at("home")), &[]).unwrap();
    inside(&sandbox, Abi::of_kernel(), || {
        assert!(is_refused(fs::read("/etc/shadow")));
        fs::read("/etc/passwd").unwrap();
    });
}

#[test]
fn what_git_runs_is_kept_in_a_repository_its_submodules_and_its_worktrees() {
    let place = Place::new();
    let at = |path: &str| place.at(path);
    let git = |directory: &str, words: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.args(["-c", "user.name=n", "-c", "user.email=e"]);
        command.args(["-c", "protocol.file.allow=always"]).args(words);
        let ended = command.current_dir(at(directory)).output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
    };
    fs::create_dir(at("library")).unwrap();
    for directory in ["library", "work"] {
        git(directory, &["init", "-q"]);
        git(directory, &["commit", "-q", "--allow-empty", "-m", "first"]);
    }
    git("work", &["submodule", "--quiet", "add", "../library", "deep/library"]);
    git("work", &["worktree", "add", "-q", "../tree"]);
    fs::create_dir(at("work/sub")).unwrap();
    let kept = |workspace: &str| {
        let usual = Wishes::default();
        let environment = environment(&at("home"));
        usual.sandbox_with(&[], &at(workspace), &environment, &[]).unwrap()
    };
    for workspace in ["work", "work/sub", "tree"] {
        let sandbox = kept(workspace);
        for path in [
            "work/.git/config",
            "work/.git/hooks",
            "work/.git/info",
            "work/.git/modules/deep/library/config",
            "work/.git/modules/deep/library/hooks",
            "work/.git/worktrees/tree/commondir",
            "work/deep/library/.git",
        ] {
            assert!(sandbox.keep.contains(&at(path)), "{workspace}, {path}: {:?}", sandbox.keep);
        }
        assert!(sandbox.absent.contains(&at("work/.git/commondir")), "{:?}", sandbox.absent);
        assert_eq!(sandbox.keep.contains(&at("tree/.git")), workspace == "tree");
    }
}
