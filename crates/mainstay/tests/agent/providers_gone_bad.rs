//! External providers of memories that hang, die, flood and lie, asked directly.

use std::path::Path;
use std::time::{Duration, Instant};

use mainstay_agent::memory::external::{Command, Description, External, Kind, Server, Wishes};
use mainstay_agent::memory::{NewMemory, Place, Provider, Query};
use mainstay_testkit::mcp::program;
use mainstay_tools::keeper::{Launch, Program};
use mainstay_tools::{Keeper, mcp};
use serde_json::{Value, json};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(2);
const REST: Duration = Duration::from_millis(800);

struct Scene {
    directory: TempDir,
    keeper: Keeper,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let keeper = Keeper::new(Launch {
            program: env!("CARGO_BIN_EXE_mainstay").into(),
            arguments: vec!["keeper".into()],
            spool: directory.path().join("keepers"),
            grace: Duration::ZERO,
        });
        Self { directory, keeper }
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    fn external(&self, kind: Kind, write: bool) -> External {
        let name = "other".to_owned();
        let description =
            Description { name, kind, limit: LIMIT, rest: REST, write, trusted: false };
        External::new(description, &self.keeper)
    }

    fn command(&self, line: &str) -> External {
        let (program, environment) = (Program::Line(line.to_owned()), environment());
        let directory = self.directory.path().to_owned();
        self.external(Kind::Command(Command { program, environment, directory }), true)
    }

    fn server(&self, mood: &str, memory: &str) -> External {
        let words = [program().to_str().unwrap(), mood, memory].map(str::to_owned);
        let mut environment = environment();
        environment.push(("CALLS".to_owned(), self.path("calls")));
        let program = mcp::Program {
            program: Program::Arguments(words.to_vec()),
            directory: "/".into(),
            environment,
        };
        let server = mcp::Server::Program(program);
        self.external(Kind::Server(Box::new(Server { server, wishes: Wishes::default() })), true)
    }
}

fn environment() -> Vec<(String, String)> {
    vec![("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())]
}

fn place() -> Place<'static> {
    Place { session: "s", workspace: Path::new("/") }
}

fn new(text: &str) -> NewMemory<'_> {
    let (category, source) = ("general", "user");
    NewMemory { text, category, tags: &[], source, key: "k1", place: place() }
}

/// What is recalled, and how long it took.
async fn recalled(provider: &External) -> (Result<Vec<String>, String>, Duration) {
    let begun = Instant::now();
    let found = provider.recall(Query { text: "tabs", limit: 5, place: place() }).await;
    let texts = found.map(|found| found.into_iter().map(|memory| memory.text).collect());
    (texts.map_err(|trouble| trouble.0), begun.elapsed())
}

#[tokio::test]
async fn slow_every_bad_provider_is_told_in_words_and_asked_no_more() {
    let scene = Scene::new();
    let long = format!("did not answer within {} s", LIMIT.as_secs());
    let cases = [
        (scene.command("sleep 1000"), long.as_str()),
        (scene.command("trap '' TERM; sleep 1000 & sleep 1000; sleep 1000"), &long),
        (scene.command("echo oh no >&2; exit 3"), "exit code 3: oh no"),
        (scene.command("kill -KILL $$"), "ended by SIGKILL"),
        (scene.command("true"), "it answered nothing"),
        (scene.command("echo '{ no JSON'"), "what it answered is no JSON"),
        (scene.command("echo '{\"memory\": 1}'"), "its answer has no list `memories`"),
        (scene.command("yes '{\"memories\":'"), &long),
        (scene.command("head -c 3000000 /dev/zero"), "it answered more than 256 KiB"),
        (scene.command("/no/such/program"), "exit code 127"),
        (scene.server("hangs", "x"), &long),
        (scene.server("dumb", "x"), &long),
        (scene.server("garbage", "x"), &long),
        (scene.server("dies", "x"), "it went away before answering"),
        (scene.server("stillborn", "x"), "it ended (exit code 7): there is no database"),
        // It is ended for saying too much, unless the machine is too slow for that.
        (scene.server("floods", "x"), ""),
        (scene.server("refuses", "x"), "its tool failed: not you"),
    ];
    let asked = cases.iter().map(|(provider, words)| async move {
        let (first, took) = recalled(provider).await;
        let why = first.unwrap_err();
        assert!(
            why.contains(words) && why.ends_with("it is left alone for 0.8 s"),
            "{words}: {why}"
        );
        // A busy machine is slower; it is the limit, not the tenth of a minute.
        assert!(took < 4 * LIMIT, "{words}: {took:?}");
        let (second, took) = recalled(provider).await;
        assert_eq!(second, Ok(Vec::new()), "{words}");
        assert!(took < LIMIT / 4, "{words}: {took:?}");
    });
    futures_util::future::join_all(asked).await;
    // What it starts ends with it, and what is stuck is ended.
    drop(cases);
    scene.keeper.leave().await;
}

#[tokio::test]
async fn slow_one_that_failed_is_tried_again_beside_a_later_turn_which_does_not_wait() {
    let scene = Scene::new();
    let (well, tries) = (scene.path("well"), scene.path("tries"));
    let line = format!(
        "echo x >> {tries}; [ -e {well} ] || sleep 1000; echo '{{\"memories\":[\"here again\"]}}'"
    );
    let provider = scene.command(&line);
    let tried = || std::fs::read_to_string(&tries).unwrap_or_default().len() / 2;
    assert!(recalled(&provider).await.0.is_err());
    assert_eq!((recalled(&provider).await.0, tried()), (Ok(Vec::new()), 1));
    // Still stuck when it is tried the second time.
    let begun = Instant::now();
    while tried() < 2 {
        assert!(begun.elapsed() < 20 * REST, "nobody tried it again");
        let (found, took) = recalled(&provider).await;
        assert!(found == Ok(Vec::new()) && took < LIMIT / 4, "{found:?} in {took:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    std::fs::write(&well, "").unwrap();
    let found = loop {
        let (found, took) = recalled(&provider).await;
        assert!(took < LIMIT, "{took:?}");
        match found {
            Ok(found) if found.is_empty() => tokio::time::sleep(Duration::from_millis(20)).await,
            found => break found,
        }
        assert!(begun.elapsed() < 40 * REST, "it did not come back");
    };
    assert_eq!(found, Ok(vec!["here again".to_owned()]));
    assert!(tried() >= 4, "the attempt beside a turn, and the one that was waited for");
    scene.keeper.leave().await;
}

#[tokio::test]
async fn what_is_remembered_reaches_those_who_want_it_and_who_did_not_get_it_is_said() {
    let scene = Scene::new();
    let asked = scene.path("asked");
    let line = format!("tee -a {asked} > /dev/null; echo '{{\"id\": \"n7\"}}'");
    let provider = scene.command(&line);
    assert_eq!(provider.remember(new("likes tabs")).await, Ok(Some("n7".to_owned())));
    assert_eq!(provider.forget("n7").await, Ok(true));
    let text = std::fs::read_to_string(&asked).unwrap();
    let told: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&told[0]["action"], &told[0]["text"]), (&json!("remember"), &json!("likes tabs")));
    assert_eq!((&told[0]["key"], &told[0]["source"]), (&json!("k1"), &json!("user")));
    assert_eq!((&told[1]["action"], &told[1]["id"]), (&json!("forget"), &json!("n7")));

    let server = scene.server("well", "x");
    assert_eq!(server.remember(new("likes tabs")).await, Ok(Some("k1".to_owned())));
    let calls = std::fs::read_to_string(scene.path("calls")).unwrap();
    assert_eq!(calls.trim(), r#"{"tool":"add_memory","arguments":{"text":"likes tabs"}}"#);

    let stuck = scene.command("sleep 1000");
    let why = stuck.remember(new("x")).await.unwrap_err().0;
    assert!(
        why.starts_with("it did not answer within 2 s") && why.ends_with("it may not have this"),
        "{why}"
    );
    let begun = Instant::now();
    let why = stuck.remember(new("x")).await.unwrap_err().0;
    assert!(why.ends_with("it does not have this") && begun.elapsed() < LIMIT / 4, "{why}");
    let refuses = scene.server("refuses", "x");
    let why = refuses.remember(new("x")).await.unwrap_err().0;
    assert_eq!(why, "its tool failed: not you; it does not have this");

    let line = format!("tee -a {asked} > /dev/null");
    let reads_only = scene.external(scene.command(&line).description().kind.clone(), false);
    assert_eq!(reads_only.remember(new("x")).await, Ok(None));
    assert_eq!(std::fs::read_to_string(&asked).unwrap(), text, "it was not asked");
    scene.keeper.leave().await;
}
