//! The repository of a workspace: what git writes of it, and what of it git runs.
//!
//! Git's configuration and hooks name programs, and a shell's prompt alone runs git. So a command may
//! change what is in a repository, and not these. The same is in the repositories of its submodules and,
//! by way of the files that say where a repository is, in its worktrees.

use std::fs;
use std::path::{Path, PathBuf};

/// Directories that git makes in every repository, and a command makes where they are missing.
pub(super) const MADE: [&str; 2] = ["hooks", "info"];
const FILES: [&str; 2] = ["config", "config.worktree"];
/// What says that a repository's configuration is elsewhere. A main one has none.
const ELSEWHERE: &str = "commondir";
/// So many submodules and worktrees are looked after, and so deep below `modules`.
const MOST: usize = 1000;
const DEEP: usize = 8;

/// What a workspace has of a repository.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Repository {
    /// What git writes besides the workspace.
    pub(super) write: Vec<PathBuf>,
    /// What git goes by.
    pub(super) keep: Vec<PathBuf>,
    /// What git would go by if it were there.
    pub(super) absent: Vec<PathBuf>,
}

impl Repository {
    /// The repository that a workspace is in.
    pub(super) fn of(workspace: &Path) -> Self {
        let mut found = Self::default();
        let Ok(workspace) = fs::canonicalize(workspace) else { return found };
        let git = workspace.ancestors().map(|at| at.join(".git")).find(|git| git.exists());
        let Some(git) = git else { return found };
        if git.is_dir() {
            found.write.push(git.clone());
            // One that is a link is whatever it leads to, which is not the workspace's.
            if !git.is_symlink() {
                found.add_main(&git);
            }
            return found;
        }
        found.keep.push(git.clone());
        if let Some(common) = common_of_worktree(&git) {
            found.add_main(&common);
            found.write.push(common);
        }
        found
    }

    /// Adds a main repository with its submodules and worktrees.
    fn add_main(&mut self, git: &Path) {
        self.add(git);
        self.add_modules(&git.join("modules"), 0);
        for worktree in directories(&git.join("worktrees")) {
            let named = [ELSEWHERE, "gitdir"].map(|name| worktree.join(name));
            self.keep.extend(named.into_iter().filter(|path| path.exists()));
            self.keep_or_miss(worktree.join("config.worktree"));
        }
    }

    fn add(&mut self, git: &Path) {
        for name in FILES {
            self.keep_or_miss(git.join(name));
        }
        self.keep.extend(MADE.map(|name| git.join(name)));
        self.keep_or_miss(git.join(ELSEWHERE));
    }

    fn keep_or_miss(&mut self, path: PathBuf) {
        if path.symlink_metadata().is_ok() { &mut self.keep } else { &mut self.absent }.push(path);
    }

    /// Adds the repositories of submodules, whose names may have slashes.
    fn add_modules(&mut self, directory: &Path, depth: usize) {
        if depth > DEEP || self.keep.len() > MOST {
            return;
        }
        for module in directories(directory) {
            if module.join("HEAD").exists() {
                self.add(&module);
                self.keep.extend(checked_out(&module));
                self.add_modules(&module.join("modules"), depth + 1);
            } else {
                self.add_modules(&module, depth + 1);
            }
        }
    }
}

/// The directories in one, without links.
fn directories(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten().take(MOST);
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories.map(|entry| entry.path()).collect()
}

/// The file in a submodule that says where its repository is.
fn checked_out(module: &Path) -> Option<PathBuf> {
    let config = fs::read_to_string(module.join("config")).ok()?;
    let named = config.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == "worktree").then(|| value.trim().trim_matches('"').to_owned())
    })?;
    let file = fs::canonicalize(module.join(named)).ok()?.join(".git");
    file.symlink_metadata().is_ok_and(|found| found.is_file()).then_some(file)
}

/// The repository of a worktree whose `.git` is a file. The file may be written by anybody in the
/// workspace; so the repository has to say that the worktree is its own.
fn common_of_worktree(git: &Path) -> Option<PathBuf> {
    let text = |path: &Path| Some(fs::read_to_string(path).ok()?.trim_end().to_owned());
    let own = git.parent()?.join(text(git)?.strip_prefix("gitdir: ")?);
    let own = fs::canonicalize(own).ok()?;
    let said = fs::canonicalize(own.join(text(&own.join("gitdir"))?)).ok()?;
    let common = fs::canonicalize(own.join(text(&own.join(ELSEWHERE))?)).ok()?;
    let agreed = said == fs::canonicalize(git).ok()? && own.parent()? == common.join("worktrees");
    agreed.then_some(common)
}
