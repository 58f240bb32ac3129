//! Caches of tools that build: where they are, and that they are there.
//!
//! A directory that is not there cannot be allowed, and a tool cannot make it in a user's directory
//! that it may not write to. So what a tool would make on its first day is made for it.

use std::path::{Path, PathBuf};

use super::made_caches::Missing;

/// The caches of a tool below the user's directory. Nothing in them is started by a shell, its prompt, a
/// login or another project without being checked or built first. So what all tools share, `.cache`, is
/// not written as a whole: prompts, shells and hooks keep code in it.
struct Caches {
    /// Programs whose presence says that the tool is used.
    programs: &'static [&'static str],
    /// Files in a workspace that say so.
    files: &'static [&'static str],
    /// Directories below the user's.
    directories: &'static [&'static str],
}

const CACHES: &[Caches] = &[
    Caches { programs: &["pip", "pip3"], files: &[], directories: &[".cache/pip"] },
    Caches { programs: &["uv"], files: &["uv.lock"], directories: &[".cache/uv"] },
    Caches { programs: &["poetry"], files: &["poetry.lock"], directories: &[".cache/pypoetry"] },
    Caches { programs: &["yarn"], files: &["yarn.lock"], directories: &[".cache/yarn"] },
    Caches { programs: &["pnpm"], files: &["pnpm-lock.yaml"], directories: &[".cache/pnpm"] },
    Caches { programs: &["deno"], files: &["deno.json"], directories: &[".cache/deno"] },
    Caches { programs: &["ccache"], files: &[], directories: &[".cache/ccache"] },
    Caches { programs: &["sccache"], files: &[], directories: &[".cache/sccache"] },
    Caches { programs: &["bazel"], files: &["MODULE.bazel"], directories: &[".cache/bazel"] },
    Caches { programs: &["zig"], files: &["build.zig"], directories: &[".cache/zig"] },
    Caches { programs: &["npm"], files: &["package.json"], directories: &[".npm"] },
    Caches { programs: &["go"], files: &["go.mod"], directories: &["go/pkg", ".cache/go-build"] },
    Caches { programs: &["mvn"], files: &["mvnw"], directories: &[".m2/repository"] },
    Caches {
        programs: &["gradle"],
        files: &["gradlew"],
        directories: &[
            ".gradle/caches",
            ".gradle/wrapper",
            ".gradle/daemon",
            ".gradle/native",
            ".gradle/notifications",
            ".gradle/workers",
            ".gradle/.tmp",
        ],
    },
];

/// More of them, which are used where they are.
const FOUND: &[&str] = &[
    ".yarn/berry",
    ".local/share/pnpm/store",
    ".bun/install/cache",
    ".nuget/packages",
    ".ivy2/cache",
    ".cabal/packages",
    ".pub-cache/hosted",
    ".composer/cache",
    ".ccache",
    ".bundle/cache",
];

/// And more below `.cache`.
const FOUND_IN_CACHE: &[&str] = &[
    "black",
    "cabal",
    "composer",
    "coursier",
    "dune",
    "esbuild",
    "eslint",
    "fontconfig",
    "gopls",
    "goimports",
    "golangci-lint",
    "hatch",
    "huggingface",
    "jedi",
    "matplotlib",
    "meson",
    "mypy",
    "node-gyp",
    "numba",
    "parcel",
    "parso",
    "pdm",
    "pip-tools",
    "pipenv",
    "prettier",
    "pylint",
    "pytest",
    "pytype",
    "ruff",
    "rust-analyzer",
    "staticcheck",
    "swc",
    "torch",
    "tox",
    "turbo",
    "typescript",
    "vite",
    "webpack",
];
const SHARED: &str = ".cache/";

/// What cargo writes in its home. Not `bin`, `env` and `config.toml`, which shells and other projects
/// go by.
const CARGO_DIRECTORIES: &[&str] = &["registry", "git"];
const CARGO_FILES: &[&str] = &[".package-cache", ".package-cache-mutate"];
/// A database that cargo does without where it cannot make it.
const CARGO_FOUND: &[&str] = &[".global-cache"];

/// Where a user's caches are, whether they are there or not.
pub(super) fn all(home: Option<&Path>, cargo: Option<&Path>) -> Vec<PathBuf> {
    let own = CACHES.iter().flat_map(|tool| tool.directories).chain(FOUND);
    let own = own.filter(|cache| !cache.starts_with(SHARED));
    let caches = home.into_iter().flat_map(|home| {
        own.clone().map(|cache| home.join(cache)).chain(below(&home.join(SHARED)))
    });
    let own = CARGO_DIRECTORIES.iter().chain(CARGO_FILES).chain(CARGO_FOUND);
    let cargo = cargo.into_iter().flat_map(|cargo| own.clone().map(|name| cargo.join(name)));
    caches.chain(cargo).collect()
}

/// The caches of tools in a directory that they share, as `.cache` is one.
pub(super) fn below(shared: &Path) -> Vec<PathBuf> {
    let made = CACHES.iter().flat_map(|tool| tool.directories);
    let made = made.filter_map(|cache| cache.strip_prefix(SHARED));
    made.chain(FOUND_IN_CACHE.iter().copied()).map(|name| shared.join(name)).collect()
}

/// The caches that are not there of tools that are used in this workspace, each after what it is in.
pub(super) fn missing(
    path: &str,
    workspace: &Path,
    home: Option<&Path>,
    cargo: Option<&Path>,
) -> Vec<Missing> {
    let has = |program: &str| path.split(':').any(|place| Path::new(place).join(program).exists());
    let mut found: Vec<Missing> = Vec::new();
    if let Some(home) = home.filter(|home| home.is_dir()) {
        for tool in CACHES {
            let wanted = tool.directories.iter().map(|cache| home.join(cache));
            let missing: Vec<PathBuf> = wanted.filter(|cache| !cache.exists()).collect();
            if !missing.is_empty()
                && (tool.programs.iter().any(|program| has(program))
                    || tool.files.iter().any(|file| workspace.join(file).exists()))
            {
                missing.iter().for_each(|cache| add_directory(cache, &mut found));
            }
        }
    }
    if let Some(cargo) = cargo.filter(|cargo| cargo.parent().is_some_and(Path::is_dir))
        && CARGO_DIRECTORIES.iter().chain(CARGO_FILES).any(|name| !cargo.join(name).exists())
        && (has("cargo") || workspace.join("Cargo.toml").exists())
    {
        for name in CARGO_DIRECTORIES {
            add_directory(&cargo.join(name), &mut found);
        }
        let files = CARGO_FILES.iter().map(|name| cargo.join(name));
        found.extend(files.filter(|file| !file.exists()).map(Missing::File));
    }
    found
}

/// Adds a directory that is not there, after those above it that are not.
fn add_directory(path: &Path, found: &mut Vec<Missing>) {
    let mut missing: Vec<&Path> = path.ancestors().take_while(|path| !path.exists()).collect();
    missing.reverse();
    for path in missing.into_iter().map(|path| Missing::Directory(path.to_owned())) {
        if !found.contains(&path) {
            found.push(path);
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests stand outside the product's seams")]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_caches_of_tools_that_are_used_are_made_and_no_others() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["home", "work", "bin"] {
            fs::create_dir(at(name)).unwrap();
        }
        fs::write(at("bin/npm"), "").unwrap();
        fs::write(at("work/Cargo.toml"), "").unwrap();
        let (home, cargo) = (at("home"), at("home/.cargo"));
        let path = at("bin").display().to_string();
        for _ in 0..2 {
            missing(&path, &at("work"), Some(&home), Some(&cargo)).iter().for_each(Missing::make);
        }
        let mut made: Vec<String> = fs::read_dir(&home)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        made.sort();
        assert_eq!(made, [".cargo", ".npm"]);
        assert!(cargo.join("registry").is_dir() && cargo.join(".package-cache").is_file());
        assert!(!cargo.join("bin").exists());
    }
}
