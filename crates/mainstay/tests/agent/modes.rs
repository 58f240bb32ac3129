//! What each mode does: every cell of the table in docs/modes.md, run for real.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mainstay_testkit::seccomp;
use serde_json::{Value, json};

use crate::sandbox::{User, shell, users, without_landlock};
use crate::world::Told;

const MODES: [&str; 4] = ["plan", "ask", "auto", "yes"];

/// An action of the table.
struct Deed {
    name: &'static str,
    call: (&'static str, Value),
    /// What `./code` in the workspace says, where that is run.
    code: String,
    effect: Effect,
}

/// How it is seen that an action had its effect.
enum Effect {
    /// The model was told this.
    Told(&'static str),
    /// This is there now.
    Made(&'static str),
    /// This is gone.
    Removed(&'static str),
    /// This has other permissions now.
    Opened(&'static str),
    /// Somebody connected.
    Connected,
}

impl Effect {
    fn is_seen(&self, user: &User, result: &str, server: &Server) -> bool {
        match self {
            Self::Told(words) => result.contains(words),
            Self::Made(path) => user.at(path).exists(),
            Self::Removed(path) => !user.at(path).exists(),
            Self::Opened(path) => {
                fs::metadata(user.at(path)).unwrap().permissions().mode() & 0o777 == 0o777
            }
            Self::Connected => server.connections.swap(0, Ordering::SeqCst) > 0,
        }
    }
}

/// Somebody who takes note of connections and hangs up.
struct Server {
    port: u16,
    connections: Arc<AtomicUsize>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = connections.clone();
        std::thread::spawn(move || {
            for _ in listener.incoming() {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { port, connections }
    }
}

fn deed(name: &'static str, call: (&'static str, Value), effect: Effect) -> Deed {
    Deed { name, call, code: String::new(), effect }
}

/// Code that nobody can judge by the line that runs it.
fn code(name: &'static str, code: &str, effect: Effect) -> Deed {
    Deed { code: code.to_owned(), ..deed(name, shell("bash ./code"), effect) }
}

fn deeds(port: u16) -> Vec<Deed> {
    use Effect::{Connected, Made, Opened, Removed, Told};
    let write = |path: &str| ("write_file", json!({ "path": path, "content": "x" }));
    let fact = json!({ "action": "add", "text": "the port is 8080" });
    vec![
        deed("read a file of the project", ("read_file", json!({ "path": "file" })), Told("mine")),
        deed("look with a command", shell("cat file"), Told("mine")),
        deed("change a file of the project", write("made"), Made("work/made")),
        deed("change the project with a known command", shell("mkdir made"), Made("work/made")),
        code("change the project with code", "echo > made", Made("work/made")),
        code("run code that only computes", "echo $((6 * 7))", Told("\n42")),
        deed("change a file elsewhere", write("../elsewhere/made"), Made("elsewhere/made")),
        deed(
            "change files elsewhere with a known command",
            shell("touch ../elsewhere/made"),
            Made("elsewhere/made"),
        ),
        code(
            "change files elsewhere with code",
            "echo > ../elsewhere/made",
            Made("elsewhere/made"),
        ),
        code(
            "change the mode of a file elsewhere with code",
            "chmod 777 ../elsewhere/there",
            Opened("elsewhere/there"),
        ),
        code("read a key with code", "cat ../.ssh/id_ed25519", Told("the private key")),
        deed(
            "reach the network with a known command",
            shell(&format!("git ls-remote git://127.0.0.1:{port}/x")),
            Connected,
        ),
        code(
            "reach the network with code",
            &format!("echo > /dev/tcp/127.0.0.1/{port}"),
            Connected,
        ),
        Deed {
            call: shell("eval \"$(cat code)\""),
            ..code("run a line that nobody can read", "echo fine", Told("\nfine"))
        },
        code(
            "change a git hook with code",
            "echo > .git/hooks/pre-commit",
            Made("work/.git/hooks/pre-commit"),
        ),
        deed("remove everything", shell("rm -rf ../elsewhere"), Removed("elsewhere/there")),
        deed("remember something", ("memory", fact), Told("emembered")),
        deed("call Mainstay", shell("mainstay approvals"), Told("exit code")),
    ]
}

/// The rows of the table: the action, and what each mode does.
fn table() -> Vec<(String, [String; 4])> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/modes.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, table) = page.split_once("| action | plan | ask | auto | yes |").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let modes = [cells[2], cells[3], cells[4], cells[5]].map(str::to_owned);
        (cells[1].to_owned(), modes)
    })
    .collect()
}

fn prepared(id: Option<u32>, deed: &Deed) -> User {
    let user = User::asking(id, vec![deed.call.clone()]);
    fs::create_dir(user.at("elsewhere")).unwrap();
    fs::write(user.at("elsewhere/there"), "somebody's\n").unwrap();
    fs::set_permissions(user.at("elsewhere/there"), Permissions::from_mode(0o644)).unwrap();
    fs::write(user.at("work/code"), &deed.code).unwrap();
    let made = Command::new("git").args(["init", "-q"]).arg(user.at("work")).status();
    assert!(made.unwrap().success());
    user
}

/// What became of an action in a mode.
fn tried(deed: &Deed, mode: &str, id: Option<u32>, server: &Server) -> String {
    let user = prepared(id, deed);
    let told = user.run(&["run", "--mode", mode, "try"]);
    let result = user.model.asked().last().unwrap().results();
    let result = result.into_iter().map(|(_, text)| text).next().unwrap_or_default();
    let is_seen = deed.effect.is_seen(&user, &result, server);
    let came = match (told.code, is_seen) {
        (Some(3), false) => "asks",
        (Some(0), true) => "done",
        (Some(0), false) if result.contains("the policy forbids") => "denied",
        (Some(0), false) if result.contains("Mainstay itself") => "denied",
        (Some(0), false) => "held",
        _ => panic!("{} in {mode} for {id:?}: {told:#?} {result}", deed.name),
    };
    println!("{:<48} {mode:<5} {id:?}: {came}", deed.name);
    came.to_owned()
}

#[test]
fn slow_every_cell_of_the_table_of_modes_holds() {
    let server = Server::start();
    let deeds = deeds(server.port);
    let table = table();
    let names: Vec<&str> = table.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, deeds.iter().map(|deed| deed.name).collect::<Vec<_>>());
    let mut wrong = Vec::new();
    for id in users() {
        for (deed, (name, cells)) in deeds.iter().zip(&table) {
            for (mode, expected) in MODES.iter().zip(cells) {
                let came = tried(deed, mode, id, &server);
                if came != *expected {
                    wrong.push(format!("{name}, {mode}, {id:?}: {expected} is said, {came} is so"));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_yes_widens_the_box_for_the_one_call_and_says_by_what() {
    for id in users() {
        let deed = deed(
            "",
            shell("touch ../elsewhere/made && bash ./code"),
            Effect::Made("elsewhere/made"),
        );
        let deed = Deed { code: "touch ../made; echo > ../.bashrc".to_owned(), ..deed };
        let user = prepared(id, &deed);
        let told = user.run(&["run", "--mode", "auto", "--json", "try"]).ended_with(3);
        let request = told.event("parked")["requests"][0].clone();
        let (request, action) =
            (request["id"].as_str().unwrap(), request["action"].as_str().unwrap());
        let place = user.at("elsewhere").display().to_string();
        assert!(action.ends_with(&format!("(may write {place})")), "{action}");
        user.run(&["approve", request, "--resume"]).ended_with(0);
        assert!(user.at("elsewhere/made").exists());
        assert!(!user.at("made").exists());
        assert_eq!(fs::read_to_string(user.at(".bashrc")).unwrap(), "alias x=y\n");
    }
}

#[test]
fn auto_is_the_default_where_the_kernel_holds_it_and_ask_elsewhere() {
    for id in users() {
        let deed = code("", "echo > made", Effect::Made("work/made"));
        let text = fs::read_to_string(prepared(id, &deed).at(".mainstay/config.toml")).unwrap();
        assert!(text.contains("mode = \"ask\""), "{text}");
        let without = |user: &User| {
            let path = user.at(".mainstay/config.toml");
            let text = fs::read_to_string(&path).unwrap().replace("mode = \"ask\"\n", "");
            fs::write(path, text).unwrap();
        };
        let user = prepared(id, &deed);
        without(&user);
        user.run(&["run", "try"]).ended_with(0);
        assert!(user.at("work/made").exists(), "{id:?}");

        let user = prepared(id, &deed);
        without(&user);
        without_landlock(&user, &["run", "try"]).ended_with(3);
        let user = prepared(id, &deed);
        without(&user);
        without_namespaces(&user, &["run", "try"]).ended_with(3);
        let doctor = without_namespaces(&user, &["doctor"]);
        assert!(doctor.stdout.contains("mode: ask,"), "{}", doctor.stdout);
        assert!(doctor.stdout.contains("no network of their own"), "{}", doctor.stdout);

        let told = without_namespaces(&user, &["run", "--mode", "auto", "try"]).ended_with(3);
        assert!(told.stderr.contains("the mode auto cannot be had"), "{}", told.stderr);

        // What only reads does not run where nobody would keep it from writing.
        let user = prepared(id, &deed);
        without_namespaces(&user, &["run", "--mode", "plan", "try"]).ended_with(0);
        assert!(!user.at("work/made").exists() && user.results()[0].contains("policy forbids"));
    }
}

/// The program on a kernel that gives no namespaces.
fn without_namespaces(user: &User, words: &[&str]) -> Told {
    let mut command = user.command(words);
    seccomp::answer(&mut command, &[libc::SYS_unshare, libc::SYS_setns], libc::EPERM);
    Told::from(command.output().unwrap())
}
