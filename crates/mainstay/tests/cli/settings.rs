//! Settings, profiles, keys and the list of models, through the real binary.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use mainstay_testkit::model::{Catalogue, ModelRequest, ModelServer, Offered, Reply, Shape};

use super::home::{Home, Ran, steady};
use super::terminal::Terminal;

fn check(name: &str, ran: &Ran) {
    steady().bind(|| insta::assert_snapshot!(name, ran));
}

/// Runs a line with something on standard input.
fn fed(home: &Home, line: &str, input: &str) -> Ran {
    let mut child = home
        .command(line.split(' '))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    Ran::of(&child.wait_with_output().unwrap(), home.path("home").parent().unwrap())
}

fn write(home: &Home, name: &str, text: &str) {
    let path = home.path(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn every_setting_is_shown_with_its_value_and_where_it_comes_from() {
    let home = Home::new();
    check("config_get_group", &home.run("config get budget"));
    assert_eq!(home.names(""), [""; 0], "looking makes nothing");

    write(
        &home,
        "home/config.toml",
        "model = \"ollama/a\"\nprofile = \"careful\"\n[budget]\nturn_usd = 2\n[profiles.careful]\n\
         policy.execute = \"deny\"\n[providers.mine]\nbase_url = \"http://me:pw@h/v1\"\n\
         headers = { Authorization = \"Bearer sk-header\" }\napi_key = \"sk-misplaced\"\n",
    );
    write(&home, ".mainstay.toml", "temperature = 0.5\n");
    let mut command = home.command(["config", "get"]);
    let mut ran = home.ran(command.env("MAINSTAY_MODEL", "ollama/b"));
    let is_set = |line: &&str| !line.ends_with(" default") && !line.ends_with(" not set");
    ran.stdout = ran.stdout.lines().filter(is_set).map(|line| format!("{line}\n")).collect();
    check("config_get_what_is_set", &ran);
    for secret in ["sk-header", "sk-misplaced", "pw@"] {
        assert!(!ran.to_string().contains(secret), "{ran}");
    }
    let json = home.run("config get policy.execute --json").json();
    assert_eq!(json[0]["value"], "deny");
    assert_eq!(json[0]["origin"]["name"], "careful");
}

#[test]
fn a_setting_is_set_where_it_belongs_and_nonsense_is_refused() {
    let home = Home::new();
    home.run("config set model ollama/qwen3").well();
    home.run("config set models.ollama/qwen3.window 16384").well();
    home.run("config set fallback ollama/a,ollama/b").well();
    let file = std::fs::read_to_string(home.path("home/config.toml")).unwrap();
    check("config_set", &home.run("config get models"));
    let mode = std::fs::metadata(home.path("home/config.toml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    home.run("config set modle x/y").refused(2, "did you mean `model`?");
    home.run("config set budget.turn_usd plenty").refused(2, "it takes a number");
    home.run("config set policy.execute perhaps").refused(2, "perhaps");
    home.run("config set providers.a.api_key sk-secret").refused(2, "there is no");
    let key = home.run("config set providers.a.api_key_env sk-secret");
    key.refused(2, "takes the name of a variable");
    assert!(!key.to_string().contains("sk-secret"), "{key}");
    assert_eq!(std::fs::read_to_string(home.path("home/config.toml")).unwrap(), file);

    home.run("config unset model").well();
    assert_eq!(home.run("config get model --json").json()[0]["value"], serde_json::Value::Null);
}

#[test]
fn an_agent_cannot_change_what_it_works_under() {
    let home = Home::new();
    for line in [
        "config set policy.execute allow",
        "config unset policy",
        "config init",
        "config key set openai",
        "config key remove openai",
        "profiles use wild",
    ] {
        let mut command = home.command(line.split(' '));
        let ran = home.ran(command.env("MAINSTAY_KEEPER", "k1"));
        ran.refused(1, "changing the settings is for people");
    }
    assert_eq!(home.names(""), [""; 0]);
}

#[test]
fn a_home_that_cannot_be_written_is_said() {
    let home = Home::new();
    std::fs::write(home.path("home"), "a file").unwrap();
    for line in ["config set model ollama/a", "config init", "run hi"] {
        let ran = home.run(line);
        assert!(ran.code.is_some_and(|code| code != 0), "{ran}");
        assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains("hint: "), "{ran}");
    }
}

#[test]
fn two_who_set_at_once_both_get_their_way() {
    let home = Home::new();
    let keys = ["turn_usd", "session_usd", "day_usd", "turn_calls", "day_calls", "turn_tokens"];
    let children: Vec<_> = keys
        .iter()
        .map(|key| home.command(["config", "set", &format!("budget.{key}"), "7"]).spawn().unwrap())
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let all = home.run("config get budget --json").json();
    for key in keys {
        let name = format!("budget.{key}");
        let one = all.as_array().unwrap().iter().find(|one| one["name"] == *name).unwrap();
        assert_eq!(one["value"], 7, "{all}");
    }
}

#[test]
fn profiles_are_listed_shown_and_chosen() {
    let home = Home::new();
    check("profiles_none", &home.run("profiles"));
    home.run("config set model ollama/a").well();
    home.run("config set profiles.fast.model ollama/small").well();
    home.run("config set profiles.careful.policy.execute deny").well();
    check("profiles_use", &home.run("profiles use fast"));
    check("profiles_list", &home.run("profiles"));
    check("profiles_show", &home.run("profiles show careful"));
    check("profiles_unknown", &home.run("profiles use slow"));
    check("profiles_asked_for", &home.run("--profile careful config get policy.execute"));
    home.run("profiles use --none").well();
    assert_eq!(home.run("config get model --json").json()[0]["value"], "ollama/a");
    let mut command = home.command(["config", "get", "model", "--json"]);
    let by_variable = home.ran(command.env("MAINSTAY_PROFILE", "fast"));
    assert_eq!(by_variable.json()[0]["value"], "ollama/small");
    home.run("--profile fats run hi").refused(2, "there is no profile \"fats\"");
}

#[test]
fn a_key_is_kept_used_and_never_shown() {
    let server = ModelServer::always(Reply::text("done"));
    let home = Home::new();
    let base = server.base_url(Shape::Chat);
    let text = format!("model = \"mine/m\"\n[providers.mine]\nbase_url = \"{base}\"\n");
    write(&home, "home/config.toml", &text);
    let kept = fed(&home, "config key set mine", "sk-kept-123\n");
    check("key_set", &kept);
    check("key_list", &home.run("config key list"));
    run_in_work(&home, &["run", "hi"]).well();
    assert_eq!(server.asked()[0].header("authorization"), Some("Bearer sk-kept-123"));

    let path = home.path("home/keys.toml");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    for line in ["run hi", "config key list", "config key remove mine", "doctor"] {
        let ran = home.run(line);
        assert!(ran.to_string().contains("can be read by others (mode 644)"), "{ran}");
        assert!(ran.to_string().contains("chmod 600 "), "{ran}");
        assert!(!ran.to_string().contains("sk-kept"), "{ran}");
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    home.run("config key remove mine").well();
    home.run("config key remove mine").refused(2, "no key is kept for mine");
    fed(&home, "config key set mine", "").refused(2, "there is no key");
    fed(&home, "config key set mine", "a b").refused(2, "that is no key");
}

#[test]
fn a_key_is_typed_unseen_and_the_terminal_is_left_as_it_was() {
    let home = Home::new();
    let mut terminal = Terminal::start(&mut home.command(["config", "key", "set", "anthropic"]));
    terminal.sees("The key of anthropic (it is not shown): ");
    assert!(!terminal.echoes());
    terminal.types("sk-typed\n");
    terminal.sees("is kept in");
    assert_eq!(terminal.ended(), Some(0));
    assert!(terminal.echoes() && !terminal.screen().contains("sk-typed"));
    assert_eq!(home.run("config key list --json").json()["providers"][0], "anthropic");

    let mut terminal = Terminal::start(&mut home.command(["config", "key", "set", "openai"]));
    terminal.sees("(it is not shown): ");
    terminal.types("sk-half\u{3}");
    assert_eq!(terminal.ended(), Some(130));
    assert!(terminal.echoes(), "{}", terminal.screen());
    assert_eq!(home.run("config key list").well().stdout, "anthropic\n");
}

#[test]
fn models_of_the_chosen_providers_are_listed_and_nobody_else_is_asked() {
    let home = Home::new();
    home.run("models").refused(2, "no provider is chosen yet");
    let near = ModelServer::always(Reply::text("x"));
    near.offer(Catalogue::ollama([
        Offered::new("qwen3:8b", 40_960).served_with(16_384),
        Offered::new("llama", 8_192),
    ]));
    let far = ModelServer::always(Reply::text("x"));
    far.offer(Catalogue::plain([Offered::new("gpt-5", 1), Offered::new("other", 1)]));
    write(
        &home,
        "home/config.toml",
        &format!(
            "model = \"near/qwen3:8b\"\nfallback = [\"far/gpt-5\", \"gone/x\"]\n\
             [providers.near]\napi = \"ollama\"\nbase_url = \"{}\"\n\
             [providers.far]\nbase_url = \"{}\"\n[models.\"far/gpt-5\"]\ninput = 1.25\noutput = 10\n\
             [providers.gone]\nbase_url = \"http://127.0.0.1:1/v1\"\n",
            near.url(),
            far.base_url(Shape::Chat)
        ),
    );
    let mut command = home.command(["models"]);
    let ran = home.ran(command.env("OPENAI_API_KEY", "sk-not-chosen"));
    check("models", &ran);
    assert_eq!(near.requests() + far.requests(), 0);
    let json = home.run("models --json --refresh");
    check("models_json", &json);
}

#[test]
fn a_doctor_says_whether_there_is_a_key() {
    let home = Home::new();
    write(&home, "home/config.toml", "model = \"anthropic/claude-x\"\n");
    std::fs::set_permissions(home.path("home"), std::fs::Permissions::from_mode(0o700)).unwrap();
    let ran = home.run("doctor");
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(ran.stdout.contains("there is no key for anthropic/claude-x"), "{ran}");
    assert!(ran.stdout.contains("next: mainstay config key set anthropic"), "{ran}");
    fed(&home, "config key set anthropic", "sk-1").well();
    let ran = home.run("doctor").well();
    assert!(ran.stdout.contains("with the key kept for anthropic"), "{ran}");
    write(&home, "home/config.toml", "model = 5\n");
    assert_eq!(home.run("doctor").code, Some(1));
}

/// Runs the program in a directory that does not hold the home: the sandbox has nothing to warn of.
fn run_in_work(home: &Home, words: &[&str]) -> Ran {
    std::fs::create_dir_all(home.path("work")).unwrap();
    home.ran(home.command(words.iter().copied()).current_dir(home.path("work")))
}

/// The bytes of the first request, its prompt and tools included.
fn first_request(window: Option<u64>, instructions: &str) -> ModelRequest {
    let server = ModelServer::always(Reply::text("done"));
    let home = Home::new();
    let base = server.base_url(Shape::Chat);
    let mut text = format!("model = \"mine/m\"\n[providers.mine]\nbase_url = \"{base}\"\n");
    if let Some(window) = window {
        text.push_str(&format!("[models.\"mine/m\"]\nwindow = {window}\n"));
    }
    write(&home, "home/config.toml", &text);
    write(&home, "work/AGENTS.md", instructions);
    run_in_work(&home, &["run", "hi"]).well();
    server.asked().remove(0)
}

#[test]
fn a_small_window_gets_fewer_tools_and_a_shorter_prompt_and_no_refusal() {
    let instructions = "Indent with tabs.\n".repeat(2_000);
    let large = first_request(None, &instructions);
    let small = first_request(Some(12_000), &instructions);
    let tiny = first_request(Some(4_096), &instructions);
    assert!(large.bytes > 32_000, "{}", large.bytes);
    // Half of the window is left for the work, at three bytes a token.
    assert!(small.bytes < 12_000 * 3 / 2, "{}", small.bytes);
    assert!(tiny.bytes < 4_096 * 3 / 2 + 2_000, "{}", tiny.bytes);
    for asked in [&small, &tiny] {
        let system = asked.system();
        assert!(system.contains("Indent with tabs."), "{system}");
        assert!(system.contains("the file goes on; read it with read_file"), "{system}");
    }
    // The others are told of when they are asked for.
    assert!(small.tool_names().len() < large.tool_names().len(), "{:?}", small.tool_names());
    for name in ["shell", "read_file", "edit_file", "write_file", "more_tools"] {
        assert!(tiny.tool_names().iter().any(|tool| tool == name), "{:?}", tiny.tool_names());
    }
}
