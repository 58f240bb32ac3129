//! What a sandbox usually is: where honest work writes, and where secrets are.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::landlock::Abi;
use super::made_caches::MadeCaches;
use super::{Network, Sandbox, caches};

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

/// Where programs keep what opens doors, below the user's directory.
const SECRETS: &[&str] = &[
    ".ssh",
    ".putty",
    ".config/putty",
    ".rhosts",
    ".gnupg",
    ".config/age",
    ".step",
    ".netrc",
    ".authinfo",
    ".authinfo.gpg",
    ".curlrc",
    ".wgetrc",
    ".msmtprc",
    ".config/msmtp",
    ".mbsyncrc",
    ".fetchmailrc",
    ".offlineimaprc",
    ".davfs2/secrets",
    ".smbcredentials",
    ".Xauthority",
    ".ICEauthority",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/github-copilot",
    ".config/tea",
    ".aws",
    ".azure",
    ".boto",
    ".s3cfg",
    ".passwd-s3fs",
    ".config/linode-cli",
    ".config/scw",
    ".config/stripe",
    ".config/netlify",
    ".netlify",
    ".config/heroku",
    ".fly",
    ".railway",
    ".supabase",
    ".wrangler",
    ".config/.wrangler",
    ".cloudflared",
    ".config/cloudflared",
    ".ngrok2",
    ".config/ngrok",
    ".local/share/com.vercel.cli",
    ".config/com.vercel.cli",
    ".vercel/auth.json",
    ".huggingface",
    ".kaggle",
    ".config/kaggle",
    ".databrickscfg",
    ".snowsql",
    ".snowflake",
    ".config/snowflake",
    ".config/sentry",
    ".sentryclirc",
    ".config/gcloud",
    ".config/doctl",
    ".config/hcloud",
    ".oci",
    ".kube",
    ".minikube",
    ".config/helm/registry",
    ".config/argocd",
    ".argocd",
    ".talos",
    ".docker/config.json",
    ".config/containers/auth.json",
    ".terraform.d/credentials.tfrc.json",
    ".terraformrc",
    ".pulumi/credentials.json",
    ".vault-token",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".local/share/gem/credentials",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".sbt/.credentials",
    ".ivy2/.credentials",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".config/pypoetry/auth.toml",
    ".local/share/uv/credentials",
    ".hex/hex.config",
    ".nuget/NuGet/NuGet.Config",
    ".config/NuGet/NuGet.Config",
    ".dput.cf",
    ".config/op",
    ".config/1Password",
    ".config/Bitwarden",
    ".config/Bitwarden CLI",
    ".config/keepassxc",
    ".config/sops",
    ".config/rclone",
    ".config/borg",
    ".config/filezilla",
    ".filezilla",
    ".config/remmina",
    ".local/share/remmina",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".mozilla",
    ".config/mozilla",
    ".librewolf",
    ".thunderbird",
    ".config/google-chrome",
    ".config/google-chrome-beta",
    ".config/google-chrome-unstable",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    ".local/share/epiphany",
    "snap/firefox",
    "snap/chromium",
    "snap/brave",
    "snap/opera",
    "snap/thunderbird",
    "snap/signal-desktop",
    "snap/bitwarden",
    ".var/app",
    ".local/share/evolution",
    ".config/evolution",
    ".config/Signal",
    ".config/Element",
    ".config/discord",
    ".config/Slack",
    ".local/share/TelegramDesktop",
    ".purple",
    ".bitcoin",
    ".ethereum",
    ".electrum",
    ".config/solana",
    ".monero",
    ".config/Exodus",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".local/share/opencode/auth.json",
    ".config/io.datasette.llm/keys.json",
    ".config/goose/secrets.yaml",
    ".hermes",
    ".aider.conf.yml",
    ".bash_history",
    ".zsh_history",
    ".zhistory",
    ".history",
    ".sh_history",
    ".ash_history",
    ".local/share/fish/fish_history",
    ".config/nushell/history.txt",
    ".config/nushell/history.sqlite3",
    ".local/share/powershell/PSReadLine",
    ".local/share/atuin",
    ".lesshst",
    ".viminfo",
    ".local/state/nvim/shada",
    ".sqlite_history",
    ".rediscli_history",
    ".mongodb",
    ".irb_history",
    ".pry_history",
    ".python_history",
    ".psql_history",
    ".mysql_history",
    ".node_repl_history",
];

/// The same below a cache that commands write. Nothing new can be made beside a hidden place, so these
/// are hidden only where they are.
const SECRETS_IN_CACHES: &[&str] =
    &[".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".cache/keepassxc"];

/// What of `.ssh` is no secret, and needed to reach anybody.
const SSH_SHOWN: &[&str] =
    &["config", "config.d", "known_hosts", "known_hosts2", "allowed_signers"];

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
        hide.extend(self.hide.iter().filter_map(|path| user.path(path)));
        let mut shown = user.shown();
        // Nothing of Mainstay's own is shown.
        shown
            .extend(show.into_iter().filter(|shown| !own.iter().any(|own| shown.starts_with(own))));
        let mut write = vec![workspace.to_owned()];
        write.extend(repository(workspace));
        write.extend(places.iter().map(PathBuf::from));
        write.extend(user.caches());
        write.extend(self.write.iter().filter_map(|path| user.path(path)));
        let mut paths = Paths::default();
        Some(Sandbox {
            write: writable(write, &mut paths),
            hide: hide.into_iter().filter_map(|path| paths.real(&path)).collect(),
            show: shown.into_iter().filter_map(|path| paths.existing(&path)).collect(),
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
        for name in ["TMPDIR", "XDG_CACHE_HOME", "GOCACHE", "GOMODCACHE", "CARGO_TARGET_DIR"] {
            caches.extend(self.variable(name));
        }
        caches.extend(self.variable("GOPATH").map(|go| go.join("pkg")));
        caches
    }
}

/// What git writes outside of a workspace that is in a repository without being its root.
fn repository(workspace: &Path) -> Vec<PathBuf> {
    let Ok(workspace) = fs::canonicalize(workspace) else { return Vec::new() };
    let Some(git) = workspace.ancestors().map(|at| at.join(".git")).find(|git| git.exists()) else {
        return Vec::new();
    };
    if git.is_dir() {
        return vec![git];
    }
    worktree(&git).unwrap_or_default()
}

/// The repository of a worktree whose `.git` is a file. The file may be written by anybody in the
/// workspace; so the repository has to say that the worktree is its own.
fn worktree(git: &Path) -> Option<Vec<PathBuf>> {
    let text = |path: &Path| Some(fs::read_to_string(path).ok()?.trim_end().to_owned());
    let own = git.parent()?.join(text(git)?.strip_prefix("gitdir: ")?);
    let own = fs::canonicalize(own).ok()?;
    let said = fs::canonicalize(own.join(text(&own.join("gitdir"))?)).ok()?;
    let common = fs::canonicalize(own.join(text(&own.join("commondir"))?)).ok()?;
    let agreed = said == fs::canonicalize(git).ok()? && own.parent()? == common.join("worktrees");
    agreed.then(|| vec![common])
}

/// The real paths. What is named below a place that may be written anyway is left out: a command can
/// put a link there, to widen the next sandbox.
fn writable(places: Vec<PathBuf>, paths: &mut Paths) -> Vec<PathBuf> {
    let mut named: Vec<PathBuf> = Vec::new();
    let mut real: Vec<PathBuf> = Vec::new();
    for path in places {
        let Some(found) = paths.existing(&path) else { continue };
        if !named.iter().chain(&real).any(|place| path.starts_with(place)) {
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
