//! A home of its own for a test, and the binary run on it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use mainstay_store::{Location, Options, Store, Value, params};
use tempfile::TempDir;

/// The binary under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_mainstay");

/// A directory with a home in it, which is not made yet.
pub(crate) struct Home {
    directory: TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { directory: TempDir::with_prefix("mainstay-").unwrap() }
    }

    /// A home with a store that holds something of every kind.
    pub(crate) fn with_store() -> Self {
        let home = Self::new();
        mainstay_store::fsatomic::private_directory(&home.path("home")).unwrap();
        fill(&home.open_or_create(), "old");
        home
    }

    /// A place beside the home or in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The place of the store.
    pub(crate) fn store(&self) -> PathBuf {
        self.path("home/store.db")
    }

    pub(crate) fn open_or_create(&self) -> Store {
        Store::open(&Location::file(self.store()), options()).unwrap()
    }

    /// The binary with this home and these words.
    pub(crate) fn command<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = mainstay(&self.path("home"));
        command.args(words).current_dir(self.directory.path());
        command
    }

    /// Runs a line of words.
    pub(crate) fn run(&self, line: &str) -> Ran {
        self.ran(&mut self.command(line.split_whitespace()))
    }

    /// Runs a command and hides what differs from run to run.
    pub(crate) fn ran(&self, command: &mut Command) -> Ran {
        let output = command.stdin(Stdio::null()).output().unwrap();
        Ran::of(&output, self.directory.path())
    }

    /// Every file under the directory with its bytes, but for locks and sockets.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        collect(self.directory.path(), &mut files);
        files
    }

    /// The names in the directory that holds the home, or in a directory below it.
    pub(crate) fn names(&self, below: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(below)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// The binary with a home and nothing of the surroundings.
pub(crate) fn mainstay(home: &Path) -> Command {
    let mut command = Command::new(BINARY);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("MAINSTAY") {
            command.env_remove(name);
        }
    }
    command.env("MAINSTAY_HOME", home).env("NO_COLOR", "1").env("TZ", "UTC");
    // What runs on this machine is no part of a test.
    command.env("MAINSTAY_LOCAL_SERVERS", "none");
    for name in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY"] {
        command.env_remove(name);
    }
    command
}

pub(crate) fn options() -> Options {
    Options::new(mainstay_agent::schema())
}

pub(crate) fn open(place: &str) -> Store {
    Store::open(&place.parse().unwrap(), options().existing()).unwrap()
}

/// Writes a few rows of every kind; `mark` tells them from others.
pub(crate) fn fill(store: &Store, mark: &str) {
    store
        .write(|tx| {
            tx.owner(mark)?;
            tx.put_blob(format!("the bytes of {mark}").repeat(500).as_bytes())?;
            for number in 0..20 {
                tx.publish("topic", &format!("{mark} {number} ü ☂ {}", "x".repeat(300)))?;
            }
            tx.move_cursor("reader", "topic", 7)
        })
        .unwrap();
}

/// The mark of the rows that a store was filled with.
pub(crate) fn mark(store: &Store) -> String {
    store
        .read(|tx| tx.query_one("SELECT max(name) FROM owners", params![], |row| row.get(0)))
        .unwrap()
}

/// Every value of every table.
pub(crate) fn rows(store: &Store) -> Vec<(String, Vec<Vec<Value>>)> {
    let tables = store.info().unwrap().tables;
    let names = tables.into_iter().map(|(name, _)| name);
    let read = |name: String| {
        let all = store.read(|tx| {
            tx.query(&format!("SELECT * FROM {name} ORDER BY 1, 2"), params![], |row| {
                (0..row.columns()).map(|index| row.get(index)).collect()
            })
        });
        (name, all.unwrap())
    };
    names.map(read).collect()
}

fn collect(directory: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "side") {
            continue;
        }
        if path.is_dir() {
            collect(&path, files);
            files.insert(path, Vec::new());
        } else {
            files.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
}

/// How a run ended and what it said.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(output: &Output, directory: &Path) -> Self {
        let text = |bytes: &[u8]| {
            String::from_utf8(bytes.to_vec())
                .expect("what is printed is text")
                .replace(directory.to_str().unwrap(), "[DIR]")
        };
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        Self { code: output.status.code(), stdout, stderr }
    }

    /// It must have gone well, with nothing on standard error.
    #[track_caller]
    pub(crate) fn well(self) -> Self {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{self}");
        self
    }

    /// It must have ended with this code, one sentence that holds `words`, and a next step; no
    /// panic, no trace.
    #[track_caller]
    pub(crate) fn refused(&self, code: i32, words: &str) {
        assert_eq!(self.code, Some(code), "{self}");
        let lines: Vec<&str> = self.stderr.lines().collect();
        let [error, hint] = lines.as_slice() else { panic!("not a sentence and a hint:\n{self}") };
        assert!(error.starts_with("error: ") && error.contains(words), "no \"{words}\" in {self}");
        assert!(hint.starts_with("hint: "), "{self}");
        assert!(!self.stderr.contains("panicked"), "{self}");
    }

    /// The answer, read as a script would.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {self}"))
    }
}

impl fmt::Display for Ran {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code.map_or("none".to_owned(), |code| code.to_string());
        write!(formatter, "exit code: {code}\n----- stdout -----\n{}", self.stdout)?;
        write!(formatter, "----- stderr -----\n{}", self.stderr)
    }
}

/// Settings under which what differs from run to run is hidden.
pub(crate) fn steady() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for (pattern, shown) in [
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d\d:\d\d", "[TIME]"),
        (r#"landlock \d[^\n"]*"#, "[LANDLOCK]"),
        (r#"none are kept; [^\n"]*"#, "[PROCESSES]"),
        (r"\d{8}[Tt]\d{6}[Zz]", "[STAMP]"),
        (r"\b[0-9a-z]{20}\b", "[ID]"),
        (r"(SQLite|PostgreSQL) \d[^\s,]*( \([^)]*\))?", "$1 [VERSION]"),
        (r#""engine_version": "[^"]*""#, r#""engine_version": "[VERSION]""#),
        (r"[\d.]+ \wiB (free|are left)", "[SPACE] $1"),
        (r"is on [\w.]+", "is on [DISK]"),
        (r"disk( +)[\w.]+,", "disk$1[DISK],"),
        (r#"("file_system": \{\s+"kind"): "[^"]*""#, r#"$1: "[DISK]""#),
        (r#""version": "[^"]*""#, r#""version": "[VERSION]""#),
        (r"(schema:? +store) \d+", "$1 [VERSION]"),
        (r#"("schema": \{\s+"store"): \d+"#, "$1: 0"),
        (r"[\d.]+ KiB", "[SIZE]"),
        (
            r#"("bytes"|"free_bytes"|"block_size"|"created_at"|"newest_at"|"server_time"): \d+"#,
            "$1: 0",
        ),
        (r"process \d+", "process [PID]"),
    ] {
        settings.add_filter(pattern, shown);
    }
    settings
}
