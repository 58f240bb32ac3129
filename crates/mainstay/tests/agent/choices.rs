//! What was chosen for a turn holds for whoever takes it up, until somebody chooses otherwise.

use std::process::Stdio;
use std::time::Duration;

use mainstay_store::{Location, Options, Schema, Store, params};
use mainstay_testkit::model::{ModelRequest, ModelServer, Reply, Shape};
use mainstay_testkit::process::wait_for;
use serde_json::{Value, json};

use crate::approving::put_script;
use crate::terminal::Terminal;
use crate::world::{Told, World};

const PATIENCE: Duration = Duration::from_secs(30);

/// A world with a second model besides the configured one, and profiles.
struct Two {
    world: World,
    other: ModelServer,
}

/// A model that runs a command which waits for a file, and says its name in the end.
fn speaker(name: &'static str) -> impl FnMut(&ModelRequest) -> Reply + Send + 'static {
    move |asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("shell", json!({ "command": "./wait.sh" })),
        _ => Reply::text(format!("I am {name}.")),
    }
}

impl Two {
    fn new() -> Self {
        Self::with(speaker("other"))
    }

    fn with(other: impl FnMut(&ModelRequest) -> Reply + Send + 'static) -> Self {
        let world = World::new(speaker("local"));
        let two = Self { world, other: ModelServer::start(other) };
        two.configure("model = \"local/qwen\"", true);
        let wait = "echo x >> begun; while ! test -e go; do sleep 0.02; done; echo x >> count";
        put_script(&two.world.workspace(), "wait.sh", wait);
        two
    }

    /// Replaces the configuration: these settings, and the other model's provider or not.
    fn configure(&self, settings: &str, has_other: bool) {
        let mut text = format!(
            "mode = \"ask\"\n{settings}\n[providers.local]\napi = \"openai-chat\"\nbase_url = \"{}\"\n\
             [profiles.careful]\ntemperature = 0.125\n",
            self.world.model.base_url(Shape::Chat)
        );
        if has_other {
            let url = self.other.base_url(Shape::Chat);
            text.push_str(&format!(
                "[providers.other]\napi = \"openai-chat\"\nbase_url = \"{url}\"\n"
            ));
        }
        self.world.configure(&text);
    }

    /// Starts a command, and kills it when the model's command runs, which then ends by itself.
    fn killed(&self, words: &[&str]) {
        let mut running = self.world.start(words);
        wait_for("the command", PATIENCE, || !self.world.file("begun").is_empty());
        running.kill_and_wait();
    }

    fn go(&self) {
        std::fs::write(self.world.workspace().join("go"), "").unwrap();
    }

    fn run(&self, words: &[&str]) -> Told {
        self.world.run(words)
    }

    fn store(&self) -> Store {
        let place = Location::file(self.world.home().join("store.db"));
        Store::open(&place, Options::new(Schema::default())).unwrap()
    }

    /// The choices that are written with the last turn.
    fn choices(&self) -> Value {
        let sql = "SELECT choices FROM turns ORDER BY started_at DESC, id DESC LIMIT 1";
        let text: String =
            self.store().read(|tx| tx.query_one(sql, params![], |row| row.get(0))).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    fn session(&self) -> String {
        let told = self.run(&["sessions", "list", "--json"]).ended_with(0);
        let list: Value = serde_json::from_str(&told.stdout).unwrap();
        list[0]["id"].as_str().unwrap().to_owned()
    }

    /// Whom requests reached so far: the configured model, and the other one.
    fn requests(&self) -> (usize, usize) {
        (self.world.model.requests(), self.other.requests())
    }
}

const OTHER: [&str; 6] = ["run", "--yes", "--model", "other/x", "--profile", "careful"];

#[test]
fn a_killed_run_goes_on_with_its_own_choices_and_says_nothing() {
    let two = Two::new();
    two.killed(&[&OTHER[..], &["--budget", "3", "begin"]].concat());
    two.go();
    let told = two.run(&["resume"]).ended_with(0);
    assert_eq!(told.stdout, "I am other.\n");
    assert!(!told.stderr.contains("now using"), "{}", told.stderr);
    assert_eq!(two.requests(), (0, 2));
    assert!(two.other.asked().iter().all(|asked| asked.body["temperature"] == 0.125));
    let expected = json!({
        "models": ["other/x"], "profile": "careful", "budget": 3_000_000, "mode": "yes"
    });
    assert_eq!(two.choices(), expected);
    assert_eq!(two.world.file("count"), "x\n");
}

#[test]
fn fallbacks_are_kept_and_one_that_is_gone_is_left_out() {
    for has_other in [true, false] {
        let two = Two::new();
        two.configure("model = \"local/qwen\"\nfallback = [\"other/spare\"]", true);
        two.killed(&["run", "--yes", "begin"]);
        two.configure("model = \"local/qwen\"", has_other);
        two.go();
        let told = two.run(&["resume"]).ended_with(0);
        assert_eq!(told.stdout, "I am local.\n");
        let (models, said) = match has_other {
            true => (json!(["local/qwen", "other/spare"]), 0),
            false => (json!(["local/qwen"]), 1),
        };
        assert_eq!(two.choices()["models"], models);
        let gone = "going on without the fallback other/spare";
        assert_eq!(told.stderr.matches(gone).count(), said, "{}", told.stderr);
    }
}

#[test]
fn a_kept_fallback_is_asked_when_the_first_model_fails() {
    // The other model fails once its turn was taken up.
    let two = Two::with(|asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("shell", json!({ "command": "./wait.sh" })),
        _ => Reply::status(401, "no longer yours"),
    });
    two.configure("model = \"other/x\"\nfallback = [\"local/qwen\"]", true);
    two.killed(&["run", "--yes", "begin"]);
    two.configure("model = \"other/x\"", true);
    two.go();
    let told = two.run(&["resume"]).ended_with(0);
    assert_eq!(told.stdout, "I am local.\n");
}

#[test]
fn a_typed_model_changes_the_turn_says_so_and_is_kept_after_the_next_kill() {
    let two = Two::new();
    two.killed(&["run", "--yes", "--budget", "3", "begin"]);
    std::fs::remove_file(two.world.workspace().join("begun")).unwrap();
    let session = two.session();
    // It is killed while the command is waited for, which is still the one that was started first.
    let mut running = two.world.start(&["resume", &session, "--model", "other/x", "--json"]);
    let line = running.line_with("\"choices\"", PATIENCE);
    assert!(line.contains("now using other/x for this turn (was local/qwen)"), "{line}");
    running.kill_and_wait();
    assert_eq!(two.choices()["models"], json!(["other/x"]));
    assert_eq!(two.choices()["budget"], 3_000_000, "the other choices stay");
    two.go();
    let told = two.run(&["resume"]).ended_with(0);
    assert_eq!(told.stdout, "I am other.\n");
    assert!(!told.stderr.contains("now using"), "{}", told.stderr);
    assert_eq!(two.requests(), (1, 1));
    assert_eq!(two.world.file("count"), "x\n");
}

#[test]
fn each_typed_option_is_said_once_on_standard_error() {
    let two = Two::new();
    two.killed(&["run", "--yes", "begin"]);
    two.go();
    let words = ["resume", "--model", "other/x", "--profile", "careful", "--budget", "4"];
    let told = two.run(&words).ended_with(0);
    assert_eq!(told.stdout, "I am other.\n");
    for note in [
        "note: now using other/x for this turn (was local/qwen)\n",
        "note: now using profile careful for this turn (was none)\n",
        "note: the budget of this turn is now $4.00 (was as configured)\n",
    ] {
        assert_eq!(told.stderr.matches(note).count(), 1, "{note}{}", told.stderr);
    }
    assert_eq!(told.stderr.matches("note: ").count(), 3, "{}", told.stderr);
}

#[test]
fn a_turn_parked_by_its_budget_keeps_it_until_another_is_given() {
    let two = Two::new();
    two.world.configure_more("[models.\"local/qwen\"]\ninput = 100.0\noutput = 100.0");
    two.go();
    two.run(&["run", "--yes", "--budget", "0.01", "begin"]).ended_with(3);
    let again = two.run(&["resume"]).ended_with(3);
    assert!(again.stderr.contains("this turn's budget is spent"), "{}", again.stderr);
    assert_eq!(two.requests(), (0, 0), "a model was asked without a reservation");
    let told = two.run(&["resume", "--budget", "100"]).ended_with(0);
    assert_eq!(told.stdout, "I am local.\n");
    let note = "note: the budget of this turn is now $100.00 (was $0.0100)\n";
    assert!(told.stderr.contains(note), "{}", told.stderr);
    assert_eq!(two.choices()["budget"], 100_000_000);
}

#[test]
fn a_turn_of_a_version_without_choices_goes_on_with_the_configuration() {
    let two = Two::new();
    two.killed(&OTHER.iter().copied().chain(["begin"]).collect::<Vec<_>>());
    let sql = "UPDATE turns SET choices = NULL";
    two.store().write(|tx| tx.execute(sql, params![]).map(drop)).unwrap();
    two.go();
    let told = two.run(&["resume", "--yes"]).ended_with(0);
    assert_eq!(told.stdout, "I am local.\n");
    assert!(!told.stderr.contains("now using"), "{}", told.stderr);
    assert_eq!(two.choices()["models"], json!(["local/qwen"]));
}

#[test]
fn a_model_that_is_gone_is_named_with_the_way_on_and_an_answer_is_still_told() {
    let two = Two::new();
    two.killed(&OTHER.iter().copied().chain(["begin"]).collect::<Vec<_>>());
    let session = two.session();
    two.configure("model = \"local/qwen\"", false);
    two.go();
    let told = two.run(&["resume"]).ended_with(2);
    let message = "this turn was started with other/x, which is no longer configured";
    assert!(told.stderr.contains(message), "{}", told.stderr);
    let next = format!("`mainstay resume {session} --model PROVIDER/MODEL`");
    assert!(told.stderr.contains(&next), "{}", told.stderr);
    assert_eq!(two.requests(), (0, 1));
    let told = two.run(&["resume", &session, "--model", "local/qwen"]).ended_with(0);
    assert_eq!(told.stdout, "I am local.\n");
    // What is over needs no model: the choices of a turn are not looked at.
    let gone = "UPDATE turns SET choices = '{\"models\":[\"gone/x\"],\"profile\":\"gone\"}'";
    two.store().write(|tx| tx.execute(gone, params![]).map(drop)).unwrap();
    assert_eq!(two.run(&["resume", &session]).ended_with(0).stdout, "I am local.\n");
}

#[test]
fn a_profile_that_is_gone_is_named_with_the_way_on() {
    let two = Two::new();
    two.killed(&OTHER.iter().copied().chain(["begin"]).collect::<Vec<_>>());
    let session = two.session();
    let path = two.world.home().join("config.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    two.go();
    std::fs::write(&path, text.replace("[profiles.careful]\ntemperature = 0.125\n", "")).unwrap();
    let told = two.run(&["resume"]).ended_with(2);
    let again = "`mainstay config set profiles.careful.model PROVIDER/MODEL`";
    assert!(told.stderr.contains(again), "{}", told.stderr);
    std::fs::write(&path, text.replace("profiles.careful", "profiles.bold")).unwrap();
    let told = two.run(&["resume"]).ended_with(2);
    let message =
        "this turn was started with the profile \"careful\", which is no longer configured";
    assert!(told.stderr.contains(message), "{}", told.stderr);
    let next = format!("`mainstay resume {session} --profile NAME`");
    assert!(told.stderr.contains(&next), "{}", told.stderr);
    let told = two.run(&["resume", &session, "--profile", "bold"]).ended_with(0);
    assert_eq!(told.stdout, "I am other.\n", "the model is kept");
    let note = "note: now using profile bold for this turn (was careful)\n";
    assert!(told.stderr.contains(note), "{}", told.stderr);
}

#[test]
fn an_input_sent_again_under_its_key_goes_on_with_its_choices() {
    let two = Two::new();
    let words = [&OTHER[..], &["--key", "once", "begin"]].concat();
    two.killed(&words);
    two.go();
    let told = two.run(&["run", "--key", "once", "begin"]).ended_with(0);
    assert_eq!(told.stdout, "I am other.\n");
    assert_eq!(two.requests(), (0, 2));
    // It is over: told again without its model, and without its profile.
    two.configure("model = \"local/qwen\"", false);
    let told = two.run(&["run", "--key", "once", "begin"]).ended_with(0);
    assert_eq!(told.stdout, "I am other.\n");
    assert_eq!(two.requests(), (0, 2));
}

#[test]
fn the_same_options_under_the_same_key_change_nothing_and_others_are_said() {
    for (model, said) in [("other/x", 0), ("local/qwen", 1)] {
        let two = Two::new();
        two.killed(&["run", "--yes", "--model", "other/x", "--key", "once", "begin"]);
        two.go();
        let words = ["run", "--yes", "--model", model, "--key", "once", "begin"];
        let told = two.run(&words).ended_with(0);
        assert_eq!(told.stderr.matches("now using").count(), said, "{}", told.stderr);
        let name = model.split_once('/').unwrap().0;
        assert_eq!(told.stdout, format!("I am {name}.\n"));
    }
}

#[test]
fn a_new_input_in_an_old_session_has_the_choices_of_now() {
    let two = Two::new();
    two.go();
    two.run(&[&OTHER[..], &["begin"]].concat()).ended_with(0);
    let session = two.session();
    let told = two.run(&["run", "--session", &session, "more"]).ended_with(0);
    assert_eq!(told.stdout, "I am local.\n");
    assert_eq!(two.choices(), json!({ "models": ["local/qwen"], "mode": "ask" }));
}

#[test]
fn a_turn_that_is_given_up_for_a_new_one_keeps_what_was_chosen_for_it() {
    let two = Two::new();
    two.killed(&[&OTHER[..], &["begin"]].concat());
    two.go();
    let session = two.session();
    two.run(&["run", "--session", &session, "more"]).ended_with(0);
    let sql = "SELECT choices FROM turns ORDER BY number LIMIT 1";
    let first: String =
        two.store().read(|tx| tx.query_one(sql, params![], |row| row.get(0))).unwrap();
    assert!(first.contains("other/x") && first.contains("careful"), "{first}");
    assert_eq!(two.choices()["models"], json!(["local/qwen"]));
}

#[test]
fn an_approval_that_resumes_goes_on_with_the_choices() {
    let two = Two::new();
    two.go();
    let parked = two.run(&["run", "--json", "--model", "other/x", "begin"]).ended_with(3);
    let request = parked.event("parked")["requests"][0]["id"].as_str().unwrap().to_owned();
    let told = two.run(&["approve", &request, "--resume"]).ended_with(0);
    assert_eq!(told.stdout, "I am other.\n");
    assert_eq!(two.requests(), (0, 2));
}

#[test]
fn a_command_of_an_agent_cannot_take_up_a_turn_that_says_yes_to_everything() {
    let two = Two::new();
    two.killed(&["run", "--yes", "--key", "once", "begin"]);
    two.go();
    let session = two.session();
    let all: [&[&str]; 4] = [
        &["resume"],
        &["resume", &session, "--model", "other/x"],
        &["run", "--key", "once", "begin"],
        &["chat", "--session", &session],
    ];
    for words in all {
        let mut command = two.world.command(words);
        let told =
            Told::from(command.env("MAINSTAY_JOB", "x").stdin(Stdio::null()).output().unwrap());
        let told = told.ended_with(1);
        assert!(told.stderr.contains("--yes is for humans only"), "{words:?}: {}", told.stderr);
    }
    assert_eq!(two.choices()["models"], json!(["local/qwen"]), "nothing was changed");
    assert_eq!(two.run(&["resume"]).ended_with(0).stdout, "I am local.\n");
}

#[test]
fn lines_of_a_chat_come_after_the_turn_that_is_finished_with_its_own_choices() {
    let two = Two::new();
    two.killed(&[&OTHER[..], &["begin"]].concat());
    two.go();
    let mut command = two.world.command(&["chat", "--session", &two.session()]);
    let input = two.world.home().join("lines");
    std::fs::write(&input, "more\n").unwrap();
    let told = command.stdin(std::fs::File::open(&input).unwrap()).output().unwrap();
    let told = Told::from(told).ended_with(0);
    assert_eq!(told.stdout, "I am other.\nI am local.\n");
    assert!(two.other.asked().iter().all(|asked| asked.body["temperature"] == 0.125));
    assert!(two.world.model.asked().iter().all(|asked| asked.body["temperature"].is_null()));
    assert_eq!(two.choices(), json!({ "models": ["local/qwen"], "mode": "ask" }));
}

#[test]
fn a_chat_finishes_a_turn_with_its_own_choices_and_goes_on_with_those_of_the_chat() {
    let two = Two::new();
    two.killed(&[&OTHER[..], &["begin"]].concat());
    two.go();
    let words = ["chat", "--session", &two.session()];
    let mut terminal = Terminal::start(&two.world, (30, 90), &words);
    terminal.sees("I am other.");
    terminal.send("more");
    terminal.sees("I am local.");
    assert_eq!(two.requests(), (1, 2));
    assert!(two.other.asked().iter().all(|asked| asked.body["temperature"] == 0.125));
    // A model that is chosen in the chat is written with the turns after it.
    terminal.send("/model other/y");
    terminal.send("again");
    two.other.wait_for_requests(3, PATIENCE);
    terminal.rests();
    terminal.keys("\x04");
    assert_eq!(terminal.ended().0.code(), Some(0));
    assert_eq!(two.choices(), json!({ "models": ["other/y"], "mode": "ask" }));
    two.other.assert_no_violations();
    two.world.model.assert_no_violations();
}
