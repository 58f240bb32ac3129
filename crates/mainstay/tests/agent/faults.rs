//! Providers that fail: what is asked again, what the user is told, and how the work goes on.

use std::time::Duration;

use mainstay_testkit::model::{ModelRequest, ModelServer, Reply, Shape};
use mainstay_testkit::process::wait_for;
use serde_json::{Value, json};

use crate::world::{Told, World};

/// Times that a test can wait for.
const LIMITS: &str = "[limits]\nconnect = 2\nfirst_byte = \"700ms\"\nidle = \"700ms\"\n\
                      retry_after = 2\nattempts = 2";

/// Three providers of their own, all played by the world's model: `one/a`, then `two/b`, `three/c`.
fn chained(world: &World, fallback: &str) {
    let url = world.model.base_url(Shape::Chat);
    let providers: String = ["one", "two", "three"]
        .map(|name| format!("[providers.{name}]\napi = \"openai-chat\"\nbase_url = \"{url}\"\n"))
        .concat();
    world.configure(&format!("model = \"one/a\"\nfallback = {fallback}\n{providers}{LIMITS}\n"));
}

const ALONE: &str = "[]";
const TWO_MORE: &str = "[\"two/b\", \"three/c\"]";

/// A fault: what the provider does, and words that must reach the user.
fn faults() -> Vec<(Reply, &'static str)> {
    vec![
        (Reply::status(429, "slow down please"), "429 slow down please"),
        (Reply::status(500, "it broke here"), "500 it broke here"),
        (Reply::status(503, "gone for lunch"), "503 gone for lunch"),
        (Reply::status(529, "too many of you"), "529 too many of you"),
        (Reply::text("x").cut_before_first_byte(), "one/a: "),
        (Reply::text("x").cut_after_events(1).by_reset(), "one/a: "),
        (Reply::text("x").stall_before_first_byte(), "one/a: "),
        (Reply::text("x").stall_after_events(1), "one/a: "),
        (Reply::text("x").garbage(), "one/a: "),
        (Reply::text("x").end_after_events(1), "one/a: "),
        (Reply::text("x").error_event_after(1, "server_error", "mid-way words"), "mid-way words"),
        (Reply::status(402, "pay first"), "402 pay first"),
        (
            Reply::status(429, "You exceeded your current quota").code("insufficient_quota"),
            "429 You exceeded your current quota",
        ),
        (Reply::status(401, "who are you"), "401 who are you"),
        (Reply::status(404, "no model of that name"), "404 no model of that name"),
        (Reply::status(400, "this makes no sense to me"), "400 this makes no sense to me"),
        (
            Reply::status(400, "maximum context length is 8 tokens")
                .code("context_length_exceeded"),
            "400 maximum context length is 8 tokens",
        ),
        (Reply::raw(502, &[("content-type", "text/html")], "<h1>Bad gateway</h1>"), "502"),
    ]
}

fn cost(world: &World) -> Value {
    let told = world.run(&["cost", "--json", "--by", "model"]).ended_with(0);
    serde_json::from_str(&told.stdout).unwrap()
}

fn counted(cost: &Value, figure: &str) -> i64 {
    cost["parts"].as_array().unwrap().iter().map(|part| part[figure].as_i64().unwrap()).sum()
}

#[test]
fn a_fault_without_a_fallback_ends_the_turn_in_the_provider_s_words_and_is_told_on() {
    let each = faults();
    std::thread::scope(|scope| {
        for chunk in each.chunks(6) {
            scope.spawn(move || chunk.iter().for_each(|(fault, words)| alone(fault, words)));
        }
    });
}

fn alone(fault: &Reply, words: &str) {
    let fault = fault.clone();
    let world =
        World::new(move |asked: &ModelRequest| match asked.last_user_text().contains("go on") {
            true => Reply::text("went on"),
            false => fault.clone(),
        });
    chained(&world, ALONE);
    let failed = world.run(&["run", "--json", "begin"]).ended_with(1);
    let end = failed.event("end");
    assert_eq!(end["outcome"], "failed", "{words}: {failed:#?}");
    let reason = end["reason"].as_str().unwrap();
    assert!(reason.starts_with("one/a: ") && reason.contains(words), "{words}: {reason}");
    let asked = i64::try_from(world.model.requests()).unwrap();
    let ledger = cost(&world);
    assert_eq!(counted(&ledger, "calls"), asked, "{words}: {ledger}");
    assert_eq!(counted(&ledger, "failed"), asked, "{words}: {ledger}");

    let session = failed.session();
    let more = world.run(&["run", "--session", &session, "go on"]).ended_with(0);
    assert_eq!(more.stdout, "went on\n", "{words}");
    let body = world.model.asked().pop().unwrap().body.to_string();
    assert!(body.contains("the turn ended with an error: one/a: "), "{words}: {body}");
    world.model.assert_no_violations();
}

#[test]
fn with_fallbacks_the_last_one_answers_and_the_user_hears_why() {
    let each = faults();
    std::thread::scope(|scope| {
        for chunk in each.chunks(6) {
            scope.spawn(move || chunk.iter().for_each(|(fault, words)| rescued(fault, words)));
        }
    });
}

fn rescued(fault: &Reply, words: &str) {
    let fault = fault.clone();
    let world = World::new(move |asked: &ModelRequest| match asked.model() {
        "a" => fault.clone(),
        "b" => Reply::status(401, "b knows you not"),
        _ => Reply::text("c answers"),
    });
    chained(&world, TWO_MORE);
    let told = world.run(&["run", "begin"]).ended_with(0);
    assert_eq!(told.stdout, "c answers\n", "{words}");
    assert!(told.stderr.contains(words), "{words}: {}", told.stderr);
    assert!(told.stderr.contains("two/b: 401 b knows you not"), "{words}: {}", told.stderr);
    let asked = world.model.asked();
    assert_eq!(asked.last().unwrap().model(), "c", "{words}");
    let ledger = cost(&world);
    assert_eq!(counted(&ledger, "calls"), i64::try_from(asked.len()).unwrap(), "{words}: {ledger}");
    assert_eq!(counted(&ledger, "failed"), i64::try_from(asked.len()).unwrap() - 1, "{words}");
    world.model.assert_no_violations();
}

#[test]
fn when_all_fail_the_message_is_the_chain_with_the_first_cause_first() {
    let world = World::new(|asked: &ModelRequest| match asked.model() {
        "a" => Reply::status(400, "a has no sense"),
        "b" => Reply::status(402, "b wants money"),
        _ => Reply::status(401, "c knows you not"),
    });
    chained(&world, TWO_MORE);
    let failed = world.run(&["run", "begin"]).ended_with(1);
    let chain = "one/a: 400 a has no sense; fallback two/b: 402 b wants money; \
                 fallback three/c: 401 c knows you not";
    assert!(failed.stderr.contains(chain), "{}", failed.stderr);
    assert!(failed.stderr.contains("mainstay resume"), "{}", failed.stderr);
    assert_eq!(failed.stdout, "");
}

#[test]
fn a_wait_above_the_cap_parks_the_turn_until_then_and_resume_goes_on() {
    for (header, seconds) in [("7200", 7200), ("Wed, 01 Jan 2200 00:00:00 GMT", 80_000)] {
        let mut first = true;
        let world = World::new(move |_: &ModelRequest| match std::mem::take(&mut first) {
            true => Reply::status(429, "come back later").header("retry-after", header),
            false => Reply::text("answered"),
        });
        chained(&world, ALONE);
        let parked = world.run(&["run", "--json", "begin"]).ended_with(3);
        assert_eq!(parked.event("end")["outcome"], "parked");
        let event = parked.event("parked");
        assert!(event["reason"].as_str().unwrap().contains("429 come back later"), "{event}");
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let wait =
            event["resume_at"].as_i64().unwrap() / 1000 - i64::try_from(now.as_secs()).unwrap();
        match seconds {
            7200 => assert!((7150..=7260).contains(&wait), "{wait}"),
            least => assert!(wait > least, "{wait}"),
        }
        assert_eq!(world.model.requests(), 1, "it was asked again within the time");
        assert_eq!(world.run(&["resume"]).ended_with(0).stdout, "answered\n");
        world.model.assert_no_violations();
    }
}

#[test]
fn a_short_wait_is_kept_to_and_one_that_makes_no_sense_is_not() {
    for (header, least) in [("0", 0), ("1", 1000), ("soon", 0), ("-5", 0)] {
        let mut first = true;
        let world = World::new(move |_: &ModelRequest| match std::mem::take(&mut first) {
            true => Reply::status(429, "in a moment").header("retry-after", header),
            false => Reply::text("answered"),
        });
        chained(&world, ALONE);
        assert_eq!(world.run(&["run", "begin"]).ended_with(0).stdout, "answered\n", "{header}");
        let asked = world.model.asked();
        let waited = asked[1].at - asked[0].at;
        assert!(waited >= Duration::from_millis(least), "{header}: {waited:?}");
        assert!(waited < Duration::from_secs(5), "{header}: {waited:?}");
    }
}

#[test]
fn errors_in_the_twentieth_round_keep_all_that_was_done() {
    let mut errors = 0;
    let world = World::new(move |asked: &ModelRequest| match asked.results().len() {
        19 if errors < 10 => {
            errors += 1;
            Reply::status(500, "the server is on fire")
        }
        number @ 0..20 => {
            Reply::call_of("shell", json!({ "command": format!("echo {number} >> count") }))
        }
        _ => Reply::text("All counted."),
    });
    world.configure_more("[limits]\nattempts = 2");
    let failed = world.run(&["run", "--yes", "--json", "count"]).ended_with(1);
    let session = failed.session();
    for _ in 0..4 {
        let again = world.run(&["resume", &session, "--yes"]).ended_with(1);
        assert!(
            again.stderr.contains("500 the server is on fire after 2 attempts"),
            "{}",
            again.stderr
        );
    }
    let done = world.run(&["resume", &session, "--yes"]).ended_with(0);
    assert_eq!(done.stdout, "All counted.\n");
    let expected: String = (0..20).map(|number| format!("{number}\n")).collect();
    assert_eq!(world.file("count"), expected);
    world.model.assert_no_violations();
    let ledger = cost(&world);
    assert_eq!((counted(&ledger, "calls"), counted(&ledger, "failed")), (31, 10), "{ledger}");
}

#[test]
fn a_missing_key_is_named_and_nothing_is_sent() {
    let world = World::new(|_: &ModelRequest| Reply::text("unheard"));
    world.configure_more("api_key_env = \"NO_SUCH_KEY\"");
    let failed = world.run(&["run", "begin"]).ended_with(1);
    assert!(failed.stderr.contains("NO_SUCH_KEY is not set"), "{}", failed.stderr);
    assert_eq!(world.model.requests(), 0);
    let mut again = world.command(&["resume", session_of(&failed)]);
    let done = Told::from(again.env("NO_SUCH_KEY", "sk-secret-1234").output().unwrap());
    assert_eq!(done.ended_with(0).stdout, "unheard\n");
    let asked = world.model.asked();
    assert_eq!(asked[0].header("authorization"), Some("Bearer sk-secret-1234"));
}

/// The session that an error's hint names.
fn session_of(told: &Told) -> &str {
    let command = told.stderr.split('`').nth(1).expect("a hint with a command");
    command.split_whitespace().last().unwrap()
}

#[test]
fn nobody_listens_at_the_address() {
    let gone = ModelServer::always(Reply::text("x"));
    let url = gone.base_url(Shape::Chat);
    drop(gone);
    let world = World::new(|_: &ModelRequest| Reply::text("x"));
    world.configure(&format!(
        "model = \"local/x\"\n[providers.local]\nbase_url = \"{url}\"\n[limits]\nattempts = 1"
    ));
    let failed = world.run(&["run", "begin"]).ended_with(1);
    assert!(failed.stderr.contains("local/x: "), "{}", failed.stderr);
    assert!(failed.stderr.to_lowercase().contains("refused"), "{}", failed.stderr);
}

#[test]
fn a_call_whose_stream_was_cut_never_runs_in_half() {
    let shapes = [Shape::Chat, Shape::Responses, Shape::Anthropic, Shape::Ollama];
    std::thread::scope(|scope| {
        for shape in shapes {
            scope.spawn(move || cut_everywhere(shape));
        }
    });
}

fn cut_everywhere(shape: Shape) {
    let whole = Reply::call_of("shell", json!({ "command": "echo ran >> count; echo a; echo b" }));
    for cut in 0..whole.events(shape) {
        let whole = whole.clone();
        let mut first = true;
        let world = World::speaking(shape, move |asked: &ModelRequest| {
            match (asked.results().len(), std::mem::take(&mut first)) {
                (0, true) => whole.clone().cut_inside_event(cut),
                (0, false) => whole.clone(),
                _ => Reply::text("done"),
            }
        });
        let told = world.run(&["run", "--yes", "begin"]).ended_with(0);
        assert_eq!(told.stdout, "done\n", "{shape}, {cut}");
        assert_eq!(world.file("count"), "ran\n", "{shape}, {cut}");
        world.model.assert_no_violations();
    }
}

#[test]
fn words_of_a_try_that_failed_are_not_part_of_the_answer() {
    let mut first = true;
    let world = World::new(move |_: &ModelRequest| match std::mem::take(&mut first) {
        true => Reply::text("these words are void").cut_after_events(3),
        false => Reply::text("these words count"),
    });
    let told = world.run(&["run", "--json", "begin"]).ended_with(0);
    assert_eq!(told.event("end")["answer"], "these words count");
    assert_eq!(told.event("notice")["void"], true);
    let shown = world.run(&["sessions", "show", &told.session()]).ended_with(0).stdout;
    assert!(!shown.contains("void"), "{shown}");
}

#[test]
fn the_time_of_the_whole_chain_is_a_bound() {
    let world = World::new(|_: &ModelRequest| Reply::text("x").stall_before_first_byte());
    chained(&world, TWO_MORE);
    world.configure_more("chain = \"1500ms\"");
    let mut running = world.start(&["run", "begin"]);
    let status = running.wait(Duration::from_secs(6));
    assert_eq!(status.code(), Some(1));
    wait_for("no connection", Duration::from_secs(5), || world.model.open_connections() == 0);
}
