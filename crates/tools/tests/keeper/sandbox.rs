//! What commands cannot do in a sandbox: refused by the kernel, in real children of a real keeper, for
//! root and for an ordinary user.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use mainstay_testkit::capability::Capability;
use mainstay_testkit::process::example;
use mainstay_tools::sandbox::{Network, ProcessWay, Sandbox, Specification};
use tempfile::TempDir;

use crate::scene::{Scene, in_time, is_first, job, kill, mark, numbers, parent, running, until};

/// An ordinary user without a name, and root where the tests run as root.
const USERS: [Option<u32>; 2] = [None, Some(64_321)];

/// A place with a secret, which belongs to the user who works there.
struct Place {
    directory: TempDir,
    user: Option<u32>,
}

impl Place {
    fn new(user: Option<u32>) -> Self {
        let place = Self { directory: tempfile::tempdir().unwrap(), user };
        for name in ["work", "home/.ssh", "tmp", "spool"] {
            fs::create_dir_all(place.at(name)).unwrap();
        }
        fs::write(place.at("home/.ssh/id"), "the key\n").unwrap();
        fs::write(place.at("home/plain"), "plain\n").unwrap();
        // The program is copied to where everybody can run it.
        fs::copy(example("agent"), place.at("agent")).unwrap();
        fs::set_permissions(place.at(""), Permissions::from_mode(0o755)).unwrap();
        if let Some(user) = user {
            let owner = format!("{user}:{user}");
            let owned = Command::new("chown").args(["-R", &owner]).arg(place.at("")).status();
            assert!(owned.unwrap().success());
        }
        place
    }

    /// The real path, as sandboxes want it.
    fn at(&self, path: &str) -> PathBuf {
        fs::canonicalize(self.directory.path()).unwrap().join(path)
    }

    fn sandbox(&self) -> Sandbox {
        Sandbox {
            write: vec![self.at("work"), self.at("tmp"), "/dev/null".into()],
            hide: vec![self.at("home/.ssh"), self.at("spool")],
            ..Sandbox::default()
        }
    }

    /// The program as the user of this place.
    fn command(&self, sandbox: &Sandbox, commands: &[&str]) -> Command {
        let mut command = match self.user {
            None => Command::new(self.at("agent")),
            Some(user) => {
                let mut command = Command::new("setpriv");
                let (user, group) = (format!("--reuid={user}"), format!("--regid={user}"));
                command.args([&user, &group, "--clear-groups"]).arg(self.at("agent"));
                command
            }
        };
        let sandbox = serde_json::to_string(sandbox).unwrap();
        command.arg("confined").arg(self.at("spool")).arg(sandbox).args(commands);
        command.current_dir("/").env("SECRET_OF_THE_AGENT", "do not tell");
        command
    }

    /// What commands write and how they end, in one sandbox.
    fn run(&self, sandbox: &Sandbox, commands: &[&str]) -> String {
        let output = self.command(sandbox, commands).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// The users that a test can be: who is not root is only himself.
fn users() -> Vec<Option<u32>> {
    let root = rustix::process::geteuid().is_root();
    USERS.into_iter().filter(|user| root || user.is_none()).collect()
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn writes_outside_and_reads_of_secrets_are_refused_by_the_kernel() {
    for user in users() {
        let place = Place::new(user);
        let (secret, plain) = (shown(&place.at("home/.ssh/id")), shown(&place.at("home/plain")));
        let refused = [
            format!("echo x > {plain}"),
            format!("echo x >> {plain}"),
            format!("rm {plain}"),
            format!("mv {plain} {plain}2"),
            format!("ln {plain} {plain}2"),
            format!("touch {}", shown(&place.at("home/new"))),
            format!("mkdir {}", shown(&place.at("home/new"))),
            format!("sh -c '(setsid sh -c \"echo x > {plain}\") & wait $!'"),
            format!("cat {secret}"),
            format!("cp {secret} {}", shown(&place.at("work/copy"))),
            format!("mv {secret} {}", shown(&place.at("work/moved"))),
            format!("ln {secret} {}", shown(&place.at("work/linked"))),
            format!("ln -s {secret} {0} && cat {0}", shown(&place.at("work/symlink"))),
            format!("cat /proc/self/root{secret}"),
            format!("cat {}", shown(&place.at("spool"))) + "/*/log",
            format!("echo x > {secret}"),
            // What belongs to the agent and the keeper.
            "cat /proc/$PPID/environ".to_owned(),
            "kill -9 $PPID".to_owned(),
        ];
        let all: Vec<&str> = refused.iter().map(String::as_str).collect();
        let told = place.run(&place.sandbox(), &all);
        let ends: Vec<&str> = told.lines().filter(|line| line.starts_with("exit code")).collect();
        assert_eq!(ends.len(), refused.len(), "{told}");
        for (command, end) in refused.iter().zip(ends) {
            assert_ne!(end, "exit code 0", "{user:?}: {command} worked:\n{told}");
        }
        assert!(!told.contains("the key") && !told.contains("do not tell"), "{told}");
        assert!(told.contains("denied") || told.contains("not permitted"), "{told}");
        assert_eq!(fs::read_to_string(place.at("home/plain")).unwrap(), "plain\n");
        assert_eq!(fs::read_to_string(place.at("home/.ssh/id")).unwrap(), "the key\n");
    }
}

#[test]
fn honest_work_is_done() {
    for user in users() {
        let place = Place::new(user);
        let work = shown(&place.at("work"));
        let allowed = [
            format!(
                "cd {work} && echo one > a && mkdir -p d/e && mv a d/e/b && ln d/e/b c && cat c"
            ),
            format!(
                "cd {work} && git init -q . && git add -A && git -c user.name=n -c user.email=e commit -qm x"
            ),
            format!("cat {}", shown(&place.at("home/plain"))),
            format!("TMPDIR={} mktemp -d", shown(&place.at("tmp"))),
            "echo x > /dev/null; ls / > /dev/null; cat /etc/hostname > /dev/null".to_owned(),
            "sleep 60 & kill $!; wait $!; test $? = 143".to_owned(),
        ];
        let all: Vec<&str> = allowed.iter().map(String::as_str).collect();
        let told = place.run(&place.sandbox(), &all);
        let ends = told.lines().filter(|line| *line == "exit code 0").count();
        assert_eq!(ends, allowed.len(), "{user:?}: {told}");
    }
}

#[test]
fn what_comes_to_be_beside_a_secret_is_read_by_the_next_command() {
    for user in users() {
        let place = Place::new(user);
        let later = place.at("home/later");
        // The agent prints the end of the first command before it starts the second.
        let wait = format!("until test -e {}; do sleep 0.01; done", shown(&later));
        let read = format!("cat {}", shown(&later));
        let mut agent = mainstay_testkit::process::Running::spawn(
            &mut place.command(&place.sandbox(), &["true", &wait, &read]),
        );
        agent.line_with("exit code 0", Duration::from_secs(10));
        fs::write(&later, "written later\n").unwrap();
        agent.line_with("written later", Duration::from_secs(10));
        assert!(agent.wait(Duration::from_secs(10)).success());
    }
}

#[test]
fn a_command_that_was_denied_the_network_reaches_itself_and_nobody_else() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for user in users() {
        let place = Place::new(user);
        let agent = shown(&place.at("agent"));
        let connect = format!("{agent} reach tcp 127.0.0.1:{port}");
        let own = format!("{agent} reach own");
        let datagram = format!("{agent} reach udp 192.0.2.1:53");
        let open = place.sandbox();
        assert!(place.run(&open, &[&connect]).contains("reached"), "{user:?}");
        let closed = Sandbox { network: Network::Closed, ..open };
        let told = place.run(&closed, &[&connect, &own, &datagram]);
        assert!(!told.contains("reached 127") && !told.contains("sent"), "{user:?}: {told}");
        assert!(told.contains("reached itself"), "{user:?}: {told}");
        assert!(told.contains("refused") && told.contains("unreachable"), "{user:?}: {told}");
        // The network of others is out of reach, for root too.
        let enter =
            ["nsenter -t $PPID -n true", "nsenter --net=/proc/1/ns/net true", "unshare -m true"];
        let told = place.run(&closed, &enter);
        assert!(!told.contains("exit code 0"), "{user:?}: {told}");
    }
}

#[test]
fn where_there_are_no_namespaces_tcp_is_closed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let place = Place::new(Some(64_321).filter(|_| rustix::process::geteuid().is_root()));
    let connect = format!("{} reach tcp 127.0.0.1:{port}", shown(&place.at("agent")));
    let closed = Sandbox { network: Network::Closed, ..place.sandbox() };
    let mut command = place.command(&closed, &[&connect, "true"]);
    let refuse = [libc::SYS_unshare, libc::SYS_setns];
    mainstay_testkit::seccomp::answer(&mut command, &refuse, libc::EPERM);
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("Permission denied") && told.contains("exit code 0"), "{told}");
}

#[test]
fn without_landlock_commands_run_unless_a_sandbox_is_required() {
    let place = Place::new(None);
    let landlock = [libc::SYS_landlock_create_ruleset];
    let touch = format!("touch {}", shown(&place.at("home/new")));
    let run = |sandbox: &Sandbox| {
        let mut command = place.command(sandbox, &[&touch]);
        mainstay_testkit::seccomp::answer(&mut command, &landlock, libc::ENOSYS);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let required = Sandbox { required: true, ..place.sandbox() };
    let told = run(&required);
    assert!(told.contains("this kernel has no landlock") && told.contains("require"), "{told}");
    assert!(!place.at("home/new").exists());
    assert_eq!(run(&place.sandbox()), "exit code 0\n");
    assert!(place.at("home/new").exists());
}

#[test]
fn a_command_cannot_ask_a_keeper_for_a_job_outside() {
    for user in users() {
        let place = Place::new(user);
        // It speaks the keeper's language through the keeper's own socket.
        let target = shown(&place.at("home/escaped"));
        let command =
            format!("{} escape {} {target}", shown(&place.at("agent")), shown(&place.at("spool")));
        let told = place.run(&place.sandbox(), &[&command, "sleep 0.2"]);
        assert!(!place.at("home/escaped").exists(), "{user:?}: {told}");
        assert!(told.contains("the keeper hung up"), "{user:?}: {told}");
    }
}

#[tokio::test]
async fn commands_of_a_sandbox_signal_each_other_and_die_with_their_call() {
    let scene = Scene::new();
    let name = scene.keeper.name().await.unwrap();
    let sandbox = Sandbox {
        write: vec!["/dev/null".into()],
        hide: vec![fs::canonicalize(scene.spool()).unwrap()],
        ..Sandbox::default()
    };
    let sandbox = Specification::from(&sandbox);
    let mark = mark();
    let mut server = job("server", &format!("sleep {mark}"));
    (server.background, server.sandbox) = (true, Some(sandbox.clone()));
    let status = scene.keeper.start(&name, &server).await.unwrap();
    // By the number that it has for them.
    let inside = *numbers(status.pid).last().unwrap();
    let mut kill = job("kill", &format!("kill -- -{inside}"));
    kill.sandbox = Some(sandbox.clone());
    let ended = in_time(scene.keeper.run(&name, &kill)).await.unwrap();
    assert_eq!(ended.how.code(), 0, "{}", ended.output.text());
    until("its end", Duration::from_secs(10), || running(&mark).is_empty()).await;
    // This process is outside, and none of theirs.
    let mut kill = job("outside", &format!("kill -0 {}", std::process::id()));
    kill.sandbox = Some(sandbox.clone());
    let ended = in_time(scene.keeper.run(&name, &kill)).await.unwrap();
    assert_ne!(ended.how.code(), 0);
    for command in [
        format!("(env -i setsid sh -c '(sleep {mark} &)' &); sleep {mark}"),
        format!("trap '' TERM; sleep {mark}; sleep {mark}"),
    ] {
        let mut escape = job(&command, &command);
        escape.sandbox = Some(sandbox.clone());
        {
            let run = scene.keeper.run(&name, &escape);
            let there = until(&command, Duration::from_secs(10), || !running(&mark).is_empty());
            tokio::select! {
                ended = run => panic!("{command} ended: {ended:?}"),
                () = there => {}
            }
        }
        until(&command, Duration::from_secs(2), || running(&mark).is_empty()).await;
    }
    scene.keeper.leave().await;
}

/// Whether there are process namespaces here.
fn is_enclosable() -> bool {
    Capability::ProcessNamespace.require(ProcessWay::of_kernel() == ProcessWay::Namespace)
}

/// What a command sees of processes: its own number, that of the first one's parent, and all there are.
const LOOK: &str = "echo $$ $PPID; cat /proc/$$/comm /proc/self/comm; \
                    all=$(ls /proc); echo \"$all\" | grep -c '^[0-9]'; \
                    kill -9 1 2>/dev/null; sleep 0.01; cat /proc/1/stat | cut -d' ' -f4";

#[test]
fn commands_see_each_other_and_no_other_processes() {
    if !is_enclosable() {
        return;
    }
    for user in users() {
        let place = Place::new(user);
        for network in [Network::Open, Network::Closed] {
            let sandbox = Sandbox { network, ..place.sandbox() };
            let told = place.run(&sandbox, &[LOOK, "exit 7", "kill -9 $$", "(sleep 5 &); true"]);
            let lines: Vec<&str> = told.lines().collect();
            let number: i32 = lines[0].strip_suffix(" 0").unwrap_or("0").parse().unwrap();
            assert!((2..20).contains(&number), "{user:?}: {told}");
            // The first process, the shell and what it runs.
            assert_eq!(lines[1..4], ["sh", "cat", "3"], "{user:?}: {told}");
            assert_eq!(lines[4], "0", "{user:?}: {told}");
            assert!(told.contains("exit code 7") && told.contains("SIGKILL"), "{user:?}: {told}");
        }
    }
}

#[test]
fn what_runs_in_a_sandbox_ends_with_its_keeper_also_when_all_are_killed_at_once() {
    if !is_enclosable() {
        return;
    }
    for user in users() {
        let place = Place::new(user);
        for network in [Network::Open, Network::Closed] {
            let mark = mark();
            let sandbox = Sandbox { network, ..place.sandbox() };
            let hidden = format!(
                "(prlimit --locks=0:0 --rss=0:0 env -i setsid sh -c '(sleep {mark} &)'); sleep {mark}"
            );
            let mut agent = place.command(&sandbox, &[&hidden]);
            let mut agent = mainstay_testkit::process::Running::spawn(&mut agent);
            let two = || running(&mark).len() == 2;
            mainstay_testkit::process::wait_for("the command", Duration::from_secs(10), two);
            // All that is above it: the first process of the namespace, the worker and the guard.
            let commands = running(&mark);
            let root = commands.iter().map(|pid| parent(*pid).unwrap().0);
            let first = root.clone().find(|pid| is_first(*pid)).expect("an orphan fell to it");
            let worker = parent(first).unwrap().0;
            let guard = parent(worker).unwrap().0;
            agent.stop();
            for pid in [guard, worker] {
                kill(pid);
            }
            agent.kill_and_wait();
            let gone = || running(&mark).is_empty();
            mainstay_testkit::process::wait_for("its end", Duration::from_secs(10), gone);
        }
    }
}

#[tokio::test]
async fn when_the_first_process_of_a_namespace_is_killed_the_next_command_gets_another() {
    if !is_enclosable() {
        return;
    }
    let scene = Scene::new();
    let mut endings = scene.keeper.endings();
    let name = scene.keeper.name().await.unwrap();
    let sandbox = Sandbox { write: vec!["/dev/null".into()], ..Sandbox::default() };
    let sandboxed = |key: &str, line: &str| {
        let mut job = job(key, line);
        job.sandbox = Some(Specification::from(&sandbox));
        job
    };
    for round in 0..3 {
        let mark = mark();
        let left = sandboxed(&format!("left {round}"), &format!("sleep {mark} & echo started"));
        let ended = in_time(scene.keeper.run(&name, &left)).await.unwrap();
        assert_eq!(ended.output.text(), "started\n");
        let process = &ended.left[0];
        assert_eq!(Some(process.inside), Some(numbers(process.pid).last().copied()));
        let first = parent(process.pid).unwrap().0;
        assert!(is_first(first), "{ended:?}");
        if round < 2 {
            kill(first);
            // Until it is buried, its namespace takes processes in and kills them.
            let buried = || !std::path::Path::new(&format!("/proc/{first}")).exists();
            mainstay_testkit::process::wait_for("its end", Duration::from_secs(10), buried);
        } else {
            // What another command ends is told like any other end.
            let inside = process.inside.unwrap();
            let end = sandboxed("end", &format!("kill {inside}"));
            in_time(scene.keeper.run(&name, &end)).await.unwrap();
        }
        let ending = in_time(endings.recv()).await.unwrap();
        assert_eq!(ending.key, left.key);
        assert!(running(&mark).is_empty());
    }
    scene.keeper.leave().await;
}

#[test]
fn a_command_that_hides_all_it_can_is_still_known_for_one() {
    for user in users() {
        let place = Place::new(user);
        let agent = shown(&place.at("agent"));
        let plain = format!("{agent} kept");
        // Neither its variables, nor its limits, nor who is above it tell any more.
        let hidden = format!(
            "env -i setsid prlimit --locks=0:0 --rss=0:0 --msgqueue=819200:819200 {agent} kept"
        );
        let told = place.run(&place.sandbox(), &[&plain, &hidden]);
        assert_eq!(told.matches("kept: true").count(), 2, "{user:?}: {told}");
        let outside = Command::new(place.at("agent")).arg("kept").output().unwrap();
        assert_eq!(String::from_utf8(outside.stdout).unwrap(), "kept: false\n");
    }
}

/// Connects to a socket with a name, and to one that it makes itself.
const CONNECT: &str = "python3 -c \"
import os, socket, sys
def reached(path):
    try: socket.socket(socket.AF_UNIX).connect(path); return 'reached'
    except OSError as error: return 'refused'
print(reached(sys.argv[1]))
own = socket.socket(socket.AF_UNIX); own.bind('own'); own.listen()
print(reached('own'))
os.unlink('own')
\"";

#[test]
fn without_a_network_nobody_outside_is_reached_through_a_socket_with_a_name() {
    if !is_enclosable() {
        return;
    }
    for user in users() {
        let place = Place::new(user);
        // In a place that may be written, where the user's multiplexers and displays listen.
        let path = place.at("tmp/service");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o777)).unwrap();
        for (network, outside) in [(Network::Open, "reached"), (Network::Closed, "refused")] {
            let sandbox = Sandbox { network, ..place.sandbox() };
            let line = format!("cd {} && {CONNECT} {}", place.at("work").display(), path.display());
            let told = place.run(&sandbox, &[&line]);
            let lines: Vec<&str> = told.lines().collect();
            assert_eq!(lines[..2], [outside, "reached"], "{user:?}, {network:?}: {told}");
        }
    }
}
