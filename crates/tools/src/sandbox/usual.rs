//! What a sandbox usually is: where honest work writes, and where secrets are.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::landlock::Abi;
use super::made_caches::MadeCaches;
use super::repositories::Repository;
use super::secrets::{self, SECRETS, SECRETS_IN_CACHES, SSH_SHOWN};
use super::{Network, Sandbox, caches};

/// What is there for a while: what is written to it is nobody's work.
pub(super) const SCRATCH: &[&str] = &["/tmp", "/var/tmp", "/dev"];

/// Where everybody writes.
const PLACES: &[&str] = &[
    "/tmp",
    "/var/tmp",
    "/dev/shm",
    "/dev/mqueue",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// Whether there is a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Where the kernel can; elsewhere it is said that there is none.
    #[default]
    On,
    /// Nothing runs where the kernel cannot.
    Require,
    /// Never.
    Off,
}

/// What a user says about the sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Whether there is one.
    pub mode: Mode,
    /// What may be written besides the usual; `~/` stands for the user's directory.
    pub write: Vec<String>,
    /// What is hidden besides the usual.
    pub hide: Vec<String>,
    /// What is not hidden though it usually is.
    pub show: Vec<String>,
    /// Whether commands reach the network.
    pub network: Network,
    /// Where it is written down which caches were made for tools. Without it none are made.
    pub made_caches: Option<PathBuf>,
}

impl Wishes {
    /// Makes the caches of the tools that are used in a workspace, which they could not make inside. They
    /// are there as long as what is returned is.
    pub fn make_caches(
        &self,
        workspace: &Path,
        environment: &[(OsString, OsString)],
    ) -> Option<MadeCaches> {
        let record = self.made_caches.as_deref()?;
        if self.mode == Mode::Off || Abi::of_kernel().0 == 0 {
            return None;
        }
        let user = User { environment };
        let path = environment.iter().find(|(name, _)| name == "PATH");
        let path = path.and_then(|(_, path)| path.to_str()).unwrap_or_default();
        let (home, cargo) = (user.home(), user.cargo());
        let missing = caches::missing(path, workspace, home.as_deref(), cargo.as_deref());
        MadeCaches::make(record, &missing)
    }

    /// The sandbox for a workspace. `own` is what belongs to Mainstay, which is always hidden.
    pub fn sandbox(
        &self,
        workspace: &Path,
        environment: &[(OsString, OsString)],
        own: &[PathBuf],
    ) -> Option<Sandbox> {
        self.sandbox_with(PLACES, workspace, environment, own)
    }

    /// The same, where everybody writes to other places.
    pub(super) fn sandbox_with(
        &self,
        places: &[&str],
        workspace: &Path,
        environment: &[(OsString, OsString)],
        own: &[PathBuf],
    ) -> Option<Sandbox> {
        if self.mode == Mode::Off {
            return None;
        }
        let user = User { environment };
        let show: Vec<PathBuf> = self.show.iter().filter_map(|path| user.path(path)).collect();
        let mut hide: Vec<PathBuf> = own.to_vec();
        hide.extend(user.secrets().filter(|secret| !show.contains(secret)));
        if rustix::process::geteuid().is_root() {
            let more = secrets::of_root(user.home().as_deref(), workspace);
            hide.extend(more.into_iter().filter(|secret| !show.contains(secret)));
        }
        hide.extend(self.hide.iter().filter_map(|path| user.path(path)));
        let mut shown = user.shown();
        // Nothing of Mainstay's own is shown.
        shown
            .extend(show.into_iter().filter(|shown| !own.iter().any(|own| shown.starts_with(own))));
        let Repository { write: git, keep, absent } = Repository::of(workspace);
        let mut write = vec![workspace.to_owned()];
        write.extend(git);
        write.extend(places.iter().map(PathBuf::from));
        write.extend(user.caches());
        write.extend(self.write.iter().filter_map(|path| user.path(path)));
        let mut paths = Paths::default();
        // A directory for everybody's scratch may be where a user is at home.
        let here = paths.existing(workspace).unwrap_or_else(|| workspace.to_owned());
        let home = user.home().and_then(|home| paths.existing(&home));
        let except: Vec<PathBuf> = home
            .into_iter()
            .filter(|home| places.iter().any(|place| home.starts_with(place)))
            // Who works at home is to change it.
            .filter(|home| !home.starts_with(&here))
            .collect();
        Some(Sandbox {
            write: writable(write, &except, &mut paths),
            hide: hide.into_iter().filter_map(|path| paths.real(&path)).collect(),
            show: shown.into_iter().filter_map(|path| paths.existing(&path)).collect(),
            except,
            keep,
            absent,
            network: self.network,
            required: self.mode == Mode::Require,
        })
    }
}

/// The user whose environment this is.
struct User<'a> {
    environment: &'a [(OsString, OsString)],
}

impl User<'_> {
    fn variable(&self, name: &str) -> Option<PathBuf> {
        let found = self.environment.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| PathBuf::from(value)).filter(|path| path.is_absolute())
    }

    fn home(&self) -> Option<PathBuf> {
        // One whose directory is `/` has none of its own.
        self.variable("HOME").filter(|home| home.parent().is_some())
    }

    /// A path as a user writes it.
    fn path(&self, text: &str) -> Option<PathBuf> {
        let path = match text.strip_prefix("~/") {
            Some(below) => self.home()?.join(below),
            None if text == "~" => self.home()?,
            None => PathBuf::from(text),
        };
        path.is_absolute().then_some(path)
    }

    fn cargo(&self) -> Option<PathBuf> {
        self.variable("CARGO_HOME").or_else(|| Some(self.home()?.join(".cargo")))
    }

    fn secrets(&self) -> impl Iterator<Item = PathBuf> {
        let cargo = self.cargo().into_iter();
        let cargo =
            cargo.flat_map(|cargo| [cargo.join("credentials"), cargo.join("credentials.toml")]);
        let below_home = |secrets: &'static [&str]| {
            let home = self.home().into_iter();
            home.flat_map(|home| secrets.iter().map(move |secret| home.join(secret)))
        };
        let in_caches = below_home(SECRETS_IN_CACHES).filter(|secret| secret.exists());
        below_home(SECRETS).chain(in_caches).chain(cargo)
    }

    /// What is read though it is in a directory with secrets.
    fn shown(&self) -> Vec<PathBuf> {
        let Some(ssh) = self.home().map(|home| home.join(".ssh")) else { return Vec::new() };
        let mut shown: Vec<PathBuf> = SSH_SHOWN.iter().map(|name| ssh.join(name)).collect();
        let entries = fs::read_dir(&ssh).into_iter().flatten().flatten().map(|entry| entry.path());
        shown.extend(entries.filter(|path| path.extension().is_some_and(|end| end == "pub")));
        shown
    }

    fn caches(&self) -> Vec<PathBuf> {
        let mut caches = caches::all(self.home().as_deref(), self.cargo().as_deref());
        caches.extend(self.variable("XDG_CACHE_HOME").iter().flat_map(|at| caches::below(at)));
        for name in ["TMPDIR", "GOCACHE", "GOMODCACHE", "CARGO_TARGET_DIR"] {
            caches.extend(self.variable(name));
        }
        caches.extend(self.variable("GOPATH").map(|go| go.join("pkg")));
        caches
    }
}

/// The real paths. What is named below a place that may be written anyway is left out: a command can
/// put a link there, to widen the next sandbox.
fn writable(places: Vec<PathBuf>, except: &[PathBuf], paths: &mut Paths) -> Vec<PathBuf> {
    let mut named: Vec<PathBuf> = Vec::new();
    let mut real: Vec<PathBuf> = Vec::new();
    for path in places {
        let Some(found) = paths.existing(&path) else { continue };
        let is_written = |place: &PathBuf| {
            let is_excepted = |except: &PathBuf| {
                except.starts_with(place) && path.starts_with(except) && except != place
            };
            path.starts_with(place) && !except.iter().any(is_excepted)
        };
        if !named.iter().chain(&real).any(is_written) {
            named.push(path);
            real.push(found);
        }
    }
    real
}

/// Finds real paths. Most are below the same few directories, and each of those is looked at once.
#[derive(Default)]
struct Paths {
    directories: HashMap<PathBuf, Option<PathBuf>>,
}

impl Paths {
    /// The real path of what is there.
    fn existing(&mut self, path: &Path) -> Option<PathBuf> {
        let plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
        if !path.components().all(plain) || !path.is_absolute() {
            return fs::canonicalize(path).ok();
        }
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return Some(path.to_owned());
        };
        let found = self.directory(above)?.join(name);
        if fs::symlink_metadata(&found).ok()?.is_symlink() {
            fs::canonicalize(found).ok()
        } else {
            Some(found)
        }
    }

    fn directory(&mut self, path: &Path) -> Option<PathBuf> {
        if let Some(known) = self.directories.get(path) {
            return known.clone();
        }
        let found = self.existing(path);
        self.directories.insert(path.to_owned(), found.clone());
        found
    }

    /// The real path, also of what is not there yet. A link that leads nowhere is hidden itself.
    fn real(&mut self, path: &Path) -> Option<PathBuf> {
        let path = std::path::absolute(path).ok()?;
        if let Some(found) = self.existing(&path) {
            return Some(found);
        }
        let (above, name) = (path.parent()?, path.file_name()?);
        match self.directory(above) {
            Some(found) => Some(found.join(name)),
            None => Some(self.real(above)?.join(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn paths_are_found_as_the_system_finds_them() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        fs::create_dir_all(root.join("home/.config")).unwrap();
        mainstay_store::fsatomic::create_new(&root.join("home/file"), 0o600).unwrap();
        symlink("home", root.join("link")).unwrap();
        symlink("nowhere", root.join("broken")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink("../home/file", root.join("home/.config/up")).unwrap();
        let mut paths = Paths::default();
        for name in [
            "home",
            "home/.config",
            "home/file",
            "home/file/below",
            "home/absent",
            "home/absent/below",
            "link",
            "link/.config",
            "link/.config/up",
            "link/../link/file",
            "link/./file",
            "broken",
            "broken/below",
            "loop/below",
            ".",
        ] {
            let path = root.join(name);
            let found = fs::canonicalize(&path).ok();
            assert_eq!(paths.existing(&path), found, "{name}");
            if let Some(found) = found {
                assert_eq!(paths.real(&path), Some(found), "{name}");
            }
        }
        assert_eq!(paths.existing(Path::new("/")), Some("/".into()));
        for (name, real) in [
            ("link/absent/below", "home/absent/below"),
            ("link/.config/absent", "home/.config/absent"),
            ("broken", "broken"),
            ("broken/below", "broken/below"),
            ("home/file/below", "home/file/below"),
        ] {
            assert_eq!(paths.real(&root.join(name)), Some(root.join(real)), "{name}");
        }
    }
}
