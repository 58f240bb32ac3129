//! The box: a root of its own with a small tree, real programs that cannot be changed, and fake ones
//! that write down that they ran.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fastrand::Rng;
use mainstay_agent::policy::command::{Class, judge};

use super::effects::{self, Effect, RECORD, Tree, WORKSPACE};
use super::generate::{self, PROGRAMS, Program, TASKS};

/// Programs that are not real there.
const FAKES: &str = "\
    cargo cc curl doas editor gcc gh gpg mainstay make man mvn nano nc node npm pager ping \
    python python3 rsync scp ssh su sudo vi vim wget";

/// What a line may take at most.
const LONGEST: Duration = Duration::from_secs(3);

/// A line that did worse than its class.
#[derive(Debug)]
pub(crate) struct Worse {
    pub(crate) line: String,
    pub(crate) judged: String,
    pub(crate) did: Vec<String>,
}

/// What came of all lines.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// How many were made.
    pub(crate) made: u32,
    /// How many ran: they succeeded, or did something.
    pub(crate) ran: u32,
    pub(crate) worse: Vec<Worse>,
    /// How many of those that ran have each class.
    pub(crate) classes: std::collections::BTreeMap<String, u32>,
}

impl Outcome {
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{} lines made, {} ran, {:?}\n", self.made, self.ran, self.classes);
        for worse in &self.worse {
            let _ = writeln!(
                text,
                "WORSE {:?}\n  judged {}: {}",
                worse.line,
                worse.judged,
                worse.did.join("; ")
            );
        }
        text
    }
}

/// Builds the box below a directory and enters it. Nothing outside can be changed from then on.
pub(crate) fn enter(root: &Path) {
    let run = |program: &str, arguments: &[&str]| {
        let status = Command::new(program).args(arguments).status().unwrap();
        assert!(status.success(), "{program} {arguments:?} failed");
    };
    let at = |path: &str| root.join(path).to_str().unwrap().to_owned();
    run("ip", &["link", "set", "lo", "up"]);
    run("mount", &["--make-rprivate", "/"]);
    run("mount", &["-t", "tmpfs", "-o", "size=64m", "none", root.to_str().unwrap()]);
    for name in ["bin", "sbin", "lib", "lib64", "usr"] {
        let real = Path::new("/").join(name);
        if let Ok(target) = real.read_link() {
            symlink(target, root.join(name)).unwrap();
        } else if real.is_dir() {
            std::fs::create_dir(root.join(name)).unwrap();
            run("mount", &["--rbind", real.to_str().unwrap(), &at(name)]);
            run("mount", &["-o", "remount,bind,ro", &at(name)]);
        }
    }
    for name in
        ["dev", "proc", "etc", "people/me", "opt", "srv", "tmp", "var/tmp", "box", "record/bin"]
    {
        std::fs::create_dir_all(root.join(name)).unwrap();
    }
    for name in ["null", "zero", "full", "urandom"] {
        let device = at(&format!("dev/{name}"));
        std::fs::write(&device, "").unwrap();
        run("mount", &["--bind", &format!("/dev/{name}"), &device]);
        run("mount", &["-o", "remount,bind,ro", &device]);
    }
    for (name, target) in
        [("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")]
    {
        symlink(target, root.join("dev").join(name)).unwrap();
    }
    run("mount", &["-t", "proc", "proc", &at("proc")]);
    if let Ok(entries) = Path::new("/etc/alternatives").read_dir() {
        std::fs::create_dir(root.join("etc/alternatives")).unwrap();
        for entry in
            entries.flatten().filter(|entry| entry.file_name().to_string_lossy().contains("awk"))
        {
            let target = entry.path().read_link().unwrap();
            symlink(target, root.join("etc/alternatives").join(entry.file_name())).unwrap();
        }
    }
    std::os::unix::fs::chroot(root).unwrap();
    std::env::set_current_dir("/").unwrap();
}

/// A program that writes down that it ran.
fn recorder(path: &str) {
    std::fs::write(path, format!("#!/bin/sh\necho \"$0 $*\" >> {RECORD}\n")).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Fills the box.
fn furnish() {
    std::fs::write("/etc/passwd", "root:x:0:0::/people/me:/bin/sh\n").unwrap();
    std::fs::write("/etc/hosts", "127.0.0.1 localhost\n").unwrap();
    std::fs::write("/people/me/.profile", "# mine\n").unwrap();
    std::fs::write(RECORD, "").unwrap();
    for name in FAKES.split_ascii_whitespace() {
        recorder(&format!("/record/bin/{name}"));
    }
    let script = "\
        set -e; mkdir -p ws/src ws/sub ws/0 nested; cd ws; git init -q --template= -b main .; \
        echo 'fn main() {}' > src/main.rs; echo 'pub fn a() {}' > src/lib.rs; \
        printf 'b\\na\\n3\\n' > a.txt; printf 'a\\nb\\n' > b.txt; printf './run.sh\\na.txt\\n' > names.txt; \
        printf '1,2\\n3,4\\n' > data.csv; echo rules > AGENTS.md; ln -s /etc link; ln -s /etc/hosts file-link; \
        git add -A; git commit -q -m first; echo c >> a.txt; git commit -q -am second; git branch other HEAD~1; \
        git remote add origin ../other.git; git clone -q --bare --no-hardlinks --template= . ../other.git; \
        git init -q --template= nested; mkdir nested/.git/hooks; echo '[core]' > nested/.git/x; \
        mkdir -p t/.git/hooks; echo x > t/.git/hooks/pre-commit; echo y > t/new; tar cf archive.tar -C t .; rm -r t; \
        printf -- '--- a/a.txt\\n+++ b/a.txt\\n@@ -1,2 +1,2 @@\\n-b\\n+B\\n a\\n' > fix.patch; \
        printf -- '--- /dev/null\\n+++ b/.git/hooks/pre-push\\n@@ -0,0 +1 @@\\n+x\\n' > evil.patch; \
        git -C nested config core.fsmonitor /box/ws/run.sh";
    let made = shell("/bin/bash", script, "/box").status().unwrap();
    assert!(made.success(), "the workspace could not be made");
    for name in ["run.sh", "0/ls", "0/cat", "0/touch", "src/x"] {
        recorder(&format!("{WORKSPACE}/{name}"));
    }
    std::fs::create_dir_all("/box/other.git/hooks").unwrap();
    recorder("/box/other.git/hooks/pre-receive");
}

/// A shell as commands of the agent get it.
fn shell(program: &str, line: &str, directory: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "ulimit -f 8192; ulimit -t 3; exec \"$0\" -c \"$1\"", program, line])
        .current_dir(directory)
        .env_clear()
        .envs([
            ("PATH", "/record/bin:/usr/local/bin:/usr/bin:/bin"),
            ("HOME", "/people/me"),
            ("PAGER", "cat"),
            ("GIT_PAGER", "cat"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_EDITOR", "true"),
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "safe.bareRepository"),
            ("GIT_CONFIG_VALUE_0", "explicit"),
            ("GIT_AUTHOR_NAME", "me"),
            ("GIT_AUTHOR_EMAIL", "me@example.org"),
            ("GIT_COMMITTER_NAME", "me"),
            ("GIT_COMMITTER_EMAIL", "me@example.org"),
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// The programs that are there, with the options of their help.
fn programs() -> Vec<Program> {
    let there = |name: &&str| {
        ["/usr/local/bin", "/usr/bin", "/bin"]
            .iter()
            .any(|place| Path::new(place).join(name).exists())
    };
    let plain = PROGRAMS.split_ascii_whitespace().filter(there);
    let tasks = TASKS.split_ascii_whitespace().map(|task| (format!("git {task}"), "-h"));
    let all = plain.map(|name| (name.to_owned(), "--help")).chain(tasks);
    all.map(|(name, help)| {
        let output = shell("/bin/bash", &format!("timeout 2 {name} {help} 2>&1"), WORKSPACE)
            .stdout(Stdio::piped())
            .output()
            .unwrap();
        let options = generate::options_of(&String::from_utf8_lossy(&output.stdout));
        Program { name, options }
    })
    .collect()
}

/// Runs lines until so many of them ran, and compares what they did with their class.
/// Lines of the table are among them.
pub(crate) fn compare(seed: u64, wanted: u32, known: &[String]) -> Outcome {
    furnish();
    let mut random = Rng::with_seed(seed);
    let programs = programs();
    let mut trial = Trial::begin();
    while trial.outcome.ran < wanted && trial.outcome.made < wanted * 6 {
        let line = generate::line(&mut random, &programs, known);
        let program = if random.u8(..3) == 0 { "/bin/sh" } else { "/bin/bash" };
        trial.line(program, line);
    }
    trial.outcome
}

/// Runs each of these lines once, with both shells, and compares what they did with their class.
pub(crate) fn compare_all(lines: &[String]) -> Outcome {
    furnish();
    let mut trial = Trial::begin();
    for line in lines {
        trial.line("/bin/bash", line.clone());
        trial.line("/bin/sh", line.clone());
    }
    trial.outcome
}

/// Lines that are run one after the other, each in the same box.
struct Trial {
    listener: TcpListener,
    pristine: Tree,
    before: Tree,
    outcome: Outcome,
}

impl Trial {
    fn begin() -> Self {
        let listener = TcpListener::bind("127.0.0.1:7777").unwrap();
        listener.set_nonblocking(true).unwrap();
        let _ = std::fs::write(RECORD, "");
        let pristine = effects::tree();
        Self { listener, before: pristine.clone(), pristine, outcome: Outcome::default() }
    }

    /// Runs a line, notes what it did and puts everything back.
    fn line(&mut self, program: &str, line: String) {
        self.outcome.made += 1;
        let judged = judge(&line, Path::new(WORKSPACE));
        let succeeded = run(program, &line);
        let after = effects::tree();
        let different = effects::differences(&self.before, &after);
        let mut did = effects::of_differences(&self.before, &after, &different);
        did.extend(effects::of_programs());
        while let Ok((stream, _)) = self.listener.accept() {
            drop(stream);
            did.push(Effect { least: Class::Network, what: "opened a connection".to_owned() });
        }
        if !different.is_empty() {
            effects::restore(&self.pristine, &different);
            self.before = effects::tree();
        }
        if !succeeded && did.is_empty() {
            return;
        }
        self.outcome.ran += 1;
        let class = judged.class();
        *self.outcome.classes.entry(format!("{class:?}")).or_default() += 1;
        let worse = did.into_iter().filter(|effect| effect.least > class);
        let worse: Vec<String> = worse.map(|effect| effect.what).collect();
        if !worse.is_empty() {
            self.outcome.worse.push(Worse { line, judged: format!("{class:?}"), did: worse });
        }
    }
}

/// Runs a line and ends all that it left. Returns whether it succeeded.
fn run(program: &str, line: &str) -> bool {
    let mut child = shell(program, line, WORKSPACE).spawn().unwrap();
    let begun = Instant::now();
    let mut late = false;
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if begun.elapsed() > LONGEST => {
                late = true;
                let _ = child.kill();
                break child.wait().unwrap();
            }
            None => std::thread::sleep(Duration::from_micros(500)),
        }
    };
    if late || others_run() {
        // All but the first process of the box, which is this one.
        let _ = Command::new("/bin/sh").args(["-c", "kill -9 -1"]).status();
    }
    status.success()
}

/// Whether a process that a line started goes on.
fn others_run() -> bool {
    let Ok(entries) = Path::new("/proc").read_dir() else { return true };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_other = name.chars().all(|next| next.is_ascii_digit()) && name != "1";
        let state = || std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        is_other && !state().contains(") Z ")
    })
}
