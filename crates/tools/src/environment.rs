//! The environment of child processes: what is known to be harmless, and no keys.

use std::ffi::{OsStr, OsString};

use crate::Workplace;

/// Variables that reach a process. A list of what is allowed cannot forget a secret.
const ALLOWED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "COLUMNS",
    "LD_LIBRARY_PATH",
    "PKG_CONFIG_PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "MANPATH",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "GOMODCACHE",
    "JAVA_HOME",
    "MAVEN_HOME",
    "GRADLE_HOME",
    "ANDROID_HOME",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "PYENV_ROOT",
    "PYTHONPATH",
    "NVM_DIR",
    "NVM_BIN",
    "NODE_PATH",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "GEM_HOME",
    "GEM_PATH",
    "RBENV_ROOT",
    "SDKMAN_DIR",
    "ASDF_DIR",
    "HOMEBREW_PREFIX",
    "NIX_PATH",
    "NIX_PROFILES",
];
const ALLOWED_BEGINNINGS: &[&str] = &["LC_", "XDG_"];

/// Variables with a value of our own: nobody sits at a terminal to page or to type a password.
const SET: &[(&str, &str)] = &[
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "true"),
    // A directory that merely looks like a repository would have its settings obeyed, and they name
    // programs: a few written files would make looking run code.
    ("GIT_CONFIG_COUNT", "1"),
    ("GIT_CONFIG_KEY_0", "safe.bareRepository"),
    ("GIT_CONFIG_VALUE_0", "explicit"),
    ("EDITOR", "true"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("SYSTEMD_PAGER", "cat"),
];

const PATH: (&str, &str) = ("PATH", "/usr/local/bin:/usr/bin:/bin");

/// The whole environment of a process at a workplace: what is known to be harmless, and no keys.
pub fn clean(workplace: &Workplace) -> Vec<(String, String)> {
    harmless(&workplace.environment, &workplace.pass)
}

/// The part of an environment that is known to be harmless, and the variables that are passed by name.
pub fn harmless(environment: &[(OsString, OsString)], pass: &[String]) -> Vec<(String, String)> {
    let mut clean: Vec<(String, String)> = Vec::new();
    for (name, value) in environment {
        if let (Some(name), Some(value)) = (name.to_str(), value.to_str())
            && is_allowed(name, pass)
        {
            clean.push((name.to_owned(), value.to_owned()));
        }
    }
    if !environment.iter().any(|(name, _)| name == OsStr::new(PATH.0)) {
        clean.push((PATH.0.to_owned(), PATH.1.to_owned()));
    }
    for (name, value) in SET {
        if !pass.iter().any(|passed| passed == name) {
            clean.push(((*name).to_owned(), (*value).to_owned()));
        }
    }
    clean
}

fn is_allowed(name: &str, pass: &[String]) -> bool {
    ALLOWED.contains(&name)
        || ALLOWED_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || pass.iter().any(|passed| passed == name)
}
