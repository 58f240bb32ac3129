//! A turn keeps its model, fallbacks, profile and budget, wherever the process that began it was killed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use mainstay_store::{Location, Options, Schema, Store, params};
use mainstay_testkit::model::{ModelServer, Reply, Shape};
use mainstay_testkit::postgres;
use mainstay_testkit::process::{Running, wait_for};
use mainstay_testkit::proxy::{Fate, PgProxy};
use mainstay_testkit::shim::{Kind, Mode};
use mainstay_testkit::sweep::{Outcome, Sweep};
use serde_json::{Value, json};

use crate::approving::{counting, put_counter};
use crate::world::{Told, program};

const ROUNDS: usize = 4;
const PATIENCE: Duration = Duration::from_secs(30);
/// What is chosen for the turn. The profile allows the commands, so nobody has to be asked.
const CHOSEN: [&str; 6] = ["--model", "other/chosen", "--profile", "careful", "--budget", "2.5"];

/// The models of one run: the one that is chosen, and the one that everybody else gets.
struct Models {
    usual: ModelServer,
    chosen: ModelServer,
}

impl Models {
    fn start() -> Self {
        Self {
            usual: ModelServer::always(Reply::text("The wrong model.")),
            chosen: ModelServer::start(counting(ROUNDS)),
        }
    }

    /// A configuration in which these settings hold unless something is chosen.
    fn configuration(&self, settings: &str) -> String {
        let (usual, chosen) = (self.usual.base_url(Shape::Chat), self.chosen.base_url(Shape::Chat));
        format!(
            "{settings}\n\
             [providers.local]\napi = \"openai-chat\"\nbase_url = \"{usual}\"\n\
             [providers.other]\napi = \"openai-chat\"\nbase_url = \"{chosen}\"\n\
             [models.\"other/chosen\"]\ninput = 1.0\noutput = 1.0\n\
             [profiles.careful]\ntemperature = 0.125\n\
             [profiles.careful.policy]\nexecute = \"allow\"\n\
             [profiles.bold]\nmodel = \"local/qwen\"\ntemperature = 1.5\n\
             [profiles.bold.budget]\nturn_usd = 9\n"
        )
    }
}

/// One run that was killed.
struct Scene {
    home: PathBuf,
    workspace: PathBuf,
    store: String,
    models: Models,
}

impl Scene {
    /// Makes a home and a workspace, and the command that begins the turn.
    fn new(home: &Path, workspace: &Path, store: String) -> Self {
        let models = Models::start();
        std::fs::create_dir_all(home).unwrap();
        std::fs::create_dir_all(workspace).unwrap();
        put_counter(workspace);
        let settings = "model = \"local/qwen\"\nmode = \"ask\"\nfallback = [\"other/second\"]";
        std::fs::write(home.join("config.toml"), models.configuration(settings)).unwrap();
        Self { home: home.to_owned(), workspace: workspace.to_owned(), store, models }
    }

    fn begin(&self, store: &str) -> Command {
        let words = [&["--store", store, "run", "--json"], &CHOSEN[..], &["count"]].concat();
        program(&self.home, &self.workspace, &words)
    }

    fn run(&self, words: &[&str]) -> Told {
        let words = [&["--store", &self.store], words].concat();
        let mut command = program(&self.home, &self.workspace, &words);
        // Variables are configuration: a turn that has its choices does not look at them.
        command.env("MAINSTAY_MODEL", "local/qwen").env("MAINSTAY_PROFILE", "bold");
        command.output().unwrap().into()
    }

    /// Resumes without options, in a home whose settings have changed. Returns whether there was a
    /// turn.
    fn verify(&self) -> bool {
        let settings = "model = \"local/qwen\"\nmode = \"plan\"\nprofile = \"bold\"";
        let text = self.models.configuration(settings);
        std::fs::write(self.home.join("config.toml"), text).unwrap();
        let told = self.run(&["resume", "--json"]).ended_with(0);
        let end = told.event("end");
        let turn = match end["outcome"].as_str() {
            // The turn was over, or was never recorded.
            Some("nothing") => self.recorded(),
            _ => {
                assert_eq!(end["answer"], "All counted.", "{told:#?}");
                assert!(!told.stdout.contains("\"choices\""), "nothing changed: {told:#?}");
                self.recorded()
            }
        };
        let Models { usual, chosen } = &self.models;
        assert_eq!(usual.requests(), 0, "another model was asked");
        for asked in chosen.asked() {
            assert_eq!(asked.model(), "chosen");
            assert_eq!(asked.body["temperature"], 0.125, "another profile held");
        }
        usual.assert_no_violations();
        chosen.assert_no_violations();
        let count = std::fs::read_to_string(self.workspace.join("count")).unwrap_or_default();
        let Some((choices, limit)) = turn else {
            assert_eq!(count, "", "something was done for an input that is not recorded");
            return false;
        };
        let expected = json!({
            "models": ["other/chosen", "other/second"],
            "profile": "careful",
            "budget": 2_500_000,
            "mode": "ask",
        });
        assert_eq!(choices, expected);
        assert_eq!(limit, 2_500_000, "the budget's row");
        assert_eq!(count, (0..ROUNDS).map(|number| format!("{number}\n")).collect::<String>());
        true
    }

    /// The choices of the only turn, and the limit of its budget.
    fn recorded(&self) -> Option<(Value, i64)> {
        let location: Location = self.store.parse().unwrap();
        let store = Store::open(&location, Options::new(Schema::default())).unwrap();
        let sql = "SELECT t.choices, b.money_limit FROM turns t
                   JOIN budgets b ON b.id = 'turn/' || t.id";
        let row = store.read(|tx| {
            tx.query_opt(sql, params![], |row| Ok((row.get::<String>(0)?, row.get::<i64>(1)?)))
        });
        let (choices, limit) = row.unwrap()?;
        Some((serde_json::from_str(&choices).unwrap(), limit))
    }
}

#[test]
fn slow_heavy_killed_at_every_sync_a_turn_keeps_its_choices() {
    let scenes: Mutex<HashMap<PathBuf, Scene>> = Mutex::new(HashMap::new());
    let prepare = |home: &Path| -> Command {
        let store = home.join("store.db").display().to_string();
        let scene = Scene::new(home, &home.with_file_name("work"), store.clone());
        let command = scene.begin(&store);
        scenes.lock().unwrap().insert(home.to_owned(), scene);
        command
    };
    let verify = |outcome: &Outcome<'_>| {
        let scene = scenes.lock().unwrap().remove(outcome.directory).unwrap();
        let said = String::from_utf8_lossy(&outcome.stdout);
        assert!(scene.verify() || !said.contains("\"session\""), "the turn is lost: {said}");
    };
    let swept = Sweep::of(Mode::Kill).only(&[Kind::Sync]).run(prepare, verify);
    println!("{} syncs, {} kills", swept.points, swept.struck);
    assert!(swept.struck > ROUNDS as u64, "{swept:?}");
}

/// Runs the turn with its record in PostgreSQL, and kills it when the server has done the k-th COMMIT
/// and before the process hears of it. Returns the COMMITs, and whether a turn was recorded.
fn killed_at_commit(number: Option<u64>) -> (u64, bool) {
    let place = tempfile::tempdir().unwrap();
    let proxy = PgProxy::start(&postgres::socket_directory());
    let schema = postgres::fresh_schema();
    let direct = format!("{}?schema={schema}", postgres::admin_url());
    let scene = Scene::new(&place.path().join("home"), &place.path().join("work"), direct);
    if let Some(number) = number {
        proxy.at_commit(number, Fate::GoSilent);
    }
    let mut running = Running::spawn(&mut scene.begin(&proxy.url(&schema)));
    match number {
        None => assert_eq!(running.wait(PATIENCE).code(), Some(0)),
        Some(_) => {
            wait_for("the COMMIT", PATIENCE, || proxy.happened() == 1 || !running.is_running());
            running.kill_and_wait();
        }
    }
    let commits = proxy.commits();
    proxy.cut();
    (commits, scene.verify())
}

#[test]
fn slow_heavy_killed_at_every_commit_in_postgresql_a_turn_keeps_its_choices() {
    let (commits, _) = killed_at_commit(None);
    let recorded = (1..=commits).filter(|number| killed_at_commit(Some(*number)).1).count();
    println!("{commits} commits, killed at each of them; {recorded} times with a turn");
    assert!(recorded > ROUNDS, "{recorded} of {commits}");
}
