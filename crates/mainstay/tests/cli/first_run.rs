//! The first run: no model is configured, and a server of this machine may or may not be there.

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mainstay_testkit::model::{Catalogue, Gate, ModelRequest, ModelServer, Offered, Reply, Shape};
use serde_json::json;

use super::home::{Home, steady};
use super::terminal::Terminal;

/// A model that calls the tool of the trial, and then answers.
fn able(asked: &ModelRequest) -> Reply {
    match asked.tool_names().as_slice() {
        [only] if only == "report" => Reply::call_of("report", json!({ "word": "ready" })),
        _ => Reply::text("hello to you"),
    }
}

fn ollama(script: fn(&ModelRequest) -> Reply) -> ModelServer {
    let server = ModelServer::answering(script);
    server.offer(Catalogue::ollama([
        Offered::new("qwen3:8b", 40_960),
        Offered::new("gemma3", 8_192).without_tools().loaded(),
        Offered::new("nomic-embed", 2_048).embedding(),
    ]));
    server
}

fn studio() -> ModelServer {
    let server = ModelServer::answering(able);
    server.offer(Catalogue::lm_studio([
        Offered::new("qwen/qwen3-4b", 131_072).served_with(12_000).loaded(),
        Offered::new("big", 131_072),
    ]));
    server
}

/// The binary with servers at these places in place of the usual ports.
fn command(home: &Home, servers: &str, words: &[&str]) -> Command {
    let mut command = home.command(words.iter().copied());
    // Not beside the home, which the sandbox hides.
    std::fs::create_dir_all(home.path("work")).unwrap();
    command.current_dir(home.path("work")).env("MAINSTAY_LOCAL_SERVERS", servers);
    command
}

fn at(name: &str, server: &ModelServer) -> String {
    let path = if name == "ollama" { "" } else { "/v1" };
    format!("{name}={}{path}", server.url())
}

/// What differs from run to run besides.
fn hidden(text: &str, servers: &[&ModelServer]) -> String {
    servers.iter().fold(text.to_owned(), |text, server| text.replace(&server.url(), "[URL]"))
}

fn config(home: &Home) -> String {
    let text = std::fs::read_to_string(home.path("home/config.toml")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let lines: Vec<&str> = lines.collect();
    // A part in which nothing is set says nothing.
    let is_part = |line: Option<&&str>| line.is_none_or(|line| line.starts_with('['));
    let says = |(at, line): (usize, &&str)| !line.starts_with('[') || !is_part(lines.get(at + 1));
    let said = lines.iter().enumerate().filter(|(at, line)| says((*at, line)));
    said.map(|(_, line)| *line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_script_finds_ollama_and_is_told_what_was_chosen() {
    let (home, server) = (Home::new(), ollama(able));
    let ran = home.ran(&mut command(&home, &at("ollama", &server), &["run", "hi"]));
    steady()
        .bind(|| insta::assert_snapshot!("first_run_ollama", hidden(&ran.to_string(), &[&server])));
    let written = hidden(&config(&home), &[&server]);
    steady().bind(|| insta::assert_snapshot!("first_run_ollama_config", written));

    // The trial is the model that does the work, with the same window, and both are in the ledger.
    let asked = server.asked();
    assert_eq!(asked.len(), 2);
    assert!(asked.iter().all(|asked| asked.model() == "qwen3:8b" && asked.shape == Shape::Ollama));
    assert!(asked.iter().all(|asked| asked.body["options"]["num_ctx"] == 32_768));
    let cost = home.run("cost --by model --json").json();
    assert_eq!(cost["parts"][0]["calls"], 2, "{cost}");

    // The next run asks nothing besides.
    let looked = server.looked().len();
    let again = home.ran(&mut command(&home, "none", &["run", "hi"]));
    assert_eq!((again.code, again.stderr.as_str()), (Some(0), ""), "{again}");
    assert_eq!(server.looked().len(), looked);
    server.assert_no_violations();
}

#[test]
fn a_script_finds_lm_studio_with_the_window_it_serves() {
    let (home, server) = (Home::new(), studio());
    let ran = home.ran(&mut command(&home, &at("lmstudio", &server), &["run", "hi"]));
    steady().bind(|| {
        insta::assert_snapshot!("first_run_lm_studio", hidden(&ran.to_string(), &[&server]));
    });
    let written = hidden(&config(&home), &[&server]);
    steady().bind(|| insta::assert_snapshot!("first_run_lm_studio_config", written));
}

#[test]
fn a_script_finds_llama_cpp() {
    let (home, server) = (Home::new(), ModelServer::answering(able));
    server.offer(Catalogue::llama_cpp(Offered::new("model.gguf", 8_192)));
    let ran = home.ran(&mut command(&home, &at("llamacpp", &server), &["run", "--json", "hi"]));
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(ran.stderr.contains("llamacpp/model.gguf is used from now on"), "{ran}");
    assert!(ran.stderr.contains("8192 tokens"), "{ran}");
    let first: serde_json::Value =
        serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(first["type"], "session", "the events are as ever");
}

#[test]
fn without_a_server_the_three_ways_are_said_and_nothing_is_written() {
    let home = Home::new();
    let ran = home.run("run hi");
    steady().bind(|| insta::assert_snapshot!("first_run_nothing", ran));
    assert!(!home.path("home/config.toml").exists());
}

#[test]
fn a_key_in_the_environment_is_an_offer_and_nobody_is_contacted() {
    let (home, far) = (Home::new(), ModelServer::always(Reply::text("never")));
    let mut command = command(&home, "none", &["run", "hi"]);
    // If it were used it would come here.
    let ran = home.ran(
        command
            .env("ANTHROPIC_API_KEY", "sk-given")
            .env("HTTPS_PROXY", far.url())
            .env("https_proxy", far.url()),
    );
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.stderr.contains("mainstay config set model anthropic/MODEL"), "{ran}");
    assert!(!ran.to_string().contains("sk-given"), "{ran}");
    assert_eq!((far.requests(), far.looked().len()), (0, 0));
}

#[test]
fn a_model_that_only_speaks_is_said_to() {
    let (home, server) = (Home::new(), ollama(|_| Reply::text("I am ready!")));
    let ran = home.ran(&mut command(&home, &at("ollama", &server), &["run", "hi"]));
    assert_eq!(ran.code, Some(0), "{ran}");
    let said = "it answers, but did not call the tool; it said: I am ready!";
    assert!(ran.stderr.contains(said), "{ran}");
}

#[test]
fn a_model_that_fails_is_passed_over() {
    let script = |asked: &ModelRequest| match asked.model() {
        "qwen3:8b" => Reply::status(500, "llama runner has terminated"),
        _ => able(asked),
    };
    let (home, server) = (Home::new(), ollama(script));
    let ran = home.ran(&mut command(&home, &at("ollama", &server), &["run", "hi"]));
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(ran.stderr.contains("ollama/gemma3 is used from now on"), "{ran}");

    let (home, server) = (Home::new(), ollama(|_| Reply::status(500, "out of memory")));
    let ran = home.ran(&mut command(&home, &at("ollama", &server), &["run", "hi"]));
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.stderr.contains("out of memory") && ran.stderr.contains("hint: Start"), "{ran}");
}

#[test]
fn a_person_chooses_among_all_that_was_found() {
    let (home, ollama, studio) = (Home::new(), ollama(able), studio());
    let servers = format!("{},{}", at("ollama", &ollama), at("lmstudio", &studio));
    let mut terminal = Terminal::start(&mut command(&home, &servers, &["run", "hi"]));
    terminal.sees("Which one? [1] ");
    terminal.types("9\n");
    terminal.sees("There is no 9: type a number from 1 to 4.");
    terminal.types("llama\n");
    terminal.sees("There is no \"llama\"");
    terminal.types("ollama/qwen3:8b\n");
    terminal.sees("hello to you");
    assert_eq!(terminal.ended(), Some(0));
    let screen = hidden(&terminal.screen(), &[&ollama, &studio]);
    let screen = screen.replace(home.path("").to_str().unwrap(), "[DIR]/");
    let mut settings = steady();
    settings.add_filter(r"\(\d+ tokens; go on", "([TOKENS]; go on");
    settings.bind(|| insta::assert_snapshot!("first_run_choice", screen));
    assert!(config(&home).contains("model = \"ollama/qwen3:8b\""));
    assert_eq!(studio.requests(), 0, "only the chosen one is tried");
}

#[test]
fn a_person_may_refuse_a_model_that_only_speaks_and_choose_another() {
    let script = |asked: &ModelRequest| match asked.model() {
        "gemma3" => Reply::text("ready!"),
        _ => able(asked),
    };
    let (home, server) = (Home::new(), ollama(script));
    let mut terminal = Terminal::start(&mut command(&home, &at("ollama", &server), &["run", "hi"]));
    terminal.sees("Which one? [1] ");
    terminal.types("2\n");
    terminal.sees("Use it all the same, to talk? [y/N] ");
    terminal.types("\n");
    terminal.sees("calls no tools, in memory\nWhich one? [1] ");
    terminal.types("\n");
    terminal.sees("hello to you");
    assert_eq!(terminal.ended(), Some(0));
    assert!(config(&home).contains("model = \"ollama/qwen3:8b\""));
}

#[test]
fn ctrl_c_in_the_middle_of_the_choice_leaves_everything_as_it_was() {
    let (home, server) = (Home::new(), ollama(able));
    let mut terminal = Terminal::start(&mut command(&home, &at("ollama", &server), &["run", "hi"]));
    terminal.sees("Which one? [1] ");
    terminal.types("1\u{3}");
    assert_eq!(terminal.ended(), Some(130), "{}", terminal.screen());
    terminal.sees("stopped; nothing was chosen");
    assert!(!home.path("home/config.toml").exists());
    assert_eq!(server.requests(), 0);

    // The end of input is no choice either.
    let mut terminal = Terminal::start(&mut command(&home, &at("ollama", &server), &["run", "hi"]));
    terminal.sees("Which one? [1] ");
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(2), "{}", terminal.screen());
    assert!(!home.path("home/config.toml").exists());
}

#[test]
fn a_key_that_a_person_chooses_is_used_then() {
    let (home, far) = (Home::new(), ModelServer::answering(able));
    far.offer(Catalogue::anthropic([Offered::new("claude-x", 1), Offered::new("claude-y", 1)]));
    std::fs::create_dir(home.path("home")).unwrap();
    let base = far.base_url(Shape::Anthropic);
    let text = format!(
        "[providers.far]\napi = \"anthropic\"\nbase_url = \"{base}\"\napi_key_env = \"FAR\"\n"
    );
    std::fs::write(home.path("home/config.toml"), text).unwrap();
    let mut command = command(&home, "none", &["run", "hi"]);
    let mut terminal = Terminal::start(command.env("FAR", "sk-far"));
    terminal.sees("1  far, with the variable FAR\nWhich one? [1] ");
    assert_eq!(far.looked().len(), 0, "nobody is contacted before the choice");
    terminal.types("1\n");
    terminal.sees("2  far/claude-y\nWhich one? [1] ");
    terminal.types("2\n");
    terminal.sees("hello to you");
    assert_eq!(terminal.ended(), Some(0));
    assert!(config(&home).contains("model = \"far/claude-y\""));
    assert!(far.asked().iter().all(|asked| asked.header("x-api-key") == Some("sk-far")));
    assert!(!terminal.screen().contains("sk-far"));
}

#[test]
fn killed_in_the_middle_of_the_trial_the_next_run_begins_anew() {
    let (home, gate) = (Home::new(), Gate::new());
    let held = gate.clone();
    let server = ModelServer::answering(move |asked: &ModelRequest| match asked.number {
        1 => able(asked).held_by(&held),
        _ => able(asked),
    });
    server.offer(Catalogue::ollama([Offered::new("qwen3:8b", 40_960)]));
    let mut first = command(&home, &at("ollama", &server), &["run", "hi"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    server.wait_for_requests(1, Duration::from_secs(30));
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(!home.path("home/config.toml").exists());
    gate.open();
    let ran = home.ran(&mut command(&home, &at("ollama", &server), &["run", "hi"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hello to you\n"), "{ran}");
    // The call that nobody saw the end of is in the ledger too.
    let cost = home.run("cost --by model --json").json();
    assert_eq!(cost["parts"][0]["calls"], 3, "{cost}");
}

#[test]
fn servers_that_say_nothing_hold_nobody_up() {
    let (home, server) = (Home::new(), ollama(able));
    let silent: Vec<TcpListener> =
        (0..3).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let mut servers = at("ollama", &server);
    for socket in &silent {
        servers.push_str(&format!(",other=http://{}/v1", socket.local_addr().unwrap()));
    }
    let began = Instant::now();
    let ran = home.ran(&mut command(&home, &servers, &["run", "hi"]));
    assert_eq!(ran.code, Some(0), "{ran}");
    // Three seconds side by side; one after the other it would be nine.
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());

    let wrong = home.ran(&mut command(&Home::new(), "ollama", &["config", "get"]));
    assert_eq!(wrong.code, Some(0), "who looks at nothing minds nothing: {wrong}");
    let other = Home::new();
    other.ran(&mut command(&other, "ollama", &["run", "hi"])).refused(2, "which is no NAME=URL");
}

#[test]
fn an_agent_does_not_set_itself_up() {
    let (home, server) = (Home::new(), ollama(able));
    let mut command = command(&home, &at("ollama", &server), &["run", "hi"]);
    let ran = home.ran(command.env("MAINSTAY_JOB", "1q1a"));
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(!home.path("home/config.toml").exists() && server.looked().is_empty());
}

#[test]
fn init_asks_on_a_terminal_and_nowhere_else() {
    let (home, server) = (Home::new(), ollama(able));
    let servers = at("ollama", &server);
    home.ran(&mut command(&home, &servers, &["config", "init"])).well();
    assert!(server.looked().is_empty());
    assert!(!config(&home).contains("model ="), "{}", config(&home));

    let home = Home::new();
    let mut terminal = Terminal::start(&mut command(&home, &servers, &["config", "init"]));
    terminal.sees("Which one? [1] ");
    terminal.types("\n");
    terminal.sees("config.toml is written");
    assert_eq!(terminal.ended(), Some(0));
    assert!(config(&home).contains("model = \"ollama/qwen3:8b\""));
}
