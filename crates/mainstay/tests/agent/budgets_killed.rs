//! The agent is killed, and its budgets hold neither less than it cost nor more than it can have cost.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use mainstay_testkit::capability::kills;
use mainstay_testkit::model::{Gate, ModelRequest, Reply};
use mainstay_testkit::postgres;
use mainstay_testkit::process::wait_for;
use serde_json::{Value, json};

use crate::world::World;

const PATIENCE: Duration = Duration::from_secs(30);

/// Dollars for a million tokens, so: millionths of a dollar for one.
const INPUT: i64 = 3;
const OUTPUT: i64 = 15;
/// What the model may write, and what it says that it read.
const MOST_OUTPUT: i64 = 500;
const READ: i64 = 1_000;

/// A world whose model has a price, with its record in one of the engines.
struct Priced {
    world: World,
    store: Option<String>,
}

impl Priced {
    fn new(
        store: Option<String>,
        script: impl FnMut(&ModelRequest) -> Reply + Send + 'static,
    ) -> Self {
        let world = World::new(script);
        world.configure_more(&format!(
            "[models.\"local/qwen\"]\nmax_output = {MOST_OUTPUT}\ninput = {INPUT}.0\n\
             output = {OUTPUT}.0\n[keeper]\ngrace = \"0s\""
        ));
        Self { world, store }
    }

    fn words<'a>(&'a self, words: &[&'a str]) -> Vec<&'a str> {
        let place = self.store.iter().flat_map(|store| ["--store", store.as_str()]);
        place.chain(words.iter().copied()).collect()
    }

    fn data(&self, words: &[&str]) -> Value {
        let told = self.world.run(&self.words(words)).ended_with(0);
        serde_json::from_str(&told.stdout).unwrap_or_else(|error| panic!("{error}: {told:#?}"))
    }

    /// Millionths of a dollar of a figure.
    fn micros(figure: &Value) -> i64 {
        #[expect(clippy::cast_possible_truncation, reason = "cents")]
        let micros = (figure.as_f64().unwrap() * 1e6).round() as i64;
        micros
    }
}

/// Runs a property on both engines.
fn on_both(property: impl Fn(Option<String>)) {
    property(None);
    property(Some(postgres::fresh()));
}

#[test]
fn a_call_that_was_not_sent_is_given_back_by_whoever_comes_next() {
    on_both(|store| {
        let test = Priced::new(store, |asked: &ModelRequest| match asked.results().len() {
            0 if asked.last_user_text().contains("slowly") => {
                Reply::call_of("shell", json!({ "command": "touch begun; sleep 60" }))
                    .usage(1000, 0, 9)
            }
            _ => Reply::text("done").usage(1000, 0, 9),
        });
        let mut running = test.world.start(&test.words(&["run", "--yes", "--json", "slowly"]));
        wait_for("the command", PATIENCE, || test.world.workspace().join("begun").exists());
        running.kill_and_wait();
        let found = test.data(&["budget", "--json"]);
        assert_eq!(found["reservations"][0]["state"], "not_sent", "{found}");
        // Another session is worked on; nobody takes the killed one up.
        test.world.run(&test.words(&["run", "--yes", "quickly"])).ended_with(0);
        let found = test.data(&["budget", "--json"]);
        assert_eq!(found["reservations"], json!([]), "{found}");
        let cost = test.data(&["cost", "--json"]);
        assert_eq!(found["today"]["used_usd"], cost["cost_usd"], "{found} {cost}");
        assert_eq!(found["today"]["calls"], 2, "{found}");
    });
}

#[test]
fn a_person_sees_what_is_kept_for_a_killed_call_and_clears_it() {
    on_both(|store| {
        let gate = Gate::new();
        let held = gate.clone();
        let test = Priced::new(store, move |asked: &ModelRequest| {
            let reply = Reply::text("done").usage(1000, 0, 9);
            if asked.last_user_text().contains("wait") { reply.held_by(&held) } else { reply }
        });
        let mut running = test.world.start(&test.words(&["run", "--yes", "--json", "wait"]));
        test.world.model.wait_for_requests(1, PATIENCE);
        let found = test.data(&["budget", "--json"]);
        assert_eq!(found["reservations"][0]["state"], "running", "{found}");
        let refused = test.world.run(&test.words(&[
            "budget",
            "clear",
            found["reservations"][0]["id"].as_str().unwrap(),
            "--reason",
            "now",
        ]));
        refused.ended_with(4);
        running.kill_and_wait();
        gate.open();
        test.world.run(&test.words(&["run", "--yes", "on"])).ended_with(0);
        let found = test.data(&["budget", "--json"]);
        let kept = &found["reservations"][0];
        assert_eq!(kept["state"], "abandoned", "{found}");
        // All that was sent, and all that might have been said.
        assert!(
            Priced::micros(&kept["most_usd"]) >= READ * INPUT + MOST_OUTPUT * OUTPUT,
            "{found}"
        );
        let spent = Priced::micros(&test.data(&["cost", "--json"])["cost_usd"]);
        let used = Priced::micros(&found["today"]["used_usd"]);
        assert_eq!(used, spent + Priced::micros(&kept["most_usd"]), "{found}");

        let told =
            test.data(&["budget", "clear", "--all", "--reason", "not on the bill", "--json"]);
        assert_eq!(told["given_back_usd"], kept["most_usd"], "{told}");
        let found = test.data(&["budget", "--json"]);
        assert_eq!(Priced::micros(&found["today"]["used_usd"]), spent, "{found}");
        assert_eq!(found["reservations"], json!([]), "{found}");
        // Who is asked again is not charged twice.
        test.world.run(&test.words(&["resume", "--yes"])).ended_with(0);
        let cost = test.data(&["cost", "--json"]);
        let found = test.data(&["budget", "--json"]);
        assert_eq!(found["today"]["used_usd"], cost["cost_usd"], "{found} {cost}");
    });
}

#[test]
fn a_parked_turn_says_what_is_kept_for_killed_calls() {
    let gate = Gate::new();
    let held = gate.clone();
    let test = Priced::new(None, move |_: &ModelRequest| Reply::text("done").held_by(&held));
    test.world.configure_more("[budget]\nday_usd = 0.02");
    let mut running = test.world.start(&test.words(&["run", "--yes", "--json", "wait"]));
    test.world.model.wait_for_requests(1, PATIENCE);
    running.kill_and_wait();
    gate.open();
    let told = test.world.run(&["run", "--yes", "on"]).ended_with(3);
    assert!(told.stderr.contains("is kept for 1 abandoned model call"), "{told:#?}");
    test.world.run(&["budget", "clear", "--all", "--reason", "not on the bill"]).ended_with(0);
    test.world.run(&["resume", "--yes"]).ended_with(0);
}

/// Kills the program again and again, at moments that are spread over the rounds of its turns.
fn killed_often(store: Option<String>, kills: u64) {
    let served = Arc::new(AtomicI64::new(0));
    let longest = Arc::new(AtomicI64::new(0));
    let (billed, bytes) = (served.clone(), longest.clone());
    let test = Priced::new(store, move |asked: &ModelRequest| {
        let round = i64::try_from(asked.results().len()).unwrap();
        let output = 20 + round * 100;
        // A provider that bills an answer in full, whoever is there to hear it.
        billed.fetch_add(READ * INPUT + output * OUTPUT, Ordering::SeqCst);
        let sent = i64::try_from(asked.bytes).unwrap();
        bytes.fetch_max(sent, Ordering::SeqCst);
        let reply = match round {
            0..4 => Reply::call_of("shell", json!({ "command": "sleep 0.03" })),
            _ => Reply::text("a b c d e f g h i j"),
        };
        let output = u64::try_from(output).unwrap();
        let pause = Duration::from_millis(3);
        reply.usage(1000, 0, output).after(pause * 5).pausing(pause)
    });
    let mut struck = 0;
    for number in 0..kills {
        // Two of three sessions are left to whoever comes next.
        let words: &[&str] = match number % 3 {
            2 => &["resume", "--yes", "--json"],
            _ => &["run", "--yes", "--json", "go on"],
        };
        let before = test.world.model.requests();
        let mut running = test.world.start(&test.words(words));
        let rounds = 1 + usize::try_from(number % 5).unwrap();
        let end = Instant::now() + PATIENCE;
        while test.world.model.requests() < before + rounds
            && running.is_running()
            && Instant::now() < end
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Now it is somewhere between this request and the next.
        std::thread::sleep(Duration::from_millis(number * 37 % 170));
        struck += u64::from(running.is_running());
        running.kill_and_wait();
    }
    // One that is not killed settles all of them.
    test.world.run(&test.words(&["run", "--yes", "the last"])).ended_with(0);
    let found = test.data(&["budget", "--json"]);
    let reservations = found["reservations"].as_array().unwrap();
    let mut kept = 0;
    for reservation in reservations {
        assert_eq!(reservation["state"], "abandoned", "{reservation}");
        let tokens = reservation["most_tokens"].as_i64().unwrap();
        let bound = longest.load(Ordering::SeqCst) / 3 + MOST_OUTPUT;
        assert!(tokens <= bound, "{reservation}: more than {bound}");
        kept += Priced::micros(&reservation["most_usd"]);
    }
    let spent = Priced::micros(&test.data(&["cost", "--json"])["cost_usd"]);
    let used = Priced::micros(&found["today"]["used_usd"]);
    let served = served.load(Ordering::SeqCst);
    println!(
        "{struck} of {kills} killed at work: served {served}, used {used} = spent {spent} + kept \
         {kept} for {} calls",
        reservations.len()
    );
    assert_eq!(used, spent + kept, "{found}");
    assert!(used >= served, "the bill is {served}, and the budgets know of {used}");
    assert!(u64::try_from(reservations.len()).unwrap() <= struck, "{found}");
    assert!(spent <= served, "spent {spent} of {served}");
}

#[test]
fn slow_heavy_after_kills_the_budgets_are_between_the_true_cost_and_the_bound() {
    let kills = kills(12);
    killed_often(None, kills);
    killed_often(Some(postgres::fresh()), kills / 2);
}
