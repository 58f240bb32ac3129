//! What is tried, a line each, by what it is aimed at.

mod files;
mod git;
mod kernel;
mod links;
mod metadata;
mod processes;
mod reads;
mod sockets;
mod terminals;

/// An attempt. `@HOME@`, `@WORK@` and the like stand for places and numbers of its scene.
pub(crate) struct Attempt {
    pub(crate) name: &'static str,
    language: Language,
    text: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Shell,
    Python,
    /// By a shell, and for an ordinary user without hope: the machine is not his.
    RootShell,
    RootPython,
}

/// All of them.
pub(crate) const TABLES: &[&[Attempt]] = &[
    files::ALL,
    links::ALL,
    metadata::ALL,
    reads::ALL,
    git::ALL,
    terminals::ALL,
    processes::ALL,
    sockets::ALL,
    kernel::ALL,
];

/// Those that are about files, and end nobody.
pub(crate) const ABOUT_FILES: &[&[Attempt]] =
    &[files::ALL, links::ALL, metadata::ALL, reads::ALL, git::ALL];

/// What every attempt in Python has at hand.
const PRELUDE: &str = "
import array, ctypes, fcntl, mmap, os, resource, shutil, signal, socket, struct, subprocess, sys, termios, time
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
call = libc.syscall
home, work, tmp, out = '@HOME@', '@WORK@', '@TMP@', '@OUT@'
def tell(path, *more): print(open(path, *more).read())
";

impl Attempt {
    /// Whether it needs what only root has.
    pub(crate) fn is_for_root(&self) -> bool {
        matches!(self.language, Language::RootShell | Language::RootPython)
    }

    /// The command line.
    pub(crate) fn text(&self) -> String {
        match self.language {
            Language::Shell | Language::RootShell => self.text.to_owned(),
            Language::Python | Language::RootPython => {
                format!("python3 - <<'END'\n{PRELUDE}{}\nEND\n", self.text)
            }
        }
    }
}

const fn sh(name: &'static str, text: &'static str) -> Attempt {
    Attempt { name, language: Language::Shell, text }
}

const fn py(name: &'static str, text: &'static str) -> Attempt {
    Attempt { name, language: Language::Python, text }
}

const fn root_sh(name: &'static str, text: &'static str) -> Attempt {
    Attempt { name, language: Language::RootShell, text }
}

const fn root_py(name: &'static str, text: &'static str) -> Attempt {
    Attempt { name, language: Language::RootPython, text }
}
