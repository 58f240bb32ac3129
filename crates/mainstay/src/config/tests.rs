//! Who says what, and what holds.

use super::*;
use crate::paths::Globals;

/// The configuration of a home with these files, and a workspace with that one.
fn loaded(
    files: &[(&str, &str)],
    workspace: Option<&str>,
    profile: Option<&str>,
) -> Result<Config, Error> {
    let directory = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let path = directory.path().join(name);
        mainstay_store::fsatomic::write(&path, text.as_bytes(), 0o600).unwrap();
    };
    files.iter().for_each(|(name, text)| put(name, text));
    if let Some(text) = workspace {
        put(".mainstay.toml", text);
    }
    let globals = Globals { home: Some(directory.path().to_owned()), ..Globals::default() };
    let mut paths = Paths::resolve(&globals).unwrap();
    paths.profile = profile.map(|name| (name.to_owned(), "--profile"));
    Config::load(&paths, Some(directory.path()), Output::new(true))
}

#[test]
fn a_profile_holds_over_the_file_and_one_asked_for_now_over_the_workspace_too() {
    let file = "model = 'ollama/a'\nprofile = 'one'\n[budget]\nturn_usd = 1.0\nday_usd = 1.0\n\
                [profiles.one]\nmodel = 'ollama/b'\n[profiles.one.policy]\nexecute = 'deny'\n\
                [profiles.two]\nmodel = 'ollama/c'\nbudget.turn_usd = 2.0\n";
    let files = [("config.toml", file)];
    let model = |config: &Config| config.models()[0].to_owned();

    let by_file = loaded(&files, None, None).unwrap();
    assert_eq!(by_file.profile(), Some(("one", "config.toml")));
    assert_eq!(model(&by_file), "ollama/b");
    assert_eq!(by_file.file.policy.execute.as_deref(), Some("deny"));
    assert_eq!(by_file.file.budget.turn_usd, Some(1.0));

    let asked = loaded(&files, Some("model = 'ollama/w'"), Some("two")).unwrap();
    assert_eq!(model(&asked), "ollama/c");
    assert_eq!(asked.file.policy.execute, None);
    assert_eq!((asked.file.budget.turn_usd, asked.file.budget.day_usd), (Some(2.0), Some(1.0)));

    let wish = "model = 'ollama/w'\nprofile = 'two'\n[policy]\nexecute = 'allow'";
    let wished = loaded(&files, Some(wish), None).unwrap();
    assert_eq!(wished.profile(), Some(("one", "config.toml")));
    assert_eq!(model(&wished), "ollama/w");
    assert_eq!(wished.file.policy.execute.as_deref(), Some("deny"));

    let ghost = loaded(&files, None, Some("twoo")).unwrap_err();
    assert!(ghost.hints[0].contains("\"two\""), "{ghost:?}");
}

#[test]
fn a_turn_has_its_profile_whatever_is_asked_for_now() {
    let file = "model = 'ollama/a'\nprofile = 'one'\n[profiles.one]\ntemperature = 0.1\n\
                [profiles.two]\ntemperature = 0.2\n";
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [("config.toml", file), (".mainstay.toml", "temperature = 0.9")] {
        let path = directory.path().join(name);
        mainstay_store::fsatomic::write(&path, text.as_bytes(), 0o600).unwrap();
    }
    let globals = Globals { home: Some(directory.path().to_owned()), ..Globals::default() };
    let mut paths = Paths::resolve(&globals).unwrap();
    paths.profile = Some(("nobody".to_owned(), "MAINSTAY_PROFILE"));
    let of_turn = |name: Option<&str>| {
        let choice = ProfileChoice::OfTurn(name.map(str::to_owned));
        let workspace = Some(directory.path());
        let config = Config::load_with(&paths, &choice, workspace, Output::new(true)).unwrap();
        let profile = config.profile().map(|(name, _)| name.to_owned());
        (profile, config.file.temperature)
    };
    assert_eq!(of_turn(None), (None, Some(0.9)));
    // That of config.toml stays below what the workspace wants; another was asked for by name.
    assert_eq!(of_turn(Some("one")), (Some("one".to_owned()), Some(0.9)));
    assert_eq!(of_turn(Some("two")), (Some("two".to_owned()), Some(0.2)));
}

#[test]
fn nobody_is_chosen_who_was_not_named_or_given_a_key() {
    let file = "model = 'ollama/a'\nfallback = ['mine/b']\n[providers.mine]\n\
                base_url = 'http://127.0.0.1:1'\n[providers.other]\nbase_url = 'http://me:pw-1-password@h'\n\
                headers = { X-Api-Key = 'Bearer h-1-header' }\n";
    let keys = "anthropic = 'sk-1-anthropic'\ntavily = 'tv-1-tavily'\n";
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [("config.toml", file), ("keys.toml", keys)] {
        let path = directory.path().join(name);
        mainstay_store::fsatomic::write(&path, text.as_bytes(), 0o600).unwrap();
    }
    let globals = Globals { home: Some(directory.path().to_owned()), ..Globals::default() };
    let paths = Paths::resolve(&globals).unwrap();
    let config = Config::load(&paths, None, Output::new(true)).unwrap();
    assert_eq!(config.chosen_providers().unwrap(), ["ollama", "mine", "other", "anthropic"]);
    // They are kept out of everything that is recorded, sent or printed.
    let secrets = crate::redaction::shared().secrets();
    for (name, key) in [
        ("key of anthropic", "sk-1-anthropic"),
        ("key of tavily", "tv-1-tavily"),
        ("X-Api-Key of other", "h-1-header"),
        ("password of other", "pw-1-password"),
    ] {
        let is_it = |(said, secret): &(String, String)| said == name && secret == key;
        assert!(secrets.iter().any(is_it), "{name}: {secrets:?}");
    }
    let source = config.provider("anthropic").unwrap().key.describe();
    assert_eq!(source, "the stored key of anthropic");
}

#[test]
fn times_are_read_as_people_write_them() {
    let cases = [
        ("30", Some(30_000)),
        ("0", Some(0)),
        ("1.5", Some(1_500)),
        ("500ms", Some(500)),
        ("2 m", Some(120_000)),
        ("1h", Some(3_600_000)),
        ("", None),
        ("soon", None),
        ("5 parsecs", None),
        ("-1", None),
    ];
    for (text, millis) in cases {
        assert_eq!(duration(text), millis.map(Duration::from_millis), "{text:?}");
    }
}
